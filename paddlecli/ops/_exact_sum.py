"""Sums of float64 values as whole numbers, as ``core/cpu/exact_sum.h`` keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

LIMBS = 20
BELOW = 320
"""A limb is worth 2^(32 i - BELOW)."""
UNIT = 1 << BELOW
"""What 1 is as a whole number."""


def whole(limbs: Sequence[int]) -> int:
    """The sum of LIMBS limbs in units of 2^-BELOW; they need not be carried."""
    return sum(int(limb) << 32 * i for i, limb in enumerate(limbs))


def limbs_of(values: Iterable[float]) -> np.ndarray:
    """The carried limbs i64 [LIMBS] of the sum of finite values, multiples of 2^-BELOW."""
    total = 0
    for value in values:
        numerator, denominator = float(value).as_integer_ratio()
        total += numerator * UNIT // denominator
    return carried(total)


def carried(total: int) -> np.ndarray:
    """The limbs of a sum in units of 2^-BELOW."""
    import numpy as np

    limbs = [(total >> 32 * i) & 0xFFFFFFFF for i in range(LIMBS - 1)]
    return np.array([*limbs, total >> 32 * (LIMBS - 1)], np.int64)
