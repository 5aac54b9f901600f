"""Networks and losses whose answer is a picture of classes: one for each pixel."""

from __future__ import annotations

from typing import Literal

from paddlecli.config.registry import LOSSES, MODELS
from paddlecli.config.types import Count, NonNegative
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, losses, targets
from paddlecli.models.heads import classes_of
from paddlecli.models.image_layers import conv2d_transpose, image_of
from paddlecli.models.network import Network
from paddlecli.ops.cast import code


@LOSSES.register("pixel_cross_entropy")
def pixel_cross_entropy(
    net: Network, logits: Tensor, label: Tensor, *, ignore_index: int = -100
) -> Tensor:
    """Cross-entropy of the softmax over the channels of logits [N, classes, H, W] against a class
    for each pixel, label [N, H, W]; the mean over the pixels.

    Pixels whose label is ``ignore_index`` count as nothing when it is a class (>= 0), and as zeros
    otherwise.
    """
    with net.layer("pixel_cross_entropy"):
        _check_pixels(net, "pixel_cross_entropy", logits, label)
        values = _pixel_values(net, logits, label, ignore_index)
        if ignore_index < 0:
            return losses.finish(net, values, logits, label)
        name = next((n for n, t in net.used.items() if t is label), None)
        if name is None:
            text = f"ignore_index {ignore_index} needs labels that are an input of the network"
            raise fault(net.origin, f"[pixel_cross_entropy] {text}")
        net.prediction, net.target = logits, label
        counted = net.apply("label_mask", label, ignore_index=ignore_index)
        return net.loss(values, net.loss_name, f"labels:{name}:{ignore_index}", counted)


def _pixel_values(net: Network, logits: Tensor, label: Tensor, ignore: int) -> Tensor:
    """The cross-entropy of each pixel; in training with the recipe's class weights and label smoothing."""
    if net.training and net.targets.smoothing:
        rows = net.apply("transpose", logits, perm=(0, 2, 3, 1))
        soft = targets.made(net, label, rows, False, ignore)
        return net.apply(  # type: ignore[no-any-return]
            "softmax_with_cross_entropy", rows, soft, None, soft_label=True, axis=-1,
            ignore_index=ignore,
        )[0]  # fmt: skip
    weights = targets.class_weights(net, label, logits.spec.shape[1].coefficient)
    return net.apply(  # type: ignore[no-any-return]
        "softmax_with_cross_entropy", logits, label, weights, soft_label=False, axis=1,
        ignore_index=ignore,
    )[0]  # fmt: skip


def _check_pixels(net: Network, loss: str, logits: Tensor, label: Tensor) -> None:
    classes, height, width = image_of(net, loss, logits)
    row = tuple(d.coefficient for d in label.spec.shape[1:])
    if row != (height, width) or label.spec.dtype != "i64":
        text = (
            f"{label.name} is {label.spec}; a class for each of {height}x{width} pixels is needed"
        )
        raise fault(net.origin, f"[{loss}] {text}")
    known = net.classes(label)
    if known is not None and known > classes:
        text = f"the label has {known} classes, {logits.name} {classes} channels"
        raise fault(net.origin, f"[{loss}] {text}")


