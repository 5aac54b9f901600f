"""The layers. Registered networks call these functions, and so do layer lists in recipes: one set
for both.

The keyword-only parameters of a layer are what a recipe may give. In shapes N is the batch and T
the rows of a ragged axis; either may stand first. Weights are Xavier-uniform and biases 0 where
nothing else is said, convolution filters normal with deviation sqrt(2 / (k*k*channels)), as in the
original.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from paddlecli import ops
from paddlecli.config.registry import LAYERS, Call
from paddlecli.config.types import Count, Fraction, Name, Natural, Pair, Positive
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network
from paddlecli.ops._unary import activation as named_activation
from paddlecli.ops.sequence_pool import MODES

Activation = Literal[
    "none", "softmax", "abs", "brelu", "elu", "exp", "gelu", "gelu_tanh", "hard_shrink", "hard_sigmoid", "hard_swish",
    "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_relu", "softplus",
    "softshrink", "softsign", "square", "stanh", "swish", "tanh", "tanh_shrink", "thresholded_relu",
]  # fmt: skip
"""What a layer can end with, with the op's default attributes."""
BlockUse = str | dict[str, dict[str, Any]]
"""A block's name, or ``{name: {argument: value}}``."""
Initializer = Annotated[str | dict[str, dict[str, Any]], Call("initializer")]
"""A registered initializer: its name, or ``{uniform: {low: -0.1, high: 0.1}}``."""


def initial(value: str | dict[str, dict[str, Any]]) -> dict[str, Any]:
    """An initializer as parameters keep it: its name among its arguments."""
    if isinstance(value, str):
        return {"name": value}
    name, arguments = next(iter(value.items()))
    return {"name": name, **(arguments or {})}


def activate(net: Network, x: Tensor, activation: str) -> Tensor:
    """``activation`` of x; x itself for ``none``."""
    if activation == "none":
        return x
    if activation == "softmax":
        return net.apply("softmax", x, axis=-1)  # type: ignore[no-any-return]
    op, attrs = named_activation(activation)
    return net.apply(op, x, **attrs)  # type: ignore[no-any-return]


@LAYERS.register("fc")
def fc(
    net: Network,
    *xs: Tensor,
    size: Count,
    flatten: Count = 1,
    activation: Activation = "none",
    bias: bool = True,
    weight_init: Initializer = "xavier",
    bias_init: Initializer = "constant",
) -> Tensor:
    """Fully connected: the sum of x_i [N, ...] times w_i [in_i, size] over all inputs, one bias
    [size], an activation.

    ``flatten`` leading dimensions are kept, the rest are one; the result is [N, ..., size].
    """
    if not xs:
        raise fault(net.origin, "[fc] takes at least one tensor")
    with net.layer("fc"):
        parts = []
        for i, x in enumerate(xs):
            rows = _trailing(net, x, flatten)
            w = net.parameter("w" if i == 0 else f"w{i}", (rows, size), initial(weight_init))
            parts.append(net.apply("matmul", x, w, num_flatten_dims=flatten))
        y = parts[0] if len(parts) == 1 else net.apply("sum", parts)
        if bias:
            y = net.apply("bias", y, net.parameter("b", (size,), initial(bias_init)), axis=-1)
        return activate(net, y, activation)


def _trailing(net: Network, x: Tensor, flatten: int) -> int:
    if x.spec.ndim <= flatten and not (x.spec.ndim == flatten == 1):
        raise fault(
            net.origin,
            f"[fc] {x.name} is {x.spec}: nothing is left behind its first {flatten} dimensions",
        )
    row = x.spec.shape[flatten:]
    if any(not d.known for d in row):
        raise fault(
            net.origin,
            f"[fc] {x.name} is {x.spec}: the dimensions behind the first {flatten} must be fixed",
        )
    return math.prod(d.coefficient for d in row)


@LAYERS.register("embedding")
def embedding(
    net: Network,
    x: Tensor,
    *,
    size: Count,
    dim: Count,
    padding_idx: int | None = None,
    sparse: bool = False,
    init: Initializer = "xavier",
    table: Name | None = None,
) -> Tensor:
    """Rows of a table [size, dim] for ids [N, ...] or [T, ...]: the result is [N, ..., dim].

    ``size`` ids have a row. ``table`` is the table's full name: embeddings that give the same share
    it. ``sparse`` gives it row-sparse gradients: only rows in use are touched. Ids of
    ``padding_idx`` give zeros.
    """
    with net.layer("embedding"):
        w = net.parameter("w", (size, dim), initial(init), path=table, sparse=sparse)
        padding = -1 if padding_idx is None else padding_idx % size
        return net.apply("embedding", x, w, padding_idx=padding, sparse=sparse)  # type: ignore[no-any-return]


