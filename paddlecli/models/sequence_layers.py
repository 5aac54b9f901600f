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
from paddlecli.ops.spec import Axis

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


def _ragged(net: Network, layer: str, x: Tensor) -> Axis:
    """The axis of x, which must lie on one."""
    if x.spec.axis is None:
        raise fault(net.origin, f"[{layer}] {x.name} is {x.spec} and lies on no ragged axis")
    return x.spec.axis


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


@LAYERS.register("sequence_reverse")
def sequence_reverse(net: Network, x: Tensor) -> Tensor:
    """Each sequence of x [T, ...] from its end to its start: [T, ...]."""
    with net.layer("sequence_reverse"):
        _ragged(net, "sequence_reverse", x)
        result: Tensor = net.apply("sequence_reverse", x)
        return result


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


@LAYERS.register("sequence_expand")
def sequence_expand(net: Network, x: Tensor, like: Tensor, *, ref_level: int = -1) -> Tensor:
    """Row i of x [N, ...] as often as sequence i of ``like`` has rows: [T, ...] on its axis. A ragged x
    [S, ...] gives whole sequences as often, on an axis of their own inside that of ``like``. Only the
    lengths of ``like`` are read.

    ``ref_level``: the level of a nested axis whose lengths count, 0 the outermost, -1 the innermost.
    """
    with net.layer("sequence_expand"):
        axes = [_ragged(net, "sequence_expand", like)]
        while axes[0].parent is not None:
            axes.insert(0, axes[0].parent)
        if not -len(axes) <= ref_level < len(axes):
            text = f"`ref_level` is {ref_level}, {like.name} has {len(axes)} levels"
            raise fault(net.origin, f"[sequence_expand] {text}")
        axis = axes[ref_level]
        lengths = like if axis == like.spec.axis else net.axis_data(axis, "sequence")
        if x.spec.shape[0] == axis.sequences:
            return net.apply("repeat_rows", x, lengths)  # type: ignore[no-any-return]
        if x.spec.axis is None or x.spec.axis.sequences != axis.sequences:
            text = f"{x.name} is {x.spec}: a row or sequence for each sequence of {like.name} is needed"
            raise fault(net.origin, f"[sequence_expand] {text}")
        return net.apply("sequence_expand", x, lengths)  # type: ignore[no-any-return]


@LAYERS.register("sequence_concat")
def sequence_concat(net: Network, *xs: Tensor) -> Tensor:
    """The sequences of all inputs [T, ...] one behind the other, sample by sample, on a ragged axis of
    their own."""
    with net.layer("sequence_concat"):
        for x in xs:
            _ragged(net, "sequence_concat", x)
        result: Tensor = net.apply("sequence_concat", list(xs))
        return result


@LAYERS.register("sequence_slice")
def sequence_slice(net: Network, x: Tensor, *, start: int = 0, size: Count) -> Tensor:
    """Of each sequence of x [T, ...] at most ``size`` rows from row ``start`` on, on a ragged axis of
    their own. A negative ``start`` counts from the end. Where tensors say start and size:
    `sequence_slice_at`."""
    with net.layer("sequence_slice"):
        _ragged(net, "sequence_slice", x)
        result: Tensor = net.apply("sequence_slice", x, start=start, size=size)
        return result


@LAYERS.register("sequence_slice_at")
def sequence_slice_at(net: Network, x: Tensor, offset: Tensor, length: Tensor) -> dict[str, Tensor]:
    """Of each sequence of x [T, ...] at most ``length`` rows from row ``offset`` on, both [N] int64, moved
    to the start of the sequence, zeros behind them: [T, ...]; the output ``count`` [N] says how many there
    are. A negative offset counts from the end."""
    with net.layer("sequence_slice_at"):
        _ragged(net, "sequence_slice_at", x)
        y, count = net.apply("sequence_slice_at", x, offset, length)
        return {"": y, "count": count}


@LAYERS.register("sequence_reshape")
def sequence_reshape(net: Network, x: Tensor, *, size: Count) -> Tensor:
    """The numbers of each sequence of x [T, D] in rows of ``size``, on a ragged axis of their own. They
    must be whole rows."""
    with net.layer("sequence_reshape"):
        on_axis(net, "sequence_reshape", x)
        result: Tensor = net.apply("sequence_reshape", x, width=size)
        return result


@LAYERS.register("sequence_pad")
def sequence_pad(net: Network, x: Tensor, *, size: Natural = 0, value: float = 0.0) -> Tensor:
    """The sequences of x [T, ...] as rows of one length: [N, size, ...], ``value`` behind their end.

    ``size``: that length, what is longer is cut off; 0 takes the longest sequence of the batch.
    """
    with net.layer("sequence_pad"):
        _ragged(net, "sequence_pad", x)
        result: Tensor = net.apply("sequence_pad", x, size=size, value=value)
        return result


@LAYERS.register("sequence_unpad")
def sequence_unpad(net: Network, x: Tensor, like: Tensor) -> Tensor:
    """Of x [N, size, ...] the first rows of each sequence, as many as ``like`` has there: [T, ...]."""
    with net.layer("sequence_unpad"):
        _ragged(net, "sequence_unpad", like)
        result: Tensor = net.apply("sequence_unpad", x, like)
        return result


@LAYERS.register("sequence_mask")
def sequence_mask(net: Network, x: Tensor, *, size: Natural = 0) -> Tensor:
    """1 where a row of `sequence_pad` holds a token, else 0: [N, size] for sequences x, or for
    lengths x [N] int64.

    ``size``: length of a row; 0 takes the longest sequence of the batch.
    """
    with net.layer("sequence_mask"):
        result: Tensor = net.apply("sequence_mask", x, size=size)
        return result


@LAYERS.register("sequence_enumerate")
def sequence_enumerate(net: Network, x: Tensor, *, size: Count, pad: int = 0) -> Tensor:
    """The ``size`` ids that start at each token of x [T] int64: [T, size].

    ``pad``: the id beyond the end of a sequence.
    """
    with net.layer("sequence_enumerate"):
        result: Tensor = net.apply("sequence_enumerate", x, size=size, pad=pad)
        return result


@LAYERS.register("sequence_erase")
def sequence_erase(net: Network, x: Tensor, *, ids: tuple[int, ...]) -> dict[str, Tensor]:
    """x [T] int64 without the ids in ``ids``, moved to the start of each sequence, -1 behind them;
    the output ``count`` [N] says how many are left."""
    with net.layer("sequence_erase"):
        y, count = net.apply("sequence_erase", x, ids=tuple(ids))
        return {"": y, "count": count}


@LAYERS.register("sequence_scatter")
def sequence_scatter(net: Network, x: Tensor, ids: Tensor, updates: Tensor) -> Tensor:
    """x [N, D] with updates [T] added at the columns ids [T] int64 of each sequence's row; [N, D]."""
    with net.layer("sequence_scatter"):
        result: Tensor = net.apply("sequence_scatter", x, ids, updates)
        return result


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
