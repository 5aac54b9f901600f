"""transpose: dimensions in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integers
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class Transpose(Op):
    """Dimension i of y is dimension ``perm[i]`` of x; any element type."""

    name = "transpose"
    forward = Kernel("transpose.forward(x: any; perm: list) -> (y: any)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's sizes in the new order."""
        x: Spec = args["x"]
        perm = integers(attrs, "perm")
        check(
            sorted(perm) == list(range(x.ndim)),
            self.name,
            f"{list(perm)} is no order of the dimensions of x {x}",
        )
        check(
            x.axis is None or perm[0] == 0,
            self.name,
            f"the packed rows of x {x} must stay in front",
        )
        return {"y": Spec(tuple(x.shape[p] for p in perm), x.dtype, x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy in the old order."""
        perm = integers(node.attrs, "perm")
        back = tuple(perm.index(i) for i in range(len(perm)))
        return {
            "x": g.emit(self.forward, {"x": dy["y"]}, {"perm": back}, out={"y": node.args["x"]})
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's transpose."""
        perm = integers(attrs, "perm")
        return {"y": like(args["x"], values_of(args["x"]).transpose(perm))}

    def samples(self) -> Sequence[Sample]:
        """Two, three and four dimensions, bytes, packed rows."""

        def case(shape: tuple[int | str, ...], perm: tuple[int, ...], dtype: str = "f32") -> Sample:
            x = Arg(shape) if dtype == "f32" else Arg(shape, dtype, 0, 99)
            return Sample({"x": x}, {"perm": perm}, axes=("s",) if shape[0] == "s" else ())

        return [
            case((33, 20), (1, 0)),
            case(("N", 7), (1, 0)),
            case(("N", 5, 18), (0, 2, 1)),
            case(("N", 3, 4, 5), (0, 2, 3, 1)),
            case(("N", 3, 4, 5), (0, 2, 1, 3)),
            case(("N", 3, 4), (2, 1, 0)),
            case(("N", 3, 4), (0, 1, 2)),
            case(("N", 3, 4), (0, 2, 1), "u8"),
            case(("N", 3, 4), (1, 2, 0), "i64"),
            case(("s", 2, 3), (0, 2, 1)),
        ]


OP = Transpose()
