#!/usr/bin/python3
"""overhead.py POSTRIDER DIR ROUNDS JOBS COUNTER: the measurement of overhead.sh, which has started Slurm and the daemon.

Both ways run the same script: it sleeps and writes a file, by which its end is seen. COUNTER is a file with the nanoseconds of processor
time of all that takes part; empty: they are not counted.
"""
import os
import statistics
import subprocess
import sys
import time

postrider, folder, rounds, jobs, counter = sys.argv[1:6]
rounds, jobs = int(rounds), int(jobs)
ended = os.path.join(folder, "ended")
LIMIT_S = 120


def processor_s():
    if not counter:
        return float("nan")
    with open(counter, encoding="ascii") as f:
        return int(f.read()) * 1e-9


def wait_for(n):
    until = time.monotonic() + LIMIT_S
    while len(os.listdir(ended)) < n:
        if time.monotonic() > until:
            sys.exit(f"{len(os.listdir(ended))} of {n} jobs ended within {LIMIT_S} s")
        time.sleep(0.01)


def plain(k):
    """As a user would: a loop of sbatch."""
    for i in range(jobs):
        script = f"#!/bin/sh\nPOSTRIDER_JOB=plain-{k}-{i}\nexport POSTRIDER_JOB\nexec /bin/sh {folder}/job.sh\n"
        subprocess.run(["sbatch", "--parsable", "--time=5", "--chdir=/", "--output=/dev/null"], input=script, text=True,
                       stdout=subprocess.DEVNULL, check=True)


def ours(_):
    for _ in range(jobs):
        subprocess.run([postrider, "submit", "nap", "-q"], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)


def measure(way, k):
    before = len(os.listdir(ended))
    from_s, from_cpu = time.monotonic(), processor_s()
    way(k)
    submitted = time.monotonic() - from_s
    wait_for(before + jobs)
    all_s = time.monotonic() - from_s
    settle()
    return all_s, processor_s() - from_cpu, submitted


def settle():
    """Until Slurm and the daemon are done with the last round."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        left = subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=False).stdout
        mine = subprocess.run([postrider, "list", "-q", "--state", "queued,running"], capture_output=True, text=True, check=False).stdout
        if not left.strip() and not mine.strip():
            return
        time.sleep(0.1)
    sys.exit("the jobs of a round are not over")


def report(name, ratio):
    low, high = min(ratio), max(ratio)
    print(f"{name} {statistics.median(ratio) - 1:.3f} (rounds: {low - 1:.3f} to {high - 1:.3f})")


for way in (plain, ours):  # what is done once is done before
    measure(way, "first")
taken = {plain: [], ours: []}
for k in range(rounds):
    for way in (plain, ours) if k % 2 else (ours, plain):
        taken[way].append(measure(way, k))
for what, at in (("slurm.overhead", 0), ("slurm.overhead_cpu", 1)):
    if at == 0 or counter:
        report(what, [b[at] / a[at] for a, b in zip(taken[plain], taken[ours])])
for name, way in (("plain", plain), ("ours", ours)):
    s, cpu, loop = (statistics.median(t[i] for t in taken[way]) for i in range(3))
    print(f"slurm.{name} {s:.3f} s for {jobs} jobs, {cpu:.3f} s of processor time; {loop:.3f} s to submit them")
done = subprocess.run([postrider, "list", "-q", "--all", "--state", "done"], capture_output=True, text=True, check=True).stdout.split()
if len(done) != (rounds + 1) * jobs:
    sys.exit(f"{len(done)} of {(rounds + 1) * jobs} jobs are done for the daemon")
overhead = statistics.median(b[0] / a[0] for a, b in zip(taken[plain], taken[ours])) - 1
sys.exit(0 if overhead <= 0.1 else f"the overhead is {overhead:.3f}")
