"""Recurrent layers beside `dynamic_lstm` and `dynamic_gru`: the plain net, projected states, both
directions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.network import Network
from paddlecli.models.recurrence import Memory, scan
from paddlecli.models.sequence_layers import CellActivation, dynamic_gru, dynamic_lstm, on_axis
from paddlecli.ops._recurrent import ACTIVATIONS


@LAYERS.register("simple_rnn")
def simple_rnn(
    net: Network,
    x: Tensor,
    *starts: Tensor,
    size: Count,
    reverse: bool = False,
    activation: CellActivation = "tanh",
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> Tensor:
    """The plain recurrent net over each sequence of x [T, size], which a layer before has projected:
    activation(x_t + y_before w + b), [T, size].

    x may be followed by h0 [N, size]. ``reverse`` reads from the end.
    """
    with net.layer("simple_rnn"):
        if on_axis(net, "simple_rnn", x) != size:
            text = f"expected {size} columns: project x with fc before"
            raise fault(net.origin, f"[simple_rnn] {x.name} is {x.spec}: {text}")
        if len(starts) > 1:
            text = f"[simple_rnn] reads x, or x and h0; `from` gives {1 + len(starts)}"
            raise fault(net.origin, text)
        w = net.parameter("w", (size, size), layers.initial(weight_init))
        b = net.parameter("b", (size,), layers.initial(bias_init)) if bias else None
        y: Tensor = net.apply(
            "simple_rnn", x, w, b, starts[0] if starts else None,
            reverse=reverse, activation=ACTIVATIONS.index(activation),
        )  # fmt: skip
        return y


@LAYERS.register("dynamic_lstmp")
def dynamic_lstmp(
    net: Network,
    x: Tensor,
    *,
    size: Count,
    projection: Count,
    peepholes: bool = True,
    reverse: bool = False,
    gate_activation: CellActivation = "sigmoid",
    cell_activation: CellActivation = "tanh",
    candidate_activation: CellActivation = "tanh",
    projection_activation: CellActivation = "tanh",
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> dict[str, Tensor]:
    """`dynamic_lstm` whose recurrent state is a projection of its output: x [T, size], projected by
    a layer before, gives [T, projection]; its output ``cells`` is [T, size / 4].

    ``size`` is four times the width of the cell. ``projection``: width of the state.
    ``projection_activation``: what the projection ends with. ``reverse`` reads from the end.
    """
    with net.layer("dynamic_lstmp"):
        if size % 4 or on_axis(net, "dynamic_lstmp", x) != size:
            text = f"expected {size} columns, four blocks of one width: project x with fc before"
            raise fault(net.origin, f"[dynamic_lstmp] {x.name} is {x.spec}: {text}")
        d, init = size // 4, layers.initial(weight_init)
        w = net.parameter("w", (projection, size), init)
        narrow = net.parameter("projection", (d, projection), init)
        b = net.parameter("b", (size,), layers.initial(bias_init)) if bias else None
        peep = (
            net.parameter("peepholes", (3 * d,), layers.initial(bias_init)) if peepholes else None
        )
        kinds = {
            "gate": ACTIVATIONS.index(gate_activation),
            "cell": ACTIVATIONS.index(cell_activation),
            "candidate": ACTIVATIONS.index(candidate_activation),
        }

        def step(
            xs: Sequence[Tensor], now: Mapping[str, Tensor], statics: Mapping[str, Tensor]
        ) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
            z = net.apply("add", xs[0], net.apply("matmul", now["state"], w), axis=-1)
            z = z if b is None else net.apply("bias", z, b, axis=-1)
            y, cells, _ = net.apply("lstm_unit", z, now["cells"], peep, forget_bias=0.0, **kinds)
            state = net.apply("matmul", y, narrow)
            if projection_activation != "identity":
                state = net.apply(projection_activation, state)
            found = {"": state, "cells": cells}
            return found, {"state": state, "cells": cells}

        memories = {"state": Memory((projection,)), "cells": Memory((d,))}
        return scan(net, [x], step, memories, reverse=reverse)


@LAYERS.register("bidirectional_lstm")
def bidirectional_lstm(
    net: Network,
    x: Tensor,
    *,
    size: Count,
    peepholes: bool = True,
    gate_activation: CellActivation = "sigmoid",
    cell_activation: CellActivation = "tanh",
    candidate_activation: CellActivation = "tanh",
) -> Tensor:
    """Two `dynamic_lstm`, one from each end, side by side: x [T, D], which is projected here, gives
    [T, 2 * size].

    ``size``: width of one direction.
    """

    def one(wide: Tensor, reverse: bool) -> Tensor:
        return dynamic_lstm(
            net, wide, size=4 * size, peepholes=peepholes, reverse=reverse, gate_activation=gate_activation,
            cell_activation=cell_activation, candidate_activation=candidate_activation,
        )  # fmt: skip

    return _both_ways(net, "bidirectional_lstm", x, 4 * size, one)


@LAYERS.register("bidirectional_gru")
def bidirectional_gru(
    net: Network,
    x: Tensor,
    *,
    size: Count,
    gate_activation: CellActivation = "sigmoid",
    candidate_activation: CellActivation = "tanh",
    origin_mode: bool = False,
) -> Tensor:
    """Two `dynamic_gru`, one from each end, side by side: x [T, D], which is projected here, gives
    [T, 2 * size].

    ``size``: width of one direction. ``origin_mode`` as in `dynamic_gru`.
    """

    def one(wide: Tensor, reverse: bool) -> Tensor:
        return dynamic_gru(
            net, wide, size=size, reverse=reverse, gate_activation=gate_activation,
            candidate_activation=candidate_activation, origin_mode=origin_mode,
        )  # fmt: skip

    return _both_ways(net, "bidirectional_gru", x, 3 * size, one)


def _both_ways(
    net: Network, layer: str, x: Tensor, wide: int, one: Callable[[Tensor, bool], Tensor]
) -> Tensor:
    """Projects x for each direction and runs both."""
    with net.layer(layer):
        on_axis(net, layer, x)
        parts = []
        for way, reverse in (("forward", False), ("backward", True)):
            with net.naming(f"{way}_input"):
                projected = layers.fc(net, x, size=wide, bias=False)
            with net.naming(way):
                parts.append(one(projected, reverse))
        y: Tensor = net.apply("concat", parts, axis=1)
        return y
