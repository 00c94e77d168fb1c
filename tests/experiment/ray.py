#!/usr/bin/python3
"""Measures the table of the Ray paper's campaign with the reference training job, scaled to this machine.

ray.py BIN FOLDER [LANES [MINUTES]]: every combination of workers (n), threads of a worker (j), images and batch as two
replications, as in the paper, of up to REPEATS runs each. The runs come in passes over all replications, each in another random
order, LANES (1) at a time. Goes on with what FOLDER has, and ends after MINUTES (120) with what there is then.
  cpu-runs.csv  every run: its phases by the processor's clock and by the wall clock, and other_load, the cpus that everything
                else used meanwhile, other lanes and the hypervisor included (the kernel's count for all cpus less the run's own)
  cpu.csv       a row for each replication: of each phase the median of its runs by the processor's clock

Times are processor seconds of a worker (a mean over the workers), because they hardly change when the machine has other work. They are
what a phase takes where every worker has a core of its own, as in the paper's cluster, apart from waiting for the slowest worker.
The phases are the paper's:
  train_epoch    an epoch without its test: reading, computing, averaging the gradients (mean over the epochs)
  training_loop  all epochs with their tests
  fit            training_loop, and before it the start of the workers and their set-up
  train          the whole command, from its start to the report of the result
"""
import concurrent.futures, csv, itertools, json, os, random, statistics, subprocess, sys, threading, time

LEVELS = {"n": [1, 2, 4, 8], "j": [1, 2], "num_images": [4000, 8000, 16000, 32000], "b": [64, 128, 256]}
EPOCHS, RATE, REPLICATIONS, REPEATS = 3, 0.01, 2, 3
FACTORS = ["n", "j", "num_CPUs", "num_images", "b", "e", "l", "replication"]
PHASES = ["train", "fit", "training_loop", "train_epoch"]
COLUMNS = FACTORS + ["repeat", "other_load"] + PHASES + [p + "_wall" for p in PHASES]
TICK = os.sysconf("SC_CLK_TCK")


def machine_s():
    """cpu seconds that all programs and the hypervisor have used since the machine started"""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def measure(program, n, j, num_images, b, seed):
    command = [program, "--network", "lenet5", "--workers", n, "--threads", j, "--samples", num_images, "--batch", b,
               "--epochs", EPOCHS, "--lr", RATE, "--seed", seed, "--json", "--quiet"]
    used, start = machine_s(), time.monotonic()
    run = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    text = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    whole = time.monotonic() - start
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        sys.exit("%s ended with %d" % (" ".join(map(str, command)), run.returncode))
    other = max(0.0, machine_s() - used - usage.ru_utime - usage.ru_stime) / whole
    lines = [json.loads(line) for line in text.splitlines()]
    epochs, result = [line for line in lines if line["event"] == "epoch"], lines[-1]
    parts = [e["fetch_s"] + e["compute_s"] + e["sync_s"] for e in epochs]
    cpu = [result["start_cpu_s"] + result["job_cpu_s"], result["job_cpu_s"], result["cpu_s"] + result["test_cpu_s"],
           result["cpu_s"] / len(epochs)]
    return [other] + cpu + [whole, result["elapsed_s"], sum(parts) + result["test_s"], sum(parts) / len(parts)]


def main():
    program, folder = sys.argv[1] + "/postrider-train", sys.argv[2]
    lanes = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    end = time.monotonic() + 60 * float(sys.argv[4] if len(sys.argv) > 4 else 120)
    os.makedirs(folder, exist_ok=True)
    os.environ.pop("OPENBLAS_NUM_THREADS", None)  # j says how many threads there are
    done, name = {}, folder + "/cpu-runs.csv"
    if os.path.exists(name):
        with open(name, newline="") as f:
            for row in csv.DictReader(f):
                done[tuple(int(row[c]) for c in list(LEVELS) + ["replication", "repeat"])] = row
    order, plan = random.Random(1), []
    for repeat in range(1, REPEATS + 1):
        part = [s + (r, repeat) for s in itertools.product(*LEVELS.values()) for r in range(1, REPLICATIONS + 1)]
        order.shuffle(part)
        plan += [run for run in part if run not in done]
    measure(program, 1, 1, 1000, 64, 1)  # draws the digits, where they are not there yet
    lock = threading.Lock()
    with open(name, "a", newline="") as f, concurrent.futures.ThreadPoolExecutor(lanes) as pool:
        table = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        if not done:
            table.writeheader()

        def one(run):
            if time.monotonic() > end:
                return
            n, j, images, b, replication, repeat = run
            values = ["%.6f" % v for v in measure(program, n, j, images, b, replication)]
            with lock:
                done[run] = dict(zip(COLUMNS, [n, j, n * j, images, b, EPOCHS, RATE, replication, repeat] + values))
                table.writerow(done[run])
                f.flush()

        list(pool.map(one, plan))
    groups = {}
    for run in sorted(done):
        groups.setdefault(run[:-1], []).append(done[run])
    with open(folder + "/cpu.csv", "w", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(FACTORS + ["repeats"] + PHASES)
        for runs in groups.values():
            table.writerow([runs[0][c] for c in FACTORS] + [len(runs)] +
                           ["%.6f" % statistics.median(float(r[p]) for r in runs) for p in PHASES])
    print("%d runs, %d replications" % (len(done), len(groups)))


main()
