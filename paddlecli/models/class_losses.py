"""Losses over many classes that look at some of them only: at those that noise draws, or at a path
of a tree.

Their weights are w [classes, D] (of a tree [classes - 1, D]) and a bias. `class_scores` finds them
by name, `tree_scores` those of a tree.
"""

from __future__ import annotations

from typing import Any, Literal

from paddlecli import ops
from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.losses import finish
from paddlecli.models.network import Network
from paddlecli.ops.class_samples import SAMPLERS
from paddlecli.ops.spec import Spec

Sampler = Literal["uniform", "log_uniform"]
"""How noise draws classes: evenly, or small ids more often, as words sorted by frequency are."""


def weights(
    net: Network, x: Tensor, rows: int, name: str | None, bias: bool, sparse: bool
) -> tuple[Tensor, Tensor | None]:
    """w [rows, D] and b [rows]; ``name`` is the full name of w, `<name>.bias` that of b."""
    if x.spec.ndim != 2 or not x.spec.shape[1].known:
        raise fault(net.origin, f"{x.name} is {x.spec}: rows [N, D] are needed")
    w = net.parameter("w", (rows, x.spec.shape[1].coefficient), "xavier", path=name, sparse=sparse)
    path = None if name is None else f"{name}.bias"
    return w, net.parameter("b", (rows,), "constant", path=path) if bias else None


@LAYERS.register("class_scores")
def class_scores(
    net: Network, x: Tensor, *, classes: Count, parameter: str, bias: bool = True
) -> Tensor:
    """Scores [N, classes] of x [N, D], with the weights of an `nce` or `sampled_softmax` loss.

    ``parameter``: full name of those weights.
    """
    with net.layer("class_scores"):
        w, b = weights(net, x, classes, parameter, bias, False)
        return _all_scores(net, x, w, b)


@LAYERS.register("tree_scores")
def tree_scores(
    net: Network, x: Tensor, *, classes: Count, parameter: str, bias: bool = True
) -> Tensor:
    """Log-probabilities [N, classes] of x [N, D], with the weights of a `hierarchical_sigmoid` loss.

    ``parameter``: full name of those weights.
    """
    with net.layer("tree_scores"):
        _check_tree(net, "tree_scores", classes)
        w, b = weights(net, x, classes - 1, parameter, bias, False)
        return net.apply("tree_scores", _all_scores(net, x, w, b))  # type: ignore[no-any-return]


def _check_tree(net: Network, layer: str, classes: int) -> None:
    if classes < 2:
        raise fault(net.origin, f"[{layer}] at least 2 classes are needed")


