"""The book's five-gram net, one table for four words, 2,073 words."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from peers.jax import _network as n

WORDS = 2073


def peer(batches: Sequence[n.Batch], words: int = WORDS) -> n.Step:
    """A training step."""

    def loss(p: Any, x: Any, label: Any) -> Any:
        vectors = p["table"][x].reshape(len(x), -1)
        hidden = jax.nn.sigmoid(n.apply(p["hidden"], vectors))
        return n.cross_entropy(n.apply(p["scores"], hidden), label)

    parameters = {
        "table": n.table(words, 32),
        "hidden": n.dense(128, 256),
        "scores": n.dense(256, words),
    }
    data = [
        (np.stack([b[f"w{i}"].ravel() for i in range(1, 5)], 1), b["y"].ravel()) for b in batches
    ]
    return n.trained(loss, parameters, n.adagrad(0.003), data)
