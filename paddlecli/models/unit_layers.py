"""Layers for one step of a loop: recurrent units that are given their state."""

from __future__ import annotations

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.network import Network
from paddlecli.models.sequence_layers import CellActivation
from paddlecli.ops._recurrent import ACTIVATIONS


@LAYERS.register("gru_unit")
def gru_unit(
    net: Network,
    x: Tensor,
    h: Tensor,
    *,
    size: Count,
    gate_activation: CellActivation = "sigmoid",
    candidate_activation: CellActivation = "tanh",
    origin_mode: bool = False,
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> Tensor:
    """One step of gated recurrent units: x [rows, 3 * size], which a layer before has projected, and
    the state h [rows, size] give the next state [rows, size].

    Blocks and ``origin_mode`` are those of `dynamic_gru`, whose parameters fit this layer.
    """
    with net.layer("gru_unit"):
        if x.spec.ndim != 2 or x.spec.shape[1].coefficient != 3 * size:
            text = f"expected {3 * size} columns: project x with fc before"
            raise fault(net.origin, f"[gru_unit] {x.name} is {x.spec}: {text}")
        w = net.parameter("w", (size, 3 * size), layers.initial(weight_init))
        b = net.parameter("b", (3 * size,), layers.initial(bias_init)) if bias else None
        y: Tensor = net.apply(
            "gru_unit", x, h, w, b, gate=ACTIVATIONS.index(gate_activation),
            candidate=ACTIVATIONS.index(candidate_activation), origin_mode=origin_mode,
        )[0]  # fmt: skip
        return y


@LAYERS.register("lstm_unit")
def lstm_unit(
    net: Network,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    *,
    size: Count,
    forget_bias: float = 0.0,
    peepholes: bool = False,
    gate_activation: CellActivation = "sigmoid",
    cell_activation: CellActivation = "tanh",
    candidate_activation: CellActivation = "tanh",
    bias: bool = True,
    weight_init: layers.Initializer = "xavier",
    bias_init: layers.Initializer = "constant",
) -> dict[str, Tensor]:
    """One step of long short-term memory: x [rows, 4 * size], which a layer before has projected, the
    state h and the cells c [rows, size] give the next state; its output ``cells`` are the next cells.

    Blocks stand in the order of `dynamic_lstm`: candidate, input, forget, output. ``forget_bias`` is
    added to the forget gate. ``peepholes``: gates see the cells.
    """
    with net.layer("lstm_unit"):
        if x.spec.ndim != 2 or x.spec.shape[1].coefficient != 4 * size:
            text = f"expected {4 * size} columns: project x with fc before"
            raise fault(net.origin, f"[lstm_unit] {x.name} is {x.spec}: {text}")
        w = net.parameter("w", (size, 4 * size), layers.initial(weight_init))
        z = net.apply("add", x, net.apply("matmul", h, w), axis=-1)
        if bias:
            b = net.parameter("b", (4 * size,), layers.initial(bias_init))
            z = net.apply("bias", z, b, axis=-1)
        peep = None
        if peepholes:
            peep = net.parameter("peepholes", (3 * size,), layers.initial(bias_init))
        y, cells, _ = net.apply(
            "lstm_unit", z, c, peep, forget_bias=forget_bias,
            gate=ACTIVATIONS.index(gate_activation), cell=ACTIVATIONS.index(cell_activation),
            candidate=ACTIVATIONS.index(candidate_activation),
        )  # fmt: skip
        return {"": y, "cells": cells}