def _all_scores(net: Network, x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    scores: Tensor = net.apply("matmul", x, w, transpose_y=True)
    if b is not None:
        scores = net.apply("bias", scores, b, axis=-1)
    return scores


def _check(net: Network, loss: str, label: Tensor, classes: int) -> None:
    known = net.classes(label)
    if known is not None and known > classes:
        text = f"[{loss}] the label has {known} classes, `classes` is {classes}"
        raise fault(net.origin, text)


def _sampled(
    net: Network, loss: str, x: Tensor, label: Tensor, classes: int, negatives: int,
    sampler: str, parameter: str | None, bias: bool, sparse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Scores of the label and of drawn classes [N, 1 + negatives], how often noise draws each, hits;
    and what metrics read: all scores, which training does not need."""
    _check(net, loss, label, classes)
    w, b = weights(net, x, classes, parameter, bias, sparse)
    ids, expected, hit = net.apply(
        "class_samples",
        label,
        None,
        classes=classes,
        count=negatives,
        sampler=SAMPLERS.index(sampler),
    )
    z: Any = net.apply("class_scores", x, w, b, ids, sparse=sparse)
    return z, expected, hit, z if net.training else _all_scores(net, x, w, b)


@LOSSES.register("nce")
def nce(
    net: Network,
    x: Tensor,
    label: Tensor,
    *,
    classes: Count,
    negatives: Count = 10,
    sampler: Sampler = "uniform",
    parameter: str | None = None,
    bias: bool = True,
    sparse: bool = False,
) -> Tensor:
    """Noise-contrastive estimation: the class label [N] of x [N, D] against classes that noise draws,
    new ones for each row and step; the loss owns the classes' weights.

    ``negatives``: how many are drawn for a row. ``sampler``: how noise draws them. ``parameter``:
    full name of the weights, by which `class_scores` finds them. ``sparse`` gives them row-sparse
    gradients: only classes in use are touched.
    """
    with net.layer("nce"):
        z, expected, _, scores = _sampled(
            net, "nce", x, label, classes, negatives, sampler, parameter, bias, sparse
        )
        return finish(net, net.apply("nce_loss", z, expected), scores, label)


@LOSSES.register("sampled_softmax")
def sampled_softmax(
    net: Network,
    x: Tensor,
    label: Tensor,
    *,
    classes: Count,
    negatives: Count = 10,
    sampler: Sampler = "log_uniform",
    remove_hits: bool = True,
    parameter: str | None = None,
    bias: bool = True,
    sparse: bool = False,
) -> Tensor:
    """Cross-entropy of the softmax over the class label [N] of x [N, D] and classes that noise draws,
    each score less the logarithm of how often it is drawn; the loss owns the classes' weights.

    ``negatives``: how many are drawn for a row. ``sampler``: how noise draws them. ``remove_hits``
    leaves out drawn classes that are the label's. ``parameter``: full name of the weights, by which
    `class_scores` finds them. ``sparse`` gives them row-sparse gradients: only classes in use are
    touched.
    """
    with net.layer("sampled_softmax"):
        z, expected, hit, scores = _sampled(
            net, "sampled_softmax", x, label, classes, negatives, sampler, parameter, bias, sparse
        )
        away = net.apply("log", expected)
        if remove_hits:
            away = net.apply("add", away, net.apply("scale", hit, a=1e20, b=0.0), axis=-1)
        first = Spec((z.spec.shape[0],), "i64", z.spec.axis)
        zeros = net.emit(ops.get("fill").forward, {}, {"value": 0.0}, out={"y": first})
        values = net.apply(
            "softmax_with_cross_entropy", net.apply("sub", z, away, axis=-1), zeros, None,
            soft_label=False, axis=-1, ignore_index=-100,
        )[0]  # fmt: skip
        return finish(net, values, scores, label)


@LOSSES.register("hierarchical_sigmoid")
def hierarchical_sigmoid(
    net: Network,
    x: Tensor,
    label: Tensor,
    *,
    classes: Count,
    parameter: str | None = None,
    bias: bool = True,
    sparse: bool = False,
) -> Tensor:
    """Cross-entropy of the turns on the way to the class label [N] in a complete binary tree, each a
    sigmoid of x [N, D]: log2(classes) products a row instead of one for each class. The loss owns the
    weights of the inner nodes.

    ``parameter``: full name of the weights, by which `tree_scores` finds them. ``sparse`` gives them
    row-sparse gradients: only nodes in use are touched.
    """
    with net.layer("hierarchical_sigmoid"):
        _check(net, "hierarchical_sigmoid", label, classes)
        _check_tree(net, "hierarchical_sigmoid", classes)
        w, b = weights(net, x, classes - 1, parameter, bias, sparse)
        ids, bits = net.apply("tree_path", label, classes=classes)
        z = net.apply("class_scores", x, w, b, ids, sparse=sparse)
        turns = net.apply("sigmoid_cross_entropy", z, bits, None, ignore_index=-100)
        values = net.apply("reduce_sum", turns, dims=(1,), keep_dim=True)
        scores = z if net.training else net.apply("tree_scores", _all_scores(net, x, w, b))
        return finish(net, values, scores, label)
