#!/usr/bin/python3
"""Measures the table of the Ray paper's campaign with the reference training job, scaled to this machine.

ray.py BIN FOLDER [REPLICATIONS]: every combination of workers (n), threads of a worker (j), images and batch, in random
order from a fixed seed, one run at a time, into FOLDER/runs.csv; and the fastest run of each into FOLDER/fastest.csv, because
what else a shared machine does only ever makes a run longer. The phases are the paper's:
  train_epoch    an epoch without its test: reading, computing, averaging the gradients (mean over the epochs)
  training_loop  all epochs with their tests
  fit            training_loop, and before it the start of the workers and their set-up
  train          the whole command, from its start to its end
"""
import csv, itertools, json, random, subprocess, sys, time

LEVELS = {"n": [1, 2, 4, 8], "j": [1, 2], "num_images": [4000, 8000, 16000, 32000], "b": [64, 128, 256]}
EPOCHS, RATE = 3, 0.01
COLUMNS = ["n", "j", "num_CPUs", "num_images", "b", "e", "l", "replication", "train", "fit", "training_loop", "train_epoch"]


def measure(program, n, j, num_images, b, replication):
    command = [program, "--network", "lenet5", "--workers", n, "--threads", j, "--samples", num_images, "--batch", b,
               "--epochs", EPOCHS, "--lr", RATE, "--seed", replication, "--json", "--quiet"]
    start = time.monotonic()
    text = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout
    whole = time.monotonic() - start
    lines = [json.loads(line) for line in text.splitlines()]
    epochs = [line for line in lines if line["event"] == "epoch"]
    parts = [e["fetch_s"] + e["compute_s"] + e["sync_s"] for e in epochs]
    loop = sum(parts) + sum(e["test_s"] for e in epochs)
    return whole, lines[-1]["elapsed_s"], loop, sum(parts) / len(parts)


def main():
    program, folder = sys.argv[1] + "/postrider-train", sys.argv[2]
    replications = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    plan = [s + (r,) for s in itertools.product(*LEVELS.values()) for r in range(1, replications + 1)]
    random.Random(1).shuffle(plan)
    measure(program, 1, 1, 1000, 64, 1)  # draws the digits, where they are not there yet
    fastest = {}
    with open(folder + "/runs.csv", "w", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(COLUMNS)
        for n, j, images, b, r in plan:
            times = measure(program, n, j, images, b, r)
            row = [n, j, n * j, images, b, EPOCHS, RATE, r] + ["%.6f" % t for t in times]
            table.writerow(row)
            f.flush()
            fastest[n, j, images, b] = min(fastest.get((n, j, images, b), (times[0], row)), (times[0], row))
    with open(folder + "/fastest.csv", "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([COLUMNS] + [fastest[k][1] for k in sorted(fastest)])


main()
