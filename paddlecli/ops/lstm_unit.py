"""lstm_unit: the gates and the cell of one step of long short-term memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops._recurrent import activation, check_activations
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_OWN = "gate: int, cell: int, candidate: int"


class LstmUnit(Op):
    """One step: x [N, 4D] holds input and recurrent product already, c [N, D] is the cell before.

    Blocks in the order candidate, input, forget, output; ``peep`` [3D], optional, are the weights from the cell to the
    input, forget and output gates::

        i = gate(x_i + p_i c);  f = gate(x_f + forget_bias + p_f c);  g = candidate(x_c)
        c' = f c + i g;  o = gate(x_o + p_o c');  y = o cell(c')

    Gives y and the cells c' [N, D]; saved are the four gates. Activations are indices into
    :data:`paddlecli.ops._recurrent.ACTIVATIONS`.
    """

    name = "lstm_unit"
    forward = Kernel(
        f"lstm_unit.forward(x: f32, c: f32, peep?: f32; forget_bias: float, {_OWN})"
        " -> (y: f32, cells: f32, gates: f32)",
        rowwise=True,
    )
    backward = Kernel(
        "lstm_unit.backward(gates: f32, cells: f32, c: f32, peep?: f32, dy?: f32, dcells?: f32;"
        f" {_OWN}) -> (dx: f32, dc: f32)",
        rowwise=True,
    )
    backward_peep = Kernel(
        "lstm_unit.backward_peep(dx: f32, c: f32, cells: f32) -> (dpeep: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "forget_bias": 0.0,
        "gate": 0,
        "cell": 1,
        "candidate": 1,
    }

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """y, cells [N, D]; gates [N, 4D]."""
        x, c, peep = args["x"], args["c"], args["peep"]
        check(x.ndim == 2 and c.ndim == 2, self.name, f"x is {x}, c is {c}; both must be rows")
        check(
            x.shape[0] == c.shape[0] and x.shape[1] == 4 * c.shape[1],
            self.name,
            f"x {x} is not four blocks of c {c}",
        )
        fits = peep is None or peep.size == 3 * c.shape[1]
        check(fits, self.name, f"peep is {peep}, expected {3 * c.shape[1]}")
        check_activations(self.name, attrs, "gate", "cell", "candidate")
        row = Spec(c.shape, "f32", x.axis)
        return {"y": row, "cells": row, "gates": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Through the gates; the peepholes from all rows."""
        a, r = node.args, node.results
        args = {"gates": r["gates"], "cells": r["cells"], "c": a["c"], "peep": a["peep"],
                "dy": dy["y"], "dcells": dy["cells"]}  # fmt: skip
        attrs = {k: node.attrs[k] for k in ("gate", "cell", "candidate")}
        dx, dc = g.emit(self.backward, args, attrs, out={"dx": a["x"], "dc": a["c"]})
        found = {"x": dx, "c": dc}
        if a["peep"] is not None and g.needs("peep"):
            args = {"dx": dx, "c": a["c"], "cells": r["cells"]}
            found["peep"] = g.emit(self.backward_peep, args, out={"dpeep": a["peep"]})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The formulas."""
        import numpy as np

        x, c = values_of(args["x"]), values_of(args["c"])
        d = c.shape[1]
        p = np.zeros((3, d)) if args.get("peep") is None else args["peep"].reshape(3, d)
        gate, cell, candidate = (
            activation(integer(attrs, k)) for k in ("gate", "cell", "candidate")
        )
        new, i, f, o = (x[:, k * d : (k + 1) * d] for k in range(4))
        new, i = candidate(new), gate(i + p[0] * c)
        f = gate(f + number(attrs, "forget_bias") + p[1] * c)
        cells = f * c + i * new
        o = gate(o + p[2] * cells)
        return {"y": o * cell(cells), "cells": cells, "gates": np.concatenate([new, i, f, o], 1)}

    def samples(self) -> Sequence[Sample]:
        """With and without peepholes; other activations; wide rows."""

        def case(d: int, peep: bool, **attrs: Attr) -> Sample:
            args = {"x": Arg(("N", 4 * d)), "c": Arg(("N", d))}
            args |= {"peep": Arg((3 * d,))} if peep else {}
            return Sample(args, {**self.defaults, **attrs}, tolerance=1e-5, grad_tolerance=2e-4)

        return [
            case(3, True),
            case(5, False, forget_bias=1.0),
            case(2, True, gate=0, cell=3, candidate=0),
            case(18, True),
        ]


OP = LstmUnit()
