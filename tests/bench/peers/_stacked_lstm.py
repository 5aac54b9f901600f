"""The network of `sentiment_lstm` and `infer_sentiment_lstm`."""

from __future__ import annotations

import torch
from peers._case import Batch
from peers._sequences import GateLstm, mask, padded, turn, turned
from torch import Tensor, nn


class StackedLstm(nn.Module):
    """Three LSTM layers, the second one from the end, max pooling over projections and states."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.words = nn.Embedding(5149, 128, padding_idx=0)
        self.mixes = nn.ModuleList([nn.Linear(128, 512), nn.Linear(640, 512), nn.Linear(640, 512)])
        self.layers = nn.ModuleList(GateLstm(128, variant) for _ in range(3))
        self.out = nn.Linear(640, 2)

    def forward(self, words: Tensor, lengths: Tensor, real: Tensor, ends: Tensor) -> Tensor:
        x = self.words(words)
        for level, (mix, layer) in enumerate(zip(self.mixes, self.layers, strict=True)):
            x = mix(x)
            h = layer(turn(x, ends), lengths) if level == 1 else layer(x, lengths)
            h = turn(h, ends) if level == 1 else h
            last, x = x, torch.cat([x, h], 2)
        both = torch.cat([last, h], 2).masked_fill(real.unsqueeze(2) == 0, -1e30)
        scores: Tensor = self.out(both.amax(1))
        return scores


def inputs(batch: Batch) -> tuple[Tensor, ...]:
    """What `forward` takes of a batch."""
    lengths = batch["words"][1]
    return padded(batch["words"]), lengths, mask(lengths), turned(lengths)
