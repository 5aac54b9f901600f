"""The roads of convolutions (``core/cpu/winograd.h``, ``depthwise.h``) on images that are cut into several tasks, segments
and strips: values against float64, and equal bits for any threads and pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.ops._window import windows_of
from paddlecli.ops.base import Kernel
from paddlecli.ops.spec import BATCH, Spec
from paddlecli.runtime.eager import Out, run_kernel

CONV: Any = ops.get("conv2d")
TILED: Any = ops.get("conv2d_tiled")
PAD = 1
CASES = {
    "few channels, several tasks": (2, 16, 20, 30, 29, 1),
    "many channels, two segments": (1, 65, 16, 90, 98, 1),
    "gradient of a filter in three segments": (2, 16, 16, 72, 70, 1),
    "depthwise, two strips": (1, 2, 4, 820, 200, 2),
}
LARGE = (128, 16, 16, 32, 32, 1)
"""A large batch: a weight of the filter sums over 131,072 products."""


def seen(images: np.ndarray, groups: int) -> np.ndarray:
    """The 3 x 3 windows around every pixel, [N, groups, channels, height, width, 3, 3]."""
    n, _, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    found = windows_of(padded, (3, 3), (1, 1), (1, 1), (height, width))
    return np.asarray(found).reshape(n, groups, -1, height, width, 3, 3)


class Case:
    """Arrays of one case and what they should give."""

    def __init__(
        self, n: int, channels: int, out: int, height: int, width: int, groups: int
    ) -> None:
        rng = np.random.default_rng(3)
        self.op = TILED if groups == 1 else CONV
        self.attrs = {**CONV.defaults, "padding": (PAD, PAD), "groups": groups}
        self.x = rng.uniform(-1, 1, (n, channels, height, width))
        self.w = rng.uniform(-1, 1, (out, channels // groups, 3, 3))
        self.dy = rng.uniform(-1, 1, (n, out, height, width))
        self.spec = {
            k: Spec.of(BATCH, *v.shape[1:]) for k, v in (("x", self.x), ("y", self.dy))
        } | {"w": Spec.of(*self.w.shape)}

    def wanted(self) -> dict[str, np.ndarray]:
        """y, dx and dw in float64."""
        groups = self.attrs["groups"]
        w = self.w.reshape(groups, -1, *self.w.shape[1:])
        x, dy = (seen(a, groups) for a in (self.x, self.dy))
        at = dy[..., PAD, PAD]
        y = np.einsum("ngchwij,gocij->ngohw", x, w, optimize=True)
        dx = np.einsum("ngohwij,gocij->ngchw", dy, w[..., ::-1, ::-1], optimize=True)
        dw = np.einsum("ngohw,ngchwij->gocij", at, x, optimize=True)
        shapes = {"y": self.dy.shape, "dx": self.x.shape, "dw": self.w.shape}
        return {k: v.reshape(shapes[k]) for k, v in (("y", y), ("dx", dx), ("dw", dw))}

    def run(self, **how: Any) -> dict[str, np.ndarray]:
        """y, dx and dw of the kernels."""
        x, w, dy = (a.astype(np.float32) for a in (self.x, self.w, self.dy))
        attrs = {k: v for k, v in self.attrs.items() if k in self.op.defaults}
        plain = {k: v for k, v in attrs.items() if k != "activation"}

        def one(kernel: Kernel, args: dict[str, Any], port: str, shape: tuple[int, ...]) -> Any:
            room = self.op.room(kernel, self.spec["x"], self.spec["w"], self.spec["y"])
            outputs = {port: Out(shape)}
            outputs |= {name: Out((s.shape[0].coefficient,)) for name, s in room.items()}
            given = attrs if kernel is self.op.forward else plain
            return run_kernel(kernel, args, given, outputs, **how)[port]

        return {
            "y": one(self.op.forward, {"x": x, "w": w, "b": None}, "y", dy.shape),
            "dx": one(self.op.backward_x, {"dy": dy, "w": w}, "dx", x.shape),
            "dw": one(self.op.backward_w, {"x": x, "dy": dy}, "dw", w.shape),
        }


@pytest.mark.parametrize("name", CASES)
def test_values_and_bits(name: str) -> None:
    case = Case(*CASES[name])
    found, wanted = case.run(), case.wanted()
    for key, value in wanted.items():
        np.testing.assert_allclose(
            found[key], value, rtol=0, atol=2e-5 * abs(value).max(), err_msg=key
        )
    for how in ({"threads": 2}, {"threads": 2, "smallest_grain": True}):
        for key, value in case.run(**how).items():
            assert np.array_equal(value, found[key]), (key, how)


def test_a_sample_gives_the_same_bits_in_any_batch() -> None:
    case = Case(*CASES["few channels, several tasks"])
    both = case.run()
    case.x, case.dy = case.x[1:], case.dy[1:]
    alone = case.run()
    assert np.array_equal(both["y"][1:], alone["y"])
    assert np.array_equal(both["dx"][1:], alone["dx"])


def test_sums_of_a_large_batch() -> None:
    """The filter gradient beside that of the direct kernels; one chain over all tiles would lose 8e-6."""
    case = Case(*LARGE)
    x, dy = (a.astype(np.float32) for a in (case.x, case.dy))
    columns = seen(x.astype(np.float64), 1)[:, 0]
    wanted = np.einsum("nohw,nchwij->ocij", dy.astype(np.float64), columns, optimize=True)
    error = {}
    for op in (CONV, TILED):
        room = op.room(op.backward_w, case.spec["x"], case.spec["w"], case.spec["y"])
        outputs = {"dw": Out(case.w.shape)} | {
            k: Out((s.shape[0].coefficient,)) for k, s in room.items()
        }
        attrs = {k: case.attrs[k] for k, _ in op.backward_w.attrs}
        found = run_kernel(op.backward_w, {"x": x, "dy": dy}, attrs, outputs)["dw"]
        error[op.name] = float(np.sqrt(np.mean((found - wanted) ** 2)))
    size = float(np.sqrt(np.mean(wanted**2)))
    assert error["conv2d"] < 1e-6 * size
    assert error["conv2d_tiled"] < 3e-6 * size


@pytest.mark.parametrize(
    ("size", "attrs", "text"),
    [
        ((1, 16, 16, 8, 225), {}, "tiles take images at most 224 wide"),
        ((1, 16, 16, 8, 8), {"work": 3}, "work has 3 floats"),
    ],
)
def test_what_tiles_cannot_take_is_refused(
    size: tuple[int, int, int, int, int], attrs: dict[str, int], text: str
) -> None:
    from paddlecli.errors import PaddleCliError

    case = Case(*size, 1)
    args = {"x": case.x.astype(np.float32), "w": case.w.astype(np.float32), "b": None}
    outputs = {"y": Out(case.dy.shape), "work": Out((attrs.get("work", 1 << 20),))}
    with pytest.raises(PaddleCliError, match=text):
        run_kernel(TILED.forward, args, {"padding": (PAD, PAD), "activation": 0}, outputs)
