"""gru_unit: one step of gated recurrent units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._recurrent import activation, check_activations
from paddlecli.ops._unary import values_of
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
from paddlecli.ops.spec import Spec

_OWN = "gate: int, candidate: int, origin_mode: bool"


class GruUnit(Op):
    """One step: x [N, 3D] is projected already, in the order update, reset, candidate; h [N, D] is the state before.

    w [D, 3D] is read as [D, 2D] for update and reset, and behind it [D, D] for the candidate; b [3D] is optional::

        u, r = gate(x_ur + h w_ur + b_ur);  c = candidate(x_c + (r h) w_c + b_c)
        y = (1 - u) h + u c, or with origin_mode u h + (1 - u) c

    Saved are u, r, c [N, 3D] and r h [N, D]. Activations are indices into
    :data:`paddlecli.ops._recurrent.ACTIVATIONS`.
    """

    name = "gru_unit"
    forward = Kernel(
        f"gru_unit.forward(x: f32, h: f32, w: f32, b?: f32; {_OWN})"
        " -> (y: f32, gates: f32, kept: f32, work: f32)",
        rowwise=True,
    )
    backward = Kernel(
        f"gru_unit.backward(gates: f32, h: f32, w: f32, dy: f32; {_OWN})"
        " -> (dx: f32, dh: f32, work: f32)",
        rowwise=True,
    )
    backward_w = Kernel(
        "gru_unit.backward_w(dx: f32, h: f32, kept: f32) -> (dw: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"gate": 0, "candidate": 1, "origin_mode": False}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """y, kept [N, D]; gates [N, 3D]."""
        x, h, w, b = args["x"], args["h"], args["w"], args["b"]
        check(x.ndim == 2 and h.ndim == 2, self.name, f"x is {x}, h is {h}; both must be rows")
        check(
            x.shape[0] == h.shape[0] and x.shape[1] == 3 * h.shape[1],
            self.name,
            f"x {x} is not three blocks of h {h}",
        )
        wanted = (h.shape[1], x.shape[1])
        check(w.shape == wanted, self.name, f"w {w} is not [{wanted[0]}, {wanted[1]}]")
        check(b is None or b.size == x.shape[1], self.name, f"b is {b}, expected {x.shape[1]}")
        check_activations(self.name, attrs, "gate", "candidate")
        row = Spec(h.shape, "f32", x.axis)
        return {"y": row, "gates": x, "kept": row, "work": Spec(x.shape)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Through both products; the weights from all rows."""
        from paddlecli import ops

        a, r = node.args, node.results
        args = {"gates": r["gates"], "h": a["h"], "w": a["w"], "dy": dy["y"]}
        rows, width = a["x"].spec.shape[0], 4 * a["h"].spec.shape[1]
        out = {"dx": a["x"], "dh": a["h"], "work": Spec((rows, width))}
        dx, dh = g.emit(self.backward, args, dict(node.attrs), out=out)
        found = {"x": dx, "h": dh}
        if g.needs("w"):
            args = {"dx": dx, "h": a["h"], "kept": r["kept"]}
            found["w"] = g.emit(self.backward_w, args, out={"dw": a["w"]})
        if a["b"] is not None and g.needs("b"):
            kernel = ops.get("bias").backward  # type: ignore[attr-defined]
            found["b"] = g.emit(kernel, {"dy": dx}, {"axis": -1}, out={"db": a["b"]})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The formulas."""
        import numpy as np

        x, h, flat = values_of(args["x"]), values_of(args["h"]), args["w"].reshape(-1)
        d = h.shape[1]
        b = np.zeros(3 * d) if args.get("b") is None else args["b"].reshape(-1)
        gate, candidate = (activation(integer(attrs, k)) for k in ("gate", "candidate"))
        both = gate(x[:, : 2 * d] + h @ flat[: 2 * d * d].reshape(d, 2 * d) + b[: 2 * d])
        u, kept = both[:, :d], both[:, d:] * h
        c = candidate(x[:, 2 * d :] + kept @ flat[2 * d * d :].reshape(d, d) + b[2 * d :])
        y = u * h + (1 - u) * c if attrs["origin_mode"] else (1 - u) * h + u * c
        return {"y": y, "gates": np.concatenate([both, c], 1), "kept": kept}

    def samples(self) -> Sequence[Sample]:
        """Both modes, with and without bias; other activations; wide rows."""

        def case(d: int, bias: bool, **attrs: Attr) -> Sample:
            args = {"x": Arg(("N", 3 * d)), "h": Arg(("N", d)), "w": Arg((d, 3 * d))}
            args |= {"b": Arg((3 * d,))} if bias else {}
            return Sample(args, {**self.defaults, **attrs}, tolerance=1e-5, grad_tolerance=2e-4)

        return [
            case(3, True),
            case(2, False, origin_mode=True),
            case(4, True, gate=0, candidate=3),
            case(18, True),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*D*3D for each row, in each of the three kernels."""
        rows, columns = shapes.get("w") or shapes["dw"]
        return 2 * shapes["h"][0] * rows * columns


OP = GruUnit()
