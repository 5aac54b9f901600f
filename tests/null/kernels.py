"""Kernels in numpy, float64, for the null executor.

A forward kernel is its op's ``reference``, an optimizer's table update ``reference_rows``. Of the
others the common ones are written out here by name; what is left is the vector-Jacobian product of
the forward reference by central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from paddlecli import ops
from paddlecli.graph.ir import Node
from paddlecli.ops._optimizer import OptimizerOp
from paddlecli.ops._unary import values_of
from paddlecli.ops._window import four, output_size, two, windows_of
from paddlecli.ops.base import Ragged, RandomKey
from paddlecli.ops.conv2d import OP as CONV2D
from paddlecli.ops.sequence_pool import MODES

Array = np.ndarray[Any, np.dtype[Any]]
Args = Mapping[str, Any]
Shapes = Mapping[str, Any]
Rule = Callable[[Args, Mapping[str, Any], Shapes], dict[str, Any]]

STEP = 1e-5
MEANT: dict[str, dict[str, Any]] = {"sequence_pool.backward_max": {"mode": MODES.index("max")}}
"""Attributes of the forward kernel that a gradient kernel stands for by its name."""
RULES: dict[str, Rule] = {}
"""Kernel name (``op.kernel``) -> its numpy form; gets plain arrays (packed values without their
offsets)."""


def compute(node: Node, args: Args, shapes: Shapes, random: RandomKey) -> dict[str, Any]:
    """Results of a node by port.

    Args:
        args: port -> array, Ragged where the tensor lies on an axis, list, or None.
        shapes: output port -> the shape it must have.
    """
    op, kernel = ops.get(node.kernel.op), node.kernel
    if kernel.full_name in RULES:
        plain = {k: [values_of(x) for x in v] if isinstance(v, list) else None if v is None else values_of(v)
                 for k, v in args.items()}  # fmt: skip
        return RULES[kernel.full_name](plain, node.attrs, shapes)
    if isinstance(op, OptimizerOp):
        rows = kernel.name.startswith("update_rows")
        return (
            op.reference_rows(args, node.attrs) if rows else op.reference(args, node.attrs, random)
        )
    if kernel.name == "forward":
        return op.reference(args, node.attrs, random)
    if kernel.name.startswith("backward"):
        return _pullback(node, args, shapes, random)
    raise NotImplementedError(
        f"{kernel.full_name} has no numpy form: add it to tests/null/kernels.py"
    )


# -- derived ---------------------------------------------------------------------------------------
def _pullback(node: Node, args: Args, shapes: Shapes, random: RandomKey) -> dict[str, Any]:
    """J^T dy of the forward reference. A kernel that gets neither an input nor a result is linear
    in that input, so zeros stand in for it."""
    op = ops.get(node.kernel.op)
    forward = op.forward
    attrs = {**getattr(op, "defaults", {}), **MEANT.get(node.kernel.full_name, {}), **node.attrs}
    attrs = {name: attrs[name] for name, _ in forward.attrs}
    outputs = {p.name for p in forward.outputs}
    point = {p.name: _float(args.get(p.name)) for p in forward.inputs}
    for p in forward.inputs:
        if point[p.name] is None and f"d{p.name}" in shapes and shapes[f"d{p.name}"] is not None:
            if outputs & set(args):
                raise NotImplementedError(
                    f"{node.kernel.full_name} works from its result: add it to tests/null/kernels.py"
                )
            point[p.name] = _like_offsets(
                np.zeros(shapes[f"d{p.name}"]), shapes.get(f"offsets:d{p.name}")
            )
    dy = {k[1:]: values_of(v) for k, v in args.items() if k[:1] == "d" and k[1:] in outputs}
    found: dict[str, Any] = {}
    for port, shape in shapes.items():
        if port.startswith("d") and shape is not None:
            found[port] = _slopes(
                lambda: op.reference(point, attrs, random), values_of(point[port[1:]]), dy
            )
    return found


def _slopes(run: Callable[[], Mapping[str, Any]], x: Array, dy: Mapping[str, Array]) -> Array:
    def total() -> float:
        found = run()
        return float(sum((values_of(found[k]) * v).sum() for k, v in dy.items()))

    slopes = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        kept = x[i]
        x[i] = kept + STEP
        high = total()
        x[i] = kept - STEP
        slopes[i] = (high - total()) / (2 * STEP)
        x[i] = kept
    return slopes


def _float(value: Any) -> Any:
    if value is None:
        return None
    array = values_of(value)
    copy = np.array(array, np.float64 if array.dtype.kind == "f" else array.dtype)
    return Ragged(copy, value.offsets) if isinstance(value, Ragged) else copy


def _like_offsets(array: Array, offsets: Array | None) -> Any:
    return array if offsets is None else Ragged(array, offsets)


# -- written out -----------------------------------------------------------------------------------
def rule(name: str) -> Callable[[Rule], Rule]:
    """Registers the numpy form of a kernel."""

    def keep(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return keep


def _flat(x: Array, kept: int) -> Array:
    rows = int(np.prod(x.shape[:kept]))
    return x.reshape(rows, int(np.prod(x.shape[kept:])))


@rule("matmul.backward_x")
def _matmul_x(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    assert attrs["num_flatten_dims"], "only the flattened form is written out"
    return {"dx": (_flat(a["dz"], attrs["num_flatten_dims"]) @ a["y"].T).reshape(shapes["dx"])}


@rule("matmul.backward_y")
def _matmul_y(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    kept = attrs["num_flatten_dims"]
    assert kept, "only the flattened form is written out"
    return {"dy": _flat(a["x"], kept).T @ _flat(a["dz"], kept)}


@rule("fc.backward_x")
def _fc_x(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": (_flat(a["dy"], a["dy"].ndim - 1) @ a["w"].T).reshape(shapes["dx"])}


@rule("fc.backward_wb")
def _fc_wb(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    kept = a["dy"].ndim - 1
    dy = _flat(a["dy"], kept)
    return {"dw": _flat(a["x"], kept).T @ dy, "db": dy.sum(0)}


@rule("bias.backward")
def _bias(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    axis = attrs["axis"] % a["dy"].ndim
    return {"db": a["dy"].sum(tuple(i for i in range(a["dy"].ndim) if i != axis))}


@rule("relu.backward")
def _relu(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": a["dy"] * (a["y"] > 0)}


@rule("leaky_relu.backward")
def _leaky_relu(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": a["dy"] * np.where(a["y"] > 0, 1.0, attrs["alpha"])}


@rule("tanh.backward")
def _tanh(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": a["dy"] * (1 - a["y"] ** 2)}


@rule("sigmoid.backward")
def _sigmoid(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": a["dy"] * a["y"] * (1 - a["y"])}


@rule("concat.backward")
def _concat(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    ends = np.cumsum([s[attrs["axis"]] for s in shapes["dxs"]])
    return {"dxs": np.split(a["dy"], ends[:-1], attrs["axis"])}


@rule("softmax.backward")
def _softmax(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    y, dy = a["y"], a["dy"]
    return {"dx": y * (dy - (y * dy).sum(attrs["axis"], keepdims=True))}


@rule("square_error_cost.backward_x")
def _square_error(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"dx": 2 * (a["x"] - a["label"]) * a["dloss"]}


@rule("weighted_mean.backward_values")
def _weighted_mean(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {
        "dvalues": np.full(
            shapes["dvalues"], a["dy"][0] / a["weight"][0] if a["weight"][0] else 0.0
        )
    }


@rule("softmax_with_cross_entropy.backward_x")
def _softmax_loss(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    assert not attrs["soft_label"] and a["x"].ndim == 2 and a.get("weight") is None
    label = a["label"].reshape(-1)
    p = np.exp(a["x"] - a["x"].max(1, keepdims=True, initial=-np.inf))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(label)), np.maximum(label, 0)] -= 1
    return {"dx": p * a["dloss"].reshape(-1, 1) * (label != attrs["ignore_index"])[:, None]}


@rule("softmax_with_cross_entropy.forward_backward")
def _softmax_loss_and_gradient(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    whole = {**attrs, "soft_label": False, "axis": -1}
    loss = ops.get("softmax_with_cross_entropy").reference(a, whole, RandomKey(0, 0, 0))["loss"]
    return {"loss": loss, **_softmax_loss(a, whole, shapes)}


@rule("cross_entropy.backward_x")
def _cross_entropy(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    assert not attrs["soft_label"] and a["x"].ndim == 2
    label, rows = a["label"].reshape(-1), np.arange(len(a["x"]))
    counted = label != attrs["ignore_index"]
    known = np.where(counted, label, 0)
    dx = np.zeros(shapes["dx"])
    dx[rows, known] = np.where(counted, -a["dloss"].reshape(-1) / a["x"][rows, known], 0.0)
    return {"dx": dx}


@rule("gather_rows.backward")
def _gather(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    dx = np.zeros(shapes["dx"])
    np.add.at(dx, a["index"], a["dy"])
    return {"dx": dx}


@rule("embedding.backward_w")
def _embedding(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    dw = np.zeros(shapes["dw"])
    ids = a["ids"].reshape(-1)
    np.add.at(
        dw,
        ids,
        np.where((ids == attrs["padding_idx"])[:, None], 0.0, _flat(a["dy"], a["dy"].ndim - 1)),
    )
    return {"dw": dw}


@rule("embedding.row_ids")
def _row_ids(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    ids = a["ids"].reshape(-1)
    return {"rows": np.where(ids == attrs["padding_idx"], -1, ids)}


@rule("conv2d_tiled.backward_x")
@rule("conv2d.backward_x")
def _conv_x(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    attrs = {**CONV2D.defaults, **attrs}
    assert attrs["groups"] == 1
    w, dy, (n, c, height, width) = a["w"], a["dy"], shapes["dx"]
    (top, bottom, left, right), (sh, sw) = four(attrs, "conv2d"), two(attrs, "stride", "conv2d")
    dh, dw = two(attrs, "dilation", "conv2d")
    dx = np.zeros((n, c, height + top + bottom, width + left + right))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            part = np.einsum("nohw,oc->nchw", dy, w[:, :, i, j])
            dx[
                :,
                :,
                i * dh : i * dh + sh * dy.shape[2] : sh,
                j * dw : j * dw + sw * dy.shape[3] : sw,
            ] += part
    return {"dx": dx[:, :, top : top + height, left : left + width]}


@rule("conv2d_tiled.backward_w")
@rule("conv2d.backward_w")
def _conv_w(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    attrs = {**CONV2D.defaults, **attrs}
    assert attrs["groups"] == 1
    x, dy, size = a["x"], a["dy"], shapes["dw"][2:]
    top, bottom, left, right = four(attrs, "conv2d")
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    stride, dilation = two(attrs, "stride", "conv2d"), two(attrs, "dilation", "conv2d")
    seen = windows_of(padded, size, stride, dilation, dy.shape[2:])
    return {"dw": np.einsum("nohw,nchwij->ocij", dy, seen)}


@rule("conv2d.backward_b")
def _conv_b(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"db": a["dy"].sum((0, 2, 3))}


@rule("pool2d.backward_max")
def _pool_max(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    x, dy, dx = a["x"], a["dy"], np.zeros(shapes["dx"])
    size, (sh, sw) = two(attrs, "window", "pool2d"), two(attrs, "stride", "pool2d")
    assert not any(attrs["padding"]) and output_size(x.shape[2], size[0], sh, 0, 0) == dy.shape[2]
    for n, c, i, j in np.ndindex(*dy.shape):
        part = x[n, c, i * sh : i * sh + size[0], j * sw : j * sw + size[1]]
        h, w = np.unravel_index(part.argmax(), part.shape)
        dx[n, c, i * sh + h, j * sw + w] += dy[n, c, i, j]
    return {"dx": dx}


@rule("batch_norm.inference")
def _norm_inference(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    wide = (-1, *[1] * (a["x"].ndim - 2))
    scale = a["w"] / np.sqrt(a["variance"] + attrs["epsilon"])
    y = (a["x"] - a["mean"].reshape(wide)) * scale.reshape(wide) + a["b"].reshape(wide)
    y = y if a.get("z") is None else y + a["z"]
    return {"y": np.maximum(y, 0) if attrs["activation"] else y}


@rule("batch_norm.fold")
def _norm_fold(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    scale = a["w"] / np.sqrt(a["variance"] + attrs["epsilon"])
    bias = 0.0 if a.get("bias") is None else a["bias"]
    return {"scale": scale, "shift": a["b"] + (bias - a["mean"]) * scale}


@rule("batch_norm.backward")
def _norm(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    axes, wide = (0, *range(2, a["x"].ndim)), (-1, *[1] * (a["x"].ndim - 2))
    x = (a["x"] - a["mean"].reshape(wide)) * a["rstd"].reshape(wide)
    y = a.get("y")
    if a.get("b") is not None:
        y = x * a["w"].reshape(wide) + a["b"].reshape(wide)
    dy = a["dy"] if y is None else a["dy"] * (y > 0)
    dw, db = (dy * x).sum(axes), dy.sum(axes)
    count = max(1, a["x"].size // a["x"].shape[1])
    inner = dy - (db / count).reshape(wide) - x * (dw / count).reshape(wide)
    return {"dx": inner * (a["rstd"] * a["w"]).reshape(wide), "dw": dw, "db": db}


@rule("batch_norm.update_running")
def _norm_running(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    m = attrs["momentum"]
    variance = 1 / a["batch_rstd"] ** 2 - attrs["epsilon"]
    return {"mean_out": m * a["mean"] + (1 - m) * a["batch_mean"],
            "variance_out": m * a["variance"] + (1 - m) * variance}  # fmt: skip


@rule("global_norm.squares")
def _squares(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    parts = [
        (a["g"][o : o + n] ** 2).sum()
        for (o, n), clip in zip(a["bounds"], a["clips"], strict=True)
        if clip
    ]
    return {"total": np.array([sum(parts)])}


@rule("global_norm.squares_rows")
def _squares_rows(a: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {"total": np.array([(a["values"][: int(a["rows"][0])] ** 2).sum()])}


@rule("gru_unit.backward")
def _gru_unit(args: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """Of sigmoid gates and a tanh candidate."""
    dy, h, w = args["dy"], args["h"], args["w"]
    d = len(w)
    u, r, c = (args["gates"][:, k * d : (k + 1) * d] for k in range(3))
    flat, keep = w.reshape(-1), u if attrs["origin_mode"] else 1 - u
    gates, candidate = flat[: 2 * d * d].reshape(d, 2 * d), flat[2 * d * d :].reshape(d, d)
    du = (dy * (h - c) if attrs["origin_mode"] else dy * (c - h)) * u * (1 - u)
    dc = dy * (1 - keep) * (1 - c * c)
    drh = dc @ candidate.T
    dr = drh * h * r * (1 - r)
    dh = dy * keep + drh * r + np.concatenate([du, dr], axis=1) @ gates.T
    return {"dx": np.concatenate([du, dr, dc], axis=1), "dh": dh, "work": np.zeros(shapes["work"])}


@rule("gru_unit.backward_w")
def _gru_unit_w(args: Args, attrs: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """Over all rows."""
    h, dx, d = args["h"], args["dx"], args["h"].shape[1]
    parts = [(h.T @ dx[:, : 2 * d]).reshape(-1), (args["kept"].T @ dx[:, 2 * d :]).reshape(-1)]
    return {"dw": np.concatenate(parts).reshape(d, 3 * d)}
