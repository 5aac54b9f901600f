"""Layers that let rows ask the tokens of a sequence.

In a scan the rows of a step ask the sequence that they belong to, and in a decode too; the keys and
values are statics of the step, given whole. Elsewhere rows may be packed themselves, or be one or
several a sequence.
"""

from __future__ import annotations

import math

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.network import Network
from paddlecli.models.recurrence import sequence_of
from paddlecli.models.sequence_layers import on_axis


@LAYERS.register("additive_attention")
def additive_attention(
    net: Network,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    tanh: bool = True,
    weight_init: layers.Initializer = "xavier",
) -> Tensor:
    """The sum of values [T, D], each weighted by how well its key [T, H] answers the query [rows, H]:
    a softmax over the tokens of the row's sequence of v . tanh(query + key); [rows, D].

    Queries and keys are projected to one width before. ``tanh`` left out makes the score linear: then
    the weights depend on the keys alone. v [H, 1] is the layer's parameter.
    """
    with net.layer("additive_attention"):
        on_axis(net, "additive_attention", keys)
        w = net.parameter("v", (keys.spec.shape[1].coefficient, 1), layers.initial(weight_init))
        result: Tensor = net.apply("additive_attention", query, keys, values, w, sequence_of(net, query), tanh=tanh)  # fmt: skip
        return result


@LAYERS.register("dot_attention")
def dot_attention(
    net: Network,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    heads: Count = 1,
    scale: float | None = None,
    causal: bool = False,
) -> Tensor:
    """The sum of values [T, D], each weighted by a softmax over the tokens of the row's sequence of
    scale * query . key; query [rows, H], keys [T, H]; [rows, D].

    ``heads`` cut H and D into parts that attend by themselves. ``scale`` is 1 / sqrt(H / heads) if
    left out. ``causal``: a row sees the tokens up to itself; query and keys lie on one axis.
    """
    with net.layer("dot_attention"):
        width = on_axis(net, "dot_attention", keys)
        factor = 1.0 / math.sqrt(width / heads) if scale is None else scale
        result: Tensor = net.apply("dot_attention", query, keys, values, sequence_of(net, query), heads=heads, scale=factor, causal=causal)  # fmt: skip
        return result


@LAYERS.register("multi_head_attention")
def multi_head_attention(
    net: Network,
    x: Tensor,
    *memory: Tensor,
    heads: Count = 8,
    size: Count | None = None,
    causal: bool = False,
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
) -> Tensor:
    """Dot-product attention in several heads with its projections: x [T, D] asks itself, or the
    memory [S, E] that follows it; [T, size].

    ``heads`` attend by themselves, each in its part of the columns. ``size``: the width of queries,
    keys, values and the result, D if left out. ``causal``: a row sees itself and what is before it.
    """
    with net.layer("multi_head_attention"):
        if len(memory) > 1:
            text = f"reads x, or x and what it asks; `from` gives {1 + len(memory)}"
            raise fault(net.origin, f"[multi_head_attention] {text}")
        source = memory[0] if memory else x
        width = size or on_axis(net, "multi_head_attention", x)
        if width % heads:
            text = f"{width} columns do not divide into {heads} heads"
            raise fault(net.origin, f"[multi_head_attention] {text}")

        def project(name: str, y: Tensor) -> Tensor:
            with net.naming(name):
                return layers.fc(net, y, size=width, bias=bias, weight_init=weight_init)

        q, k, v = project("query", x), project("key", source), project("value", source)
        return project("output", dot_attention(net, q, k, v, heads=heads, causal=causal))
