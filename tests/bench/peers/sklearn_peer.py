#!/usr/bin/python3
"""scikit-learn's side of the benches: sklearn_peer.py TASK DATA [options].

Prints one JSON object on stdout. Where scikit-learn is not installed it prints
{"installed": false} and ends well, so that the caller can say so instead of failing.

Tasks
  forest-fit        fit one forest on the small table (CSV: features, then y as the last column)
  forest-grid       the paper's grid by GridSearchCV, whole or sampled and scaled up
  predict-decision  what one decision costs: 4 rows through the time and the accuracy forest
  campaign          an AutoML campaign: every point of two grids on every fold, fitted and scored on three sets of rows
  forest-large      a forest on a raw float64 file (row-major, y as the last column)
"""
import argparse
import json
import os
import random
import resource
import sys
import time
import warnings

# The threads of the linear algebra library are none of the forest's business and would only disturb.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import numpy as np
    import sklearn
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import GridSearchCV
except ImportError as missing:
    print(json.dumps({"peer": "scikit-learn", "installed": False, "why": str(missing)}))
    sys.exit(0)

CRITERION = {"absolute": "absolute_error", "squared": "squared_error"}

# Table 7 of the paper; what it calls auto, log and sqrt are 1.0, log2 and sqrt in this version.
GRID = {
    "n_estimators": [50, 100, 150, 500, 1000, 2000],
    "max_features": [1.0, "sqrt", "log2"],
    "max_depth": [4, 5, 6, 7, 8, 9, 10],
    "criterion": ["absolute_error", "squared_error"],
}
FOLDS = 5


