"""The book's two towers: seven tables, a convolution over titles of 3 to 8 words, the towers' cosine."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from peers.jax import _network as n

SIDES = (("user", 6041, 32), ("gender", 2, 16), ("age", 7, 16), ("job", 21, 16), ("film", 3953, 32))
LONGEST = {"genre": 3, "title": 8}


def _loss(p: Any, score: Any, genres: Any, titles: Any, *ids: Any) -> Any:
    """genres and titles are ids [N, longest] and what is real of them."""
    sides = [
        n.apply(layer, table[x])
        for layer, table, x in zip(p["layers"], p["tables"], ids, strict=True)
    ]
    user = jnp.tanh(n.apply(p["users"], jnp.concatenate(sides[:4], 1)))
    genre = (p["genres"][genres[0]] * genres[1][..., None]).sum(1)
    words, real = p["words"][titles[0]] * titles[1][..., None], titles[1][..., None]
    wide = jnp.pad(words, ((0, 0), (1, 1), (0, 0)))
    windows = jnp.concatenate([wide[:, :-2], words, wide[:, 2:]], 2)
    title = (jnp.tanh(n.apply(p["conv"], windows)) * real).sum(1)
    film = jnp.tanh(n.apply(p["films"], jnp.concatenate([sides[4], genre, title], 1)))
    norms = (user * user).sum(1) * (film * film).sum(1)
    rating = 5 * (user * film).sum(1) / jnp.sqrt(norms + 1e-12)
    return ((rating[:, None] - score) ** 2).mean()


def peer(batches: Sequence[n.Batch]) -> n.Step:
    """A training step."""
    parameters = {
        "tables": [n.table(rows, d) for _, rows, d in SIDES],
        "layers": [n.dense(d, d) for _, _, d in SIDES],
        "genres": n.table(18, 32), "words": n.table(5175, 32),
        "conv": n.dense(96, 32), "users": n.dense(80, 200), "films": n.dense(96, 200),
    }  # fmt: skip
    data = [
        (
            b["score"], *(n.padded(b[name], longest) for name, longest in LONGEST.items()),
            *(b[name].ravel() for name, _, _ in SIDES),
        )
        for b in batches
    ]  # fmt: skip
    return n.trained(_loss, parameters, n.sgd(0.2), data)
