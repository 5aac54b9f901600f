"""A residual net of depth 18 on pictures of 224 x 224."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step
from peers._images import VARIANTS, resnet18, training

CASE = Case("bench/resnet18", batch=16, steps=5, speed=1.2, memory=1.0, variants=VARIANTS)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    return training(resnet18(), variant, batches, torch.optim.SGD, lr=0.1, momentum=0.9)
