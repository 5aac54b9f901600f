"""Layers without parameters that cut, turn, reduce and combine tensors.

In shapes N is the batch. Dimensions are counted with it: 0 is the batch, -1 the last.
"""

from __future__ import annotations

from typing import Literal

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count, Natural
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import DTYPES, Network
from paddlecli.ops.cast import code

Dtype = Literal["float32", "int64", "int32", "uint8"]


@LAYERS.register("split")
def split(
    net: Network,
    x: Tensor,
    *,
    parts: Count | None = None,
    sizes: tuple[Count, ...] | None = None,
    axis: int = -1,
) -> list[Tensor]:
    """x cut into pieces along ``axis``: the outputs `0`, `1` and so on, for a layer called `h` the
    tensors `h.0`, `h.1`.

    ``parts``: how many pieces of one size. ``sizes``: the pieces' sizes instead, together the
    dimension.
    """
    with net.layer("split"):
        if (parts is None) == (sizes is None):
            raise fault(net.origin, "[split] either `parts` or `sizes` must be given")
        if sizes is None:
            assert parts is not None
            whole = _size(net, "split", x, axis)
            if whole % parts:
                text = f"[split] {whole} of {x.name} {x.spec} do not divide into {parts} parts"
                raise fault(net.origin, text)
            sizes = (whole // parts,) * parts
        return list(net.apply("split", x, axis=axis % x.spec.ndim, sizes=sizes))


def _size(net: Network, layer: str, x: Tensor, axis: int) -> int:
    """A fixed dimension behind the batch."""
    if not -x.spec.ndim <= axis < x.spec.ndim or not x.spec.shape[axis].known:
        raise fault(
            net.origin, f"[{layer}] {x.name} is {x.spec}: axis {axis} is no fixed dimension"
        )
    return x.spec.shape[axis].coefficient


@LAYERS.register("slice")
def slice_(
    net: Network, x: Tensor, *, axis: int = 1, start: int = 0, end: int | None = None
) -> Tensor:
    """A stretch of x along ``axis``, which is not the batch.

    ``start``: first element. ``end``: the element behind the last, the size if left out. Negative
    numbers count from the end.
    """
    with net.layer("slice"):
        stop = _size(net, "slice", x, axis) if end is None else end
        return net.apply("slice", x, axis=axis % x.spec.ndim, start=start, end=stop)  # type: ignore[no-any-return]


@LAYERS.register("transpose")
def transpose(net: Network, x: Tensor, *, perm: tuple[Natural, ...]) -> Tensor:
    """The dimensions of x in another order.

    ``perm``: for each dimension of the result the one of x that it is, the batch counted as 0:
    `[0, 2, 1]` turns [N, a, b] into [N, b, a].
    """
    with net.layer("transpose"):
        return net.apply("transpose", x, perm=perm)  # type: ignore[no-any-return]


@LAYERS.register("reduce_sum")
def reduce_sum(
    net: Network, x: Tensor, *, axis: int | tuple[int, ...] = -1, keep: bool = False
) -> Tensor:
    """The sum of x over one dimension or several.

    ``axis``: the dimension, or a list of dimensions, without the batch. ``keep`` leaves them with
    size 1.
    """
    return _reduce(net, "reduce_sum", x, axis, keep)


@LAYERS.register("reduce_mean")
def reduce_mean(
    net: Network, x: Tensor, *, axis: int | tuple[int, ...] = -1, keep: bool = False
) -> Tensor:
    """The mean of x over one dimension or several.

    ``axis``: the dimension, or a list of dimensions, without the batch. ``keep`` leaves them with
    size 1.
    """
    return _reduce(net, "reduce_mean", x, axis, keep)


def _reduce(net: Network, name: str, x: Tensor, axis: int | tuple[int, ...], keep: bool) -> Tensor:
    with net.layer(name):
        dims = (axis,) if isinstance(axis, int) else axis
        if not dims or any(d % max(x.spec.ndim, 1) == 0 for d in dims):
            raise fault(
                net.origin,
                f"[{name}] {x.name} is {x.spec}: `axis` {list(dims)} must name dimensions behind "
                "the batch",
            )
        return net.apply(name, x, dims=dims, keep_dim=keep)  # type: ignore[no-any-return]


@LAYERS.register("sum")
def sum_(net: Network, *xs: Tensor) -> Tensor:
    """The sum of any number of tensors of one shape, added in their order."""
    if not xs:
        raise fault(net.origin, "[sum] takes at least one tensor")
    with net.layer("sum"):
        return net.apply("sum", list(xs))  # type: ignore[no-any-return]


@LAYERS.register("matmul")
def matmul(
    net: Network, x: Tensor, y: Tensor, *, transpose_x: bool = False, transpose_y: bool = False
) -> Tensor:
    """Products of matrices: x [N, ..., m, k] times y [N, ..., k, n], one for each of the leading
    dimensions, gives [N, ..., m, n].

    ``transpose_x``: turn the last two dimensions of x. ``transpose_y``: those of y.
    """
    with net.layer("matmul"):
        found: Tensor = net.apply("matmul", x, y, transpose_x=transpose_x, transpose_y=transpose_y)
        return found


@LAYERS.register("cos_sim")
def cos_sim(net: Network, x: Tensor, y: Tensor, *, scale: float = 1.0) -> Tensor:
    """The cosine of the angle between rows: x [N, size] and y [N, size] give [N, 1].

    ``scale``: what the cosine is multiplied with.
    """
    with net.layer("cos_sim"):
        cosine = net.apply("cos_sim", x, y)[0]
        return cosine if scale == 1.0 else net.apply("scale", cosine, a=scale, b=0.0)  # type: ignore[no-any-return]


@LAYERS.register("argmax")
def argmax(net: Network, x: Tensor, *, axis: int = -1) -> Tensor:
    """Where the largest element of x stands along ``axis``, int64; it has no gradient."""
    with net.layer("argmax"):
        return net.apply("argmax", x, axis=axis)  # type: ignore[no-any-return]


@LAYERS.register("cast")
def cast(
    net: Network, x: Tensor, *, dtype: Dtype, scale: float = 1.0, shift: float = 0.0
) -> Tensor:
    """x in another element type: x * scale + shift, cut towards 0 for whole numbers.

    ``dtype``: the type. ``scale``: factor on the way. ``shift``: added on the way.
    """
    with net.layer("cast"):
        kind = code(DTYPES[dtype])
        return net.apply("cast", x, scale=scale, shift=shift, dtype=kind)  # type: ignore[no-any-return]


@LAYERS.register("random_normal")
def random_normal(
    net: Network, x: Tensor, *, shape: tuple[Count, ...], mean: float = 0.0, std: float = 1.0
) -> Tensor:
    """Normal noise [N, *shape] with a row for each row of x, new ones in every step; the values of
    x are not read.

    ``shape``: of one row. ``mean``: mean of the numbers. ``std``: their standard deviation.
    """
    with net.layer("random_normal"):
        return net.apply("random_normal", x, shape=shape, mean=mean, std=std)  # type: ignore[no-any-return]


@LAYERS.register("random_uniform")
def random_uniform(
    net: Network, x: Tensor, *, shape: tuple[Count, ...], low: float = -1.0, high: float = 1.0
) -> Tensor:
    """Even noise [N, *shape] with a row for each row of x, new ones in every step; the values of x
    are not read.

    ``shape``: of one row. ``low``: smallest number. ``high``: the numbers stay below it.
    """
    with net.layer("random_uniform"):
        return net.apply("random_uniform", x, shape=shape, low=low, high=high)  # type: ignore[no-any-return]
