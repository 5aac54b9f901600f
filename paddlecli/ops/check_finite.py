"""check_finite: flags that guards and halts read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample
from paddlecli.ops.spec import Spec


class CheckFinite(Op):
    """``ok [1]`` is 1 when every element of every x (any shapes) is finite, ``bad [1]`` is 1 when
    one is not."""

    name = "check_finite"
    differentiable = False
    forward = Kernel("check_finite.forward(x*: f32) -> (ok: i32, bad: i32)")

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        return {"ok": Spec.of(1, dtype="i32"), "bad": Spec.of(1, dtype="i32")}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        ok = int(all(np.isfinite(values_of(x)).all() for x in args["x"]))
        return {"ok": np.array([ok]), "bad": np.array([1 - ok])}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": (Arg((1,)),)}),
            Sample({"x": (Arg(("N", 19)), Arg((1,)), Arg((40,)))}),
            Sample({"x": (Arg((4,), values=(1.0, 3e38, float("inf"), 0.0)),)}),
            Sample({"x": (Arg((1,)), Arg((3,), values=(0.0, float("nan"), 1.0)))}),
        ]


OP = CheckFinite()
