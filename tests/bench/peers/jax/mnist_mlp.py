"""Three fully connected layers."""

from collections.abc import Sequence
from typing import Any

import jax
from peers.jax import _network as n


def peer(batches: Sequence[n.Batch]) -> n.Step:
    """A training step."""

    def loss(p: Any, x: Any, label: Any) -> Any:
        for layer in p[:-1]:
            x = jax.nn.relu(n.apply(layer, x))
        return n.cross_entropy(n.apply(p[-1], x), label)

    layers = [n.dense(784, 128), n.dense(128, 64), n.dense(64, 10)]
    return n.trained(loss, layers, n.adam(0.001), [(b["x"], b["y"].ravel()) for b in batches])
