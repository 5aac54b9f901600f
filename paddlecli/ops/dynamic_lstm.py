"""dynamic_lstm: long short-term memory over packed sequences, all steps in one call."""

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

_OWN = "peephole: bool, reverse: bool, gate: int, cell: int, candidate: int"


class DynamicLstm(Op):
    """x [T, 4D] is projected already; w [D, 4D]; b [4D], or [7D] with peepholes; h0, c0 [sequences, D].

    Blocks in the order candidate, input, forget, output; peephole weights W_ic, W_fc, W_oc behind the bias::

        z = x_t + h w + b;  i = gate(z_i + W_ic c);  f = gate(z_f + W_fc c);  g = candidate(z_c)
        c' = f c + i g;  o = gate(z_o + W_oc c');  h' = o cell(c')

    Gives y = h' and the cells c', both [T, D]; saved are the four gates. Activations are indices into
    :data:`paddlecli.ops._recurrent.ACTIVATIONS`. ``reverse`` runs each sequence from its end, outputs stay in place.
    """

    name = "dynamic_lstm"
    forward = Kernel(
        f"dynamic_lstm.forward(x: f32, w: f32, b?: f32, h0?: f32, c0?: f32; {_OWN})"
        " -> (y: f32, cells: f32, gates: f32, work_order: i64, work_rows: f32, work_panels: f32)",
        inplace={"gates": "x"},
    )
    backward = Kernel(
        "dynamic_lstm.backward(dy?: f32, dcells?: f32, h0?: f32, cells: f32, gates: f32, w: f32,"
        f" b?: f32, c0?: f32; {_OWN}) -> (dx: f32, dh0: f32, dc0: f32, work_order: i64,"
        " work_rows: f32, work_panels: f32)",
        inplace={"dx": "gates"},
    )
    backward_w = Kernel(
        "dynamic_lstm.backward_w(y: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)"
    )
    backward_b = Kernel(
        "dynamic_lstm.backward_b(dx: f32, cells: f32, c0?: f32; peephole: bool, reverse: bool) -> (db: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "peephole": True,
        "reverse": False,
        "gate": 0,
        "cell": 1,
        "candidate": 1,
    }

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """y, cells [T, D]; gates [T, 4D]."""
        x, w, b = args["x"], args["w"], args["b"]
        check(x.axis is not None and x.ndim == 2, self.name, f"x {x} is no sequence of rows")
        check(w.ndim == 2 and w.shape[1] == 4 * w.shape[0], self.name, f"w {w} is not [D, 4*D]")
        d = w.shape[0].coefficient
        check(x.shape[1] == w.shape[1], self.name, f"x {x} has not the {4 * d} columns of w")
        bias = (7 if attrs["peephole"] else 4) * d
        check(not attrs["peephole"] or b is not None, self.name, "peepholes need the bias")
        check(b is None or b.size.coefficient == bias, self.name, f"b is {b}, expected {bias}")
        check_start(self.name, "h0", args["h0"], x, d)
        check_start(self.name, "c0", args["c0"], x, d)
        check_activations(self.name, attrs, "gate", "cell", "candidate")
        row = Spec((x.shape[0], w.shape[0]), "f32", x.axis)
        return {"y": row, "cells": row, "gates": x, **scratch(x, 6 * d, (d, 4 * d))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Backwards through the steps, then the weights and the bias from all tokens at once."""
        a, r = node.args, node.results
        x, d = a["x"].spec, a["w"].spec.shape[0].coefficient
        start = Spec.of(x.axis.sequences, d)
        args = {"dy": dy["y"], "dcells": dy["cells"], "h0": a["h0"], "cells": r["cells"],
                "gates": r["gates"], "w": a["w"], "b": a["b"], "c0": a["c0"]}  # fmt: skip
        out = {"dx": a["x"], "dh0": start, "dc0": start, **scratch(x, 6 * d, (4 * d, d))}
        dx, dh0, dc0 = g.emit(self.backward, args, dict(node.attrs), out=out)
        found = {"x": dx, "h0": dh0, "c0": dc0}
        reverse = {"reverse": node.attrs["reverse"]}
        if g.needs("w"):
            found["w"] = g.emit(
                self.backward_w, {"y": r["y"], "dx": dx, "h0": a["h0"]}, reverse, {"dw": a["w"]}
            )
        if a["b"] is not None and g.needs("b"):
            found["b"] = g.emit(
                self.backward_b,
                {"dx": dx, "cells": r["cells"], "c0": a["c0"]},
                {"peephole": node.attrs["peephole"], **reverse},
                {"db": a["b"]},
            )
        return {k: v for k, v in found.items() if a[k] is not None}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Token by token."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        d = len(w)
        b = np.zeros(7 * d)
        if args.get("b") is not None:
            b[: args["b"].size] = args["b"].reshape(-1)
        zero = np.zeros((len(offsets) - 1, d))
        h0, c0 = (zero if args.get(k) is None else args[k] for k in ("h0", "c0"))
        gate, cell, candidate = (
            activation(integer(attrs, k)) for k in ("gate", "cell", "candidate")
        )
        y, cells, gates = np.zeros((len(x), d)), np.zeros((len(x), d)), np.zeros((len(x), 4 * d))
        to_i, to_f, to_o = b[4 * d :].reshape(3, d)

        def step(s: int, t: int, before: int) -> None:
            h, c = (h0[s], c0[s]) if before < 0 else (y[before], cells[before])
            zg, zi, zf, zo = (x[t] + h @ w + b[: 4 * d]).reshape(4, d)
            f, i, new = gate(zf + to_f * c), gate(zi + to_i * c), candidate(zg)
            cells[t] = f * c + i * new
            o = gate(zo + to_o * cells[t])
            y[t] = o * cell(cells[t])
            gates[t] = np.concatenate([new, i, f, o])

        walk(offsets, bool(attrs["reverse"]), step)
        return {k: Ragged(v, offsets) for k, v in (("y", y), ("cells", cells), ("gates", gates))}

    def samples(self) -> Sequence[Sample]:
        """Both directions, with and without peepholes, bias and start values; other activations; wide rows."""

        def case(d: int, starts: bool, bias: bool = True, **attrs: Attr) -> Sample:
            known = {**self.defaults, **attrs}
            args = {"x": Arg(("s", 4 * d)), "w": Arg((d, 4 * d))}
            if bias:
                args["b"] = Arg(((7 if known["peephole"] else 4) * d,))
            if starts:
                args |= {"h0": Arg(("N", d)), "c0": Arg(("N", d))}
            return Sample(args, known, axes=("s",), tolerance=1e-5, grad_tolerance=2e-4)

        return [
            case(3, True),
            case(2, True, reverse=True),
            case(5, False, peephole=False),
            case(3, False, bias=False, peephole=False, reverse=True),
            case(2, True, gate=0, cell=3, candidate=0),
            case(18, False),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*D*4D for each token, in each of the three products."""
        if kernel is self.backward_b:
            return 0
        tokens = (shapes.get("x") or shapes["dx"])[0]
        rows, columns = shapes.get("w") or shapes["dw"]
        return 2 * tokens * rows * columns


OP = DynamicLstm()
