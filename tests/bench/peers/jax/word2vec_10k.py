"""The book's five-gram net with 10,000 words."""

from collections.abc import Sequence

from peers.jax import _network as n
from peers.jax.word2vec import peer as _peer


def peer(batches: Sequence[n.Batch]) -> n.Step:
    """A training step."""
    return _peer(batches, 10_000)
