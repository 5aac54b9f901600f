"""Ops of one or two inputs and plain attributes as layers: activations and element-wise
arithmetic."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from paddlecli import ops
from paddlecli.config.registry import LAYERS
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network
from paddlecli.ops._unary import activation, activation_names

UNARY = ("log_softmax", "scale", "softmax")
"""Ops of one input that are no activations of single elements; all of those are layers too."""
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow")
_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "list": tuple[int, ...]}
_BROADCAST = (
    "x and y have one shape, or y fits the last dimensions of x, also with sizes of 1. `axis`: the "
    "dimension of x at which y begins instead, -1 for the last ones."
)
_MEANINGS = {
    "a": "factor of x",
    "b": "added to it",
    "beta": "factor of x inside",
    "high": "largest result",
    "low": "smallest result",
    "offset": "added before the cut",
    "scale": "factor of the result",
    "scale_a": "factor of x",
    "scale_b": "factor of the result",
    "slope": "factor of x",
}
"""What an attribute is for, where its name does not say so everywhere."""


def _names() -> tuple[str, ...]:
    return (*activation_names(), *UNARY, *BINARY)


@LAYERS.provider(_names)
def plain_layer(name: str) -> Callable[..., Any] | None:
    """The layer for an op named above; its attributes, with the op's defaults, are the layer's
    arguments."""
    if name in UNARY:
        return _layer(name, name, getattr(ops.get(name), "defaults", {}), 1)
    if name in BINARY:
        return _layer(name, name, getattr(ops.get(name), "defaults", {}), 2)
    if name in activation_names():
        op, defaults = activation(name)
        return _layer(name, op, defaults, 1)
    return None


def _layer(name: str, op_name: str, defaults: Any, count: int) -> Callable[..., Any]:
    op = ops.get(op_name)

    def layer(net: Network, *xs: Tensor, **attrs: Any) -> Tensor:
        with net.layer(name):
            return net.apply(op_name, *xs, **attrs)  # type: ignore[no-any-return]

    reads = ("net", "x", "y")[: 1 + count]
    found = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in reads]
    hints: dict[str, Any] = {}
    for attr, kind in op.forward.attrs:
        default = defaults.get(attr, inspect.Parameter.empty)
        found.append(inspect.Parameter(attr, inspect.Parameter.KEYWORD_ONLY, default=default))
        hints[attr] = _TYPES[kind]
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = _text(name, op_name, count, list(hints))
    layer.__annotations__ = hints
    layer.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    return layer


def _text(name: str, op_name: str, count: int, attrs: list[str]) -> str:
    """The op's text, and what its attributes mean."""
    text = inspect.cleandoc(ops.get(op_name).__doc__ or "")
    if name != op_name:
        text = f"{op_name} as {name}: {text}"
    told = [f"{a}: {_MEANINGS[a]}." for a in attrs if a in _MEANINGS]
    parts = [
        text,
        *([_BROADCAST] if count == 2 else []),
        *(["Arguments: " + " ".join(told)] if told else []),
    ]
    return "\n\n".join(parts)
