#!/usr/bin/env python3
"""scikit-learn's MLPClassifier on its digits. It says its losses by itself ("Iteration 3, loss = 0.21"), and the script the accuracy."""
import argparse, warnings

from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--epochs", type=int, default=20)
p.add_argument("--hidden", type=int, default=128)
a = p.parse_args()
warnings.simplefilter("ignore")  # that so few epochs do not converge
x, y = load_digits(return_X_y=True)
net = MLPClassifier((a.hidden,), solver="sgd", learning_rate_init=0.02, batch_size=a.batch_size, max_iter=a.epochs, random_state=1,
                    verbose=True)
net.fit(x[:1400] / 16, y[:1400])
print(f"test accuracy: {net.score(x[1400:] / 16, y[1400:]):.4f}")
