"""The book's eight LSTM layers with a conditional random field, on sentences of 25 to 30 words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from peers._sequences import GateLstm, mask, padded, turn, turned
from torch import Tensor, nn

CASE = Case(
    "bench/srl_db_lstm", batch=10, steps=40, speed=2.0, variants=("eager", "loop", "packed")
)
WORDS = ("word", "ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")
TAGS = 59


class DbLstm(nn.Module):
    """Gives the mean negative log-likelihood of the tags."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.words = nn.Embedding(44068, 32).requires_grad_(False)  # the book's fixed vectors
        self.verbs, self.marks = nn.Embedding(3162, 32), nn.Embedding(2, 5)
        self.first = nn.ModuleList([nn.Linear(32, 512) for _ in range(7)] + [nn.Linear(5, 512)])
        self.mixes = nn.ModuleList(nn.Linear(512, 512) for _ in range(7))
        self.states = nn.ModuleList(nn.Linear(128, 512) for _ in range(7))
        self.layers = nn.ModuleList(GateLstm(128, variant) for _ in range(8))
        self.mix_scores, self.state_scores = nn.Linear(512, TAGS), nn.Linear(128, TAGS)
        self.moves = nn.Parameter(torch.randn(TAGS, TAGS) * 0.1)
        self.start, self.end = (nn.Parameter(torch.randn(TAGS) * 0.1) for _ in range(2))

    def forward(
        self, words: list[Tensor], verb: Tensor, mark: Tensor, tags: Tensor, lengths: Tensor,
        real: Tensor, ends: Tensor,
    ) -> Tensor:  # fmt: skip
        vectors = [self.words(w) for w in words] + [self.verbs(verb), self.marks(mark)]
        x = sum(torch.tanh(f(v)) for f, v in zip(self.first, vectors, strict=True))
        h = self.layers[0](x, lengths)
        for i in range(1, 8):
            x = torch.tanh(self.mixes[i - 1](x)) + torch.tanh(self.states[i - 1](h))
            layer = self.layers[i]
            h = turn(layer(turn(x, ends), lengths), ends) if i % 2 else layer(x, lengths)
        scores = torch.tanh(self.mix_scores(x)) + torch.tanh(self.state_scores(h))
        return (self._all(scores, real) - self._one(scores, tags, real, lengths)).mean()

    def _all(self, scores: Tensor, real: Tensor) -> Tensor:
        """Logarithm of the sum over all ways to tag."""
        alpha = scores[:, 0] + self.start
        for t in range(1, scores.shape[1]):
            following = torch.logsumexp(alpha.unsqueeze(2) + self.moves, 1) + scores[:, t]
            alpha = torch.where(real[:, t : t + 1] > 0, following, alpha)
        return torch.logsumexp(alpha + self.end, 1)

    def _one(self, scores: Tensor, tags: Tensor, real: Tensor, lengths: Tensor) -> Tensor:
        """The score of the given tags."""
        given = (scores.gather(2, tags.unsqueeze(2)).squeeze(2) * real).sum(1)
        moved = (self.moves[tags[:, :-1], tags[:, 1:]] * real[:, 1:]).sum(1)
        last = tags.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        return given + moved + self.start[tags[:, 0]] + self.end[last]


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = DbLstm(variant)
    data = []
    for b in batches:
        lengths = b["word"][1]
        ids = [padded(b[name]) for name in WORDS], padded(b["verb"]), padded(b["mark"])
        data.append((*ids, padded(b["label"]), lengths, mask(lengths), turned(lengths)))
    return trained(network, network.parameters(), torch.optim.SGD, data, lr=0.01)
