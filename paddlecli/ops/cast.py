"""cast: another element type, with a scale and a shift on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import DTYPES, Spec

_NAMES = tuple(DTYPES)
_FLOATS = ("f32", "f64", "f16", "bf16")


def code(dtype: str) -> int:
    """The attribute ``dtype`` for an element type: its place in ``DTYPES``."""
    return _NAMES.index(dtype)


class Cast(Op):
    """y = x*scale + shift in the element type number ``dtype`` (see :func:`code`): bytes become scaled images in one node.

    Counted in float where x holds floats, halves or integers of up to 16 bits, in double where it is larger; integer to
    integer without scale and shift is exact. Floats become integers by cutting towards 0, out of range the nearest, NaN 0.
    """

    name = "cast"
    forward = Kernel(
        "cast.forward(x: any; scale: float, shift: float, dtype: int) -> (y: any)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"scale": 1.0, "shift": 0.0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's shape with the other element type."""
        number = integer(attrs, "dtype")
        check(0 <= number < len(_NAMES), self.name, f"there is no element type {number}")
        return {"y": args["x"].with_dtype(_NAMES[number])}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """scale*dy in x's element type; none for integers."""
        x: Spec = node.args["x"].spec
        if x.dtype not in _FLOATS or node.results["y"].spec.dtype not in _FLOATS:
            return {}
        attrs: dict[str, Attr] = {
            "scale": node.attrs["scale"],
            "shift": 0.0,
            "dtype": code(x.dtype),
        }
        return {"x": g.emit(self.forward, {"x": dy["y"]}, attrs, out={"y": x})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Cut towards 0 for integers."""
        import numpy as np

        to = _NAMES[integer(attrs, "dtype")]
        y = values_of(args["x"]) * attrs["scale"] + attrs["shift"]
        if to == "bool":
            y = (y != 0) * 1.0
        elif to not in _FLOATS:
            signed, bits = to[0] == "i", int(to[1:])
            low, high = (
                (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0**bits - 1)
            )
            y = np.clip(np.trunc(y), low, high)
        return {"y": like(args["x"], y)}

    def samples(self) -> Sequence[Sample]:
        """Bytes to floats, floats to all, integers among themselves, packed rows."""

        def case(
            dtype: str, to: str, scale: float = 1.0, shift: float = 0.0, tolerance: float = 2e-6
        ) -> Sample:
            low, high = (
                (-3.0, 3.0)
                if dtype in _FLOATS
                else (0, 1)
                if dtype == "bool"
                else (0, 255)
                if dtype == "u8"
                else (-99, 99)
            )
            attrs: dict[str, Attr] = {"scale": scale, "shift": shift, "dtype": code(to)}
            return Sample({"x": Arg(("N", 37), dtype, low, high)}, attrs, tolerance=tolerance)

        packed = Sample(
            {"x": Arg(("s", 3), "u8", 0, 255)},
            {"scale": 0.1, "shift": 0.0, "dtype": code("f32")},
            axes=("s",),
        )
        return [
            case("u8", "f32", 2 / 255, -1.0),
            case("u8", "f32"),
            case("f32", "f64"),
            case("f32", "f32", 0.5, 1.0),
            case("f32", "f16", tolerance=1e-3),
            case("f32", "bf16", tolerance=8e-3),
            case("f32", "i64", 50.0, 0.3),
            case("f32", "u8", 100.0, 0.0),
            case("f32", "i8", 100.0),
            case("i64", "f32"),
            case("i32", "i64"),
            case("i64", "i16"),
            case("i64", "u8"),
            case("bool", "f32"),
            case("i16", "f64", 0.25),
            case("i8", "bool"),
            case("f64", "f32"),
            packed,
        ]


OP = Cast()
