#!/usr/bin/env python3
"""A convolutional network on handwritten digits, as PyTorch's first example has it: the same options and the same output.

Written for the tests; it has no code of PyTorch's examples. --data FOLDER reads MNIST there ("make mnist" brings it to
build/mnist); without it the 1,797 digits that come with scikit-learn are used, so that nothing has to be loaded.
"""
import argparse, gzip, os, struct

import torch
from torch import nn, optim
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.drop = nn.Dropout(0.25)
        self.fc1, self.fc2 = nn.Linear(32 * (side // 2) ** 2, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        x = F.relu(self.fc1(torch.flatten(self.drop(x), 1)))
        return F.log_softmax(self.fc2(x), dim=1)


def idx(path):
    for name, how in ((path, open), (path + ".gz", gzip.open)):
        if os.path.exists(name):
            with how(name, "rb") as f:
                dims = struct.unpack(">xxxB", f.read(4))[0]
                shape = struct.unpack(f">{dims}I", f.read(4 * dims))
                return torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).reshape(shape)
    raise SystemExit(f"{path}: no such file")


def digits(folder):
    if not folder:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        x, y = torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(y)
        return (x[:1400], y[:1400]), (x[1400:], y[1400:])
    return tuple((idx(f"{folder}/{part}-images-idx3-ubyte").float().unsqueeze(1) / 255, idx(f"{folder}/{part}-labels-idx1-ubyte").long())
                 for part in ("train", "t10k"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--lr", type=float, default=1.0)
    p.add_argument("--gamma", type=float, default=0.7)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--log-interval", type=int, default=10)
    p.add_argument("--data")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    (x, y), (x_test, y_test) = digits(a.data)
    model = Net(x.shape[-1])
    optimizer = optim.Adadelta(model.parameters(), lr=a.lr)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=a.gamma)
    for epoch in range(1, a.epochs + 1):
        model.train()
        order = torch.randperm(len(x))
        for k in range(0, len(x), a.batch_size):
            rows = order[k:k + a.batch_size]
            optimizer.zero_grad()
            loss = F.nll_loss(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            if k // a.batch_size % a.log_interval == 0:
                print(f"Train Epoch: {epoch} [{k}/{len(x)} ({100 * k / len(x):.0f}%)]\tLoss: {loss.item():.6f}")
        model.eval()
        with torch.no_grad():
            out = model(x_test)
            right = int((out.argmax(1) == y_test).sum())
            print(f"\nTest set: Average loss: {F.nll_loss(out, y_test).item():.4f}, "
                  f"Accuracy: {right}/{len(x_test)} ({100 * right / len(x_test):.0f}%)\n")
        scheduler.step()


main()
