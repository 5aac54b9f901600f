"""The metrics that recipes name: functions that write nodes which count.

A registered function takes the network and the tensors it reads (a recipe's ``from``, or else the
prediction and the label that the loss has told), and its keyword-only parameters are what a recipe
may give. It writes ops, like a layer, and ends in ``net.metric``: a node of a ``MetricOp``, whose
state are whole numbers, so that a metric is exact over any cut of the data into batches, threads
and ranks. A value that is undefined (nothing was counted, say) is NaN.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from paddlecli.config.registry import METRICS, Call
from paddlecli.config.types import Count, Natural
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor, flat
from paddlecli.models.network import Network
from paddlecli.ops.base import Attr
from paddlecli.ops.cast import code
from paddlecli.ops.chunk_eval import SCHEMES
from paddlecli.ops.confusion_matrix import MOST_CELLS, ConfusionMatrix

NO_CLASS = -100
"""A label that counts as nothing, as everywhere."""
Form = Literal["logits", "probabilities"]
"""What scores are: before or after softmax (sigmoid, where there is one score a row)."""
Part = Annotated[str | dict[str, Any], Call("metric")]
"""A registered metric: its name, or ``{accuracy: {k: 5}}``."""

_READ_LOGITS = ("softmax_with_cross_entropy", "sigmoid_cross_entropy", "sigmoid_focal_loss")
_READ_PROBABILITIES = ("cross_entropy", "log_loss")
_MAKE_PROBABILITIES = ("softmax", "sigmoid")


@METRICS.register("accuracy")
def accuracy(
    net: Network, scores: Tensor, label: Tensor, *, k: Count = 1, ignore_index: int = NO_CLASS
) -> None:
    """Share of rows whose label is among the ``k`` largest scores. Scores [N, classes], label [N]
    or [N, 1]; labels of ``ignore_index`` do not count; of equal scores the first is the larger."""
    attrs = {"k": k, "ignore_index": ignore_index}
    net.metric(net.called("accuracy"), "accuracy", {"scores": scores, "label": label}, attrs)


@METRICS.register("top_k")
def top_k(
    net: Network,
    scores: Tensor,
    label: Tensor,
    *,
    k: tuple[Count, ...] = (1, 5),
    ignore_index: int = NO_CLASS,
) -> None:
    """``accuracy`` for several ``k``, reported as ``<name>_top<k>``: ``acc_top1`` and ``acc_top5``
    if nothing else is said. Scores [N, classes], label [N] or [N, 1]."""
    for one in k:
        attrs, args = {"k": one, "ignore_index": ignore_index}, {"scores": scores, "label": label}
        net.metric(f"{net.called('acc')}_top{one}", "accuracy", args, attrs)


@METRICS.register("precision_recall")
def precision_recall(
    net: Network, scores: Tensor, label: Tensor, *, form: Form | None = None
) -> None:
    """Precision, recall and F1 of class 1 at a probability of 0.5. Scores [N, 1], or [N, 2] and
    then the second column; label [N] or [N, 1] of 0 and 1. A probability of exactly 0.5 counts as
    found for the precision only, as in the original."""
    _binary(net, "precision_recall", scores, label, form, ("precision", "recall", "f1"))


@METRICS.register("precision")
def precision(net: Network, scores: Tensor, label: Tensor, *, form: Form | None = None) -> None:
    """Share of the rows found to be of class 1 that are. Scores [N, 1] or [N, 2], label [N] or [N,
    1], as in ``precision_recall``."""
    _binary(net, "precision", scores, label, form, ("precision",))


@METRICS.register("recall")
def recall(net: Network, scores: Tensor, label: Tensor, *, form: Form | None = None) -> None:
    """Share of the rows of class 1 that are found. Scores [N, 1] or [N, 2], label [N] or [N, 1], as
    in ``precision_recall``."""
    _binary(net, "recall", scores, label, form, ("recall",))


@METRICS.register("f1")
def f1(
    net: Network,
    scores: Tensor,
    label: Tensor,
    *,
    average: Literal["binary", "macro", "micro"] = "binary",
    form: Form | None = None,
    ignore_index: int = NO_CLASS,
) -> None:
    """Harmonic mean of precision and recall. Scores [N, classes], label [N] or [N, 1].

    Args:
        average: binary, of class 1 as in ``precision_recall``; macro, the mean over the classes
            that occur; micro, over all rows, which is the accuracy.
        form: whether scores are logits or probabilities, for binary; the loss or the layer before
            tells if left out.
        ignore_index: labels that do not count, for macro and micro."""
    if average == "binary":
        _binary(net, "f1", scores, label, form, ("f1",))
    else:
        _matrix(net, "f1", scores, label, ignore_index, (f"{average}_f1",))


@METRICS.register("auc")
def auc(net: Network, scores: Tensor, label: Tensor, *, form: Form | None = None) -> None:
    """Area under the ROC curve, from 4096 buckets of the probability of class 1. Scores [N, 1], or
    [N, 2] and then the second column; label [N] or [N, 1] of 0 and 1."""
    net.metric(net.called("auc"), "auc", _one_class(net, scores, label, form))


@METRICS.register("confusion_matrix")
def confusion_matrix(
    net: Network,
    scores: Tensor,
    label: Tensor,
    *,
    classes: Count | None = None,
    cells: bool = False,
    ignore_index: int = NO_CLASS,
) -> None:
    """Accuracy and macro-averaged precision, recall and F1 of scores [N, classes] against a label
    [N] or [N, 1].

    Args:
        classes: how many there are; what the scores say if left out.
        cells: also report how many rows of each label got each prediction, as
            ``<name>_<label>_<prediction>``; up to 64 classes.
        ignore_index: labels that do not count."""
    width = _width(net, scores)
    if classes is not None and classes != width:
        raise fault(net.origin, f"[confusion_matrix] {classes} classes, scores are {scores.spec}")
    if cells and width > MOST_CELLS:
        raise fault(
            net.origin,
            f"[confusion_matrix] cells of {width} classes: more than {MOST_CELLS} are not listed",
        )
    listed = range(width if cells else 0)
    values = (*ConfusionMatrix.usual, *(f"{i}_{j}" for i in listed for j in listed))
    _matrix(net, "confusion_matrix", scores, label, ignore_index, values)


@METRICS.register("mae")
def mae(net: Network, prediction: Tensor, label: Tensor) -> None:
    """Mean of |prediction - label| over all elements, [N, ...] both; summed exactly."""
    _regression(net, "mae", prediction, label)


@METRICS.register("mse")
def mse(net: Network, prediction: Tensor, label: Tensor) -> None:
    """Mean of (prediction - label)^2 over all elements, [N, ...] both; summed exactly."""
    _regression(net, "mse", prediction, label)


@METRICS.register("rmse")
def rmse(net: Network, prediction: Tensor, label: Tensor) -> None:
    """Root of the mean of (prediction - label)^2 over all elements, [N, ...] both; summed
    exactly."""
    _regression(net, "rmse", prediction, label)


@METRICS.register("r2")
def r2(net: Network, prediction: Tensor, label: Tensor) -> None:
    """Share of the labels' variance that is explained: 1 - sum (prediction - label)^2 / sum (label
    - mean)^2 over all elements, [N, ...] both; summed exactly. NaN where all labels are equal."""
    _regression(net, "r2", prediction, label)


@METRICS.register("mean")
def mean(net: Network, values: Tensor) -> None:
    """Mean of the elements of any tensor: values [...], each below 2^80 and counted to 2^-40."""
    net.metric(net.called("mean"), "mean_metric", {"values": values})


@METRICS.register("perplexity")
def perplexity(
    net: Network,
    scores: Tensor,
    label: Tensor,
    *,
    form: Form | None = None,
    ignore_index: int = NO_CLASS,
) -> None:
    """Exponential of the mean cross-entropy (in nats) of scores [N, classes] or [T, classes]
    against a label [N] or [T]; labels of ``ignore_index`` do not count."""
    if (form or _form(net, scores)) == "logits":
        attrs = {"soft_label": False, "axis": -1, "ignore_index": ignore_index}
        values = net.apply("softmax_with_cross_entropy", scores, label, None, **attrs)[0]
    else:
        attrs = {"soft_label": False, "ignore_index": ignore_index}
        values = net.apply("cross_entropy", scores, label, **attrs)
    args = {"values": values, "counted": net.apply("label_mask", label, ignore_index=ignore_index)}
    net.metric(net.called("perplexity"), "mean_metric", args, values=("exp",))


@METRICS.register("chunk_eval")
def chunk_eval(
    net: Network,
    prediction: Tensor,
    label: Tensor,
    *,
    types: Count | None = None,
    scheme: Literal["IOB", "IOE", "IOBES", "plain"] = "IOB",
    excluded: tuple[Natural, ...] = (),
) -> None:
    """Precision, recall and F1 of chunks (names, phrases) in tag sequences: prediction [T] of tags,
    or [T, tags] of scores whose largest counts; label [T] or [T, 1]. A tag is type * (tags of the
    scheme) + its place in the scheme, types * (tags of the scheme) is outside of every chunk.

    Args:
        types: how many types of chunk there are; if left out as many as the label's classes make.
        scheme: the tags of a type in order: begin and inside for IOB, inside and end for IOE,
            begin, inside, end and single for IOBES, one for plain.
        excluded: types that do not count."""
    if types is None:
        classes = net.classes(label)
        if classes is None:
            raise fault(net.origin, "[chunk_eval] the label does not say its classes: give `types`")
        types = (classes - 1) // len(SCHEMES[scheme])
    attrs: dict[str, Attr] = {
        "chunk_types": types,
        "scheme": list(SCHEMES).index(scheme),
        "excluded": excluded,
    }
    args = {"inference": _ids(net, prediction), "label": label}
    net.metric(net.called("chunk_eval"), "chunk_eval", args, attrs)


@METRICS.register("edit_distance")
def edit_distance(
    net: Network,
    prediction: Tensor,
    label: Tensor,
    prediction_length: Tensor | None = None,
    *,
    normalized: bool = True,
    ignored: tuple[int, ...] = (),
) -> None:
    """Mean distance (insertions, deletions, substitutions) of predicted token sequences to the
    labels; and as ``<name>_instance_error`` the share of sequences that are not right. A prediction
    [T] of ids, [N, L] of ids with a length [N], or [T, ids] of scores; a label [T] or [N, L].

    Args:
        normalized: each distance over the length of its label.
        ignored: ids that are taken out of both first."""
    name = net.called("edit_distance")
    args = (_ids(net, prediction), label, prediction_length, None)
    distance = net.apply("edit_distance", *args, normalized=normalized, ignored=ignored)
    whole = net.apply("edit_distance", *args, normalized=False, ignored=ignored)
    wrong = net.apply("clip", whole, low=0.0, high=1.0)
    net.metric(name, "mean_metric", {"values": distance})
    net.metric(f"{name}_instance_error", "mean_metric", {"values": wrong})


@METRICS.register("composite")
def composite(net: Network, *tensors: Tensor, of: tuple[Part, ...]) -> None:
    """Several metrics of the same tensors [...]; named, each is reported as ``<name>_<metric>``.

    Args:
        of: the metrics, each a name or a mapping with one key."""
    known = Call("metric")
    saved = net.metric_name
    for part in of:
        name, arguments = known.parts(part) or ("", {})
        net.metric_name = f"{saved}_{name}" if saved else ""
        METRICS.get(name).function(net, *tensors, **METRICS.bind(name, arguments))
    net.metric_name = saved


# -- what they share -------------------------------------------------------------------------------
def _binary(
    net: Network,
    name: str,
    scores: Tensor,
    label: Tensor,
    form: Form | None,
    values: tuple[str, ...],
) -> None:
    args = _one_class(net, scores, label, form)
    net.metric(net.called(name), "precision_recall", args, values=values)


def _matrix(
    net: Network,
    name: str,
    scores: Tensor,
    label: Tensor,
    ignore_index: int,
    values: tuple[str, ...],
) -> None:
    attrs = {"classes": _width(net, scores), "ignore_index": ignore_index}
    args = {"scores": scores, "label": label}
    net.metric(net.called(name), "confusion_matrix", args, attrs, values)


def _regression(net: Network, value: str, prediction: Tensor, label: Tensor) -> None:
    args = {"prediction": prediction, "label": _as(net, label, "f32")}
    net.metric(net.called(value), "regression_metric", args, values=(value,))


def _width(net: Network, scores: Tensor) -> int:
    """How many classes scores [..., classes] tell apart."""
    if scores.spec.ndim < 2 or not scores.spec.shape[-1].known:
        raise fault(net.origin, f"scores are {scores.spec}; [N, classes] is needed")
    return scores.spec.shape[-1].coefficient


def _ids(net: Network, tensor: Tensor) -> Tensor:
    """Ids as they are; of scores [..., ids] the largest."""
    if tensor.spec.dtype != "f32":
        return tensor
    result: Tensor = net.apply("argmax", tensor, axis=-1)
    return result


def _one_class(net: Network, scores: Tensor, label: Tensor, form: Form | None) -> dict[str, Tensor]:
    """What an op of class 1 reads: scores as probabilities, labels as ids."""
    if (form or _form(net, scores)) == "logits":
        one = scores.spec.ndim < 2 or scores.spec.shape[-1].coefficient == 1
        scores = net.apply("sigmoid", scores) if one else net.apply("softmax", scores, axis=-1)
    return {"scores": scores, "label": _as(net, label, "i64")}


def _as(net: Network, tensor: Tensor, dtype: str) -> Tensor:
    if tensor.spec.dtype == dtype:
        return tensor
    result: Tensor = net.apply("cast", tensor, scale=1.0, shift=0.0, dtype=code(dtype))
    return result


def _form(net: Network, scores: Tensor) -> Form:
    """What scores are, told by the op that made them or the loss that reads them.

    Raises:
        ConfigError: neither tells.
    """
    for node in flat(net.entry.items):
        op, reads = node.kernel.op, _has(node.args, scores)
        if reads and op in _READ_LOGITS:
            return "logits"
        if reads and op in _READ_PROBABILITIES:
            return "probabilities"
        if op in _MAKE_PROBABILITIES and _has(node.results, scores):
            return "probabilities"
    raise fault(
        net.origin,
        f"nothing tells whether {scores.name!r} is logits or probabilities: say `form: logits` or "
        "`form: probabilities`",
    )


def _has(ports: Any, tensor: Tensor) -> bool:
    return any(value is tensor for value in ports.values())
