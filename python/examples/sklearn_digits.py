#!/usr/bin/env python3
"""Handwritten digits with scikit-learn's partial_fit, one report an epoch: sklearn_digits.py BATCH EPOCHS

A job type for it:
  "digits": {"argv": ["/usr/bin/python3", "/path/to/sklearn_digits.py", "{batch}", "{epochs}"], "early_stop": true,
             "steer": true, "epochs_param": "epochs", "batches": [16, 32, 64, 128],
             "params": {"epochs": {"kind": "integer", "min": 1, "default": 5}}}"""
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import postrider


def main(batch: int, epochs: int) -> None:
    x, y = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x / 16.0, y, test_size=0.25, random_state=1)
    model = SGDClassifier(random_state=1)
    rng = np.random.default_rng(1)
    with postrider.job(batch=batch, epochs=epochs) as j:
        for epoch in j.epochs():
            order = rng.permutation(len(train_x))
            for at in range(0, len(order), j.batch):
                rows = order[at:at + j.batch]
                model.partial_fit(train_x[rows], train_y[rows], classes=np.arange(10))
            j.report(epoch, accuracy=model.score(test_x, test_y))  # the next epoch may have another batch


main(int(sys.argv[1]), int(sys.argv[2]))
