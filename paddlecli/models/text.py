"""The nets of the book's chapters on text: word vectors (4), sentiment (6) and semantic roles (7)."""

from __future__ import annotations

import math
from typing import Literal

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, losses
from paddlecli.models.heads import classify
from paddlecli.models.network import Network
from paddlecli.models.sequence_layers import (
    crf_decoding,
    dynamic_lstm,
    linear_chain_crf,
    sequence_conv,
)
from paddlecli.models.shape_layers import reduce_mean
from paddlecli.ops.cast import code


def words_of(net: Network, x: Tensor) -> int:
    """How many ids a field of words has."""
    found = net.classes(x)
    if found is None:
        raise fault(net.origin, f"the field {x.name!r} does not say how many words there are")
    return found


@MODELS.register("ngram")
def ngram(net: Network, *, dim: Count = 32, hidden: Count = 256) -> None:
    """The next word from the words before it [N, n - 1]: one shared table, a hidden layer with
    sigmoid, softmax over the vocabulary. 632,121 parameters for four of 2,073 words."""
    x = net.feature()
    size = words_of(net, x)
    with net.naming("words"):
        vectors = layers.embedding(net, x, size=size, dim=dim, sparse=True)
    y = layers.fc(net, vectors, size=hidden, activation="sigmoid")
    classify(net, layers.fc(net, y, size=size))


@MODELS.register("cbow")
def cbow(net: Network, *, dim: Count = 32) -> None:
    """A word from the words around it [N, n - 1]: the mean of their vectors, softmax over the
    vocabulary."""
    x = net.feature()
    size = words_of(net, x)
    with net.naming("words"):
        vectors = layers.embedding(net, x, size=size, dim=dim, sparse=True)
    classify(net, layers.fc(net, reduce_mean(net, vectors, axis=1), size=size))


OUT, OUT_BIAS = "out", "out_bias"
"""Names of skip-gram's output table and of its bias, which are 0 at first."""


@MODELS.register("skipgram")
def skipgram(
    net: Network,
    *,
    dim: Count = 32,
    negatives: Count = 5,
    sampler: Literal["log_uniform", "uniform"] = "log_uniform",
) -> None:
    """The words around a word [N, 1]: of the labels [N, n - 1] each true word is told from
    ``negatives`` drawn ones. Predicts the probabilities of all words.

    ``sampler``: `log_uniform` draws word k with probability log((k + 2) / (k + 1)) / log(words + 1),
    which fits vocabularies in the order of falling counts. A field `negatives` [N, K] of the data set
    is taken instead of drawn ones. A drawn word that is the true one stays.
    """
    x, around = net.feature("centre"), net.label("neighbours")
    size = words_of(net, x)
    with net.naming("words"):
        low = 0.5 / dim
        vectors = layers.embedding(
            net, x, size=size, dim=dim, sparse=True, init={"uniform": {"low": -low, "high": low}}
        )
    drawn = net.known("negatives")
    if drawn is None:
        count = around.spec.shape[1].coefficient * negatives
        drawn = _drawn(net, around, count, size, sampler)
    with net.layer("negative_sampling"):
        parts = [
            net.apply(
                "softplus", net.apply("scale", _told(net, vectors, ids, size, dim), a=sign, b=0.0)
            )
            for ids, sign in ((around, -1.0), (drawn, 1.0))
        ]
        values = net.apply(
            "sum", [net.apply("reduce_sum", p, dims=(1, 2), keep_dim=False) for p in parts]
        )
        losses.finish(net, values, vectors, around)
    if not net.training:
        with net.layer("scores"):
            table, bias = (
                net.parameter("w", (size, d), "constant", path=name, sparse=True)
                for name, d in ((OUT, dim), (OUT_BIAS, 1))
            )
            flat = net.apply("reshape", vectors, dims=(0, dim))
            products = net.apply("matmul", flat, table, transpose_y=True)
            scores = net.apply("add", products, net.apply("transpose", bias, perm=(1, 0)), axis=-1)
            net.output("probability", net.apply("softmax", scores, axis=-1))


def _drawn(net: Network, like: Tensor, count: int, size: int, sampler: str) -> Tensor:
    """Ids [N, count] for each row of ``like``, new ones in every step."""
    with net.layer("negatives"):
        zipf = sampler == "log_uniform"
        high = math.log(size + 1) if zipf else float(size)
        u = net.apply("random_uniform", like, shape=(count,), low=0.0, high=high)
        if zipf:
            u = net.apply("scale", net.apply("exp", u), a=1.0, b=-1.0)
        u = net.apply("clip", u, low=0.0, high=size - 0.5)
        ids: Tensor = net.apply("cast", u, dtype=code("i64"))
        return ids


def _told(net: Network, vectors: Tensor, ids: Tensor, size: int, dim: int) -> Tensor:
    """The scores [N, K, 1] of words [N, K] beside vectors of one word a row."""
    rows, bias = (
        net.apply(
            "reshape",
            layers.embedding(net, ids, size=size, dim=d, sparse=True, table=name, init="constant"),
            dims=(0, -1, d),
        )
        for name, d in ((OUT, dim), (OUT_BIAS, 1))
    )
    one = net.apply("reshape", vectors, dims=(0, 1, dim))
    found: Tensor = net.apply(
        "add", net.apply("matmul", rows, one, transpose_y=True), bias, axis=-1
    )
    return found


