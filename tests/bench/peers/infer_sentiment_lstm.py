"""The book's stacked LSTM on one text of 230 words, forward only."""

from collections.abc import Sequence

from peers._case import Batch, Case, Step, inferred
from peers._stacked_lstm import StackedLstm, inputs

CASE = Case(
    "bench/sentiment_lstm", batch=1, steps=200, speed=1.0, variants=("eager", "trace"), predict=True,
    options=("data.lengths={words: [230, 230]}",),
)  # fmt: skip


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A forward pass."""
    return inferred(StackedLstm("eager"), [inputs(b) for b in batches], trace=variant == "trace")
