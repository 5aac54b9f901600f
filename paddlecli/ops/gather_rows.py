"""gather_rows: rows by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class GatherRows(Op):
    """y[i] = x[index[i]]; any element type. An index outside of x is an error. The gradient adds up in the order of i."""

    name = "gather_rows"
    forward = Kernel("gather_rows.forward(x: any, index: i64) -> (y: any)")
    backward = Kernel("gather_rows.backward(index: i64, dy: f32) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[indices, ...] along the index's axis."""
        x, index = args["x"], args["index"]
        check(
            index.ndim == 1 and x.ndim >= 1,
            self.name,
            f"index {index} must have 1 dimension, x {x} one or more",
        )
        return {"y": Spec((*index.shape, *x.shape[1:]), x.dtype, index.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows added where they came from."""
        args = {"index": node.args["index"], "dy": dy["y"]}
        return (
            {"x": g.emit(self.backward, args, out={"dx": node.args["x"]})} if g.needs("x") else {}
        )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's indexing."""
        index = values_of(args["index"]).astype(int)
        return {"y": like(args["index"], values_of(args["x"])[index])}

    def samples(self) -> Sequence[Sample]:
        """Repeats, rows of several dimensions, bytes, packed index."""
        return [
            Sample({"x": Arg((4, 3)), "index": Arg(("N",), "i64", 0, 3)}),
            Sample({"x": Arg((9, 2, 5)), "index": Arg(("N",), "i64", 0, 8)}),
            Sample({"x": Arg((3,)), "index": Arg((40,), "i64", 0, 2)}),
            Sample({"x": Arg((5, 3), "u8", 0, 255), "index": Arg(("N",), "i64", 0, 4)}),
            Sample({"x": Arg((3, 4)), "index": Arg(("s",), "i64", 0, 2)}, axes=("s",)),
        ]


OP = GatherRows()
