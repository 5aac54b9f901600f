"""A residual net of depth 32 on pictures of 32 x 32."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step
from peers._images import VARIANTS, resnet_cifar, training

CASE = Case("bench/cifar_resnet32", batch=128, steps=10, speed=1.2, memory=1.0, variants=VARIANTS)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    return training(resnet_cifar(32), variant, batches, torch.optim.Adam, lr=0.001)
