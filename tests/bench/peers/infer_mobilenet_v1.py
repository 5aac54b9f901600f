"""The first MobileNet on one picture of 224 x 224, forward only."""

from collections.abc import Sequence

from peers._case import Batch, Case, Step
from peers._images import INFERENCE, inference, mobilenet_v1

CASE = Case(
    "bench/mobilenet_v1",
    batch=1,
    steps=100,
    speed=1.3,
    memory=1.0,
    variants=INFERENCE,
    predict=True,
)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A forward pass."""
    return inference(mobilenet_v1(), variant, batches)
