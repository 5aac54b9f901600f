"""cross_entropy of probabilities with hard or soft labels. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import places_of
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample
from paddlecli.ops.spec import Spec


class CrossEntropy(Op):
    """``loss = -log(x[label])``, or ``-sum(label*log(x))`` when ``soft_label``, along the last
    axis.

    x [..., classes] probabilities; label i64 [...] or [..., 1], or soft f32 like x; loss shaped as
    the label (soft: [..., 1]). Infinite logarithms are held at 1e20 and have no slope; a label of
    ``ignore_index`` costs 0.
    """

    name = "cross_entropy"
    forward = Kernel(
        "cross_entropy.forward(x: f32, label: any; soft_label: bool, ignore_index: int) -> (loss: f32)",
        rowwise=True,
    )
    backward_x = Kernel(
        "cross_entropy.backward_x(x: f32, label: any, dloss: f32; soft_label: bool, ignore_index: int) -> (dx: f32)",
        rowwise=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        return {
            "loss": x.with_shape(
                *places_of(self.name, x, args["label"], -1, bool(attrs["soft_label"]))
            )
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        if not g.needs("x"):
            return {}
        args = {**node.args, "dloss": dy["loss"]}
        return {"x": g.emit(self.backward_x, args, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label = values_of(args["x"]), values_of(args["label"])
        with np.errstate(divide="ignore"):
            log = np.clip(np.log(x), -1e20, 1e20)
        if attrs["soft_label"]:
            return {"loss": -(label * log).sum(axis=-1, keepdims=True)}
        ids = label.reshape(*x.shape[:-1], 1).astype(np.int64)
        counted = ids != attrs["ignore_index"]
        loss = -np.take_along_axis(log, np.where(counted, ids, 0), axis=-1) * counted
        return {"loss": loss.reshape(label.shape)}

    def samples(self) -> Sequence[Sample]:
        x = Arg(("N", 3), low=0.05, high=1)
        hard: dict[str, Attr] = {"soft_label": False, "ignore_index": -100}
        return [
            Sample({"x": x, "label": Arg(("N", 1), "i64", choices=(0, 1, 2, -100))}, hard),
            Sample(
                {"x": x, "label": Arg(("N",), "i64", choices=(0, 1, 2))},
                {**hard, "ignore_index": 1},
            ),
            Sample({"x": x, "label": Arg(("N", 3), low=0, high=1)}, {**hard, "soft_label": True}),
            Sample(
                {"x": Arg(("N", 18), low=0.05, high=1), "label": Arg(("N", 18), low=0, high=0.2)},
                {**hard, "soft_label": True},
            ),
            Sample(
                {
                    "x": Arg(("t", 4), low=0.05, high=1),
                    "label": Arg(("t", 1), "i64", low=0, high=3),
                },
                hard,
                axes=("t",),
            ),
        ]


OP = CrossEntropy()
