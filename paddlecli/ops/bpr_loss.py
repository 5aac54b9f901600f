"""bpr_loss: Bayesian personalised ranking of one class against all others (Rendle et al., 2009).
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import places_of
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class BprLoss(Op):
    """``loss = mean over j != label of log(1 + exp(x[j] - x[label]))``: x [..., classes], label i64
    [...] or [..., 1]."""

    name = "bpr_loss"
    forward = Kernel("bpr_loss.forward(x: f32, label: i64) -> (loss: f32)", rowwise=True)
    backward_x = Kernel(
        "bpr_loss.backward_x(x: f32, label: i64, dloss: f32) -> (dx: f32)", rowwise=True
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        check(
            x.ndim >= 2 and x.shape[-1].known and x.shape[-1].coefficient >= 2,
            self.name,
            f"x is {x}; at least two classes are needed",
        )
        return {"loss": x.with_shape(*places_of(self.name, x, args["label"], -1, False))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        args = {**node.args, "dloss": dy["loss"]}
        return (
            {"x": g.emit(self.backward_x, args, out={"dx": node.args["x"]})} if g.needs("x") else {}
        )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label = values_of(args["x"]), values_of(args["label"])
        own = np.take_along_axis(x, label.reshape(*x.shape[:-1], 1).astype(np.int64), axis=-1)
        # The label's own term is log 2; it is taken out again.
        total = np.logaddexp(0, x - own).sum(axis=-1) - np.log(2)
        return {"loss": (total / (x.shape[-1] - 1)).reshape(label.shape)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample(
                {"x": Arg(("N", 3), low=-3, high=3), "label": Arg(("N", 1), "i64", low=0, high=2)}
            ),
            Sample(
                {"x": Arg(("N", 21), low=-3, high=3), "label": Arg(("N",), "i64", low=0, high=20)}
            ),
            Sample({"x": Arg(("t", 5)), "label": Arg(("t", 1), "i64", low=0, high=4)}, axes=("t",)),
        ]


OP = BprLoss()
