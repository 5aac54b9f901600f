"""The book's stacked LSTM on 64 texts of 50 to 400 words, forward only."""

from collections.abc import Sequence

from peers._case import Batch, Case, Step, inferred
from peers._stacked_lstm import StackedLstm, inputs

CASE = Case(
    "bench/sentiment_lstm", batch=64, steps=6, speed=1.0, variants=("loop", "eager", "packed"), predict=True
)  # fmt: skip


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A forward pass."""
    return inferred(StackedLstm(variant), [inputs(b) for b in batches])
