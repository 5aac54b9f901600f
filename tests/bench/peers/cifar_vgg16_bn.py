"""VGG with batch norm and dropout on pictures of 32 x 32."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step
from peers._images import VARIANTS, training, vgg_bn_drop

CASE = Case("bench/cifar_vgg16_bn", batch=128, steps=5, speed=1.2, memory=1.0, variants=VARIANTS)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    return training(vgg_bn_drop(), variant, batches, torch.optim.Adam, lr=0.001)
