"""Ops of one or two inputs and plain attributes as layers: activations and element-wise
arithmetic."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from paddlecli import ops
from paddlecli.config.registry import LAYERS
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network

UNARY = (
    "abs",
    "clip",
    "elu",
    "exp",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log_softmax",
    "logsigmoid",
    "mish",
    "relu",
    "scale",
    "selu",
    "sigmoid",
    "soft_relu",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
)
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow")
_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "list": tuple[int, ...]}


@LAYERS.provider(lambda: (*UNARY, *BINARY))
def plain_layer(name: str) -> Callable[..., Any] | None:
    """The layer for an op named above; its attributes, with the op's defaults, are the layer's
    arguments."""
    if name not in UNARY and name not in BINARY:
        return None
    return _layer(name, 1 if name in UNARY else 2)


def _layer(name: str, count: int) -> Callable[..., Any]:
    op = ops.get(name)

    def layer(net: Network, *xs: Tensor, **attrs: Any) -> Tensor:
        if len(xs) != count:
            raise fault(
                net.origin, f"[{name}] takes {count} tensor{'s' * (count > 1)}, got {len(xs)}"
            )
        with net.layer(name):
            return net.apply(name, *xs, **attrs)  # type: ignore[no-any-return]

    defaults = getattr(op, "defaults", {})
    found = [inspect.Parameter("net", inspect.Parameter.POSITIONAL_ONLY),
             inspect.Parameter("xs", inspect.Parameter.VAR_POSITIONAL)]  # fmt: skip
    hints: dict[str, Any] = {}
    for attr, kind in op.forward.attrs:
        default = defaults.get(attr, inspect.Parameter.empty)
        found.append(inspect.Parameter(attr, inspect.Parameter.KEYWORD_ONLY, default=default))
        hints[attr] = _TYPES[kind]
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = op.__doc__
    layer.__annotations__ = hints
    layer.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    return layer
