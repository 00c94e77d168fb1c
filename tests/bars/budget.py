#!/usr/bin/env python3
"""What a budget buys: jobs whose truth is known are measured by `postrider profile --budget`, and the model is asked.

  budget.py POSTRIDER [--jobs N] [--scale S] [--shortest S] [--seed N]

A job sleeps: a start-up, then epochs whose length falls with the batch, with 3 % of noise a run and 2 % an epoch. Its
14 epochs with the middle batch take 1 s to 5 min, its budget is 30 s to 5 min; --scale shortens both. Jobs are measured
beside each other, because a job that sleeps takes no cpu from another.

Said of each: by how much the budget was exceeded, in epochs; and together: how many of the feasible limits (0.5 to 3
times the true time of the middle batch, for 14 epochs and for 10 times the longest run measured) are promised, how many
bounds hold, and the accuracy of the batch that would be chosen over the best one in time. Ends with 1 where a bar
does not hold.
"""
import argparse, csv, json, math, os, random, subprocess, sys, tempfile, threading, time

BATCHES = (16, 64, 256)
EPOCHS = (1, 2, 14)
JOB = """
import random, sys, time
batch, epochs, start, epoch, over = int(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:6])
run = random.lognormvariate(0, 0.03)
time.sleep(start)
for e in range(1, epochs + 1):
    time.sleep(run * random.lognormvariate(0, 0.02) * epoch * (1 + over * 64 / batch) / (1 + over))
    print(f"[{e}/{epochs}] val_acc={(0.95 - 0.03 * (batch / 16) ** 0.5) * (1 - 0.6 * e ** -0.8):.4f}", flush=True)
"""


class Job:
    def __init__(self, n, of, scale, shortest, rnd):
        # evenly over the logarithm, so that few jobs cover the range, too
        whole = scale * shortest * (300.0 / shortest) ** ((n + rnd.random()) / of)
        self.n, self.over = n, rnd.uniform(0.2, 2.0)
        self.start = min(0.2 * whole, scale * 10 ** rnd.uniform(-0.7, 0.7))  # of 0.2 to 5 s, as programs have
        self.program_s = 0.0  # that the start of the interpreter takes, which does not shrink with the scale
        self.epoch = (whole - self.start) / 14
        self.budget = scale * 30.0 * 10.0 ** rnd.random()

    def time_s(self, batch, epochs):
        return self.program_s + self.start + epochs * self.epoch * (1 + self.over * 64 / batch) / (1 + self.over)

    @staticmethod
    def accuracy(batch, epochs):
        return (0.95 - 0.03 * (batch / 16) ** 0.5) * (1 - 0.6 * epochs ** -0.8)


