"""simple_rnn: the plain recurrent net over packed sequences, all steps in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._recurrent import (
    activation,
    check_activations,
    check_start,
    scratch,
    walk,
)
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    Shape,
    check,
)
from paddlecli.ops.spec import Spec

_OWN = "reverse: bool, activation: int"


class SimpleRnn(Op):
    """y_t = act(x_t + y_(t-1) w + b); x [T, D] is projected already, w [D, D], b [D], h0 [sequences, D];
    y [T, D].

    ``activation`` is an index into :data:`paddlecli.ops._recurrent.ACTIVATIONS`. ``reverse`` runs each sequence
    from its end, outputs stay in place.
    """

    name = "simple_rnn"
    forward = Kernel(
        f"simple_rnn.forward(x: f32, w: f32, b?: f32, h0?: f32; {_OWN})"
        " -> (y: f32, work_order: i64, work_rows: f32, work_panels: f32)",
        inplace={"y": "x"},
    )
    backward = Kernel(
        f"simple_rnn.backward(dy: f32, y: f32, w: f32; {_OWN})"
        " -> (dx: f32, dh0: f32, work_order: i64, work_rows: f32, work_panels: f32)"
    )
    backward_w = Kernel(
        "simple_rnn.backward_w(y: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"reverse": False, "activation": 1}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x."""
        x, w, b = args["x"], args["w"], args["b"]
        check(x.axis is not None and x.ndim == 2, self.name, f"x {x} is no sequence of rows")
        check(w.shape == (x.shape[1],) * 2, self.name, f"w {w} is no square for x {x}")
        d = w.shape[0].coefficient
        check(b is None or b.size == w.shape[0], self.name, f"b is {b}, expected {d}")
        check_start(self.name, "h0", args["h0"], x, d)
        check_activations(self.name, attrs, "activation")
        return {"y": x, **scratch(x, 2 * d, (d, d))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Backwards through the steps, then the weights and the bias from all tokens at once."""
        from paddlecli import ops

        a, y = node.args, node.results["y"]
        x, d = a["x"].spec, a["w"].spec.shape[0].coefficient
        out = {"dx": a["x"], "dh0": Spec.of(x.axis.sequences, d), **scratch(x, 2 * d, (d, d))}
        args = {"dy": dy["y"], "y": y, "w": a["w"]}
        dx, dh0 = g.emit(self.backward, args, dict(node.attrs), out=out)
        found = {"x": dx, "h0": dh0}
        if g.needs("w"):
            args = {"y": y, "dx": dx, "h0": a["h0"]}
            reverse = {"reverse": node.attrs["reverse"]}
            found["w"] = g.emit(self.backward_w, args, reverse, {"dw": a["w"]})
        if a["b"] is not None and g.needs("b"):
            kernel = ops.get("bias").backward  # type: ignore[attr-defined]
            found["b"] = g.emit(kernel, {"dy": dx}, {"axis": -1}, out={"db": a["b"]})
        return {k: v for k, v in found.items() if a[k] is not None}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Token by token."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        b = 0.0 if args.get("b") is None else args["b"].reshape(-1)
        h0 = np.zeros((len(offsets) - 1, len(w))) if args.get("h0") is None else args["h0"]
        act, y = activation(integer(attrs, "activation")), np.zeros(x.shape)

        def step(s: int, t: int, before: int) -> None:
            y[t] = act(x[t] + (h0[s] if before < 0 else y[before]) @ w + b)

        walk(offsets, bool(attrs["reverse"]), step)
        return {"y": Ragged(y, offsets)}

    def samples(self) -> Sequence[Sample]:
        """Both directions, with and without bias and start; other activations; wide rows."""

        def case(d: int, start: bool, bias: bool = True, **attrs: Attr) -> Sample:
            args = {"x": Arg(("s", d)), "w": Arg((d, d))}
            args |= {"b": Arg((d,))} if bias else {}
            args |= {"h0": Arg(("N", d))} if start else {}
            known = {**self.defaults, **attrs}
            return Sample(args, known, axes=("s",), tolerance=1e-5, grad_tolerance=2e-4)

        return [
            case(3, True),
            case(2, True, reverse=True),
            case(5, False, bias=False, activation=0),
            case(2, False, activation=3, reverse=True),
            case(18, True),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*D*D for each token, in each of the three products."""
        tokens, width = shapes["y"]
        return 2 * tokens * width * width


OP = SimpleRnn()
