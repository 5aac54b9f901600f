"""One op with given numbers, forward and backward through its own gradient rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import op_cases as oc

from paddlecli import ops
from paddlecli.ops.base import Attr, Kernel
from paddlecli.ops.spec import Spec


def value(data: Any) -> oc.Value | None:
    """A tensor from nested lists: floats, or ``{"i64": ...}``; arrays keep their type."""
    if data is None:
        return None
    if isinstance(data, Mapping):
        array = np.array(data["i64"], np.int64)
    else:
        array = data if isinstance(data, np.ndarray) else np.array(data, np.float32)
    name = next(k for k, v in oc.NUMPY.items() if v == array.dtype)
    return oc.Value(Spec.of(*array.shape, dtype=name), array)


class OpBench:
    """Runs a kernel (``forward`` if none is named) on nested lists; attributes left out take the op's defaults."""

    def __init__(
        self, op: str, args: Mapping[str, Any], attrs: Mapping[str, Any], kernel: str = "forward"
    ) -> None:
        self.op = ops.get(op)
        self.kernel: Kernel = getattr(self.op, kernel)
        self.args = {p.name: value(args.get(p.name)) for p in self.kernel.inputs}
        self.attrs: dict[str, Attr] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()
        }
        self._eager = oc.Eager(oc.Sizes(1))
        out = None
        if kernel != "forward":
            out = {p.name: self.args[p.name.removesuffix("_out")] or self.args["x"]
                   for p in self.kernel.outputs if p.name != "y"} | (
                {"y": self.args["x"]} if any(p.name == "y" for p in self.kernel.outputs) else {})  # fmt: skip
        self._eager.emit(self.kernel, self.args, self.attrs, out)
        self._call = self._eager.calls[0]

    def __getitem__(self, port: str) -> np.ndarray:
        found: np.ndarray = self._call.results[port].array
        return found

    def gradients(self, **upstream: Any) -> dict[str, np.ndarray]:
        """Gradients of all inputs from those of the outputs, by port."""
        dy = {p.name: value(upstream.get(p.name)) for p in self.kernel.outputs}
        node = SimpleNamespace(args=self.args, results=self._call.results, attrs=self._call.attrs)
        found = self.op.grad(self._eager, node, dy)
        return {k: v.array for k, v in found.items() if v is not None}


def check_case(case: Mapping[str, Any], rtol: float = 1e-5) -> None:
    """A golden case: outputs, and gradients where it has an upstream gradient (of the first output)."""
    bench = OpBench(case["op"], case["args"], case["attrs"])
    for port, wanted in case["out"].items():
        check_close(bench[port], wanted, rtol, port)
    if "upstream" in case:
        first = bench.kernel.outputs[0].name
        found = bench.gradients(**{first: case["upstream"]})
        for port, wanted in case["grads"].items():
            check_close(found[port], wanted, rtol, f"gradient of {port}")


def check_close(found: np.ndarray, wanted: Any, rtol: float = 1e-5, what: str = "") -> None:
    """Equal shapes, and values to ``rtol`` of themselves or of a tenth of the largest."""
    array = np.array(wanted, np.float64)
    assert found.shape == array.shape, what
    floor = 0.1 * rtol * float(np.abs(array).max(initial=0.0))
    np.testing.assert_allclose(found, array, rtol=rtol, atol=floor, err_msg=what)
