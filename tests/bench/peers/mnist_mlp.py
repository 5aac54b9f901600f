"""Three fully connected layers."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from torch import nn

CASE = Case("bench/mnist_mlp", batch=64, steps=4_000, speed=2.0, memory=0.25, against="torch eager")


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    return trained(
        lambda x, y: nn.functional.cross_entropy(network(x), y), network.parameters(), torch.optim.Adam,
        [(b["x"], b["y"].flatten()) for b in batches], lr=0.001,
    )  # fmt: skip
