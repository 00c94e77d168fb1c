"""automl_parity.py POSTRIDER EXAMPLES FOLDER: the deterministic techniques of a campaign against scikit-learn on the same
rows and columns, and whole campaigns against the figure that aMLLibrary's procedure gives. Prints a line for each claim that holds; ends with status 1 at the first that does not."""
import csv, json, os, random, subprocess, sys
import numpy as np
from scipy.stats import t as student
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor
from sklearn.svm import SVR

postrider, examples, folder = sys.argv[1:4]
os.makedirs(folder, exist_ok=True)


def campaign(name, table, y, technique, keys, preparation):
    path = os.path.join(folder, name + ".ini")
    with open(path, "w") as f:
        f.write("[General]\ny = '%s'\ntechniques = ['%s']\nhp_selection = All\nvalidation = All\n"
                "[DataPreparation]\ninput_path = '%s'\n%s\n[%s]\n%s\n[Postrider]\nlearning_curve = False\n"
                % (y, technique, os.path.join(examples, table), preparation, technique, keys))
    out = os.path.join(folder, name)
    subprocess.run([postrider, "automl", path, "-o", out, "--prepared", "-q"], check=True)
    with open(os.path.join(out, "prepared.csv")) as f:
        rows = [[float(v) for v in r] for r in list(csv.reader(f))[1:]]
    text = subprocess.run([postrider, "automl", "predict", os.path.join(out, "best.model"),
                           os.path.join(examples, table), "-q"], check=True, capture_output=True, text=True).stdout
    ours = np.array([float(line.split(",")[1]) for line in text.split()[1:]])
    rows = np.array(rows)
    return rows[:, :-1], rows[:, -1], ours


def claim(what, ours, theirs, tolerance=1e-6):
    off = np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-300))
    if not off <= tolerance:
        sys.exit("%s: off by %.2g" % (what, off))
    print("%s agrees with scikit-learn to %.0e (off by %.1e)" % (what, tolerance, off))


products = "inverse = ['Lambda']\nproduct_max_degree = 2"
for alpha in (0.02, 1.0, 50):
    x, y, ours = campaign("ridge%g" % alpha, "faas_test.csv", "ave_response_time", "LRRidge", "alpha = [%g]" % alpha, products)
    claim("LRRidge, alpha %g," % alpha, ours, Ridge(alpha=alpha, solver="svd").fit(x, y).predict(x))
for intercept in (True, False):
    x, y, ours = campaign("lasso%d" % intercept, "faas_test.csv", "ave_response_time", "NNLS",
                          "fit_intercept = [%s]" % intercept, "inverse = ['Lambda']")
    # scikit-learn's own tolerance, 1e-4, stops before the minimum
    model = Lasso(alpha=0.001, positive=True, fit_intercept=intercept, tol=1e-14, max_iter=1000000).fit(x, y)
    claim("NNLS as a lasso, intercept %s," % intercept, ours, model.predict(x))
    x, y, ours = campaign("nnls%d" % intercept, "faas_test.csv", "ave_response_time", "NNLS",
                          "method = ['lawson-hanson']\nfit_intercept = [%s]" % intercept, "inverse = ['Lambda']")
    x0, y0 = (x - x.mean(0), y - y.mean()) if intercept else (x, y)
    model = LinearRegression(positive=True, fit_intercept=False).fit(x0, y0)
    claim("NNLS by Lawson and Hanson, intercept %s," % intercept, ours, x0 @ model.coef_ + (y.mean() if intercept else 0))
for depth, leaf in ((3, 1), (6, 2), (None, 5)):
    x, y, ours = campaign("tree%s" % depth, "faas_test.csv", "ave_response_time", "DecisionTree",
                          "criterion = ['squared_error']\nmax_depth = [%s]\nmin_samples_split = [2]\nmin_samples_leaf = [%d]"
                          % (depth, leaf), "use_columns = ['warm_service_time']")
    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf, random_state=0)
    claim("DecisionTree of depth %s" % depth, ours, tree.fit(x, y).predict(x))
