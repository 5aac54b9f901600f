"""A generated data set whose labels are pictures: simple shapes to be told from the ground, pixel
by pixel (`synthetic/shapes`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count, Natural, NonNegative, Pair
from paddlecli.data.cards import Card
from paddlecli.data.readers.synthetic import Numbers, SyntheticReader
from paddlecli.data.spec import DatasetSpec, FieldSpec, Preprocess

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.readers.synthetic import Columns

NAMES = ("ground", "disc", "square", "triangle")
_TURN = 6.283185307179586
_SIDES = ((), (), *(tuple(_TURN * i / n for i in range(n)) for n in (4, 3)))
"""Of each kind, which way its straight sides face."""


@READERS.register("synthetic_shapes")
class Shapes(SyntheticReader):
    """Grey pictures of bytes with discs, squares and triangles of any size, place, turn and
    brightness, under noise; later ones cover earlier ones. The fields `image` [1, height, width],
    which the network sees divided by 255, and `mask` [height, width]: for each pixel the shape that
    is seen there, 0 for none.

    Args:
        size: height and width.
        shapes: how many a picture has at most.
        noise: standard deviation of the noise, where brightness goes from 0 to 1.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, size: Pair = (64, 64), shapes: Count = 4, noise: NonNegative = 0.1,
        samples: Count = 1024, test_samples: Natural = 256, seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, samples, test_samples, seed)
        self.size, self.shapes, self.noise = (size[0], size[-1]), shapes, noise

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`: predictions read picture files."""
        return replace(super().describe(), predict={"kind": "image"})

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        shown = Preprocess("float32", 1.0 / 255.0)
        return (
            FieldSpec("image", "input", (1, *self.size), "uint8", preprocess=shown),
            FieldSpec("mask", "label", self.size, "int64", classes=len(NAMES), names=NAMES),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import Column

        kinds = draw.ids("kind", rows * self.shapes, len(NAMES)).reshape(rows, self.shapes)
        numbers = _even(draw, "shape", rows, self.shapes, 5)
        ground = _even(draw, "ground", rows)
        image = np.empty((rows, 1, *self.size), np.uint8)
        mask = np.zeros((rows, *self.size), np.int64)
        for row in range(rows):
            shade = np.full(self.size, 0.5 * ground[row])
            for kind, shape in zip(kinds[row].tolist(), numbers[row], strict=True):
                inside = _inside(kind, shape, self.size)
                mask[row][inside] = kind
                shade[inside] = 0.5 * ground[row] + 0.25 + 0.25 * shape[4]
            noise = Numbers(row, f"noise {draw.key}").normal("noise", *self.size)
            image[row, 0] = np.clip(255.0 * (shade + self.noise * noise), 0, 255)
        return {"image": Column(image), "mask": Column(mask)}


def _even(draw: Numbers, what: str, *shape: int) -> NDArray[np.float64]:
    """Numbers spread evenly over [0, 1)."""
    import numpy as np

    count = int(np.prod(shape))
    return np.asarray(draw.ids(what, count, 1 << 20) / float(1 << 20)).reshape(shape)


def _inside(kind: int, shape: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The pixels of a shape: place, size and turn are `shape`'s first four numbers. Kind 0 has
    none."""
    import numpy as np

    down, across = np.indices(size, np.float64)
    down -= shape[0] * size[0]
    across -= shape[1] * size[1]
    radius, turn = min(size) * (0.12 + 0.16 * shape[2]), 2.0 * np.pi * shape[3]
    sides = [down * np.sin(turn + a) + across * np.cos(turn + a) for a in _SIDES[kind]]
    if kind == 0:
        return np.zeros(size, np.bool_)
    if kind == 1:
        return np.asarray(down**2 + across**2 < radius**2)
    reach = 0.75 * radius if kind == 2 else 0.6 * radius
    return np.asarray(np.max(sides, axis=0) < reach)
