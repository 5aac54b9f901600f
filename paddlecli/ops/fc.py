"""fc: a fully connected layer in one kernel: product, bias, activation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    Sample,
    Shape,
    check,
)
from paddlecli.ops.spec import Spec, product

ACTIVATIONS = ("none", "relu", "tanh", "sigmoid")
"""What the attribute ``activation`` counts; all have gradients from y."""


class Fc(Op):
    """y = act(x w + b): the first ``num_flatten_dims`` dimensions of x are kept, the others are one row of w [in, out]; b [out].

    ``activation`` is an index into :data:`ACTIVATIONS`.
    """

    name = "fc"
    forward = Kernel(
        "fc.forward(x: f32, w: f32, b?: f32; num_flatten_dims: int, activation: int) -> (y: f32)",
        rowwise=True,
    )
    backward_x = Kernel("fc.backward_x(dy: f32, w: f32) -> (dx: f32)", rowwise=True)
    backward_w = Kernel("fc.backward_w(x: f32, dy: f32) -> (dw: f32)", rowwise=True)
    backward_wb = Kernel("fc.backward_wb(x: f32, dy: f32) -> (dw: f32, db: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"num_flatten_dims": 1, "activation": 0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """The kept dimensions of x, then w's columns."""
        x, w, b = args["x"], args["w"], args["b"]
        kept = integer(attrs, "num_flatten_dims")
        check(
            0 < kept < x.ndim,
            self.name,
            f"num_flatten_dims is {kept}, x {x} has {x.ndim} dimensions",
        )
        check(w.ndim == 2, self.name, f"w {w} must have 2 dimensions")
        last = product(x.shape[kept:])
        check(
            last == w.shape[0], self.name, f"w has {w.shape[0]} rows, x has {last} in its last axes"
        )
        check(
            b is None or b.shape == w.shape[1:], self.name, f"b is {b}, w has {w.shape[1]} columns"
        )
        check(
            0 <= integer(attrs, "activation") < len(ACTIVATIONS),
            self.name,
            f"activation {attrs['activation']} is unknown",
        )
        return {"y": Spec((*x.shape[:kept], w.shape[1]), "f32", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Through the activation, then the product; db comes in the pass of dw."""
        from paddlecli import ops

        x, w, b, dz = node.args["x"], node.args["w"], node.args["b"], dy["y"]
        if node.attrs["activation"]:
            act = ops.get(ACTIVATIONS[integer(node.attrs, "activation")])
            dz = g.emit(act.backward, {"y": node.results["y"], "dy": dz}, out={"dx": dz})  # type: ignore[attr-defined]
        wants_b = b is not None and g.needs("b")
        found = {}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, {"dy": dz, "w": w}, out={"dx": x})
        if g.needs("w") and wants_b:
            found["w"], found["b"] = g.emit(
                self.backward_wb, {"x": x, "dy": dz}, out={"dw": w, "db": b}
            )
        elif g.needs("w"):
            found["w"] = g.emit(self.backward_w, {"x": x, "dy": dz}, out={"dw": w})
        elif wants_b:
            found["b"] = g.emit(ops.get("bias").backward, {"dy": dz}, {"axis": -1}, out={"db": b})  # type: ignore[attr-defined]
        return found

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any]:
        """matmul, bias, activation."""
        kept = node.attrs["num_flatten_dims"]
        y = g.apply(
            "matmul",
            node.args["x"],
            node.args["w"],
            transpose_x=False,
            transpose_y=False,
            num_flatten_dims=kept,
        )
        if node.args["b"] is not None:
            y = g.apply("bias", y, node.args["b"], axis=-1)
        act = ACTIVATIONS[integer(node.attrs, "activation")]
        return {"y": y if act == "none" else g.apply(act, y)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The formula."""
        import numpy as np

        x, w = values_of(args["x"]), args["w"]
        kept = integer(attrs, "num_flatten_dims")
        z = np.tensordot(x, w.reshape(*x.shape[kept:], w.shape[1]), x.ndim - kept)
        z = z if args.get("b") is None else z + args["b"]
        act = (lambda v: v, lambda v: np.maximum(v, 0), np.tanh, lambda v: 1 / (1 + np.exp(-v)))
        return {"y": like(args["x"], act[integer(attrs, "activation")](z))}

    def samples(self) -> Sequence[Sample]:
        """Every activation, with and without bias, flattened and packed rows, a k of two chunks."""

        def case(
            x: tuple[int | str, ...],
            rows: int,
            out: int,
            act: int,
            kept: int = 1,
            bias: bool = True,
        ) -> Sample:
            args = {"x": Arg(x), "w": Arg((rows, out))} | ({"b": Arg((out,))} if bias else {})
            axes = ("s",) if x[0] == "s" else ()
            return Sample(args, {"num_flatten_dims": kept, "activation": act}, axes=axes)

        # relu's kink is kept out of reach by a bias that is larger than the sum can be
        relu = Sample(
            {
                "x": Arg(("N", 4)),
                "w": Arg((4, 6), low=-0.2, high=0.2),
                "b": Arg((6,), choices=(-1.0, 1.0)),
            },
            {"num_flatten_dims": 1, "activation": 1},
        )
        return [
            case(("N", 13), 13, 1, 0),
            case(("N", 5), 5, 19, 2),
            relu,
            case(("N", 300), 300, 3, 3, bias=False),
            case(("N", 3, 2, 2), 12, 5, 2),
            case(("N", 3, 4), 4, 5, 0, kept=2),
            case(("s", 4), 4, 33, 3),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*in for each element of y or dy, whichever of the three products it is."""
        rows = shapes["w"][0] if "w" in shapes else shapes["dw"][0]
        return 2 * rows * math.prod(shapes["y"] if "y" in shapes else shapes["dy"])


OP = Fc()