@MODELS.register("sentiment_conv")
def sentiment_conv(
    net: Network, *, dim: Count = 128, filters: Count = 512, classes: Count = 2
) -> None:
    """Convolutions over three and over four words, each pooled over the root of the length:
    1,120,642 parameters for 5,147 words."""
    x = net.feature()
    with net.naming("words"):
        vectors = layers.embedding(net, x, size=words_of(net, x), dim=dim, sparse=True)
    pools = []
    for size in (3, 4):
        y = sequence_conv(net, vectors, filters=filters, size=size, activation="tanh")
        pools.append(layers.sequence_pool(net, y, kind="sqrt"))
    classify(net, layers.fc(net, *pools, size=classes))


@MODELS.register("sentiment_stacked_lstm")
def sentiment_stacked_lstm(
    net: Network, *, dim: Count = 128, hidden: Count = 512, levels: Count = 3, classes: Count = 2
) -> None:
    """Recurrent layers on top of each other, every second one reading from the end; the last
    projection and the last states are max-pooled. 1,581,826 parameters for 5,147 words.

    ``hidden`` is four times the width of the states.
    """
    x = net.feature()
    with net.naming("words"):
        vectors = layers.embedding(net, x, size=words_of(net, x), dim=dim, sparse=True)
    inputs = [vectors]
    for level in range(1, levels + 1):
        projected = layers.fc(net, *inputs, size=hidden)
        states = dynamic_lstm(net, projected, size=hidden, reverse=level % 2 == 0)
        inputs = [projected, states]
    pools = [layers.sequence_pool(net, t, kind="max") for t in inputs]
    classify(net, layers.fc(net, *pools, size=classes))


@MODELS.register("sentiment_dyn_rnn")
def sentiment_dyn_rnn(
    net: Network, *, dim: Count = 128, hidden: Count = 512, classes: Count = 2
) -> None:
    """One recurrent layer, its last state decides: 791,554 parameters for 5,147 words.

    ``hidden`` is four times the width of the states.
    """
    x = net.feature()
    with net.naming("words"):
        vectors = layers.embedding(net, x, size=words_of(net, x), dim=dim, sparse=True)
    projected = layers.fc(net, vectors, size=hidden, activation="tanh")
    states = dynamic_lstm(net, projected, size=hidden)
    last = layers.sequence_pool(net, states, kind="last")
    classify(net, layers.fc(net, last, size=classes))


WORD_COLUMNS = ("word", "ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")
"""Columns that share the table of words, in the order of the data set."""
CRF = "crfw"
"""Name of the tag sequence's weights, which training and decoding share."""


@MODELS.register("db_lstm")
def db_lstm(
    net: Network,
    *,
    word_dim: Count = 32,
    mark_dim: Count = 5,
    hidden: Count = 512,
    depth: Count = 8,
    activation: layers.Activation = "tanh",
) -> None:
    """Roles of the words of a sentence: ``depth`` recurrent layers that read in turns from the front
    and from the end, over the words around the predicate, the predicate and a mark, and a
    conditional random field over the tags.

    ``hidden`` is four times the width of the states. ``activation`` ends the projections.
    """
    label = net.label()
    tags = words_of(net, label)
    columns = [_vectors(net, name, "emb", word_dim) for name in WORD_COLUMNS]
    columns.append(_vectors(net, "verb", "vemb", word_dim))
    columns.append(_vectors(net, "mark", None, mark_dim))
    mix = _sum(net, columns, hidden, activation)
    states = _states(net, mix, hidden, False)
    for level in range(1, depth):
        mix = _sum(net, [mix, states], hidden, activation)
        states = _states(net, mix, hidden, level % 2 == 1)
    with net.naming("scores"):
        scores = _sum(net, [mix, states], tags, activation)
    net.output("tags", crf_decoding(net, scores, parameter=CRF))
    net.output("scores", scores)
    linear_chain_crf(net, scores, label, parameter=CRF)


def _vectors(net: Network, field: str, table: str | None, dim: int) -> Tensor:
    x = net.feature(field)
    return layers.embedding(net, x, size=words_of(net, x), dim=dim, sparse=True, table=table)


def _sum(net: Network, xs: list[Tensor], size: int, activation: layers.Activation) -> Tensor:
    """The sum of one projection of each tensor."""
    parts = [layers.fc(net, x, size=size, activation=activation) for x in xs]
    with net.layer("sum"):
        result: Tensor = net.apply("sum", parts)
        return result


def _states(net: Network, x: Tensor, hidden: int, reverse: bool) -> Tensor:
    return dynamic_lstm(
        net,
        x,
        size=hidden,
        reverse=reverse,
        candidate_activation="relu",
        cell_activation="sigmoid",
    )
