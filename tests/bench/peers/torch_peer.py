#!/usr/bin/python3
"""One epoch of training in PyTorch on the CPU: torch_peer.py DIR NETWORK BATCH SAMPLES [--epochs N].

The same network, loss, optimiser and data as the reference training job, one thread. Made easy for the
peer: all images are in memory, scaled, before the clock starts; only shuffling, gathering the batch,
forward, backward and the step are timed. Prints one JSON object whose "seconds" is the fastest epoch.
"""
import argparse
import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as missing:
    print(json.dumps({"installed": False, "why": str(missing)}))
    sys.exit(0)


def read_idx(path, header, count):
    with open(path, "rb") as file:
        return np.frombuffer(file.read()[header:], dtype=np.uint8)[:count]


def network(name):
    if name == "simplenet":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10), nn.LogSoftmax(dim=1))
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Conv2d(6, 12, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(192, 100), nn.Tanh(), nn.Linear(100, 10), nn.LogSoftmax(dim=1))


def epoch(net, loss, sgd, x, y, batch):
    order = torch.randperm(len(x))
    for start in range(0, len(x), batch):
        pick = order[start:start + batch]
        sgd.zero_grad()
        loss(net(x[pick]), y[pick]).backward()
        sgd.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir")
    parser.add_argument("network", choices=["simplenet", "lenet5"])
    parser.add_argument("batch", type=int)
    parser.add_argument("samples", type=int)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    n = args.samples
    images = read_idx(os.path.join(args.dir, "train-images-idx3-ubyte"), 16, n * 784)
    labels = read_idx(os.path.join(args.dir, "train-labels-idx1-ubyte"), 8, n)
    x = torch.tensor((images.reshape(n, 1, 28, 28) / 255.0 - 0.1307) / 0.3081, dtype=torch.float32)
    y = torch.tensor(labels.astype(np.int64))
    net = network(args.network)
    loss = nn.NLLLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    epoch(net, loss, sgd, x[:10 * args.batch], y[:10 * args.batch], args.batch)  # first calls are slower
    seconds = []
    for _ in range(args.epochs):
        start = time.perf_counter()
        epoch(net, loss, sgd, x, y, args.batch)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(seconds), "version": torch.__version__, "all": seconds}))


if __name__ == "__main__":
    main()
