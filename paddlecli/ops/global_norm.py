"""The norm of all gradients together, dense and row-sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._optimizer import CHUNK
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample
from paddlecli.ops.spec import Dim, Spec


class GlobalNorm(Op):
    """``squares`` sums a flat range over the segments that are clipped, ``squares_rows`` a
    row-sparse gradient; ``forward`` takes the root of their sum. A gradient that is not finite
    makes the norm so too."""

    name: ClassVar[str] = "global_norm"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel("global_norm.forward(totals*: f64) -> (norm: f32)")
    squares: ClassVar[Kernel] = Kernel(
        "global_norm.squares(g: f32, bounds: i64, clips: i32) -> (total: f64, work: f64)"
    )
    squares_rows: ClassVar[Kernel] = Kernel(
        "global_norm.squares_rows(values: f32, rows: i64) -> (total: f64, work: f64)"
    )

    def work(self, size: Dim) -> Spec:
        """Partial sums of ``size`` elements. A size that depends on the batch takes one for each
        row of CHUNK's size."""
        if size.known:
            return Spec.of(-(-size.coefficient // CHUNK), dtype="f64")
        return Spec.of(Dim(-(-size.coefficient // CHUNK), size.symbol), dtype="f64")

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        return {"norm": Spec.of(1)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        return {"norm": np.sqrt(np.sum([np.sum(t) for t in args["totals"]], keepdims=True))}

    def samples(self) -> Sequence[Sample]:
        one = Arg((1,), "f64", low=0.0, high=9.0)
        return [Sample({"totals": (one,)}), Sample({"totals": (one, one, one)})]


OP = GlobalNorm()
