"""argmax: where the largest element stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import axis_of, integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class Argmax(Op):
    """y (i64) = index of the largest element along ``axis`` (not the batch); the first of equal ones, a NaN counts as largest."""

    name = "argmax"
    forward = Kernel("argmax.forward(x: f32; axis: int) -> (y: i64)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"axis": -1}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's shape without the dimension."""
        x: Spec = args["x"]
        axis = axis_of(attrs, x.ndim)
        check(
            0 < axis < x.ndim and x.shape[axis].coefficient > 0,
            self.name,
            f"axis {attrs['axis']} of x {x}",
        )
        return {"y": Spec((*x.shape[:axis], *x.shape[axis + 1 :]), "i64", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """None."""
        return {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's argmax."""
        return {"y": like(args["x"], values_of(args["x"]).argmax(integer(attrs, "axis")))}

    def samples(self) -> Sequence[Sample]:
        """Last and middle axis, ties, one column, packed rows."""
        return [
            Sample({"x": Arg(("N", 37))}, {"axis": -1}),
            Sample({"x": Arg(("N", 5, 6))}, {"axis": 1}),
            Sample({"x": Arg(("N", 9), choices=(0.0, 1.0))}, {"axis": 1}),
            Sample({"x": Arg(("N", 1))}, {"axis": 1}),
            Sample({"x": Arg(("s", 4))}, {"axis": -1}, axes=("s",)),
        ]


OP = Argmax()
