"""What ops share that draw a row of random numbers for each row of another tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import integers
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np


class Noise(Op):
    """y [rows, *``shape``]. ``like`` [rows, ...] of any type gives the rows (and their ragged axis) only; a row's numbers do
    not depend on the batch. A subclass gives ``drawn`` and a second pair of values for its samples."""

    differentiable = False
    rows_only = ("like",)
    defaults: ClassVar[Mapping[str, Attr]]
    other: ClassVar[Mapping[str, Attr]]
    """Attributes of a sample, other than the defaults."""

    def drawn(
        self, random: RandomKey, first: int, count: int, attrs: Mapping[str, Attr]
    ) -> np.ndarray:
        """The numbers from number ``first`` on, float64 [count]."""
        raise NotImplementedError

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """A row of ``shape`` for each row of ``like``."""
        rows: Spec = args["like"]
        size = integers(attrs, "shape")
        check(rows.ndim >= 1, self.name, f"like is {rows}: it has no rows")
        check(
            all(s >= 1 for s in size),
            self.name,
            f"shape {list(size)}: sizes of at least 1 are needed",
        )
        return {"y": rows.with_shape(rows.shape[0], *size).with_dtype("f32")}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Counted from the batch's first element on."""
        import numpy as np

        shape = (values_of(args["like"]).shape[0], *integers(attrs, "shape"))
        count, size = int(np.prod(shape)), int(np.prod(shape[1:]))
        drawn = self.drawn(random, random.first * size, count, attrs)
        return {"y": like(args["like"], drawn.reshape(shape))}

    def samples(self) -> Sequence[Sample]:
        """Rows of numbers, of labels and of a ragged tensor."""
        return [
            Sample({"like": Arg(("N", 2))}, {"shape": (3, 7), **self.defaults}),
            Sample({"like": Arg(("N",), "i64", low=0, high=5)}, {"shape": (1031,), **self.other}),
            Sample({"like": Arg(("t", 2))}, {"shape": (5,), **self.defaults}, axes=("t",)),
        ]
