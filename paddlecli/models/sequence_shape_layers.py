"""Layers that move the rows of packed sequences: other orders, other axes, rows of one length, ids chosen; T is the rows of a
ragged axis, N the sequences."""

from __future__ import annotations

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count, Natural
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network
from paddlecli.models.sequence_layers import on_axis
from paddlecli.ops.spec import Axis


def _ragged(net: Network, layer: str, x: Tensor) -> Axis:
    """The axis of x, which must lie on one."""
    if x.spec.axis is None:
        raise fault(net.origin, f"[{layer}] {x.name} is {x.spec} and lies on no ragged axis")
    return x.spec.axis


@LAYERS.register("sequence_reverse")
def sequence_reverse(net: Network, x: Tensor) -> Tensor:
    """Each sequence of x [T, ...] from its end to its start: [T, ...]."""
    with net.layer("sequence_reverse"):
        _ragged(net, "sequence_reverse", x)
        result: Tensor = net.apply("sequence_reverse", x)
        return result


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
