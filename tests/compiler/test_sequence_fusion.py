"""A convolution over sequences and its pool in one kernel: the bits of the two kernels it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.ops.base import Attr, Ragged
from paddlecli.ops.sequence_conv_pool import MODES
from paddlecli.runtime.eager import Out, run_kernel

LENGTHS = (3, 0, 700, 1, 0, 255, 257, 2)
WIDTH, FILTERS, SIZE = 6, 150, 4


def both(lengths: tuple[int, ...], x: Any, mode: int, threads: int) -> tuple[Any, Any]:
    """The fused kernel's result, and that of the two."""
    numbers = np.random.default_rng(2)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    w = numbers.standard_normal((SIZE * WIDTH, FILTERS), np.float32)
    b = numbers.standard_normal(FILTERS, np.float32)
    args = {"x": Ragged(x, offsets), "w": w, "b": b}
    conv: dict[str, Attr] = {"size": SIZE, "start": -2, "activation": 2}
    pool: dict[str, Attr] = {"mode": mode, "pad_value": -1.0}
    out = {"y": Out((len(lengths), FILTERS))}
    one = ops.get("sequence_conv_pool").forward
    fused = run_kernel(one, args, {**conv, **pool}, out, threads=threads)["y"]
    y = run_kernel(
        ops.get("sequence_conv").forward, args, conv, {"y": Out((len(x), FILTERS), axis="x")}
    )["y"]
    values = getattr(y, "values", y)
    pooled = run_kernel(
        ops.get("sequence_pool").forward, {"x": Ragged(values, offsets)}, pool, out
    )["y"]
    return fused, pooled


@pytest.mark.parametrize("mode", range(len(MODES)), ids=MODES)
def test_bits_of_the_two(mode: int) -> None:
    """With empty sequences, some in one block and one in several; alone as among others."""
    x = np.random.default_rng(1).standard_normal((sum(LENGTHS), WIDTH), np.float32)
    fused, pooled = both(LENGTHS, x, mode, threads=2)
    assert fused.tobytes() == pooled.tobytes()
    alone, _ = both((700,), x[3:703], mode, threads=1)
    assert alone.tobytes() == fused[2].tobytes()
