"""The book's five-gram net with 10,000 words."""

from collections.abc import Sequence

from peers._case import Batch, Case, Step
from peers.word2vec import peer as _peer

CASE = Case("bench/word2vec_10k", batch=100, steps=200, speed=1.3, variants=("eager", "compile"))


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    return _peer(variant, batches, 10_000)
