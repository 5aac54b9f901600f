"""The nets of the book's chapter on machine translation (8): a sentence in, another one out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Natural
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.attention import additive_attention
from paddlecli.models.losses import softmax_with_cross_entropy
from paddlecli.models.network import Network
from paddlecli.models.recurrence import Decoded, Memory, Step, decode, scan
from paddlecli.models.sequence_layers import dynamic_gru, dynamic_lstm
from paddlecli.models.text import words_of
from paddlecli.models.unit_layers import gru_unit

Tensors = Mapping[str, Tensor]
START, END = 0, 1
"""Ids of `<s>` and `<e>` in the dictionaries of the chapter's data sets."""


@MODELS.register("translation_attention")
def translation_attention(
    net: Network,
    *,
    dim: Count = 512,
    hidden: Count = 512,
    tanh: bool = False,
    dropout: float = 0.0,
    beam: Count = 4,
    max_length: Count = 256,
) -> None:
    """A sentence read from both ends by gated recurrent units, another one written word by word, each
    after a look at all words read: 33,068,308 parameters for 11,250 and 19,220 words.

    Reads the fields `source`, `target` (what the writer is told) and `next` (what it is to say).
    ``tanh`` is that of the attention: the chapter's text has it, its program does not, and then the
    weights of the words do not depend on what was written. ``dropout`` zeroes a share of both word
    vectors and of the states before the output. ``beam`` sentences are followed at once in prediction,
    at most ``max_length`` words each.
    """
    states, start = _read(net, dim, hidden, dropout)
    with net.naming("keys"):
        keys = layers.fc(net, states, size=hidden, bias=False)
    target = net.feature("target")
    size = words_of(net, target)

    def step(xs: Sequence[Tensor], held: Tensors, fixed: Tensors) -> tuple[Tensors, Tensors]:
        with net.shared("decoder"):
            with net.naming("query"):
                query = layers.fc(net, held["h"], size=hidden, bias=False)
            context = additive_attention(net, query, fixed["keys"], fixed["states"], tanh=tanh)
            x = layers.fc(net, xs[0], context, size=3 * hidden, bias=False)
            h = gru_unit(net, x, held["h"], size=hidden, origin_mode=True)
        return {"h": h}, {"h": h}

    def words(ids: Tensor) -> Tensor:
        with net.shared("target"):
            found = layers.embedding(
                net, ids, size=size, dim=dim, sparse=True, table="target_words"
            )
            return _dropped(net, found, dropout)

    memories, statics = {"h": Memory((hidden,), start=start)}, {"keys": keys, "states": states}
    written = scan(net, [words(target)], step, memories, statics)["h"]
    _say(net, written, size, dropout)
    if not net.training:
        _search(net, words, step, memories, statics, size, beam, max_length)


def _read(net: Network, dim: int, hidden: int, dropout: float) -> tuple[Tensor, Tensor]:
    """All words of the source from both sides [T, 2 * hidden], and what the writer starts with
    [N, hidden]."""
    x = net.feature("source")
    words = layers.embedding(
        net, x, size=words_of(net, x), dim=dim, sparse=True, table="source_words"
    )
    words = _dropped(net, words, dropout)
    sides = []
    for name, reverse in (("forwards", False), ("backwards", True)):
        with net.scope(name):
            projected = layers.fc(net, words, size=3 * hidden, bias=False)
            sides.append(
                dynamic_gru(net, projected, size=hidden, reverse=reverse, origin_mode=True)
            )
    ends = [
        layers.sequence_pool(net, side, kind=kind)  # type: ignore[arg-type]
        for side, kind in zip(sides, ("last", "first"), strict=True)
    ]
    ended = layers.concat(net, *ends)
    with net.naming("start"):
        start = layers.fc(net, ended, size=hidden, activation="tanh")
    return layers.concat(net, *sides), start


def _dropped(net: Network, x: Tensor, rate: float) -> Tensor:
    return layers.dropout(net, x, rate=rate, mode="upscale_in_train") if rate else x


@MODELS.register("translation_plain")
def translation_plain(
    net: Network,
    *,
    dim: Count = 16,
    hidden: Count = 32,
    beam: Count = 2,
    max_length: Count = 8,
) -> None:
    """A sentence read into one vector by long short-term memory, another one written from it by a
    plain recurrent net, as the chapter's first version; both languages share one table of words.

    Reads the fields of `translation_attention`; both dictionaries have one size.
    """
    x, target = net.feature("source"), net.feature("target")
    size = max(words_of(net, x), words_of(net, target))
    words = layers.embedding(net, x, size=size, dim=dim, sparse=True, table="words")
    projected = layers.fc(net, words, size=4 * hidden, activation="tanh")
    states = dynamic_lstm(net, projected, size=4 * hidden)
    start = layers.sequence_pool(net, states, kind="last")

    def step(xs: Sequence[Tensor], held: Tensors, fixed: Tensors) -> tuple[Tensors, Tensors]:
        with net.shared("decoder"):
            h = layers.fc(net, xs[0], held["h"], size=hidden, activation="tanh")
        return {"h": h}, {"h": h}

    def read(ids: Tensor) -> Tensor:
        with net.shared("target"):
            return layers.embedding(net, ids, size=size, dim=dim, sparse=True, table="words")

    memories = {"h": Memory((hidden,), start=start)}
    _say(net, scan(net, [read(target)], step, memories)["h"], words_of(net, target), 0.0)
    if not net.training:
        _search(net, read, step, memories, {}, words_of(net, target), beam, max_length)


def _say(net: Network, states: Tensor, size: int, dropout: float) -> None:
    """The loss of the words that follow [T]."""
    scores = _scores(net, _dropped(net, states, dropout), size)
    softmax_with_cross_entropy(net, scores, net.label("next"))


def _scores(net: Network, states: Tensor, size: int) -> Tensor:
    """The scores of all words for each state."""
    with net.shared("output"):
        return layers.fc(net, states, size=size)


def _search(
    net: Network, words: Callable[[Tensor], Tensor], step: Step, memories: Mapping[str, Memory], statics: Tensors,
    size: int, beam: Natural, max_length: int,
) -> None:  # fmt: skip
    """The sentences that the net finds, as outputs: `ids`, `length`, and with beams `score`; for metrics
    also `greedy`, the ids that it finds without beams."""

    def choosing(xs: Sequence[Tensor], held: Tensors, fixed: Tensors) -> tuple[Tensors, Tensors]:
        _, following = step([words(xs[0])], held, fixed)
        scores = net.apply("log_softmax", _scores(net, following["h"], size), axis=-1)
        return {"scores": scores}, following

    def found(width: int) -> Decoded:
        return decode(
            net, choosing, memories, statics, scores="scores", start=START, end=END,
            max_length=max_length, beam=width, logarithms=True,
        )  # fmt: skip

    with net.layer("decode"):
        best = found(beam)
    for name, tensor in best.named.items():
        net.output(name, tensor)
    net.aside["greedy"] = best.ids
    if beam > 1:
        with net.layer("greedy"):
            net.aside["greedy"] = found(1).ids
