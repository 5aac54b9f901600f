"""label_mask: which labels count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample
from paddlecli.ops.spec import Spec


class LabelMask(Op):
    """mask = 0 where the label is ``ignore_index``, else 1; both of one shape."""

    name = "label_mask"
    differentiable = False
    forward = Kernel(
        "label_mask.forward(label: i64; ignore_index: int) -> (mask: i32)", rowwise=True
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        label: Spec = args["label"]
        return {"mask": label.with_dtype("i32")}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        label = args["label"]
        if isinstance(label, Ragged):
            mask = (label.values != attrs["ignore_index"]).astype(np.int32)
            return {"mask": Ragged(mask, label.offsets)}
        return {"mask": (label != attrs["ignore_index"]).astype(np.int32)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"label": Arg(("N",), "i64", 0, 3)}, {"ignore_index": 2}),
            Sample({"label": Arg(("N", 1), "i64", -1, 1)}, {"ignore_index": -1}),
            Sample({"label": Arg(("s",), "i64", 0, 2)}, {"ignore_index": 0}, axes=("s",)),
        ]


OP = LabelMask()
