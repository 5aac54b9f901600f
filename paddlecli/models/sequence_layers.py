"""Layers on packed sequences: T is the rows of a ragged axis, N the sequences; nothing is padded."""

from __future__ import annotations

import math
from typing import Any, Literal

from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.config.types import Count, Natural, Positive
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.losses import finish
from paddlecli.models.network import Network
from paddlecli.ops._recurrent import ACTIVATIONS

CellActivation = Literal["sigmoid", "tanh", "relu", "identity"]
"""What a gate or a cell of a recurrent layer ends with."""


def on_axis(net: Network, layer: str, x: Tensor) -> int:
    """The width D of x [T, D], which must lie on a ragged axis."""
    if x.spec.axis is None or x.spec.ndim != 2:
        raise fault(
            net.origin, f"[{layer}] {x.name} is {x.spec}: expected rows [T, D] on a ragged axis"
        )
    return x.spec.shape[1].coefficient


@LAYERS.register("sequence_conv")
def sequence_conv(
    net: Network,
    x: Tensor,
    *,
    filters: Count,
    size: Count = 3,
    start: int | None = None,
    activation: layers.Activation = "none",
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> Tensor:
    """Convolution along each sequence of x [T, D]: ``size`` rows at a time, zeros beyond the ends;
    [T, filters].

    ``start``: the first row of the window, counted from the row itself; -(size // 2) if left out.
    """
    with net.layer("sequence_conv"):
        width = on_axis(net, "sequence_conv", x)
        w = net.parameter("w", (size * width, filters), layers.initial(weight_init))
        first = -(size // 2) if start is None else start
        y: Tensor = net.apply("sequence_conv", x, w, size=size, start=first)
        if bias:
            b = net.parameter("b", (filters,), layers.initial(bias_init))
            y = net.apply("bias", y, b, axis=-1)
        return layers.activate(net, y, activation)


@LAYERS.register("sequence_softmax")
def sequence_softmax(net: Network, x: Tensor) -> Tensor:
    """Softmax over the tokens of each sequence, column by column: x [T, ...] -> [T, ...]."""
    with net.layer("sequence_softmax"):
        result: Tensor = net.apply("sequence_softmax", x)
        return result


@LAYERS.register("dynamic_lstm")
def dynamic_lstm(
    net: Network,
    x: Tensor,
    *starts: Tensor,
    size: Count,
    peepholes: bool = True,
    reverse: bool = False,
    gate_activation: CellActivation = "sigmoid",
    cell_activation: CellActivation = "tanh",
    candidate_activation: CellActivation = "tanh",
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> Tensor:
    """Long short-term memory over each sequence of x [T, size], which a layer before has projected;
    [T, size / 4].

    As the original's: ``size`` is four times the hidden width D, blocks stand in the order
    candidate, input, forget, output. x may be followed by h0 and c0 [N, D]. ``reverse`` reads from
    the end.
    """
    with net.layer("dynamic_lstm"):
        _projected(net, "dynamic_lstm", x, size, 4)
        if len(starts) not in (0, 2):
            raise fault(
                net.origin,
                f"[dynamic_lstm] reads x, or x, h0 and c0; `from` gives {1 + len(starts)}",
            )
        d = size // 4
        w = net.parameter("w", (d, size), layers.initial(weight_init))
        b = None
        if bias or peepholes:
            b = net.parameter("b", ((7 if peepholes else 4) * d,), layers.initial(bias_init))
        h0, c0 = starts or (None, None)
        y: Tensor = net.apply(
            "dynamic_lstm", x, w, b, h0, c0,
            peephole=peepholes, reverse=reverse, gate=ACTIVATIONS.index(gate_activation),
            cell=ACTIVATIONS.index(cell_activation), candidate=ACTIVATIONS.index(candidate_activation),
        )[0]  # fmt: skip
        return y


@LAYERS.register("dynamic_gru")
def dynamic_gru(
    net: Network,
    x: Tensor,
    *starts: Tensor,
    size: Count,
    reverse: bool = False,
    gate_activation: CellActivation = "sigmoid",
    candidate_activation: CellActivation = "tanh",
    origin_mode: bool = False,
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> Tensor:
    """Gated recurrent units over each sequence of x [T, 3 * size], which a layer before has
    projected; [T, size].

    Blocks stand in the order update, reset, candidate. x may be followed by h0 [N, size].
    ``origin_mode`` keeps the old state where the update gate is 1 instead of where it is 0.
    """
    with net.layer("dynamic_gru"):
        _projected(net, "dynamic_gru", x, 3 * size, 3)
        if len(starts) > 1:
            raise fault(
                net.origin, f"[dynamic_gru] reads x, or x and h0; `from` gives {1 + len(starts)}"
            )
        w = net.parameter("w", (size, 3 * size), layers.initial(weight_init))
        b = net.parameter("b", (3 * size,), layers.initial(bias_init)) if bias else None
        y: Tensor = net.apply(
            "dynamic_gru", x, w, b, starts[0] if starts else None,
            reverse=reverse, gate=ACTIVATIONS.index(gate_activation),
            candidate=ACTIVATIONS.index(candidate_activation), origin_mode=origin_mode,
        )[0]  # fmt: skip
        return y


def _projected(net: Network, layer: str, x: Tensor, wanted: int, blocks: int) -> None:
    width = on_axis(net, layer, x)
    if wanted % blocks or width != wanted:
        text = f"expected {wanted} columns, {blocks} blocks of one width: project x with fc before"
        raise fault(net.origin, f"[{layer}] {x.name} is {x.spec}: {text}")


@LAYERS.register("layer_norm")
def layer_norm(
    net: Network,
    x: Tensor,
    *,
    begin: Count = 1,
    epsilon: Positive = 1e-5,
    scale: bool = True,
    shift: bool = True,
    activation: layers.Activation = "none",
) -> Tensor:
    """Each row of x [N, ...] less its mean, over its standard deviation; then, element by element,
    times a weight and plus a bias. As x.

    Dimensions from ``begin`` on are a row. ``scale`` and ``shift``: whether there is a weight, which
    starts at 1, and a bias.
    """
    with net.layer("layer_norm"):
        row = x.spec.shape[begin:]
        if not row or any(not d.known for d in row):
            text = f"the dimensions from {begin} on must be there and fixed"
            raise fault(net.origin, f"[layer_norm] {x.name} is {x.spec}: {text}")
        size = (math.prod(d.coefficient for d in row),)
        w = net.parameter("w", size, {"name": "constant", "value": 1.0}) if scale else None
        b = net.parameter("b", size, "constant") if shift else None
        y = net.apply("layer_norm", x, w, b, begin=begin, epsilon=epsilon)[0]
        return layers.activate(net, y, activation)


@LAYERS.register("row_conv")
def row_conv(
    net: Network,
    x: Tensor,
    *,
    future: Natural = 2,
    activation: layers.Activation = "none",
    weight_init: layers.Initializer = "xavier",
) -> Tensor:
    """Each row of x [T, D] and the ``future`` rows behind it in its sequence, each column weighted by
    itself and added up; [T, D]."""
    with net.layer("row_conv"):
        width = on_axis(net, "row_conv", x)
        w = net.parameter("w", (future + 1, width), layers.initial(weight_init))
        return layers.activate(net, net.apply("row_conv", x, w), activation)


@LAYERS.register("ctc_greedy_decode")
def ctc_greedy_decode(net: Network, x: Tensor, *, blank: Natural = 0) -> dict[str, Tensor]:
    """The best class of each frame x [T, classes], runs of one class made one, ``blank`` left out:
    [T] int64, -1 behind each sequence's classes; the output ``count`` [N] says how many there are."""
    with net.layer("ctc_greedy_decode"):
        y, count = net.apply("ctc_greedy_decode", x, blank=blank)
        return {"": y, "count": count}


@LOSSES.register("ctc")
def ctc(
    net: Network,
    logits: Tensor,
    label: Tensor,
    *,
    blank: Natural = 0,
    norm_by_times: bool = False,
    norm_by_labels: bool = False,
) -> Tensor:
    """Connectionist temporal classification: negative log-likelihood of the labels [L] int64 under all
    their alignments with frames, whose scores are logits [T, classes]; the mean over sequences.

    ``blank``: the class that stands for no label. Labels need as many frames as they have, one more
    between equal neighbours. ``norm_by_times``: the gradient of a sequence is divided by its frames, the
    loss is not, as in the original. ``norm_by_labels``: the loss of a sequence is divided by its labels.
    """
    with net.layer("ctc"):
        on_axis(net, "ctc", logits)
        if norm_by_times and norm_by_labels:
            raise fault(net.origin, "[ctc] norm_by_times and norm_by_labels: choose one")
        norm = 1 if norm_by_times else 2 if norm_by_labels else 0
        nll: Any = net.apply("ctc", logits, label, blank=blank, norm=norm)
        return finish(net, nll, logits, label)


def transitions(net: Network, tags: int, name: str | None) -> Tensor:
    """The weights [tags + 2, tags] of a linear chain: of the start, of the stop, from each tag."""
    return net.parameter("transition", (tags + 2, tags), "xavier", path=name)


@LOSSES.register("linear_chain_crf")
def linear_chain_crf(
    net: Network, emission: Tensor, label: Tensor, *, parameter: str | None = None
) -> Tensor:
    """Negative log-likelihood of the tag sequences label [T] under a conditional random field whose
    scores are emission [T, tags]; the mean over sequences.

    ``parameter``: full name of its weights, by which the layer `crf_decoding` finds them.
    """
    with net.layer("linear_chain_crf"):
        tags = on_axis(net, "linear_chain_crf", emission)
        classes = net.classes(label)
        if classes is not None and classes > tags:
            raise fault(
                net.origin,
                f"[linear_chain_crf] the label has {classes} classes, the scores {emission.spec} "
                f"have {tags}",
            )
        w = transitions(net, tags, parameter)
        nll: Any = net.apply("linear_chain_crf", emission, w, label)[0]
        return finish(net, nll, emission, label)


@LAYERS.register("crf_decoding")
def crf_decoding(net: Network, emission: Tensor, *, parameter: str | None = None) -> Tensor:
    """The most likely tags [T] int64 for scores emission [T, tags], with the weights of a
    `linear_chain_crf` loss.

    ``parameter``: full name of those weights.
    """
    with net.layer("crf_decoding"):
        w = transitions(net, on_axis(net, "crf_decoding", emission), parameter)
        result: Tensor = net.apply("crf_decoding", emission, w, None)
        return result
