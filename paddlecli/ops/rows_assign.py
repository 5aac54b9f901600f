"""New values of the rows of a table that have a gradient: what a composed optimizer ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class RowsAssign(Op):
    """x [height, ...], values [room, ...], ids [room] ascending, rows [1] (how many there are) ->
    x_out, the same memory: the rows of those ids are the values, others are untouched."""

    name: ClassVar[str] = "rows_assign"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "rows_assign.forward(x: f32, values: f32, ids: i64, rows: i64) -> (x_out: f32)",
        inplace={"x_out": "x"},
        updates=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, values, ids = args["x"], args["values"], args["ids"]
        fits = ids.ndim == 1 and values.shape == (*ids.shape, *x.shape[1:])
        check(fits, self.name, f"x is {x}, values is {values}, ids is {ids}")
        return {"x_out": x}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        x, rows = args["x"].copy(), int(args["rows"][0])
        x[args["ids"].astype(int)[:rows]] = args["values"][:rows]
        return {"x_out": x}

    def samples(self) -> Sequence[Sample]:
        from paddlecli.ops.rows_take import OP as TAKE

        found = []
        for case in TAKE.samples():
            x, ids, rows = (case.args[k] for k in ("x", "ids", "rows"))
            assert isinstance(x, Arg)
            assert isinstance(ids, Arg)
            values = Arg((*ids.shape, *x.shape[1:]))
            found.append(Sample({"x": x, "values": values, "ids": ids, "rows": rows}))
        return found


OP = RowsAssign()
