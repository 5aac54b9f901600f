"""random_normal: noise with a row for each row of another tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops import _random
from paddlecli.ops._attrs import number
from paddlecli.ops._noise import Noise
from paddlecli.ops.base import Attr, Kernel, RandomKey

if TYPE_CHECKING:
    import numpy as np


class RandomNormal(Noise):
    """y [rows, *``shape``]: normally distributed numbers of ``mean`` and standard deviation ``std``.

    ``like`` [rows, ...] of any type gives the rows (and their ragged axis) only; a row's numbers do
    not depend on the batch.
    """

    name = "random_normal"
    forward = Kernel(
        "random_normal.forward(like: any; shape: list, mean: float, std: float) -> (y: f32)",
        random=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"mean": 0.0, "std": 1.0}
    other: ClassVar[Mapping[str, Attr]] = {"mean": 2.0, "std": 0.5}

    def drawn(
        self, random: RandomKey, first: int, count: int, attrs: Mapping[str, Attr]
    ) -> np.ndarray:
        """Moved and stretched."""
        import numpy as np

        drawn = _random.normal(random, first, count).astype(np.float64)
        found: np.ndarray = number(attrs, "mean") + number(attrs, "std") * drawn
        return found


OP = RandomNormal()
