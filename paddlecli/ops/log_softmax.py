"""log_softmax along one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Attr, Kernel, RandomKey
from paddlecli.ops.softmax import Softmax


class LogSoftmax(Softmax):
    """``y = x - max - log(sum(exp(x - max)))`` along ``axis``; x and y of any shape."""

    name = "log_softmax"
    forward = Kernel(
        "log_softmax.forward(x: f32; axis: int) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    backward = Kernel(
        "log_softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, axis = values_of(args["x"]), integer(attrs, "axis")
        m = x.max(axis=axis, keepdims=True)
        y = x - m - np.log(np.exp(x - m).sum(axis=axis, keepdims=True))
        return {"y": like(args["x"], y)}


OP = LogSoftmax()
