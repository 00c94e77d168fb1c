#!/usr/bin/python3
"""promises.py POSTRIDER DIR: the two measurements of promises.sh, which has started Slurm and the daemon."""
import json
import os
import random
import statistics
import subprocess
import sys
import time

postrider, folder = sys.argv[1:3]
jobs = int(os.environ["SLURM_PROMISES"])
draw = random.Random(7)


def call(*argv, stdin=None):
    return subprocess.run(argv, input=stdin, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def submit(*argv):
    """The id of the job; None: it was rejected."""
    done = call(postrider, "submit", "work", "-q", *argv)
    if done.returncode not in (0, 3):
        sys.exit(f"submit {argv}: {done.stderr}")
    return done.stdout.strip() if done.returncode == 0 else None


def listed():
    done = call(postrider, "list", "--json", "--all")
    return {j["job"]: j for j in json.loads(done.stdout)["jobs"]}


def wait_for(ids, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        now = listed()
        if all(now[i]["state"] in ("done", "failed", "lost", "cancelled") for i in ids):
            return now
        time.sleep(0.5)
    sys.exit("jobs are not done in time: " + ", ".join(f"{i} {now[i]['state']}" for i in ids if now[i]["ended_at"] is None))


def foreign(cpus, seconds, minutes, *options):
    script = f"#!/bin/sh\nsleep {seconds}\n"
    done = call("sbatch", "--parsable", f"--cpus-per-task={cpus}", f"--time={minutes}", "--chdir=/", "--output=/dev/null",
                *options, stdin=script)
    return done.stdout.strip()


def promises():
    """Jobs of us and of others arrive together; what was promised is to be kept as often as stated."""
    promised, asked = [], 0
    while len(promised) < jobs and asked < 3 * jobs:
        asked += 1
        if asked % 6 == 0:
            foreign(draw.choice([1, 2, 4]), draw.uniform(2, 20), 1)
        slo = draw.uniform(10, 60)
        job = submit("--slo", f"{slo:.1f}", "--set", f"samples={draw.choice([4000, 8000, 12000])}", "--set",
                     f"draw={asked}", "--confidence", "0.9")
        if job:
            promised.append(job)
        time.sleep(draw.expovariate(2.0))
    ended = wait_for(promised, 400)
    met = sum(ended[j]["slo_outcome"] == "met" for j in promised)
    for j in promised:
        if ended[j]["slo_outcome"] != "met":
            one = ended[j]
            print("missed:", j, one["state"], one["reason"], "slo", one["slo_s"], "wait", one["wait_s"], "run", one["run_s"],
                  "bound", one["upper_s"])
    print(f"slurm.kept {met / len(promised):.4f}, {met} of {len(promised)} promises at 0.9, {asked} jobs asked for one")
    return len(promised) >= min(jobs, 60) and met >= 0.9 * len(promised)


def seconds_of(path):
    with open(path, encoding="ascii") as f:
        return float(f.read())


def starts():
    """20 jobs of ours, two at a time on the nodes of `near`, and as many scripts that do the same, two at a time on that of `far`."""
    call("scancel", f"--user={os.getuid()}")
    time.sleep(3)
    n, wide = 20, 8
    samples, batch = 12000, 512
    limit = call(postrider, "predict", f"{folder}/m.model", "--job",
                 f"network=simplenet,cpus={wide},njobs=1,epochs=4,samples={samples},batch={batch}", "--time-only", "-q")
    ours, twins = [], []
    for k in range(n):
        ours.append(submit("--set", f"samples={samples}", "--set", f"draw={500 + k}", "--cpus", str(wide), "--batches",
                           str(batch)))
        script = (f"#!/bin/sh\ndate +%s.%N >{folder}/twin-{k}\nsleep \"$(awk -v batch={batch} -v samples={samples} "
                  f"-v seed={500 + k} -f {folder}/time_of.awk)\"\n")
        done = call("sbatch", "--parsable", f"--cpus-per-task={wide // 2}", "--partition=far", f"--time={limit.stdout.strip()}",
                    "--chdir=/", "--output=/dev/null", stdin=script)
        twins.append(done.stdout.strip())
    time.sleep(4)  # backfill plans once a second
    now = time.time()
    mine = {j: now + one["estimate"]["start_s"] for j, one in listed().items()
            if j in ours and one["state"] == "queued" and one["estimate"]}
    said = call("env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--start", "--partition=far", "--format=%i|%S")
    theirs = {}
    for line in said.stdout.splitlines():
        job, at = line.split("|")
        if job in twins and at.isdigit():
            theirs[job] = float(at)
    ended = wait_for(ours, 300)
    until = time.monotonic() + 300
    while not all(os.path.exists(f"{folder}/twin-{k}") for k in range(n)) and time.monotonic() < until:
        time.sleep(0.5)
    began = {j: ended[j]["wait_s"] for j in ours}
    submitted = {j: parse(ended[j]["submitted_at"]) for j in ours}
    ours_off = [abs(mine[j] - (submitted[j] + began[j])) for j in mine]
    theirs_off = [abs(theirs[t] - seconds_of(f"{folder}/twin-{twins.index(t)}")) for t in theirs]
    a, b = statistics.median(ours_off), statistics.median(theirs_off)
    print(f"slurm.start_error {a / b:.4f}: median {a:.2f} s of {len(ours_off)} jobs, Slurm's {b:.2f} s of {len(theirs_off)}")
    return len(ours_off) >= 6 and len(theirs_off) >= 6 and a <= 0.5 * b


def parse(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


good = promises()
good &= starts()
sys.exit(0 if good else 1)
