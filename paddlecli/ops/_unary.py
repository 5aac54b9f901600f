"""What element-wise ops of one input share, and the names under which layers know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, Ragged, RandomKey, Sample

if TYPE_CHECKING:
    import numpy as np


def values_of(array: Any) -> np.ndarray:
    """The rows of a reference's input, packed or dense."""
    values: np.ndarray = array.values if isinstance(array, Ragged) else array
    return values


def like(array: Any, values: np.ndarray) -> Any:
    """``values`` with the offsets of ``array``, if it has any."""
    return Ragged(values, array.offsets) if isinstance(array, Ragged) else values


class Unary(Op):
    """y = f(x), element by element; ``backward`` reads x or y (its first input says which) and dy.

    A subclass gives ``f`` in numpy, its kernels, attribute ``defaults`` (those of fluid), the points where the derivative jumps, and
    for its samples other attribute values and the range of x.
    """

    backward: ClassVar[Kernel]
    defaults: ClassVar[Mapping[str, Attr]] = {}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = ()
    low: ClassVar[float] = -4.0
    high: ClassVar[float] = 4.0

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """The function in float64."""
        raise NotImplementedError

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Points where the derivative jumps."""
        return ()

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        return {"y": args["x"]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dx from dy and what ``backward`` reads."""
        port = self.backward.inputs[0].name
        saved = node.args["x"] if port == "x" else node.results["y"]
        attrs = {name: node.attrs[name] for name, _ in self.backward.attrs}
        dx = g.emit(self.backward, {port: saved, "dy": dy["y"]}, attrs, out={"dx": node.args["x"]})
        return {"x": dx}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """f of the values."""
        x = args["x"]
        return {"y": like(x, self.f(values_of(x), attrs))}

    def samples(self) -> Sequence[Sample]:
        """Each set of attributes on dense rows, the first one on packed rows too."""
        cases = []
        for attrs in self.variants or (self.defaults,):
            x = Arg(("N", 3, 7), low=self.low, high=self.high)
            cases.append(Sample({"x": x}, attrs, kinks=self.kinks(attrs)))
        x = Arg(("s", 5), low=self.low, high=self.high)
        first = cases[0].attrs
        return [*cases, Sample({"x": x}, first, axes=("s",), kinks=self.kinks(first))]


_OTHER_NAMES: dict[str, tuple[str, dict[str, Attr]]] = {
    "relu6": ("clip", {"low": 0.0, "high": 6.0}),
    "brelu": ("clip", {"low": 0.0, "high": 24.0}),
    "hardtanh": ("clip", {"low": -1.0, "high": 1.0}),
    "silu": ("swish", {"beta": 1.0}),
    "gelu_tanh": ("gelu", {"approximate": True}),
}
"""Activations that are another op with certain attributes."""


def activation(name: str, attrs: Mapping[str, Attr] | None = None) -> tuple[str, dict[str, Attr]]:
    """Op and full attributes of an activation as layers name it (``relu``, ``relu6``, ``silu`` ...), with fluid's defaults.

    Raises:
        KeyError: no activation is called so.
        TypeError: it has no such attribute.
    """
    from paddlecli import ops

    op_name, values = _OTHER_NAMES.get(name, (name, {}))
    op = ops.get(op_name)
    if not isinstance(op, Unary):
        raise KeyError(name)
    if extra := set(attrs or {}) - set(op.defaults):
        raise TypeError(
            f"activation {name!r} has no attribute {sorted(extra)}; it has {sorted(op.defaults)}"
        )
    return op_name, {**op.defaults, **values, **(attrs or {})}


def activation_names() -> tuple[str, ...]:
    """All names that :func:`activation` knows, sorted."""
    from paddlecli import ops

    found = {n for n in ops.names() if isinstance(ops.get(n), Unary)}
    return tuple(sorted(found | set(_OTHER_NAMES)))
