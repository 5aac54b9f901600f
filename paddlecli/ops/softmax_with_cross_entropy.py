"""softmax_with_cross_entropy: log-softmax and cross-entropy in one, right for scores of any size.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops._loss import places_of
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_ATTRS = "soft_label: bool, axis: int, ignore_index: int"


class SoftmaxWithCrossEntropy(Op):
    """``loss = -log softmax(x)[label]`` along ``axis``, or ``-sum(label*log softmax(x))`` when
    ``soft_label``.

    Inputs: x, scores; label, i64 without the class axis or with one class there, or soft f32 like
        x; weight [classes], optional, what a hard label counts. A label of ``ignore_index`` costs 0
        and gives no gradient.
    Outputs: loss, shaped as the label (soft: x with one class); stats [..., 2], each place's
        largest score and the logarithm of its sum, which the gradient needs. For the probabilities
        apply ``softmax`` to x.
    """

    name = "softmax_with_cross_entropy"
    forward = Kernel(
        f"softmax_with_cross_entropy.forward(x: f32, label: any, weight?: f32; {_ATTRS}) -> (loss: f32, stats: f32)",
        rowwise=True,
    )
    backward_x = Kernel(
        "softmax_with_cross_entropy.backward_x(x: f32, label: any, weight?: f32, stats: f32, dloss: f32; "
        f"{_ATTRS}) -> (dx: f32)",
        inplace={"dx": "x"},
        rowwise=True,
    )
    forward_backward = Kernel(
        "softmax_with_cross_entropy.forward_backward(x: f32, label: i64, weight?: f32, dloss: f32; ignore_index: int)"
        " -> (loss: f32, dx: f32)",
        inplace={"dx": "x"},
        rowwise=True,
    )
    """Both at once, for hard labels along the last axis: one exponential a score instead of two. The compiler
    takes it where ``dloss`` does not come from the loss (``compiler/fuse_losses.py``)."""

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, weight, soft = args["x"], args.get("weight"), bool(attrs["soft_label"])
        axis = integer(attrs, "axis")
        places = places_of(self.name, x, args["label"], axis, soft)
        check(axis % x.ndim > 0, self.name, f"x is {x}: axis {axis} is its rows")
        check(weight is None or not soft, self.name, "class weights need hard labels")
        check(
            weight is None or weight.shape == (x.shape[axis],),
            self.name,
            f"weight is {weight}, x {x} has {x.shape[axis]} classes",
        )
        return {"loss": x.with_shape(*places), "stats": x.with_shape(*places, 2)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        if not g.needs("x"):
            return {}
        args = {**node.args, "stats": node.results["stats"], "dloss": dy["loss"]}
        return {"x": g.emit(self.backward_x, args, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label, weight = values_of(args["x"]), values_of(args["label"]), args.get("weight")
        axis = integer(attrs, "axis") % x.ndim
        m = x.max(axis=axis, keepdims=True)
        log_sum = np.log(np.exp(x - m).sum(axis=axis, keepdims=True))
        log_p = x - m - log_sum
        if attrs["soft_label"]:
            loss = -(label * log_p).sum(axis=axis, keepdims=True)
        else:
            ids = label.reshape(m.shape).astype(np.int64)
            counted = ids != attrs["ignore_index"]
            known = np.where(counted, ids, 0)
            worth = counted if weight is None else counted * weight[known]
            loss = (-np.take_along_axis(log_p, known, axis=axis) * worth).reshape(label.shape)
        stats = np.stack([m, log_sum], axis=-1).reshape(*loss.shape, 2)
        return {"loss": loss, "stats": stats}

    def samples(self) -> Sequence[Sample]:
        hard: dict[str, Attr] = {"soft_label": False, "axis": -1, "ignore_index": -100}
        labels = (0, 2, 1, -100)
        x, image = Arg(("N", 3), low=-4, high=4), Arg(("N", 3, 3, 7), low=-4, high=4)
        return [
            Sample({"x": x, "label": Arg(("N", 1), "i64", choices=labels)}, hard),
            Sample(
                {"x": x, "label": Arg(("N",), "i64", choices=(0, 1, 2))},
                {**hard, "ignore_index": 0},
            ),
            Sample(
                {
                    "x": x,
                    "label": Arg(("N", 1), "i64", choices=labels),
                    "weight": Arg((3,), values=(0.5, 1, 2)),
                },
                hard,
            ),
            Sample(
                {
                    "x": Arg(("N", 41), low=-4, high=4),
                    "label": Arg(("N", 1), "i64", low=0, high=40),
                },
                hard,
            ),
            Sample(
                {"x": Arg(("t", 5), low=-4, high=4), "label": Arg(("t", 1), "i64", low=0, high=4)},
                hard,
                axes=("t",),
            ),
            Sample(
                {"x": image, "label": Arg(("N", 3, 7), "i64", choices=labels)}, {**hard, "axis": 1}
            ),
            Sample({"x": x, "label": Arg(("N", 3), low=0, high=1)}, {**hard, "soft_label": True}),
            Sample(
                {"x": Arg(("N", 19)), "label": Arg(("N", 19), low=0, high=0.2)},
                {**hard, "soft_label": True},
            ),
            Sample(
                {"x": image, "label": Arg(("N", 3, 3, 7), low=0, high=1)},
                {**hard, "soft_label": True, "axis": 1},
            ),
        ]


OP = SoftmaxWithCrossEntropy()
