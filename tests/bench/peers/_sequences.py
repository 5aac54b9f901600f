"""Padded sequences, and recurrent layers in the ways in which torch's users write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def padded(ragged: tuple[Tensor, Tensor]) -> Tensor:
    """[N, longest, ...], zeros behind each sequence."""
    values, lengths = ragged
    return nn.utils.rnn.pad_sequence(list(values.split(lengths.tolist())), batch_first=True)


def mask(lengths: Tensor) -> Tensor:
    """[N, longest]: 1 where there is a token."""
    return (torch.arange(int(lengths.max()))[None] < lengths[:, None]).float()


def turned(lengths: Tensor) -> Tensor:
    """Rows of [N * longest, ...] that hold every sequence from its end."""
    longest = int(lengths.max())
    places = torch.arange(longest).repeat(len(lengths), 1)
    for i, n in enumerate(lengths.tolist()):
        places[i, :n] = places[i, :n].flip(0)
    return (places + torch.arange(len(lengths))[:, None] * longest).flatten()


def turn(x: Tensor, rows: Tensor) -> Tensor:
    """Every sequence of x [N, T, D] from its end."""
    return x.flatten(0, 1).index_select(0, rows).view(x.shape)


def run(layer: Any, x: Tensor, lengths: Tensor, packed: bool) -> Tensor:
    """The outputs of nn.LSTM or nn.GRU, over the padding or without it."""
    if not packed:
        padded_over: Tensor = layer(x)[0]
        return padded_over
    states, _ = layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    unpacked: Tensor = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]
    return unpacked


class GateLstm(nn.Module):
    """An LSTM of x [N, T, 4 * width].

    `loop` takes x as the gates before their activation, as the original's dynamic_lstm does: a cell written by hand.
    `eager` and `packed` are nn.LSTM, which projects x once more.
    """

    def __init__(self, width: int, variant: str) -> None:
        super().__init__()
        self.variant, self.width = variant, width
        if variant == "loop":
            self.w = nn.Parameter(torch.randn(width, 4 * width) * 0.05)
        else:
            self.lstm = nn.LSTM(4 * width, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.variant != "loop":
            return run(self.lstm, x, lengths, self.variant == "packed")
        h = c = x.new_zeros(x.shape[0], self.width)
        states = []
        for gates in x.unbind(1):
            i, f, u, o = torch.addmm(gates, h, self.w).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states, 1)
