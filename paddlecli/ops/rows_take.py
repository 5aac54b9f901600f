"""The rows of a table that have a gradient, for a composed optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class RowsTake(Op):
    """x [height, ...], ids [room] ascending, rows [1] (how many there are) -> y [room, ...]: the
    rows of those ids, zeros behind them."""

    name: ClassVar[str] = "rows_take"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel("rows_take.forward(x: f32, ids: i64, rows: i64) -> (y: f32)")

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, ids = args["x"], args["ids"]
        check(x.ndim >= 1 and ids.ndim == 1, self.name, f"x is {x}, ids is {ids}")
        return {"y": Spec((*ids.shape, *x.shape[1:]))}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        rows, ids = int(args["rows"][0]), args["ids"].astype(int)
        y = np.zeros((len(ids), *args["x"].shape[1:]))
        y[:rows] = args["x"][ids[:rows]]
        return {"y": y}

    def samples(self) -> Sequence[Sample]:
        return [self.sample(*c) for c in (((7, 3), (1, 4, 6), 5), ((9, 2, 20), (0, 8), 2))] + [
            self.sample((4, 3), (), 3),
            self.sample((3000,), tuple(range(0, 3000, 2)), 2000),
        ]

    def sample(self, shape: tuple[int, ...], ids: Sequence[int], room: int) -> Sample:
        """A table of that shape, its rows ``ids``, room for so many."""
        padded = tuple(map(float, [*ids, *[-1] * (room - len(ids))]))
        return Sample(
            {
                "x": Arg(shape),
                "ids": Arg((room,), "i64", values=padded),
                "rows": Arg((1,), "i64", values=(float(len(ids)),)),
            }
        )


OP = RowsTake()
