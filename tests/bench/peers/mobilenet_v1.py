"""The first MobileNet on pictures of 224 x 224."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step
from peers._images import VARIANTS, mobilenet_v1, training

CASE = Case("bench/mobilenet_v1", batch=16, steps=5, speed=1.2, memory=1.0, variants=VARIANTS)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    return training(mobilenet_v1(), variant, batches, torch.optim.SGD, lr=0.1, momentum=0.9)
