"""What metric ops share: an int64 state that only grows, and a ``finish`` that makes numbers of it.

Integers add up the same in any order, so a metric is exact over any cut into batches, threads and
ranks: states of parts are added element by element before ``finish``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Attr, Op, RandomKey, check
from paddlecli.ops.spec import Spec, product

if TYPE_CHECKING:
    import numpy as np

NAN = float("nan")


class MetricOp(Op):
    """``forward`` takes ``state`` i64 and gives ``state_out``, the same memory, with the batch's
    counts added."""

    differentiable: ClassVar[bool] = False
    usual: ClassVar[tuple[str, ...]] = ()
    """The values that are reported where none is named; all of them if empty."""

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        """Shape of the state."""
        raise NotImplementedError

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """The metric's values by name from the flat state; NaN where nothing was counted."""
        raise NotImplementedError

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        """What a batch adds to the state, in numpy."""
        raise NotImplementedError

    def report(
        self, name: str, state: Sequence[int], attrs: Mapping[str, Attr], values: Sequence[str] = ()
    ) -> dict[str, float]:
        """``values`` (the usual ones if empty) as they are reported: a single one under ``name``,
        several as ``name_<value>``."""
        found = self.finish(state, attrs)
        wanted = tuple(values) or self.usual or tuple(found)
        if len(wanted) == 1:
            return {name: found[wanted[0]]}
        return {f"{name}_{k}": found[k] for k in wanted}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        state, wanted = args["state"], Spec.of(*self.state_shape(attrs), dtype="i64")
        check(state == wanted, self.name, f"state is {state}, must be {wanted}")
        return {"state_out": state}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        plain: dict[str, Any] = {k: None if v is None else values_of(v) for k, v in args.items()}
        return {
            "state_out": plain["state"] + self.count(plain, attrs).reshape(plain["state"].shape)
        }


def ratio(part: int, whole: int) -> float:
    """part / whole, NaN where whole is 0."""
    return part / whole if whole else NAN


def check_labels(op: str, scores: Spec, label: Spec, classes: bool) -> None:
    """Labels [...] or [..., 1] for scores [..., classes]; binary scores [N], [N, 1] or [N, 2] for
    labels [N] or [N, 1]."""
    rows = scores.shape[:-1] if classes or scores.ndim > 1 else scores.shape
    labels = label.shape if len(label.shape) == len(rows) else label.shape[:-1]
    one = len(label.shape) == len(rows) or label.shape[-1].coefficient == 1
    check(labels == rows and one, op, f"label is {label}, scores are {scores}")
    if not classes:
        width = product(scores.shape[1:])
        check(
            width.known and width.coefficient in (1, 2),
            op,
            f"scores are {scores}; one or two a row are needed",
        )


def positive(scores: np.ndarray) -> np.ndarray:
    """The score of class 1: the last column."""
    column: np.ndarray = (
        scores.reshape(scores.shape[0], -1)[:, -1] if scores.size else scores.reshape(-1)
    )
    return column
