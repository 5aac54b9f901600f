"""What the generated tests of ops do not draw: values at the edges, and what ops and kernels refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.errors import DataError
from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Ragged, ShapeError
from paddlecli.ops.cast import code
from paddlecli.ops.spec import BATCH, Axis, Spec
from paddlecli.runtime.eager import Out, run_kernel

UNARY = [op for op in map(ops.get, ops.names()) if isinstance(op, Unary)]
unary = pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
SIZES = np.array([0.0, 1e-30, 1e-8, 1e-3, 0.3, 8.9, 20.0, 50.0, 88.0, 300.0, 1e4, 1e30], np.float32)


def through(op: Unary, x: np.ndarray) -> np.ndarray:
    """The op's values with its default attributes."""
    y: np.ndarray = run_kernel(op.forward, {"x": x}, op.defaults, {"y": Out(x.shape)})["y"]
    return y


@unary
def test_nan_stays(op: Unary) -> None:
    """A NaN is never hidden, and does not reach its neighbours."""
    x = np.full(40, 0.7, np.float32)
    x[[0, 17, 39]] = np.nan
    assert np.array_equal(np.isnan(through(op, x)), np.isnan(x))


@unary
def test_large_and_small(op: Unary) -> None:
    """From 0 to 1e30 and their negatives: the reference's value, or infinity where that does not fit."""
    x = np.concatenate([SIZES, -SIZES])
    with np.errstate(all="ignore"):
        wanted = op.f(x.astype(np.float64), op.defaults).astype(np.float32)
    usable = ~np.isnan(wanted)  # log of a negative number, inf*0 of a naive formula
    np.testing.assert_allclose(through(op, x)[usable], wanted[usable], 4e-6, 1e-9)


def test_halves() -> None:
    """All 65536 half-precision numbers go to float and back; floats between them round to even."""
    cast = ops.get("cast")
    bits = np.arange(65536, dtype=np.uint16)
    halves = bits.view(np.float16)
    plain: dict[str, Attr] = {"scale": 1.0, "shift": 0.0}
    wide = run_kernel(
        cast.forward, {"x": halves}, {**plain, "dtype": code("f32")}, {"y": Out((65536,))}
    )["y"]
    np.testing.assert_array_equal(wide, halves.astype(np.float32))
    with np.errstate(over="ignore"):
        between = (wide * np.float32(1.0002441)).astype(np.float32)
        for x in (wide, between, np.nextafter(wide, np.float32(np.inf)), -between):
            attrs = {**plain, "dtype": code("f16")}
            y = run_kernel(cast.forward, {"x": x}, attrs, {"y": Out((65536,), "f16")})["y"]
            np.testing.assert_array_equal(y, x.astype(np.float16))


@pytest.mark.parametrize(("dtype", "wanted"), [
    ("i64", [0, 2**63 - 1, -(2**63), 2, -2]), ("u8", [0, 255, 0, 2, 0]), ("i8", [0, 127, -128, 2, -2]),
])  # fmt: skip
def test_floats_that_are_no_integers(dtype: str, wanted: list[int]) -> None:
    """NaN becomes 0, what does not fit the nearest number, the rest is cut towards 0."""
    x = np.array([np.nan, 1e30, -np.inf, 2.9, -2.9], np.float32)
    attrs: dict[str, Attr] = {"scale": 1.0, "shift": 0.0, "dtype": code(dtype)}
    y = run_kernel(ops.get("cast").forward, {"x": x}, attrs, {"y": Out((5,), dtype)})["y"]
    assert y.tolist() == wanted


def test_power() -> None:
    """Negative bases with whole exponents, zeros, and what has no value."""
    x = np.array([-2, -2, -2, 0, 0, 5, -3], np.float32)
    y = np.array([2, 3, 0.5, 0, 2, 0, -1], np.float32)
    z = run_kernel(ops.get("pow").forward, {"x": x, "y": y}, {"axis": -1}, {"z": Out((7,))})["z"]
    np.testing.assert_allclose(z, [4, -8, np.nan, 1, 0, 1, -1 / 3], 1e-6)


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_wins(name: str) -> None:
    """Of two values a NaN is taken from either side."""
    x, y = np.array([np.nan, 1, 2], np.float32), np.array([1, np.nan, 2], np.float32)
    z = run_kernel(ops.get(name).forward, {"x": x, "y": y}, {"axis": -1}, {"z": Out((3,))})["z"]
    np.testing.assert_array_equal(z, [np.nan, np.nan, 2])


def test_argmax_of_nan() -> None:
    """The first NaN is the largest."""
    x = np.array([[1, np.nan, 3, np.nan], [1, 3, 3, 0]], np.float32)
    y = run_kernel(ops.get("argmax").forward, {"x": x}, {"axis": -1}, {"y": Out((2,), "i64")})["y"]
    assert y.tolist() == [1, 1]