# All features, where no two columns order the rows alike, so that no split is a draw.
x, y, ours = campaign("trees", "faas_test.csv", "ave_response_time", "DecisionTree",
                      "criterion = ['squared_error']\nmax_depth = [4]\nmin_samples_split = [2]\nmin_samples_leaf = [3]",
                      "skip_columns = ['cold_service_time']")
claim("DecisionTree with all features", ours,
      DecisionTreeRegressor(max_depth=4, min_samples_leaf=3, random_state=0).fit(x, y).predict(x))


def draper_smith(x, y, p_add=0.05, p_remove=0.1):
    """The columns that stepwise regression selects, with an intercept: add the most correlated one while its t-test is
    significant, then drop the weakest of those selected while its interval is too wide."""
    def fit(columns):
        a = np.column_stack([np.ones(len(y))] + [x[:, c] for c in columns])
        b = np.linalg.lstsq(a, y, rcond=None)[0]
        left = y - a @ b
        free = len(y) - a.shape[1]
        return b[1:], np.sqrt(np.diag(np.linalg.inv(a.T @ a)) * (left @ left) / free)[1:], left, free

    chosen, left = [], y - y.mean()
    for _ in range(100):
        before = list(chosen)
        rest = [c for c in range(x.shape[1]) if c not in chosen and x[:, c].std() > 0]
        if rest:
            best = max(rest, key=lambda c: abs(np.corrcoef(x[:, c], left)[0, 1]))
            b, se, new_left, free = fit(chosen + [best])
            if 2 * student.sf(abs(b[-1] / se[-1]), free) < p_add:
                chosen, left = chosen + [best], new_left
        if chosen:
            b, se, left, free = fit(chosen)
            ratio = abs(b) / (se * student.ppf(1 - p_add / 2, free))
            if ratio.min() < student.ppf(1 - p_remove / 2, free) / student.ppf(1 - p_add / 2, free):
                chosen.pop(int(ratio.argmin()))
                left = fit(chosen)[2] if chosen else y - y.mean()
        if chosen == before:
            break
    return chosen


for table, target, preparation in (("draper_smith.csv", "y", ""), ("faas_test.csv", "ave_response_time", products)):
    x, y, ours = campaign("stepwise-" + table[:4], table, target, "Stepwise", "p_to_add = [0.05]\np_to_remove = [0.1]", preparation)
    columns = draper_smith(x, y)
    claim("Stepwise on %s (%d of %d columns)" % (table, len(columns), x.shape[1]), ours,
          LinearRegression().fit(x[:, columns], y).predict(x[:, columns]))
x, y, ours = campaign("svr", "faas_test.csv", "ave_response_time", "SVR",
                      "C = [10]\nepsilon = [0.01]\nkernel = ['rbf']\ngamma = [0.5]\ntolerance = [1e-9]",
                      "use_columns = ['Lambda', 'warm_service_time']")
claim("SVR with kernel rbf", ours, SVR(C=10, epsilon=0.01, gamma=0.5, tol=1e-9).fit(x, y).predict(x))
try:
    import xgboost
except ImportError:
    xgboost = None
if xgboost and not os.environ.get("POSTRIDER_NO_XGBOOST"):
    x, y, ours = campaign("xgb", "faas_test.csv", "ave_response_time", "XGBoost",
                          "n_estimators = [50]\nmax_depth = [3]\nlearning_rate = [0.1]\ngamma = [0.01]\nmin_child_weight = [2]",
                          "inverse = ['Lambda']")
    model = xgboost.XGBRegressor(n_estimators=50, max_depth=3, learning_rate=0.1, gamma=0.01, min_child_weight=2,
                                 tree_method="hist", n_jobs=1)
    claim("XGBoost through its C interface", ours, model.fit(x, y).predict(x))


