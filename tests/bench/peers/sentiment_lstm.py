"""The book's stacked LSTM on texts of 50 to 400 words. Packed sequences take torch ten times as long as the loop."""

from collections.abc import Sequence
from typing import Any

import torch
from peers._case import Batch, Case, Step, trained
from peers._stacked_lstm import StackedLstm, inputs
from torch import nn

CASE = Case("bench/sentiment_lstm", batch=128, steps=6, speed=3.0, variants=("loop", "eager"))


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = StackedLstm(variant)

    def loss(label: Any, *x: Any) -> Any:
        return nn.functional.cross_entropy(network(*x), label)

    data = [(b["label"].flatten(), *inputs(b)) for b in batches]
    return trained(loss, network.parameters(), torch.optim.Adagrad, data, lr=0.002)
