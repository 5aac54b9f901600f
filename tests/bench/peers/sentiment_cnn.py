"""The book's convolutions over three and four words, on texts of 50 to 400 words."""

from collections.abc import Sequence
from typing import Any

import torch
from peers._case import Batch, Case, Step, trained
from peers._sequences import mask, padded
from torch import Tensor, nn

CASE = Case(
    "bench/sentiment_cnn",
    batch=128,
    steps=6,
    speed=1.8,
    variants=("eager", "packed"),
    against="torch eager",
)
WINDOWS = ((-1, 0, 1), (-2, -1, 0, 1))


class Convolutions(nn.Module):
    """`eager` pads, as its users do. `packed` is what an expert would write: it gathers each word's
    neighbours, found beforehand, multiplies once and adds up by text."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant = variant
        self.table = nn.Embedding(5149, 128)
        self.convs = nn.ModuleList(nn.Conv1d(128, 512, len(w)) for w in WINDOWS)
        self.scores = nn.Linear(1024, 2)

    def forward(self, label: Tensor, x: Tensor, lengths: Tensor, where: Any) -> Tensor:
        """The loss; `where` is what is real (eager), or each word's text and neighbours (packed)."""
        pools = (
            self.packed(x, lengths, *where) if self.variant == "packed" else self.eager(x, where)
        )
        scale = lengths.float().rsqrt().unsqueeze(1)
        return nn.functional.cross_entropy(self.scores(torch.cat(pools, 1) * scale), label)

    def eager(self, x: Tensor, real: Tensor) -> list[Tensor]:
        """x [N, longest]."""
        vectors, real = (self.table(x) * real.unsqueeze(2)).transpose(1, 2), real.unsqueeze(1)
        wide = [nn.functional.pad(vectors, (-w[0], w[-1])) for w in WINDOWS]
        return [
            (torch.tanh(conv(v)) * real).sum(2) for conv, v in zip(self.convs, wide, strict=True)
        ]

    def packed(self, x: Tensor, lengths: Tensor, text: Tensor, *near: Tensor) -> list[Tensor]:
        """x [T]."""
        vectors = torch.cat([self.table(x), torch.zeros(1, 128)])
        pools = []
        for conv, rows in zip(self.convs, near, strict=True):
            wide = vectors.index_select(0, rows.flatten()).view(len(rows), -1)
            weight = conv.weight.permute(0, 2, 1).reshape(512, -1)
            y = torch.tanh(nn.functional.linear(wide, weight, conv.bias))
            pools.append(torch.zeros(len(lengths), 512).index_add(0, text, y))
        return pools


def neighbours(lengths: Tensor, window: Sequence[int], text: Tensor) -> Tensor:
    """[T, len(window)]: the rows that each word reads; row T, of zeros, beyond the text's ends."""
    end = lengths.cumsum(0)[text]
    begin, count = end - lengths[text], len(text)
    rows = torch.arange(count)[:, None] + torch.tensor(window)
    return torch.where((rows >= begin[:, None]) & (rows < end[:, None]), rows, count)


def peer(variant: str, batches: Sequence[Batch]) -> Step:
    """A training step."""
    network, data = Convolutions(variant), []
    for b in batches:
        (values, lengths), label = b["x"], b["y"].flatten()
        if variant == "packed":
            text = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
            near = [neighbours(lengths, w, text) for w in WINDOWS]
            data.append((label, values, lengths, (text, *near)))
        else:
            data.append((label, padded(b["x"]), lengths, mask(lengths)))
    return trained(network, network.parameters(), torch.optim.Adagrad, data, lr=0.002)
