#!/usr/bin/env python3
"""Gradient boosting: rounds are its epochs, and the rows that each tree sees are its batch. By XGBoost where it is installed."""
import argparse

from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier

p = argparse.ArgumentParser()
p.add_argument("--rows", type=int, default=700)
p.add_argument("--rounds", type=int, default=20)
p.add_argument("--every", type=int, default=2, help="rounds between two evaluations")
a = p.parse_args()
x, y = load_digits(return_X_y=True)
x, y, x_test, y_test = x[:1400], y[:1400], x[1400:], y[1400:]
share = min(1.0, a.rows / len(x))
try:
    import xgboost

    data, test = xgboost.DMatrix(x, y), xgboost.DMatrix(x_test)
    model, how = None, {"objective": "multi:softmax", "num_class": 10, "max_depth": 3, "subsample": share, "nthread": 1}
except ImportError:
    xgboost = None
    model = GradientBoostingClassifier(subsample=share, max_depth=3, warm_start=True, random_state=1)
for done in range(a.every, a.rounds + 1, a.every):
    if xgboost:
        model = xgboost.train(how, data, a.every, xgb_model=model)
        right = (model.predict(test) == y_test).mean()
    else:
        model.set_params(n_estimators=done).fit(x, y)
        right = model.score(x_test, y_test)
    print(f"epoch {done}/{a.rounds}: test accuracy {right:.4f}")
