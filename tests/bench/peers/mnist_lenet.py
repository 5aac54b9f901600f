"""Two convolutions with max pooling, two fully connected layers."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from torch import nn

CASE = Case("bench/mnist_lenet", batch=64, steps=150, speed=1.5, memory=0.25)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip
    return trained(
        lambda x, y: nn.functional.cross_entropy(network(x), y), network.parameters(), torch.optim.Adam,
        [(b["x"], b["y"].flatten()) for b in batches], lr=0.001,
    )  # fmt: skip
