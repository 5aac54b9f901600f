"""The book's two towers: seven tables, a convolution over titles of 3 to 8 words, the towers' cosine."""

from collections.abc import Sequence
from typing import Any

import torch
from peers._case import Batch, Case, Step, trained
from peers._sequences import mask, padded
from torch import Tensor, nn

CASE = Case("bench/recommender", batch=256, steps=2_000, speed=1.2, variants=("eager", "compile"))
SIDES = (("user", 6041, 32), ("gender", 2, 16), ("age", 7, 16), ("job", 21, 16), ("film", 3953, 32))


class Towers(nn.Module):
    """Sequences are padded; what lies behind their ends is multiplied by 0."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, d) for _, n, d in SIDES)
        self.layers = nn.ModuleList(nn.Linear(d, d) for _, _, d in SIDES)
        self.genres, self.words = nn.Embedding(18, 32), nn.Embedding(5175, 32)
        self.conv = nn.Conv1d(32, 32, 3, padding=1)
        self.users, self.films = nn.Linear(80, 200), nn.Linear(96, 200)

    def forward(self, score: Tensor, genres: Any, titles: Any, *ids: Tensor) -> Tensor:
        """The loss; genres and titles are ids [N, longest] and what is real of them."""
        sides = [
            layer(table(x)) for layer, table, x in zip(self.layers, self.tables, ids, strict=True)
        ]
        user = torch.tanh(self.users(torch.cat(sides[:4], 1)))
        genre = (self.genres(genres[0]) * genres[1].unsqueeze(2)).sum(1)
        words = (self.words(titles[0]) * titles[1].unsqueeze(2)).transpose(1, 2)
        title = (torch.tanh(self.conv(words)) * titles[1].unsqueeze(1)).sum(2)
        film = torch.tanh(self.films(torch.cat([sides[4], genre, title], 1)))
        rating = 5 * nn.functional.cosine_similarity(user, film, dim=1).unsqueeze(1)
        return nn.functional.mse_loss(rating, score)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step; `compile` has network and loss compiled."""
    network = Towers()
    data = [
        (
            b["score"], *((padded(b[name]), mask(b[name][1])) for name in ("genre", "title")),
            *(b[name].flatten() for name, _, _ in SIDES),
        )
        for b in batches
    ]  # fmt: skip
    loss = torch.compile(network) if variant == "compile" else network
    return trained(loss, network.parameters(), torch.optim.SGD, data, lr=0.2)
