#!/usr/bin/env python3
"""A small network in PyTorch, one report an epoch: torch_digits.py BATCH EPOCHS [LEARNING_RATE]. The data are drawn
here: two interleaved spirals."""
import math
import sys

import torch
from torch import nn

import postrider


def spirals(n: int, seed: int) -> "tuple[torch.Tensor, torch.Tensor]":
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=g).sqrt() * 3 * math.pi
    label = torch.randint(0, 2, (n,), generator=g)
    angle = t + label * math.pi
    noise = 0.1 * torch.randn(n, 2, generator=g)
    return torch.stack([t * angle.cos(), t * angle.sin()], 1) / 10 + noise / 3, label


def main(batch: int, epochs: int, rate: float) -> None:
    torch.manual_seed(1)
    train_x, train_y = spirals(4000, 1)
    test_x, test_y = spirals(1000, 2)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    with postrider.job(batch=batch, lr=rate, epochs=epochs) as j:
        for epoch in j.epochs():
            for group in optimizer.param_groups:
                group["lr"] = j.lr
            order = torch.randperm(len(train_x))
            for at in range(0, len(order), j.batch):
                rows = order[at:at + j.batch]
                optimizer.zero_grad()
                loss = loss_of(model(train_x[rows]), train_y[rows])
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                accuracy = (model(test_x).argmax(1) == test_y).float().mean()
            j.report(epoch, accuracy, loss=loss.item())  # batch and rate of the next epoch may be others


main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.1)
