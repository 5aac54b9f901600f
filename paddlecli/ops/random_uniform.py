"""random_uniform: noise with a row for each row of another tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops import _random
from paddlecli.ops._attrs import number
from paddlecli.ops._noise import Noise
from paddlecli.ops.base import Attr, Kernel, RandomKey

if TYPE_CHECKING:
    import numpy as np


class RandomUniform(Noise):
    """y [rows, *``shape``]: numbers spread evenly over [``low``, ``high``).

    ``like`` [rows, ...] of any type gives the rows (and their ragged axis) only; a row's numbers do
    not depend on the batch.
    """

    name = "random_uniform"
    forward = Kernel(
        "random_uniform.forward(like: any; shape: list, low: float, high: float) -> (y: f32)",
        random=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"low": -1.0, "high": 1.0}
    other: ClassVar[Mapping[str, Attr]] = {"low": 2.0, "high": 5.0}

    def drawn(
        self, random: RandomKey, first: int, count: int, attrs: Mapping[str, Attr]
    ) -> np.ndarray:
        """Moved and stretched."""
        import numpy as np

        low, high = number(attrs, "low"), number(attrs, "high")
        drawn = _random.uniform(random, first, count).astype(np.float64)
        found: np.ndarray = low + (high - low) * drawn
        return found


OP = RandomUniform()
