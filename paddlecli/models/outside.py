"""Metrics outside of the plan: Python that looks at what an evaluation gives, batch by batch.

For what cannot be counted by an op (text that is joined, a library's own measure). Registered as a
class, its keyword-only parameters are what the recipe may give, and `add` says which tensors it reads::

    @METRICS.register("median_error")
    class MedianError(PythonMetric):
        better = "min"

        def __init__(self) -> None:
            self.errors: list[float] = []

        def add(self, prediction: Any, label: Any) -> None:
            self.errors += abs(prediction - label).ravel().tolist()

        def result(self) -> float:
            return statistics.median(self.errors)

An evaluation makes an object of its own, feeds it every batch in order, and asks for the result. The
training step is not looked at: there is no `train.median_error`. The stored network keeps the tensors;
`evaluate` needs the code again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from paddlecli.graph.ir import Entry, Tensor
from paddlecli.models.network import Network

_PREFIX = "metric:"


class PythonMetric:
    """Base of such metrics.

    Attributes:
        better: whether more or less of it is better, for `checkpoint.monitor` and early stopping.
        values: names of its numbers where there are several, reported as `<name>_<value>`.
    """

    better: ClassVar[Literal["min", "max"] | None] = None
    values: ClassVar[tuple[str, ...]] = ()

    def add(self, *arrays: Any) -> None:
        """Takes a batch: an array [samples, ...] for each tensor; a list of arrays, one a sample, for
        a tensor on a ragged axis."""
        raise NotImplementedError

    def result(self) -> float | Mapping[str, float]:
        """The number, or one for each of `values`, of all batches."""
        raise NotImplementedError


def is_outside(function: Any) -> bool:
    """Whether what is registered as a metric is a class of this kind."""
    return isinstance(function, type) and issubclass(function, PythonMetric)


def reader_of(function: Any) -> Callable[..., Any]:
    """Whose positional parameters are the tensors that a metric reads: `add` of a class of this kind,
    or the function itself."""
    found: Callable[..., Any] = function.add if is_outside(function) else function
    return found


def record(net: Network, name: str, tensors: Sequence[Tensor]) -> None:
    """Makes an evaluation's entry give the tensors that a metric reads."""
    for index, tensor in enumerate(tensors):
        given = tensor if tensor.role == "value" else net.apply("copy", tensor)
        net.output(f"{_PREFIX}{index}:{name}", given)


def outputs(entry: Entry) -> dict[str, Tensor]:
    """The entry's outputs without those that metrics read."""
    return {k: t for k, t in entry.outputs.items() if not k.startswith(_PREFIX)}


def read(entry: Entry) -> dict[str, Tensor]:
    """Those of the entry's outputs that metrics read."""
    return {k: t for k, t in entry.outputs.items() if k.startswith(_PREFIX)}


def read_by(names: Iterable[str]) -> dict[str, list[str]]:
    """From the names of an entry's outputs: the outputs that each metric reads, in their order."""
    found: dict[str, list[str]] = {}
    for output in names:
        if output.startswith(_PREFIX):
            found.setdefault(output.split(":", 2)[2], []).append(output)
    return found
