#!/usr/bin/python3
"""What scikit-learn reaches on the real measurements: parity.py DATA.csv OUT_DIR.

Makes 20 seeded random 80/20 splits of the clean rows of the full factorial, writes them as
OUT_DIR/split_NN_train.csv and split_NN_test.csv for the program under test, fits
scikit-learn's models to the same splits and prints their test MSE per split as one JSON object.
"""
import argparse
import csv
import json
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import joblib
    import numpy as np
    import sklearn
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import mean_squared_error
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
except ImportError as missing:
    print(json.dumps({"installed": False, "why": str(missing)}))
    sys.exit(0)

HEADER = ["network", "cpus", "njobs", "batch", "time_s"]


def read_clean(path):
    """Rows whose time can be trusted, as text, so that both sides read the same digits."""
    with open(path, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["suspect"] != "yes"]
    return [[r["network"], r["cpu"], r["njobs"], r["batch"], r["time_s"]] for r in rows]


def write_rows(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows)


def encode(rows):
    """cpus, batch, njobs, network (simplenet 1, lenet5 0), and the time."""
    x = np.array([[float(cpus), float(batch), float(njobs), float(network == "simplenet")]
                  for network, cpus, njobs, batch, _ in rows])
    return x, np.array([float(row[-1]) for row in rows])


def with_processes(x):
    return np.column_stack([x, x[:, 0] * x[:, 2]])


def mean_mse(make, seeds, train, test):
    """The test MSE, averaged over seeds, of the peer's own randomness."""
    scores = []
    for seed in range(seeds):
        model = make(seed).fit(*train)
        scores.append(mean_squared_error(test[1], model.predict(test[0])))
    return float(np.mean(scores))


def score_split(train_rows, test_rows, args):
    factors, time_s = encode(train_rows)
    test_factors, test_time_s = encode(test_rows)
    train = with_processes(factors), time_s
    test = with_processes(test_factors), test_time_s

    def forest(criterion):
        return lambda seed: RandomForestRegressor(n_estimators=args.forest_trees,
                                                  max_depth=6, criterion=criterion,
                                                  random_state=seed)

    def boost(loss):
        return lambda seed: GradientBoostingRegressor(n_estimators=50, max_depth=3, loss=loss,
                                                      learning_rate=0.1, random_state=seed)

    def linear(_seed):
        # In log time: a time of 0 or less is none, and we give none.
        return TransformedTargetRegressor(
            make_pipeline(PolynomialFeatures(degree=4, interaction_only=True, include_bias=False),
                          LinearRegression()), func=np.log, inverse_func=np.exp)

    # With the absolute loss the trees see only signs, which tie often, and chance breaks the ties: it
    # needs more seeds than the squared loss does.
    return {
        "forest": mean_mse(forest("absolute_error"), args.forest_seeds, train, test),
        "forest_squared": mean_mse(forest("squared_error"), args.forest_seeds, train, test),
        "boost": mean_mse(boost("absolute_error"), args.seeds, train, test),
        "boost_squared": mean_mse(boost("squared_error"), min(args.seeds, 3), train, test),
        "linear": mean_mse(linear, 1, (factors, time_s), (test_factors, test_time_s)),
    }


def main():
    parser = argparse.ArgumentParser(description="scikit-learn on random splits of the measurements")
    parser.add_argument("data", help="fullfactorial_rep1.csv")
    parser.add_argument("out_dir", help="where the splits are written")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2021, help="of the splits")
    parser.add_argument("--seeds", type=int, default=3, help="fits averaged per split, boosting")
    parser.add_argument("--forest-seeds", type=int, default=1,
                        help="the same for forests: many trees are an average already")
    parser.add_argument("--forest-trees", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    rows = read_clean(args.data)
    chance = np.random.RandomState(args.seed)
    splits = []
    for number in range(args.splits):
        order = chance.permutation(len(rows))
        n_test = round(0.2 * len(rows))
        test = [rows[i] for i in sorted(order[:n_test])]
        train = [rows[i] for i in sorted(order[n_test:])]
        write_rows(os.path.join(args.out_dir, "split_%02d_train.csv" % number), train)
        write_rows(os.path.join(args.out_dir, "split_%02d_test.csv" % number), test)
        splits.append((train, test))

    scores = joblib.Parallel(n_jobs=args.jobs)(
        joblib.delayed(score_split)(train, test, args) for train, test in splits)
    answer = {"installed": True, "version": sklearn.__version__, "rows": len(rows),
              "splits": args.splits}
    for model in scores[0]:
        answer[model] = [score[model] for score in scores]
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
