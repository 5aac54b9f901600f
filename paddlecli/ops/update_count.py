"""An optimizer's count of updates: state, since one that its guard leaves out does not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample
from paddlecli.ops.spec import Spec


class UpdateCount(Op):
    """count [1] -> count_out [1], the same memory."""

    name: ClassVar[str] = "update_count"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "update_count.forward(count: i64) -> (count_out: i64)",
        inplace={"count_out": "count"},
        updates=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        return {"count_out": args["count"]}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        return {"count_out": args["count"] + 1}

    def samples(self) -> Sequence[Sample]:
        return [Sample({"count": Arg((1,), "i64", low=0, high=1000)})]


OP = UpdateCount()
