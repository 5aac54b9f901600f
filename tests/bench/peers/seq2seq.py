"""The book's translation with attention: 30,000 words a side, sentences of 20 to 30 words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from peers._case import Batch, Case, Step, trained
from peers._sequences import mask, padded, run
from torch import Tensor, nn

CASE = Case(
    "bench/seq2seq", batch=16, steps=6, speed=1.3, variants=("eager", "packed"), least_mb=902.0
)
"""53.7 million parameters and twice as many moments of 4 bytes, times 1.4."""


class Translation(nn.Module):
    """Gives the mean loss of the next words."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.packed = variant == "packed"
        self.source, self.target = nn.Embedding(30000, 512), nn.Embedding(30000, 512)
        self.encoder = nn.GRU(512, 512, batch_first=True, bidirectional=True)
        self.start, self.keys = nn.Linear(512, 512), nn.Linear(1024, 512, bias=False)
        self.query, self.score = nn.Linear(512, 512), nn.Linear(512, 1, bias=False)
        self.decoder, self.out = nn.GRUCell(1536, 512), nn.Linear(512, 30000)

    def forward(
        self, source: Tensor, lengths: Tensor, source_real: Tensor,
        target: Tensor, following: Tensor, target_real: Tensor,
    ) -> Tensor:  # fmt: skip
        read = run(self.encoder, self.source(source), lengths, self.packed)
        keys, hidden = self.keys(read), (source_real - 1) * 1e9
        h = torch.tanh(self.start(read[:, 0, 512:]))
        states = []
        for word in self.target(target).unbind(1):
            scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1))).squeeze(2) + hidden
            context = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), read).squeeze(1)
            h = self.decoder(torch.cat([word, context], 1), h)
            states.append(h)
        scores = self.out(torch.stack(states, 1)).flatten(0, 1)
        losses = nn.functional.cross_entropy(scores, following.flatten(), reduction="none")
        return (losses * target_real.flatten()).sum() / target_real.sum()


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network = Translation(variant)
    data = [
        (
            padded(b["source"]), b["source"][1], mask(b["source"][1]),
            padded(b["target"]), padded(b["next"]), mask(b["target"][1]),
        )
        for b in batches
    ]  # fmt: skip
    return trained(network, network.parameters(), torch.optim.Adam, data, lr=0.001)
