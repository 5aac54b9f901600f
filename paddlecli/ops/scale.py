"""scale: a*x + b."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample


class Scale(Op):
    """y = a*x + b with numbers a and b."""

    name = "scale"
    forward = Kernel(
        "scale.forward(x: f32; a: float, b: float) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"a": 1.0, "b": 0.0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        return {"y": args["x"]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """a*dy."""
        attrs = {"a": node.attrs["a"], "b": 0.0}
        return {"x": g.emit(self.forward, {"x": dy["y"]}, attrs, out={"y": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """a*x + b."""
        a, b = number(attrs, "a"), number(attrs, "b")
        return {"y": like(args["x"], a * values_of(args["x"]) + b)}

    def samples(self) -> Sequence[Sample]:
        """Dense and packed."""
        return [
            Sample({"x": Arg(("N", 3, 7))}, {"a": 0.5, "b": 1.25}),
            Sample({"x": Arg((5,))}, {"a": -2.0, "b": 0.0}),
            Sample({"x": Arg(("s", 2))}, {"a": 3.0, "b": -1.0}, axes=("s",)),
        ]


OP = Scale()