@LAYERS.register("parameter")
def parameter(net: Network, *, shape: tuple[Count, ...], init: Initializer = "xavier") -> Tensor:
    """A parameter as a tensor of its own: no layer's weight, the same for every row of a batch. It
    reads nothing.

    ``shape``: its shape, without a batch.
    """
    with net.layer("parameter"):
        return net.parameter("value", shape, initial(init))


def both(value: int | tuple[int, ...]) -> tuple[int, int]:
    """A number for height and width, or one for each."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values[0], values[-1]


@LAYERS.register("conv2d")
def conv2d(
    net: Network,
    x: Tensor,
    *,
    filters: Count,
    size: Count | Pair,
    stride: Count | Pair = 1,
    padding: Natural | Pair = 0,
    dilation: Count | Pair = 1,
    groups: Count = 1,
    activation: Activation = "none",
    bias: bool = True,
    weight_init: Initializer | None = None,
) -> Tensor:
    """2-D convolution of x [N, C, H, W] with filters [filters, C / groups, k, k]: [N, filters, H',
    W'].

    ``size`` is k, one number or height and width.
    """
    with net.layer("conv2d"):
        if x.spec.ndim != 4:
            raise fault(
                net.origin,
                f"[conv2d] {x.name} must be [N, channels, height, width], it is {x.spec}",
            )
        channels, (kh, kw) = x.spec.shape[1].coefficient, both(size)
        if channels % groups or filters % groups:
            text = f"{channels} channels and {filters} filters do not divide into {groups} groups"
            raise fault(net.origin, f"[conv2d] {text}")
        deviation = math.sqrt(2.0 / (kh * kw * channels))
        init = (
            {"name": "normal", "mean": 0.0, "std": deviation}
            if weight_init is None
            else initial(weight_init)
        )
        w = net.parameter("w", (filters, channels // groups, kh, kw), init)
        y = net.apply(
            "conv2d",
            x,
            w,
            None,
            stride=both(stride),
            padding=both(padding),
            dilation=both(dilation),
            groups=groups,
        )
        if bias:
            y = net.apply("bias", y, net.parameter("b", (filters,), "constant"), axis=1)
        return activate(net, y, activation)


@LAYERS.register("pool2d")
def pool2d(
    net: Network,
    x: Tensor,
    *,
    size: Count | Pair = 2,
    stride: Count | Pair | None = None,
    padding: Natural | Pair = 0,
    kind: Literal["max", "average"] = "max",
    exclusive: bool = True,
    ceil_mode: bool = False,
    whole: bool = False,
) -> Tensor:
    """Largest or mean value of each window of x [N, C, H, W]: [N, C, H', W'].

    ``kind`` says which of the two. ``stride`` is the window's size if left out. ``exclusive``
    leaves the padding out of a mean. ``whole`` pools each channel to one value, [N, C, 1, 1].
    """
    with net.layer("pool2d"):
        window = (1, 1) if whole else both(size)
        step = window if stride is None else both(stride)
        result: Tensor = net.apply(
            "pool2d",
            x,
            average=kind == "average",
            window=window,
            stride=step,
            padding=both(padding),
            exclusive=exclusive,
            ceil_mode=ceil_mode,
            adaptive=whole,
        )
        return result


@LAYERS.register("batch_norm")
def batch_norm(
    net: Network,
    x: Tensor,
    *,
    activation: Activation = "none",
    momentum: Fraction = 0.9,
    epsilon: Positive = 1e-5,
    use_global_stats: bool = False,
) -> Tensor:
    """Normalises each channel (axis 1) of x [N, C, ...] by the batch in training, by running
    statistics elsewhere, then scales and shifts.

    running = momentum * running + (1 - momentum) * batch, with the biased variance; a guard keeps a
    bad batch out of it. ``use_global_stats`` takes the running statistics in training too, and so does
    a layer whose parameters are frozen, unless `model.parameters` says ``batch_norm: update``.
    """
    with net.layer("batch_norm"):
        if x.spec.ndim < 2 or not x.spec.shape[1].known:
            raise fault(
                net.origin, f"[batch_norm] {x.name} is {x.spec}: [N, channels, ...] is needed"
            )
        if net.looping:
            text = "[batch_norm] stands in a loop, where each step would be a batch of its own"
            raise fault(net.origin, f"{text}: use it before the loop or behind it")
        channels = x.spec.shape[1].coefficient
        args = {
            "x": x,
            "w": net.parameter("w", (channels,), {"name": "constant", "value": 1.0}),
            "b": net.parameter("b", (channels,), "constant"),
        }
        running = {
            "mean": net.state("mean", (channels,)),
            "variance": net.state("variance", (channels,), initial=1.0),
        }
        op: Any = ops.get("batch_norm")
        kept = use_global_stats or net.frozen.keeps(args["w"], args["b"])
        if not net.training or kept:
            y = net.emit(op.inference, {**args, **running}, {"epsilon": epsilon}, out={"y": x})
            return activate(net, y, activation)
        y, mean, rstd = net.emit(op.forward, args, {"epsilon": epsilon})
        batch = {"batch_mean": mean, "batch_rstd": rstd}
        net.update(
            op.update_running, {**running, **batch}, {"momentum": momentum, "epsilon": epsilon}
        )
        return activate(net, y, activation)


@LAYERS.register("dropout")
def dropout(
    net: Network,
    x: Tensor,
    *,
    rate: Fraction = 0.5,
    mode: Literal["downgrade_in_infer", "upscale_in_train"] = "downgrade_in_infer",
) -> Tensor:
    """Zeroes a share ``rate`` of the values in training. ``downgrade_in_infer`` multiplies by 1 -
    rate elsewhere (the original's default), ``upscale_in_train`` divides by it in training."""
    with net.layer("dropout"):
        upscale = mode == "upscale_in_train"
        if net.training:
            return net.apply("dropout", x, rate=rate, upscale=upscale)  # type: ignore[no-any-return]
        return x if upscale else net.apply("scale", x, a=1.0 - rate, b=0.0)


@LAYERS.register("concat")
def concat(net: Network, *xs: Tensor, axis: int = 1) -> Tensor:
    """The inputs one behind the other along ``axis``, 1 for what follows the batch; their other
    sizes are the same."""
    with net.layer("concat"):
        return net.apply("concat", list(xs), axis=axis)  # type: ignore[no-any-return]


@LAYERS.register("reshape")
def reshape(net: Network, x: Tensor, *, shape: tuple[int, ...]) -> Tensor:
    """x under another shape. ``shape`` leaves out the batch; one size may be -1, what is left."""
    with net.layer("reshape"):
        return net.apply("reshape", x, dims=(0, *shape))  # type: ignore[no-any-return]


@LAYERS.register("flatten")
def flatten(net: Network, x: Tensor) -> Tensor:
    """x [N, ...] as [N, size], size being all elements of a row."""
    with net.layer("flatten"):
        return net.apply("reshape", x, dims=(0, -1))  # type: ignore[no-any-return]


@LAYERS.register("sequence_pool")
def sequence_pool(
    net: Network,
    x: Tensor,
    *,
    kind: Literal["sum", "average", "sqrt", "max", "first", "last"] = "sum",
    pad_value: float = 0.0,
) -> Tensor:
    """One row for each sequence of x [T, ...]: [N, ...].

    ``kind`` is what it holds: the sum, the mean, the sum over the root of the length, the largest
    values, the first or the last row. An empty sequence gives ``pad_value``.
    """
    with net.layer("sequence_pool"):
        if x.spec.axis is None:
            raise fault(
                net.origin, f"[sequence_pool] {x.name} is {x.spec} and lies on no ragged axis"
            )
        result: Tensor = net.apply("sequence_pool", x, mode=MODES.index(kind), pad_value=pad_value)
        return result


@LAYERS.register("scan")
def _scan(*, block: BlockUse, reverse: bool = False) -> None:
    """Runs a block over each sequence of the inputs [T, ...], step by step, carrying its memories:
    each of the block's outputs is [T, ...].

    ``block``: its name, or its name over its arguments. ``reverse`` reads from the end.
    """
    raise TypeError("scan is written by models/written.py; in code call models.recurrence.scan")


@LAYERS.register("decode")
def _decode(
    *,
    block: BlockUse,
    start: Natural = 0,
    end: Natural = 1,
    max_length: Count = 32,
    beam: Count = 1,
    logarithms: bool = False,
) -> None:
    """Repeats a block on its own choice, the id with the highest first output, and gives the ids
    [N, max_length]; the output `length` [N] counts them.

    ``block``: its name, or its name over its arguments. ``start`` is the id it begins with.
    ``end`` is the id that ends a row. After ``max_length`` ids it ends in any case. ``beam``: 1 takes
    the best id of each step; a larger n follows the n sequences whose logarithms have the largest
    sums: ids [N, n, max_length], best first, `length` [N, n] and `score` [N, n]. ``logarithms``: the
    first output is one already, no probability.
    """
    raise TypeError("decode is written by models/written.py; in code call models.recurrence.decode")