def test_maximum_of_nan_token() -> None:
    """A NaN token reaches the pooled row."""
    x = Ragged(np.array([[1], [np.nan], [2], [5]], np.float32), np.array([0, 3, 4]))
    y = run_kernel(
        ops.get("sequence_pool").forward,
        {"x": x},
        {"mode": 3, "pad_value": 0.0},
        {"y": Out((2, 1))},
    )["y"]
    np.testing.assert_array_equal(y, [[np.nan], [5]])


def test_mean_of_many() -> None:
    """A million equal numbers: the sum does not drift as one of single floats would."""
    x = np.full((1000, 1000), 0.1, np.float32)
    y = run_kernel(ops.get("mean").forward, {"x": x}, {}, {"y": Out((1,))})["y"]
    np.testing.assert_allclose(y, [np.float32(0.1)], 1e-7)


# ---- refused --------------------------------------------------------------------------------------------------------
S, T = Axis("s", "s"), Axis("t", "t")
WRONG: list[tuple[str, dict[str, Any], dict[str, Attr], str]] = [
    ("fc", {"x": Spec.of(BATCH, 13), "w": Spec.of(12, 4), "b": None}, {"num_flatten_dims": 1, "activation": 0},
     "[fc] w has 12 rows, x has 13 in its last axes"),
    ("fc", {"x": Spec.of(BATCH, 3), "w": Spec.of(3, 4), "b": Spec.of(5)}, {"num_flatten_dims": 1, "activation": 0},
     "[fc] b is f32[5], w has 4 columns"),
    ("matmul", {"x": Spec.of(BATCH, 3), "y": Spec.of(4, 2)}, {"transpose_x": False, "transpose_y": False, "num_flatten_dims": 0},
     "[matmul] y has 4 rows, x has 3 columns (x f32[N, 3], y f32[4, 2])"),
    ("add", {"x": Spec.of(BATCH, 4), "y": Spec.of(5)}, {"axis": -1}, "[add] x f32[N, 4] and y f32[5] do not broadcast (axis -1)"),
    ("mul", {"x": Spec.of(S.total, 4, axis=S), "y": Spec.of(T.total, 4, axis=T)}, {"axis": -1}, "[mul] x f32[T(s), 4] and y f32[T(t), 4] do not"),
    ("sum", {"xs": [Spec.of(2), Spec.of(3)]}, {}, "[sum] shapes differ: f32[2], f32[3]"),
    ("bias", {"x": Spec.of(BATCH, 3, 4), "b": Spec.of(4)}, {"axis": 1}, "[bias] b f32[4] does not fit dimension 1 of x f32[N, 3, 4]"),
    ("reshape", {"x": Spec.of(BATCH, 6)}, {"dims": (0, 4, -1)}, "[reshape] x f32[N, 6] does not fit the shape [0, 4, -1]"),
    ("concat", {"xs": [Spec.of(BATCH, 2), Spec.of(3, 2)]}, {"axis": 1}, "[concat] shapes f32[N, 2], f32[3, 2] along axis 1"),
    ("split", {"x": Spec.of(BATCH, 5)}, {"axis": 1, "sizes": (2, 2)}, "[split] x f32[N, 5] does not fall into [2, 2] along axis 1"),
    ("slice", {"x": Spec.of(BATCH, 5)}, {"axis": 1, "start": 3, "end": 9}, "[slice] from 3 to 9 of 5 along axis 1"),
    ("transpose", {"x": Spec.of(S.total, 4, axis=S)}, {"perm": (1, 0)}, "[transpose] the packed rows of x f32[T(s), 4] must stay"),
    ("argmax", {"x": Spec.of(BATCH, 5)}, {"axis": 0}, "[argmax] axis 0 of x f32[N, 5]"),
    ("reduce_sum", {"x": Spec.of(BATCH, 5)}, {"dims": (2,), "keep_dim": False}, "[reduce_sum] dimensions (2,) of x f32[N, 5]"),
    ("cast", {"x": Spec.of(3)}, {"scale": 1.0, "shift": 0.0, "dtype": 99}, "[cast] there is no element type 99"),
    ("leaky_relu", {"x": Spec.of(3)}, {"alpha": -0.1}, "[leaky_relu] alpha is -0.1, must not be negative"),
    ("sequence_pool", {"x": Spec.of(BATCH, 3)}, {"mode": 0, "pad_value": 0.0}, "[sequence_pool] x f32[N, 3] holds no sequences"),
    ("embedding", {"ids": Spec.of(BATCH, dtype="i64"), "w": Spec.of(6, 2)}, {"padding_idx": 6, "sparse": False},
     "[embedding] padding_idx 6 of a table of 6 rows"),
    ("rows_merge", {"pairs": [Spec.of(BATCH, dtype="i64")]}, {}, "[rows_merge] 1 tensors are no pairs"),
    ("repeat_rows", {"x": Spec.of(7, 3), "like": Spec.of(S.total, axis=S)}, {}, "[repeat_rows] x f32[7, 3] has not one row"),
    ("gather_rows", {"x": Spec.of(3, 2), "index": Spec.of(2, 2, dtype="i64")}, {}, "[gather_rows] index i64[2, 2] must have 1"),
    ("scatter_rows", {"x": Spec.of(3, 2), "index": Spec.of(4, dtype="i64")}, {}, "[scatter_rows] index i64[4] does not fit x f32[3, 2]"),
    ("fill", {}, {"value": 0.0}, "[fill] the output's shape must be given"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "attrs", "text"), WRONG, ids=[f"{w[0]}-{i}" for i, w in enumerate(WRONG)]
)
def test_shape_errors(name: str, args: dict[str, Any], attrs: dict[str, Attr], text: str) -> None:
    """The message names the op and the numbers."""
    with pytest.raises(ShapeError) as found:
        ops.get(name).shape(args, attrs)
    assert str(found.value).startswith(text)


