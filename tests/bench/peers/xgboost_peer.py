#!/usr/bin/python3
"""XGBoost's side of the benches: xgboost_peer.py TASK DATA [options].

Prints one JSON object on stdout; {"installed": false} where XGBoost is not there.

Tasks
  forest-fit        one round of 2000 parallel trees on the small table (CSV, y as the last column)
  predict-decision  what one decision costs: 4 rows through as many trees, by inplace_predict

XGBoost has no bootstrap and no absolute-error splits. Its forest is one boosting round of parallel
trees at learning rate 1, each on 63.2 % of the rows: the share of distinct rows in a bootstrap.
"""
import argparse
import json
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import numpy as np
    import xgboost
except ImportError as missing:
    print(json.dumps({"peer": "XGBoost", "installed": False, "why": str(missing)}))
    sys.exit(0)


def read_csv(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def percentile(sorted_values, share):
    """Nearest rank, as the other side of the bench computes it."""
    rank = max(1, int(np.ceil(share * len(sorted_values))))
    return sorted_values[rank - 1]


def forest_settings(trees, depth, method, mean, seed):
    return {"booster": "gbtree", "tree_method": method, "num_parallel_tree": trees,
            "max_depth": depth, "learning_rate": 1.0, "subsample": 0.632, "reg_lambda": 0.0,
            "min_child_weight": 1.0, "base_score": mean, "objective": "reg:squarederror",
            "nthread": 1, "seed": seed, "verbosity": 0}


def forest_fit(args):
    x, y = read_csv(args.data)
    table = xgboost.DMatrix(x, label=y, nthread=1)  # made once, outside the clock
    best = {}
    for method in ("exact", "hist"):
        for repetition in range(args.repetitions):
            settings = forest_settings(args.trees, 6, method, float(np.mean(y)),
                                       args.seed + repetition)
            start = time.perf_counter()
            xgboost.train(settings, table, num_boost_round=1)
            took = time.perf_counter() - start
            best[method] = min(took, best.get(method, took))
    faster = min(best, key=best.get)
    return {"seconds": best[faster], "tree_method": faster, "by_method": best, "rows": len(y),
            "trees": args.trees, "threads": 1, "criterion": "squared"}


def predict_decision(args):
    x, y = read_csv(args.data)

    def fit(trees, depth, target):
        settings = forest_settings(trees, depth, "exact", float(np.mean(target)), args.seed)
        return xgboost.train(settings, xgboost.DMatrix(x, label=target, nthread=1), 1)

    of_time = fit(2000, 6, y)
    of_accuracy = fit(150, 9, 1.0 / y)
    narrow = x.astype(np.float32)  # what it computes with: no conversion inside the clock
    times = []
    for call in range(args.calls + 20):
        rows = np.ascontiguousarray(narrow[[(4 * call + i) % len(x) for i in range(4)]])
        start = time.perf_counter()
        of_time.inplace_predict(rows)
        of_accuracy.inplace_predict(rows)
        times.append(time.perf_counter() - start)
    times = sorted(times[20:])  # the first calls warm up
    return {"seconds": percentile(times, 0.99), "p50": percentile(times, 0.5),
            "p99": percentile(times, 0.99), "calls": len(times), "rows": 4, "trees": [2000, 150],
            "scaled": False}


TASKS = {"forest-fit": forest_fit, "predict-decision": predict_decision}


def main():
    parser = argparse.ArgumentParser(description="XGBoost's side of the benches")
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("data", help="CSV with the target as its last column")
    parser.add_argument("--repetitions", type=int, default=1, help="best of so many fits")
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.repetitions < 1 or args.calls < 1 or args.trees < 1:
        parser.error("--repetitions, --calls and --trees must be at least 1")
    answer = {"peer": "XGBoost", "installed": True, "version": xgboost.__version__,
              "task": args.task}
    answer.update(TASKS[args.task](args))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