@LOSSES.register("bce_dice")
def bce_dice(
    net: Network,
    logits: Tensor,
    label: Tensor,
    *,
    dice: NonNegative = 1.0,
    smooth: NonNegative = 1.0,
) -> Tensor:
    """For one class of pixels, logits [N, 1, H, W] and label [N, 1, H, W] of 0 and 1: cross-entropy
    of p = sigmoid(logits), the mean over all pixels, plus what the areas have not in common, the
    mean over samples of 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth).

    ``dice``: factor of the second part. ``smooth``: keeps it defined for empty areas.
    """
    with net.layer("bce_dice"):
        if logits.spec.shape != label.spec.shape or logits.spec.ndim != 4:
            text = f"{logits.name} is {logits.spec}, {label.name} {label.spec}"
            raise fault(net.origin, f"[bce_dice] {text}; both are [N, 1, H, W]")
        y = label if label.spec.dtype == "f32" else _number(net, label)
        entropy = net.apply("sigmoid_cross_entropy", logits, y, None, ignore_index=-100)
        p, pixels = net.apply("sigmoid", logits), (1, 2, 3)
        common, found, wanted = (
            net.apply("reduce_sum", t, dims=pixels) for t in (net.apply("mul", p, y, axis=-1), p, y)
        )
        above = net.apply("scale", common, a=2.0, b=smooth)
        below = net.apply("scale", net.apply("add", found, wanted, axis=-1), a=1.0, b=smooth)
        share = net.apply("div", above, below, axis=-1)
        values = net.apply(
            "add",
            net.apply("reduce_mean", entropy, dims=pixels),
            net.apply("scale", share, a=-dice, b=dice),
            axis=-1,
        )
        return losses.finish(net, values, logits, label)


def _number(net: Network, tensor: Tensor) -> Tensor:
    result: Tensor = net.apply("cast", tensor, scale=1.0, shift=0.0, dtype=code("f32"))
    return result


@MODELS.register("unet")
def unet(
    net: Network,
    *,
    base: Count = 16,
    levels: Count = 3,
    classes: Count | None = None,
    batch_norm: bool = False,
    loss: Literal["cross_entropy", "bce_dice"] = "cross_entropy",
    ignore_index: int = -100,
) -> None:
    """U-Net of Ronneberger and others 2015, with padding so that the mask has the picture's size:
    per level two 3 x 3 convolutions with relu and a pool of 2, twice the filters below, and on the
    way up a 2 x 2 deconvolution beside what the same level was on the way down.

    ``base``: filters of the first level. ``levels``: how often the size is halved. ``classes``: of
    pixels, if left out as many as the label has. ``batch_norm``: behind each 3 x 3 convolution, in
    place of its bias. ``loss``: `cross_entropy` over classes gives the
    output `mask` [N, H, W]; `bce_dice` is for one class and gives `probability` [N, 1, H, W].
    ``ignore_index``: pixels of this label have no part in the cross-entropy.
    """
    x, down = net.feature(), []
    _, height, width = image_of(net, "unet", x)
    if height % 2**levels or width % 2**levels:
        text = f"[unet] {height}x{width} pixels cannot be halved {levels} times"
        raise fault(net.origin, f"{text}: choose fewer `levels`")
    for level in range(levels):
        x = _two(net, f"down{level}", x, base * 2**level, batch_norm)
        down.append(x)
        x = layers.pool2d(net, x, size=2)
    x = _two(net, "mid", x, base * 2**levels, batch_norm)
    for level in reversed(range(levels)):
        with net.naming(f"up{level}"):
            x = conv2d_transpose(net, x, filters=base * 2**level, size=2, stride=2)
        x = layers.concat(net, down[level], x)
        x = _two(net, f"dec{level}", x, base * 2**level, batch_norm)
    width = 1 if loss == "bce_dice" else classes_of(net, classes)
    with net.naming("out"):
        logits = layers.conv2d(net, x, filters=width, size=1)
    if loss == "bce_dice":
        net.output("probability", net.apply("sigmoid", logits))
        bce_dice(net, logits, net.label())
        return
    net.output("mask", net.apply("argmax", logits, axis=1))
    pixel_cross_entropy(net, logits, net.label(), ignore_index=ignore_index)


def _two(net: Network, name: str, x: Tensor, filters: int, norm: bool) -> Tensor:
    """Two convolutions under one name."""
    with net.naming(name), net.layer("pair"):
        for _ in range(2):
            end: layers.Activation = "none" if norm else "relu"
            x = layers.conv2d(
                net, x, filters=filters, size=3, padding=1, activation=end, bias=not norm
            )
            x = layers.batch_norm(net, x, activation="relu") if norm else x
        return x
