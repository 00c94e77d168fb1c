#!/usr/bin/python3
"""An MLP on scikit-learn's digits, an epoch at a time."""
import argparse
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

p = argparse.ArgumentParser()
p.add_argument('--batch-size', type=int, default=64)
p.add_argument('--epochs', type=int, default=4)
p.add_argument('--hidden', type=int, default=64)
p.add_argument('--seed', type=int, default=0)
a = p.parse_args()
x, y = load_digits(return_X_y=True)
x = np.tile(x / 16, (8, 1)) + np.random.RandomState(1).normal(0, .25, (8 * len(x), 64))
y = np.tile(y, 8)
xt, xv, yt, yv = train_test_split(x, y, test_size=.2, random_state=1)
m = MLPClassifier((a.hidden,), solver='sgd', batch_size=a.batch_size, learning_rate_init=.05, momentum=.9, random_state=a.seed)
order = np.random.RandomState(a.seed)
for e in range(1, a.epochs + 1):
    i = order.permutation(len(xt))
    for s in range(0, len(i), a.batch_size):
        m.partial_fit(xt[i[s:s + a.batch_size]], yt[i[s:s + a.batch_size]], classes=range(10))
    print(f'Epoch {e}/{a.epochs}: validation accuracy {m.score(xv, yv):.4f}')
