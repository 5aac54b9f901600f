"""The core's random numbers in numpy, for references: ``core/include/pk_random.h`` states the mapping.

Bits and uniforms are exactly those of the kernels; normals agree to a few units in the last place of float32. A number
depends on the key and its element index alone, so any cut of a batch draws the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.ops.base import RandomKey

if TYPE_CHECKING:
    import numpy as np

_MASK = (1 << 64) - 1
_ROUNDS = 10


def _mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def key(random: RandomKey) -> int:
    """The 64-bit Philox key of a stream."""
    return _mix((random.seed + _mix(random.stream & _MASK)) & _MASK)


def blocks(random: RandomKey, first: int, count: int) -> np.ndarray:
    """Philox4x32-10 of ``count`` blocks from block ``first`` on: uint32 [count, 4]; block b holds elements 4b to 4b + 3."""
    import numpy as np

    low = np.uint64(0xFFFFFFFF)
    index = (np.arange(count, dtype=np.uint64) + np.uint64(first & _MASK)).astype(np.uint64)
    step = random.step & _MASK
    c = [index & low, index >> np.uint64(32),
         np.full(count, step & 0xFFFFFFFF, np.uint64), np.full(count, step >> 32, np.uint64)]  # fmt: skip
    k0, k1 = key(random) & 0xFFFFFFFF, key(random) >> 32
    for _ in range(_ROUNDS):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]  # fmt: skip
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1).astype(np.uint32)


def bits(random: RandomKey, first: int, count: int) -> np.ndarray:
    """Random 32-bit words of ``count`` elements from element ``first`` on."""
    start = first // 4
    words = blocks(random, start, (first + count + 3) // 4 - start).reshape(-1)
    return words[first - 4 * start : first - 4 * start + count]


def uniform(random: RandomKey, first: int, count: int) -> np.ndarray:
    """Float32 numbers in [0, 1), multiples of 2**-24."""
    import numpy as np

    return ((bits(random, first, count) >> np.uint32(8)) * np.float32(2.0**-24)).astype(np.float32)


def normal(random: RandomKey, first: int, count: int) -> np.ndarray:
    """Float32 numbers of mean 0 and variance 1 (Box and Muller); an element shares its two uniforms with its neighbour."""
    import numpy as np

    start = first // 2 * 2
    u = (
        uniform(random, start, (first + count + 1) // 2 * 2 - start)
        .astype(np.float64)
        .reshape(-1, 2)
    )
    length, angle = np.sqrt(-2.0 * np.log1p(-u[:, 0])), 2.0 * np.pi * u[:, 1]
    pairs = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1).reshape(-1)
    return pairs[first - start : first - start + count].astype(np.float32)
