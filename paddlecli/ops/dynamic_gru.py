"""dynamic_gru: gated recurrent units over packed sequences, all steps in one call."""

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

_OWN = "reverse: bool, gate: int, candidate: int, origin_mode: bool"


class DynamicGru(Op):
    """x [T, 3D] is projected already, in the order update, reset, candidate; b [3D]; h0 [sequences, D]; y [T, D].

    w [D, 3D] is read as [D, 2D] for update and reset, and behind it [D, D] for the candidate, as the original has it::

        u, r = gate(x_ur + h w_ur + b_ur);  c = candidate(x_c + (r h) w_c + b_c)
        h' = (1 - u) h + u c, or with origin_mode u h + (1 - u) c

    Saved are u, r and c. Activations are indices into :data:`paddlecli.ops._recurrent.ACTIVATIONS`. ``reverse`` runs each
    sequence from its end, outputs stay in place.
    """

    name = "dynamic_gru"
    forward = Kernel(
        f"dynamic_gru.forward(x: f32, w: f32, b?: f32, h0?: f32; {_OWN})"
        " -> (y: f32, gates: f32, work_order: i64, work_rows: f32, work_panels: f32)",
        inplace={"gates": "x"},
    )
    backward = Kernel(
        f"dynamic_gru.backward(dy?: f32, y: f32, gates: f32, w: f32, h0?: f32; {_OWN})"
        " -> (dx: f32, dh0: f32, work_order: i64, work_rows: f32, work_panels: f32)"
    )
    backward_w = Kernel(
        "dynamic_gru.backward_w(y: f32, gates: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "reverse": False,
        "gate": 0,
        "candidate": 1,
        "origin_mode": False,
    }

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """y [T, D]; gates [T, 3D]."""
        x, w, b = args["x"], args["w"], args["b"]
        check(x.axis is not None and x.ndim == 2, self.name, f"x {x} is no sequence of rows")
        check(w.ndim == 2 and w.shape[1] == 3 * w.shape[0], self.name, f"w {w} is not [D, 3*D]")
        d = w.shape[0].coefficient
        check(x.shape[1] == w.shape[1], self.name, f"x {x} has not the {3 * d} columns of w")
        check(b is None or b.size == w.shape[1], self.name, f"b is {b}, expected {3 * d}")
        check_start(self.name, "h0", args["h0"], x, d)
        check_activations(self.name, attrs, "gate", "candidate")
        row = Spec((x.shape[0], w.shape[0]), "f32", x.axis)
        return {"y": row, "gates": x, **scratch(x, 5 * d, (d, 2 * d), (d, d))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Backwards through the steps, then the weights and the bias from all tokens at once."""
        from paddlecli import ops

        a, r = node.args, node.results
        x, d = a["x"].spec, a["w"].spec.shape[0].coefficient
        args = {"dy": dy["y"], "y": r["y"], "gates": r["gates"], "w": a["w"], "h0": a["h0"]}
        room = scratch(x, 5 * d, (2 * d, d), (d, d))
        out = {"dx": a["x"], "dh0": Spec.of(x.axis.sequences, d), **room}
        dx, dh0 = g.emit(self.backward, args, dict(node.attrs), out=out)
        found = {"x": dx, "h0": dh0}
        if g.needs("w"):
            found["w"] = g.emit(
                self.backward_w,
                {"y": r["y"], "gates": r["gates"], "dx": dx, "h0": a["h0"]},
                {"reverse": node.attrs["reverse"]},
                {"dw": a["w"]},
            )
        if a["b"] is not None and g.needs("b"):
            found["b"] = g.emit(
                ops.get("bias").backward,  # type: ignore[attr-defined]
                {"dy": dx},
                {"axis": -1},
                out={"db": a["b"]},
            )
        return {k: v for k, v in found.items() if a[k] is not None}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Token by token."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        d = len(w)
        flat = w.reshape(-1)
        w_gates, w_candidate = flat[: 2 * d * d].reshape(d, 2 * d), flat[2 * d * d :].reshape(d, d)
        b = np.zeros(3 * d) if args.get("b") is None else args["b"].reshape(-1)
        h0 = np.zeros((len(offsets) - 1, d)) if args.get("h0") is None else args["h0"]
        gate, candidate = (activation(integer(attrs, k)) for k in ("gate", "candidate"))
        y, gates = np.zeros((len(x), d)), np.zeros((len(x), 3 * d))

        def step(s: int, t: int, before: int) -> None:
            h = h0[s] if before < 0 else y[before]
            u, r = gate(x[t, : 2 * d] + h @ w_gates + b[: 2 * d]).reshape(2, d)
            c = candidate(x[t, 2 * d :] + (r * h) @ w_candidate + b[2 * d :])
            y[t] = u * h + (1 - u) * c if attrs["origin_mode"] else (1 - u) * h + u * c
            gates[t] = np.concatenate([u, r, c])

        walk(offsets, bool(attrs["reverse"]), step)
        return {"y": Ragged(y, offsets), "gates": Ragged(gates, offsets)}

    def samples(self) -> Sequence[Sample]:
        """Both directions and both modes, with and without bias and start; other activations; wide rows."""

        def case(d: int, start: bool, bias: bool = True, **attrs: Attr) -> Sample:
            args = {"x": Arg(("s", 3 * d)), "w": Arg((d, 3 * d))}
            args |= {"b": Arg((3 * d,))} if bias else {}
            args |= {"h0": Arg(("N", d))} if start else {}
            known = {**self.defaults, **attrs}
            return Sample(args, known, axes=("s",), tolerance=1e-5, grad_tolerance=2e-4)

        return [
            case(3, True),
            case(2, True, reverse=True),
            case(4, False, origin_mode=True),
            case(3, True, bias=False, origin_mode=True, reverse=True),
            case(2, False, gate=1, candidate=3),
            case(18, True),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*D*3D for each token, in each of the three products."""
        tokens = (shapes.get("x") or shapes["dx"])[0]
        rows, columns = shapes.get("w") or shapes["dw"]
        return 2 * tokens * rows * columns


OP = DynamicGru()
