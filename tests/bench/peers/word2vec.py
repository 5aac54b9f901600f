"""The book's five-gram net, one table for four words, 2,073 words."""

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from torch import Tensor, nn

CASE = Case("bench/word2vec", batch=100, steps=1_000, speed=1.3, variants=("eager", "compile"))
WORDS = 2073


class Ngram(nn.Module):
    """Four vectors side by side, a hidden layer, scores of all words."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, 32)
        self.hidden, self.scores = nn.Linear(128, 256), nn.Linear(256, words)

    def forward(self, words: Tensor, label: Tensor) -> Tensor:
        """The loss for words [N, 4] and the next ones [N]."""
        x = torch.sigmoid(self.hidden(self.table(words).flatten(1)))
        return nn.functional.cross_entropy(self.scores(x), label)


def peer(variant: str, batches: Sequence[Batch], words: int = WORDS) -> Step:
    """A training step; `compile` has network and loss compiled."""
    network = Ngram(words)
    data = [
        (torch.stack([b[f"w{i}"].flatten() for i in range(1, 5)], 1), b["y"].flatten())
        for b in batches
    ]
    loss = torch.compile(network) if variant == "compile" else network
    return trained(loss, network.parameters(), torch.optim.Adagrad, data, lr=0.003)
