"""tree_path: the inner nodes of a complete binary tree on the way to a class, and the turns taken there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec, product

MISSING = -100.0
"""The bit of a level that a short path lacks: what sigmoid_cross_entropy ignores."""


def depth(classes: int) -> int:
    """Levels of the longest path."""
    return (2 * classes - 1).bit_length() - 1


class TreePath(Op):
    """For label i64 [N] or [N, 1] of ``classes``: ids i64 [N, depth], the nodes (0 .. classes - 2), and bits f32
    [N, depth].

    With v = label + classes, level l is node ``(v >> (l + 1)) - 1`` and bit ``(v >> l) & 1``, from the leaf up, as in
    the original. A path that is shorter than the deepest has -1 and -100 behind it.
    """

    name = "tree_path"
    forward = Kernel(
        "tree_path.forward(label: i64; classes: int) -> (ids: i64, bits: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[N, depth] both."""
        label, classes = args["label"], integer(attrs, "classes")
        one = label.ndim > 0 and product(label.shape) == label.shape[0]
        check(one, self.name, f"label {label} is not one class a row")
        check(classes > 1, self.name, f"{classes} classes, at least 2 are needed")
        found = (label.shape[0], Dim(depth(classes)))
        return {"ids": Spec(found, "i64", label.axis), "bits": Spec(found, "f32", label.axis)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Shifts."""
        import numpy as np

        classes = integer(attrs, "classes")
        v = values_of(args["label"]).reshape(-1, 1).astype(np.int64) + classes
        level = np.arange(depth(classes))
        there = v >> (level + 1) > 0
        bits = np.where(there, (v >> level) & 1, MISSING)
        return {"ids": (v >> (level + 1)) - 1, "bits": bits}

    def samples(self) -> Sequence[Sample]:
        """Full and ragged trees."""

        def case(classes: int, *shape: int) -> Sample:
            label = Arg(("N", *shape), "i64", 0, classes - 1)
            return Sample({"label": label}, {"classes": classes})

        return [case(2), case(8, 1), case(6), case(1000, 1)]


OP = TreePath()
