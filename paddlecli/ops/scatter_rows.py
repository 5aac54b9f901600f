"""scatter_rows: rows put into another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import Spec


class ScatterRows(Op):
    """y[index[i]] = x[i], ``index`` a permutation of x's rows (one that is not is an error); y is packed as ``index`` says."""

    name = "scatter_rows"
    forward = Kernel("scatter_rows.forward(x: f32, index: i64) -> (y: f32, work: u8)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        x, index = args["x"], args["index"]
        check(index.shape == x.shape[:1], self.name, f"index {index} does not fit x {x}")
        return {"y": Spec(x.shape, "f32", x.axis or index.axis), "work": Spec(x.shape[:1], "u8")}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows fetched back."""
        from paddlecli import ops

        args = {"x": dy["y"], "index": node.args["index"]}
        return {"x": g.emit(ops.get("gather_rows").forward, args, out={"y": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's assignment."""
        import numpy as np

        x, index = values_of(args["x"]), values_of(args["index"]).astype(int)
        y = np.empty_like(x)
        y[index] = x
        packed = next((a for a in (args["x"], args["index"]) if isinstance(a, Ragged)), None)
        return {"y": y if packed is None else Ragged(y, packed.offsets)}

    def samples(self) -> Sequence[Sample]:
        """Permutations."""
        return [
            Sample({"x": Arg((5, 3)), "index": Arg((5,), "i64", values=(3, 0, 4, 1, 2))}),
            Sample({"x": Arg((4, 2, 9)), "index": Arg((4,), "i64", values=(3, 2, 1, 0))}),
            Sample({"x": Arg((1,)), "index": Arg((1,), "i64", values=(0,))}),
        ]


OP = ScatterRows()