def i64(*values: int) -> np.ndarray:
    """Ids."""
    return np.array(values, np.int64)


def test_bad_ids() -> None:
    """An id outside of the table names its row; the padding id is no exception to the range."""
    embedding: Any = ops.get("embedding")
    w = np.ones((4, 3), np.float32)
    for ids, row in ((i64(0, 4), 1), (i64(-1, 0), 0), (i64(3, 2**62), 1)):
        attrs: dict[str, Attr] = {"padding_idx": -1, "sparse": False}
        with pytest.raises(DataError, match=rf"id is {ids[row]} in row {row}, must be from 0 to 3"):
            run_kernel(embedding.forward, {"ids": ids, "w": w}, attrs, {"y": Out((2, 3))})
        with pytest.raises(DataError, match=rf"id is {ids[row]} in row {row}"):
            dy = np.ones((2, 3), np.float32)
            run_kernel(
                embedding.backward_w,
                {"ids": ids, "dy": dy},
                {"padding_idx": -1},
                {"dw": Out((4, 3))},
            )


def test_bad_index() -> None:
    """Gathered and scattered rows are checked too; a permutation that repeats is none."""
    gather, scatter = ops.get("gather_rows"), ops.get("scatter_rows")
    x = np.ones((3, 2), np.float32)
    with pytest.raises(DataError, match="index is 3 in row 1, must be from 0 to 2"):
        run_kernel(gather.forward, {"x": x, "index": i64(0, 3)}, {}, {"y": Out((2, 2))})
    out = {"y": Out((3, 2)), "work": Out((3,), "u8")}
    with pytest.raises(DataError, match="index is -1 in row 2"):
        run_kernel(scatter.forward, {"x": x, "index": i64(0, 1, -1)}, {}, out)
    with pytest.raises(DataError, match="index 1 in row 2 was there before"):
        run_kernel(scatter.forward, {"x": x, "index": i64(0, 1, 1)}, {}, out)


# ---- kernels beside forward and gradient ----------------------------------------------------------
@pytest.mark.parametrize("how", [{}, {"threads": 2, "smallest_grain": True}], ids=["one", "two"])
def test_global_norm_squares(how: dict[str, Any]) -> None:
    """Only segments that are clipped count, only rows that are real; the order of additions is fixed."""
    op: Any = ops.get("global_norm")
    g = np.random.default_rng(0).uniform(-1, 1, 10_000).astype(np.float32)
    bounds, clips = (
        np.array([[3, 4200], [4208, 0], [5000, 5000]], np.int64),
        np.array([1, 1, 0], np.int32),
    )
    out = {"total": Out((1,), "f64"), "work": Out((3,), "f64")}
    total = run_kernel(op.squares, {"g": g, "bounds": bounds, "clips": clips}, {}, out, **how)[
        "total"
    ]
    np.testing.assert_allclose(total, [(g[3:4203].astype(np.float64) ** 2).sum()], 1e-12)
    values = g.reshape(100, 100)
    total = run_kernel(op.squares_rows, {"values": values, "rows": i64(70)}, {}, out, **how)[
        "total"
    ]
    np.testing.assert_allclose(total, [(values[:70].astype(np.float64) ** 2).sum()], 1e-12)
    with pytest.raises(DataError, match="rows says 101, there is room for 100"):
        run_kernel(op.squares_rows, {"values": values, "rows": i64(101)}, {}, out)


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean"])
@pytest.mark.parametrize("dims", [(1,), (1, 2), (2,)])
def test_a_batch_of_one_reduces_like_its_row(op: str, dims: tuple[int, ...]) -> None:
    """Sums over all but the first dimension have the bits of the same row among others."""
    x = np.random.default_rng(0).normal(size=(9, 5, 70)).astype(np.float32)
    kept = tuple(n for d, n in enumerate(x.shape) if d not in dims)
    forward = ops.get(op).forward
    attrs = {"dims": dims, "keep_dim": False}
    whole = run_kernel(forward, {"x": x}, attrs, {"y": Out(kept)})["y"]
    for i in range(9):
        one = run_kernel(forward, {"x": x[i : i + 1]}, attrs, {"y": Out((1, *kept[1:]))})["y"]
        assert one.tobytes() == whole[i : i + 1].tobytes()
