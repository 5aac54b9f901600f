"""Layers of networks that make their inputs up: generative adversarial ones, for example."""

from __future__ import annotations

from paddlecli import ops
from paddlecli.config.registry import LAYERS
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network


@LAYERS.register("full_like")
def full_like(net: Network, x: Tensor, *, value: float) -> Tensor:
    """A tensor of the shape of x [N, ...] with the same number everywhere: a target that no data set
    holds. The values of x are not read, and get no gradient.

    ``value``: the number.
    """
    with net.layer("full_like"):
        spec = x.spec.with_dtype("f32")
        return net.emit(ops.get("fill").forward, {}, {"value": value}, out={"y": spec})  # type: ignore[no-any-return]
