"""One linear layer, mean squared error."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from torch import nn

CASE = Case(
    "bench/fit_a_line", batch=20, steps=200_000, speed=50.0, memory=0.25, against="torch eager"
)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = nn.Linear(13, 1)
    return trained(
        lambda x, y: nn.functional.mse_loss(network(x), y), network.parameters(), torch.optim.SGD,
        [(b["x"], b["y"]) for b in batches], lr=0.001,
    )  # fmt: skip