# ---- whole campaigns: what aMLLibrary reports for the same file, table and seed ----
def splits(seed, n, folds):
    """Validation rows, and the hp_selection rows of each fold: drawn as aMLLibrary draws them for KFold and HoldOut of 0.2."""
    top = random.Random(random.Random(random.Random(seed).random()).random())
    top.random()
    hp, validation = random.Random(top.random()), random.Random(top.random())
    held = random.Random(validation.random()).sample(range(n), int(n * 0.2))
    left = set(range(n)) - set(held)
    size, remaining, parts = len(left) // folds, set(left), []
    for fold in range(folds):
        part = set(hp.sample(list(remaining), size)) if fold < folds - 1 else remaining
        remaining = remaining - part
        parts.append((sorted(left - part), sorted(part)))
    return held, parts


def mape(model, x, y, train, test):
    return np.mean(np.abs(model.fit(x[train], y[train]).predict(x[test]) - y[test]) / np.abs(y[test]))


def reference(x, y, models, seed, folds):
    """The point with the least mean hp_selection MAPE; the mean validation MAPE of its fits to the folds."""
    held, parts = splits(seed, len(y), folds)
    best = min(models, key=lambda make: np.mean([mape(make(), x, y, *part) for part in parts]))
    return np.mean([mape(best(), x, y, train, held) for train, _ in parts])


def ridge(alpha):
    return lambda: Ridge(alpha=alpha, solver="svd")


def tree(depth, leaf):
    return lambda: DecisionTreeRegressor(max_depth=depth, min_samples_split=0.01, min_samples_leaf=leaf, random_state=0)


SEEDS = 10
techniques = (("LRRidge", "alpha = [0.01, 0.1, 1]", [ridge(a) for a in (0.01, 0.1, 1)]),
              ("DecisionTree", "criterion = ['mse']\nmax_depth = [3, 5, 10]\nmin_samples_leaf = [0.01, 0.05]",
               [tree(d, l) for d in (3, 5, 10) for l in (0.01, 0.05)]))
tables = (("faas_test", os.path.join(examples, "faas_test.csv"), "ave_response_time",
           "inverse = ['Lambda']\nproduct_max_degree = 2\nproduct_interactions_only = True"),
          ("ray", os.path.abspath("configs/profiles/ray/fastest.csv"), "train",
           "use_columns = ['n', 'j', 'num_CPUs', 'num_images', 'b', 'e', 'l']\ninverse = ['n', 'num_CPUs']\nproduct_max_degree = 2"),
          ("two-cores", os.path.abspath("configs/profiles/two-cores/runs.csv"), "time_s",
           "use_columns = ['network', 'cpus', 'njobs', 'batch', 'epochs', 'samples']\ninverse = ['cpus', 'batch']\nproduct_max_degree = 2"))
for name, table, target, preparation in tables:
    ours, theirs = {t[0]: [] for t in techniques}, {t[0]: [] for t in techniques}
    for seed in range(SEEDS):
        path = os.path.join(folder, "whole.ini")
        with open(path, "w") as f:
            f.write("[General]\ny = '%s'\ntechniques = %s\nhp_selection = KFold\nvalidation = HoldOut\nfolds = 5\nhold_out_ratio = 0.2\n"
                    "seed = %d\n[DataPreparation]\ninput_path = '%s'\n%s\n%s[Postrider]\nlearning_curve = False\n"
                    % (target, [t[0] for t in techniques], seed, table, preparation, "".join("[%s]\n%s\n" % t[:2] for t in techniques)))
        out = os.path.join(folder, "whole")
        subprocess.run([postrider, "automl", path, "-o", out, "--prepared", "--restart", "-q"], check=True, capture_output=True)
        rows = np.array([[float(v) for v in r] for r in list(csv.reader(open(os.path.join(out, "prepared.csv"))))[1:]])
        found = {t["name"]: t for t in json.load(open(os.path.join(out, "results.json")))["techniques"]}
        for technique, _, models in techniques:
            ours[technique].append(found[technique]["validation"]["mape"])
            theirs[technique].append(reference(rows[:, :-1], rows[:, -1], models, seed, 5))
    for t in ours:
        what = "%s on %s: mean validation MAPE over %d seeds %.3g, aMLLibrary's procedure %.3g" % (
            t, name, SEEDS, np.mean(ours[t]), np.mean(theirs[t]))
        if not np.mean(ours[t]) <= np.mean(theirs[t]):
            sys.exit(what)
        print(what)
