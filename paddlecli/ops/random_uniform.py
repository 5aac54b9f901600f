"""random_uniform: noise with a row for each row of another tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops import _random
from paddlecli.ops._attrs import integers, number
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class RandomUniform(Op):
    """y [rows, *``shape``]: numbers spread evenly over [``low``, ``high``).

    ``like`` [rows, ...] of any type gives the rows (and their ragged axis) only; a row's numbers do
    not depend on the batch.
    """

    name = "random_uniform"
    differentiable = False
    rows_only = ("like",)
    forward = Kernel(
        "random_uniform.forward(like: any; shape: list, low: float, high: float) -> (y: f32)",
        random=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"low": -1.0, "high": 1.0}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
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
        import numpy as np

        shape = (values_of(args["like"]).shape[0], *integers(attrs, "shape"))
        count, size = int(np.prod(shape)), int(np.prod(shape[1:]))
        drawn = (
            _random.uniform(random, random.first * size, count).astype(np.float64).reshape(shape)
        )
        low, high = number(attrs, "low"), number(attrs, "high")
        return {"y": like(args["like"], low + (high - low) * drawn)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"like": Arg(("N", 2))}, {"shape": (3, 7), "low": -1.0, "high": 1.0}),
            Sample(
                {"like": Arg(("N",), "i64", low=0, high=5)},
                {"shape": (1031,), "low": 2.0, "high": 5.0},
            ),
            Sample({"like": Arg(("t", 2))}, {"shape": (5,), "low": -1.0, "high": 1.0}, axes=("t",)),
        ]


OP = RandomUniform()
