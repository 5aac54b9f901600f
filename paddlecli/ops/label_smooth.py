"""label_smooth: mixes one-hot labels with a prior over the classes. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class LabelSmooth(Op):
    """``y = (1 - epsilon)*label + epsilon*prior``; label and y [..., classes], prior [classes],
    1/classes if absent."""

    name = "label_smooth"
    forward = Kernel(
        "label_smooth.forward(label: f32, prior?: f32; epsilon: float) -> (y: f32)",
        inplace={"y": "label"},
        rowwise=True,
    )
    backward_label = Kernel(
        "label_smooth.backward_label(dy: f32; epsilon: float) -> (dlabel: f32)",
        inplace={"dlabel": "dy"},
        rowwise=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        label, prior = args["label"], args.get("prior")
        check(label.ndim >= 1, self.name, "label has no class axis")
        check(
            prior is None or prior.shape == label.shape[-1:],
            self.name,
            f"prior is {prior}, label has {label.shape[-1]} classes",
        )
        return {"y": label}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        if not g.needs("label"):
            return {}
        out = {"dlabel": node.args["label"]}
        return {"label": g.emit(self.backward_label, {"dy": dy["y"]}, node.attrs, out=out)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        label, prior, epsilon = args["label"], args.get("prior"), number(attrs, "epsilon")
        return {
            "y": (1 - epsilon) * label + epsilon * (1 / label.shape[-1] if prior is None else prior)
        }

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"label": Arg(("N", 3), choices=(0, 1))}, {"epsilon": 0.1}),
            Sample(
                {"label": Arg(("N", 2, 19)), "prior": Arg((19,), low=0, high=0.2)},
                {"epsilon": 0.25},
            ),
        ]


OP = LabelSmooth()
