"""matmul: products of matrices, of batches of matrices, and of rows with a weight."""

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
from paddlecli.ops.spec import Dim, Spec, product

_ATTRS = "transpose_x: bool, transpose_y: bool, num_flatten_dims: int"


class Matmul(Op):
    """z = op(x) op(y), op being a transpose of the last two dimensions where asked.

    Three forms: ``num_flatten_dims`` > 0 keeps that many leading dimensions of x and multiplies the rest, as one, with y
    [in, out]; else a 2-D y multiplies the last dimension of any x; else both have equal leading dimensions, one product for each.
    """

    name = "matmul"
    forward = Kernel(f"matmul.forward(x: f32, y: f32; {_ATTRS}) -> (z: f32)", rowwise=True)
    backward_x = Kernel(f"matmul.backward_x(dz: f32, y: f32; {_ATTRS}) -> (dx: f32)", rowwise=True)
    backward_y = Kernel(f"matmul.backward_y(x: f32, dz: f32; {_ATTRS}) -> (dy: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {
        "transpose_x": False,
        "transpose_y": False,
        "num_flatten_dims": 0,
    }

    def is_rowwise(self, kernel: Kernel, attrs: Mapping[str, Attr]) -> bool:
        """Not when the rows of x are its columns."""
        return not attrs["transpose_x"]

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[..., m, k] by [..., k, n] gives [..., m, n]."""
        x, y = args["x"], args["y"]
        if kept := integer(attrs, "num_flatten_dims"):
            return {"z": _flattened(self.name, x, y, kept, attrs)}
        check(
            x.ndim >= 2 and y.ndim >= 2,
            self.name,
            f"x {x} and y {y} must have 2 dimensions or more",
        )
        shared = y.ndim == 2 and not (attrs["transpose_x"] and x.ndim > 2)
        check(
            shared or x.shape[:-2] == y.shape[:-2],
            self.name,
            f"the leading dimensions of x {x} and y {y} differ",
        )
        check(
            x.axis is None or not (attrs["transpose_x"] and x.ndim == 2),
            self.name,
            f"packed rows {x} cannot be transposed",
        )
        m, k = (x.shape[-1], x.shape[-2]) if attrs["transpose_x"] else x.shape[-2:]
        rows, n = (y.shape[-1], y.shape[-2]) if attrs["transpose_y"] else y.shape[-2:]
        check(k == rows, self.name, f"y has {rows} rows, x has {k} columns (x {x}, y {y})")
        return {"z": Spec((*x.shape[:-2], m, n), "f32", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Two more products."""
        x, y, dz = node.args["x"], node.args["y"], dy["z"]
        found = {}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, {"dz": dz, "y": y}, node.attrs, out={"dx": x})
        if g.needs("y"):
            found["y"] = g.emit(self.backward_y, {"x": x, "dz": dz}, node.attrs, out={"dy": y})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's matmul."""
        import numpy as np

        x, y = values_of(args["x"]), values_of(args["y"])
        if kept := integer(attrs, "num_flatten_dims"):
            return {
                "z": like(
                    args["x"],
                    np.tensordot(x, y.reshape(*x.shape[kept:], y.shape[1]), x.ndim - kept),
                )
            }
        x = np.swapaxes(x, -1, -2) if attrs["transpose_x"] else x
        y = np.swapaxes(y, -1, -2) if attrs["transpose_y"] else y
        return {"z": like(args["x"], x @ y)}

    def samples(self) -> Sequence[Sample]:
        """All four transposes, batches, shared y, flattened rows, packed rows."""

        def case(
            x: tuple[int | str, ...], y: tuple[int | str, ...], tx: bool, ty: bool, kept: int = 0
        ) -> Sample:
            attrs: dict[str, Attr] = {
                "transpose_x": tx,
                "transpose_y": ty,
                "num_flatten_dims": kept,
            }
            return Sample({"x": Arg(x), "y": Arg(y)}, attrs, axes=("s",) if x[0] == "s" else ())

        return [
            case(("N", 5), (5, 7), False, False),
            case((5, "N"), (5, 7), True, False),
            case(("N", 5), (7, 5), False, True),
            case((5, "N"), (7, 5), True, True),
            case(("N", 3, 300), (300, 2), False, False),
            case(("N", 3, 4), ("N", 4, 2), False, False),
            case(("N", 2, 4, 3), ("N", 2, 4, 5), True, False),
            case(("N", 3, 4), ("N", 2, 4), False, True),
            case(("N", 4, 3), ("N", 2, 4), True, True),
            case(("N", 2, 6), (12, 5), False, False, 1),
            case(("N", 3, 2, 2), (4, 5), False, False, 2),
            case(("s", 4), (4, 3), False, False),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*k for each element of z or dz, whichever of the three products it is."""
        x, y, z = (shapes[p] if p in shapes else shapes[f"d{p}"] for p in "xyz")
        k = y[0] if attrs["num_flatten_dims"] else x[-2] if attrs["transpose_x"] else x[-1]
        return 2 * k * math.prod(z)


def _flattened(op: str, x: Spec, y: Spec, kept: int, attrs: Mapping[str, Attr]) -> Spec:
    plain = not (attrs["transpose_x"] or attrs["transpose_y"])
    check(
        plain and y.ndim == 2 and 0 < kept < x.ndim,
        op,
        f"num_flatten_dims {kept} needs a plain y of 2 dimensions and x of more (x {x}, y {y})",
    )
    last: Dim = product(x.shape[kept:])
    check(last == y.shape[0], op, f"y has {y.shape[0]} rows, x has {last} in its last axes")
    return Spec((*x.shape[:kept], y.shape[1]), "f32", x.axis)


OP = Matmul()
