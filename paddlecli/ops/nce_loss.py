"""nce_loss: noise-contrastive estimation, a row's class against those that noise gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import ONE, Spec


class NceLoss(Op):
    """loss[n] = -log(o / (o + m)) of the first class of row n, plus -log(m / (o + m)) of each other one.

    z [N, K] are scores, o = sigmoid(z); m = ``expected`` [N, K], how often noise draws the class among the row's; loss
    [N, 1]. This is the original's form, whose o is no free probability but a sigmoid.
    """

    name = "nce_loss"
    forward = Kernel("nce_loss.forward(z: f32, expected: f32) -> (loss: f32)", rowwise=True)
    backward = Kernel(
        "nce_loss.backward(z: f32, expected: f32, dloss: f32) -> (dz: f32)", rowwise=True
    )

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[N, 1]."""
        z, expected = args["z"], args["expected"]
        fits = z.ndim == 2 and z.shape == expected.shape and z.shape[1].coefficient > 0
        check(fits, self.name, f"z {z} and expected {expected} are not [N, K] both")
        return {"loss": Spec((z.shape[0], ONE), "f32", z.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Element by element; expected is data."""
        a = node.args
        args = {"z": a["z"], "expected": a["expected"], "dloss": dy["loss"]}
        return {"z": g.emit(self.backward, args, out={"dz": a["z"]})} if g.needs("z") else {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The definition."""
        import numpy as np

        z, m = values_of(args["z"]), values_of(args["expected"])
        o = 1 / (1 + np.exp(-z))
        loss = -np.log(o[:, :1] / (o[:, :1] + m[:, :1]))
        return {"loss": loss - np.log(m / (o + m))[:, 1:].sum(axis=1, keepdims=True)}

    def samples(self) -> Sequence[Sample]:
        """No noise, some, more than a vector; large scores."""

        def case(k: int, high: float) -> Sample:
            m = Arg(("N", k), low=0.01, high=3.0)
            args = {"z": Arg(("N", k), low=-high, high=high), "expected": m}
            return Sample(args, tolerance=1e-5, grad_tolerance=1e-3)

        return [case(1, 2.0), case(5, 3.0), case(19, 3.0), case(4, 60.0)]


OP = NceLoss()
