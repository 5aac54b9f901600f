"""A residual net of depth 18 on one picture of 224 x 224, forward only."""

from collections.abc import Sequence

from peers._case import Batch, Case, Step
from peers._images import INFERENCE, inference, resnet18

CASE = Case(
    "bench/resnet18", batch=1, steps=50, speed=1.3, memory=1.0, variants=INFERENCE, predict=True
)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A forward pass."""
    return inference(resnet18(), variant, batches)
