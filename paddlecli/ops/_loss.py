"""What the element-wise losses share: one shape for all inputs and the loss, one kernel a gradient.

Their values are summed and divided by a weight in ``weighted_mean``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paddlecli.ops.base import Attr, Emitter, Kernel, NodeLike, Op, check
from paddlecli.ops.spec import Dim, Spec, as_dim


class ElementLoss(Op):
    """A loss of the shape of its inputs. A subclass names the inputs that get a gradient and has a
    kernel ``backward_<input>`` for each of them, which takes ``dloss`` beside what it names
    itself."""

    gradients: ClassVar[tuple[str, ...]] = ("x",)
    alike: ClassVar[tuple[str, ...]] = ("x", "label")
    """The inputs that must have one shape; the loss has that of the first gradient's input."""

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        first: Spec = args[self.gradients[0]]
        for port in self.alike:
            spec: Spec = args[port]
            check(
                spec.shape == first.shape and spec.axis == first.axis,
                self.name,
                f"{port} is {spec}, {self.gradients[0]} is {first}: one shape is needed",
            )
        return {"loss": first}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for port in self.gradients:
            if g.needs(port):
                kernel: Kernel = getattr(self, f"backward_{port}")
                known = {**node.args, "dloss": dy["loss"]}
                args = {p.name: known[p.name] for p in kernel.inputs}
                attrs = {name: node.attrs[name] for name, _ in kernel.attrs}
                found[port] = g.emit(kernel, args, attrs, out={f"d{port}": node.args[port]})
        return found


def places_of(op: str, x: Spec, label: Spec, axis: int, soft: bool) -> tuple[Dim, ...]:
    """Shape of a per-place loss over the classes of ``axis``: that of a hard label, or x with one
    class for a soft label.

    Raises:
        ShapeError: the label is neither x without its class axis, nor x with one class there; or,
            soft, not like x.
    """
    check(-x.ndim <= axis < x.ndim, op, f"x is {x}: it has no axis {axis}")
    at = axis % x.ndim
    one = (*x.shape[:at], as_dim(1), *x.shape[at + 1 :])
    check(
        label.axis == x.axis, op, f"label is {label}, x is {x}: they are on different ragged axes"
    )
    if soft:
        check(
            label.shape == x.shape and label.dtype == "f32", op, f"soft label is {label}, x is {x}"
        )
        return one
    none = (*x.shape[:at], *x.shape[at + 1 :])
    check(
        label.dtype == "i64" and label.shape in (one, none),
        op,
        f"label is {label}; for x {x} it must be i64 of shape {show(none)} or {show(one)}",
    )
    return label.shape


def show(shape: tuple[Dim, ...]) -> str:
    """A shape in brackets."""
    return f"[{', '.join(map(str, shape))}]"