def measure(job, postrider, folder):
    def call(*words, may_refuse=False):
        r = subprocess.run([postrider, *map(str, words)], cwd=folder, capture_output=True, text=True)
        if r.returncode and not (may_refuse and r.returncode == 3):
            raise RuntimeError(f"{words[0]} of job {job.n}: {r.stderr.strip()[-500:]}")
        return r

    levels = [f"--factor={k}={','.join(map(str, v))}" for k, v in (("batch", BATCHES), ("epochs", EPOCHS), ("njobs", (1,)))]
    call("init", "--yes", "--name", f"job{job.n}", *levels, "--", sys.executable, "-I", "-S", "job.py", "{batch}", "{epochs}",
         f"{job.start:.5f}", f"{job.epoch:.5f}", f"{job.over:.5f}")
    own = f"job{job.n}-postrider"
    began = time.monotonic()
    call("profile", own, "--no-mixed", "--budget", f"{job.budget:.3f}s")
    job.took = time.monotonic() - began
    with open(f"{folder}/{own}/runs.csv") as f:
        rows = [r for r in csv.DictReader(f) if float(r["time_s"] or 0) > 0]
    longest = max(float(r["time_s"]) for r in rows)
    job.runs = len(rows)
    # On a quiet machine nothing else ran, and the model has no such column.
    loads = sorted(float(r.get("other_load") or 0) for r in rows)
    load = f",other_load={loads[len(loads) // 2]}" if loads[-1] > 0 else ""
    far = max(14, int(10 * longest / job.epoch) - 1)  # at most 10 times as long as any run measured
    job.asked, job.told = [], []
    for epochs in sorted({14, min(far, 1000)}):
        r = call("predict", f"{own}/job.model", "--job", f"epochs={epochs},njobs=1,cpus=1{load}", "--slo", "9000h",
                 "--candidates", ",".join(map(str, BATCHES)), "--json", may_refuse=True)
        for c in json.loads(r.stdout)["candidates"]:  # no bound: too far from what was measured
            job.asked.append((int(c["batch"]), epochs))
            job.told.append((c["time_s"], c["upper_s"] or math.inf, c["accuracy"]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("postrider")
    p.add_argument("--jobs", type=int, default=12)
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--shortest", type=float, default=1.0, help="seconds of the shortest job (1)")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    rnd, failed = random.Random(a.seed), []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_STATE_HOME=folder, XDG_RUNTIME_DIR=folder, POSTRIDER_CONFIG=f"{folder}/none.json")
        with open(f"{folder}/job.py", "w") as f:
            f.write(JOB)
        jobs = [Job(n, a.jobs, a.scale, a.shortest, rnd) for n in range(a.jobs)]
        began = time.monotonic()
        for _ in range(10):
            subprocess.run([sys.executable, "-I", "-S", "job.py", "16", "0", "0", "0", "0"], cwd=folder)
        for j in jobs:
            j.program_s = (time.monotonic() - began) / 10

        def safely(job):
            try:
                measure(job, os.path.abspath(a.postrider), folder)
            except Exception as why:  # a thread's own would be lost
                failed.append(str(why))

        threads = [threading.Thread(target=safely, args=(j,)) for j in jobs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    if failed:
        sys.exit("\n".join(failed))

    feasible = promised = bounds = held = 0
    shares, over = [], 0.0
    for j in jobs:
        late = (j.took - j.budget) / j.time_s(16, 1)
        for epochs in sorted({e for _, e in j.asked}):
            told = {b: t for (b, e), t in zip(j.asked, j.told) if e == epochs}
            for b in BATCHES:
                for _ in range(20 if told[b][1] < math.inf else 0):
                    bounds += 1
                    held += j.time_s(b, epochs) * rnd.lognormvariate(0, 0.03) <= told[b][1]
            for k in range(26):
                limit = j.time_s(64, epochs) * (0.5 + 0.1 * k)
                could = [j.accuracy(b, epochs) for b in BATCHES if j.time_s(b, epochs) <= limit]
                can = [(told[b][2], -told[b][0], b) for b in BATCHES if told[b][1] <= limit]
                if could:
                    feasible += 1
                    promised += bool(can)
                if could and can:
                    shares.append(j.accuracy(max(can)[2], epochs) / max(could))
        print(f"# job {j.n}: 14 epochs take {j.time_s(64, 14):.2f} s, budget {j.budget:.2f} s: {j.runs} runs, took {j.took:.2f} s; "
              f"expected / true {', '.join(f'{t[0] / j.time_s(b, e):.2f}' for (b, e), t in zip(j.asked, j.told))},\n#   bound / true "
              f"{', '.join(f'{t[1] / j.time_s(b, e):.2f}' for (b, e), t in zip(j.asked, j.told))} "
              f"for {', '.join(f'{b} x {e}' for b, e in j.asked)}")
        # Training and the start of programs are not measuring: they do not shrink with the scale.
        over = max(over, (j.took - j.budget - 4.0) / j.time_s(16, 1))
    mean = sum(shares) / len(shares)
    bars = [("measuring exceeds a budget by at most an epoch, and 4 s for training", over, over <= 1.0),
            ("feasible limits that are promised: 0.8 or more", promised / feasible, promised >= 0.8 * feasible),
            ("bounds that hold: 0.9 or more", held / bounds, held >= 0.9 * bounds),
            ("accuracy over the best in time: 0.93 or more", mean, mean >= 0.93)]
    for what, value, holds in bars:
        print(f"{'ok' if holds else 'not ok'} - {what} ({value:.3f})")
    sys.exit(not all(h for _, _, h in bars))


main()
