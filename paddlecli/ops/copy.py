"""copy: the same values in another buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample


class Copy(Op):
    """y = x, any element type."""

    name = "copy"
    forward = Kernel("copy.forward(x: any) -> (y: any)", rowwise=True)

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        return {"y": args["x"]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy."""
        return {"x": dy["y"]}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """x."""
        return {"y": args["x"]}

    def samples(self) -> Sequence[Sample]:
        """Floats, bytes, packed rows."""
        return [
            Sample({"x": Arg(("N", 3, 7))}),
            Sample({"x": Arg(("N", 5), "u8", 0, 255)}),
            Sample({"x": Arg(("N",), "i64", -9, 9)}),
            Sample({"x": Arg(("s", 2))}, axes=("s",)),
        ]


OP = Copy()