def read_csv(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def read_raw(path, features):
    table = np.fromfile(path, dtype="<f8").reshape(-1, features + 1)
    return table[:, :-1], table[:, -1]


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def percentile(sorted_values, share):
    """Nearest rank, as the other side of the bench computes it."""
    rank = max(1, int(np.ceil(share * len(sorted_values))))
    return sorted_values[rank - 1]


def forest_fit(args):
    x, y = read_csv(args.data)
    times = []
    for repetition in range(args.repetitions):
        forest = RandomForestRegressor(n_estimators=args.trees or 2000, max_depth=6,
                                       criterion=CRITERION[args.criterion], n_jobs=1,
                                       random_state=args.seed + repetition)
        start = time.perf_counter()
        forest.fit(x, y)
        times.append(time.perf_counter() - start)
    return {"seconds": min(times), "all_seconds": times, "criterion": args.criterion,
            "rows": len(y), "trees": forest.n_estimators, "threads": 1}


def grid_points():
    return [{"n_estimators": n, "max_features": m, "max_depth": d, "criterion": c}
            for c in GRID["criterion"] for m in GRID["max_features"]
            for d in GRID["max_depth"] for n in GRID["n_estimators"]]


def run_points(points, x, y, jobs):
    """What GridSearchCV takes for these settings over the folds: wall time, and time of the tasks."""
    settings = [{key: [value] for key, value in point.items()} for point in points]
    search = GridSearchCV(RandomForestRegressor(random_state=0), settings, cv=FOLDS, n_jobs=jobs,
                          scoring="neg_mean_squared_error", refit=False)
    start = time.perf_counter()
    search.fit(x, y)
    wall = time.perf_counter() - start
    tasks = search.cv_results_["mean_fit_time"] + search.cv_results_["mean_score_time"]
    return wall, FOLDS * float(np.sum(tasks))


def forest_grid(args):
    x, y = read_csv(args.data)
    points = grid_points()
    total_trees = FOLDS * sum(p["n_estimators"] for p in points)
    answer = {"settings": len(points), "folds": FOLDS, "jobs": args.jobs, "trees": total_trees}

    # The worker processes start before the clock does: a whole grid would hardly notice them.
    run_points([{"n_estimators": 1}], x, y, args.jobs)
    if not args.sample or args.sample >= len(points):
        answer.update(seconds=run_points(points, x, y, args.jobs)[0], scaled=False)
        return answer

    # A tree costs more or less by criterion and number of features, so each such part of the grid is
    # sampled and scaled up by its own number of trees (few settings: all of it in one part). What is
    # scaled is the tasks' own time shared by the processes: the wall time of a few tasks of unequal
    # length has one process waiting for the other, which a whole grid hardly knows.
    parts = {}
    for p in points:
        key = (p["criterion"], p["max_features"]) if args.sample >= 6 else "all"
        parts.setdefault(key, []).append(p)
    chance = random.Random(args.seed)
    seconds = sampled_seconds = sampled_trees = 0
    for i, part in enumerate(parts.values()):
        share = args.sample // len(parts) + (i < args.sample % len(parts))
        chosen = chance.sample(part, share)
        trees = FOLDS * sum(p["n_estimators"] for p in chosen)
        wall, tasks = run_points(chosen, x, y, args.jobs)
        seconds += tasks / args.jobs * FOLDS * sum(p["n_estimators"] for p in part) / trees
        sampled_seconds += wall
        sampled_trees += trees
    answer.update(seconds=seconds, scaled=True, sampled_settings=args.sample,
                  sampled_seconds=sampled_seconds, sampled_trees=sampled_trees)
    return answer


def predict_decision(args):
    x, y = read_csv(args.data)
    scale = min(1.0, args.trees / 2000) if args.trees else 1.0
    of_time = RandomForestRegressor(n_estimators=max(1, int(2000 * scale)), max_depth=6,
                                    random_state=args.seed).fit(x, y)
    of_accuracy = RandomForestRegressor(n_estimators=max(1, int(150 * scale)), max_depth=9,
                                        random_state=args.seed).fit(x, 1.0 / y)
    times = []
    for call in range(args.calls + 5):
        rows = np.ascontiguousarray(x[[(4 * call + i) % len(x) for i in range(4)]])
        start = time.perf_counter()
        of_time.predict(rows)
        of_accuracy.predict(rows)
        times.append(time.perf_counter() - start)
    times = sorted(times[5:])  # the first calls warm up
    return {"seconds": percentile(times, 0.99), "p50": percentile(times, 0.5),
            "p99": percentile(times, 0.99), "calls": len(times), "rows": 4,
            "trees": [of_time.n_estimators, of_accuracy.n_estimators], "scaled": False}


def forest_large(args):
    x, y = read_raw(args.data, args.features)
    kept = len(y) - args.test_rows
    trees = args.trees or 100
    before = peak_rss_mb()
    forest = RandomForestRegressor(n_estimators=trees, max_depth=10, n_jobs=args.jobs,
                                   random_state=args.seed)
    start = time.perf_counter()
    forest.fit(x[:kept], y[:kept])
    took = time.perf_counter() - start
    peak = peak_rss_mb()
    error = None
    if args.test_rows:
        error = float(np.mean((forest.predict(x[kept:]) - y[kept:]) ** 2))
    return {"seconds": took * 100 / trees, "measured_seconds": took, "trees": trees,
            "scaled": trees != 100, "rows": kept, "threads": args.jobs,
            "rss_before_mb": before, "peak_rss_mb": peak, "test_mse": error}


CAMPAIGN = [
    ("ridge", {"alpha": [0.01, 0.1, 1]}),
    ("tree", {"criterion": ["squared_error", "friedman_mse", "absolute_error"], "max_depth": [3, 5, 10, 20],
              "max_features": [1.0, "sqrt", "log2"], "min_samples_split": [0.01, 0.1, 0.2, 0.5],
              "min_samples_leaf": [0.01, 0.05, 0.1, 0.2, 0.3]}),
]


def campaign(args):
    from sklearn.linear_model import Ridge
    from sklearn.metrics import mean_absolute_percentage_error, mean_squared_error, r2_score
    from sklearn.model_selection import KFold, ParameterGrid
    from sklearn.tree import DecisionTreeRegressor

    x, y = read_csv(args.data)
    start = time.perf_counter()
    order = np.random.RandomState(0).permutation(len(y))
    held, rest = order[:len(y) // 5], order[len(y) // 5:]
    best = {}
    for name, grid in CAMPAIGN:
        for point in ParameterGrid(grid):
            mape = []
            for train, hp in KFold(FOLDS).split(rest):
                model = Ridge(**point) if name == "ridge" else DecisionTreeRegressor(random_state=0, **point)
                model.fit(x[rest[train]], y[rest[train]])
                for rows in (rest[train], rest[hp], held):
                    p = model.predict(x[rows])
                    scores = (mean_absolute_percentage_error(y[rows], p), mean_squared_error(y[rows], p),
                              r2_score(y[rows], p))
                    if rows is not held and len(rows) == len(hp):
                        mape.append(scores[0])
            best[name] = min(best.get(name, (np.inf, None)), (float(np.mean(mape)), str(point)))
    return {"seconds": time.perf_counter() - start, "mape": {k: v[0] for k, v in best.items()}}


TASKS = {"campaign": campaign, "forest-fit": forest_fit, "forest-grid": forest_grid,
         "predict-decision": predict_decision, "forest-large": forest_large}


def main():
    parser = argparse.ArgumentParser(description="scikit-learn's side of the benches")
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("data", help="CSV, or the raw float64 file for forest-large")
    parser.add_argument("--criterion", choices=sorted(CRITERION), default="squared")
    parser.add_argument("--repetitions", type=int, default=1, help="best of so many fits")
    parser.add_argument("--sample", type=int, default=0, help="settings of the grid to time (0: all)")
    parser.add_argument("--trees", type=int, default=0, help="fewer trees than the task says")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--test-rows", type=int, default=0,
                        help="the last rows of the raw file are for testing")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.repetitions < 1 or args.calls < 1:
        parser.error("--repetitions and --calls must be at least 1")
    warnings.filterwarnings("ignore")
    answer = {"peer": "scikit-learn", "installed": True, "version": sklearn.__version__,
              "task": args.task}
    answer.update(TASKS[args.task](args))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
