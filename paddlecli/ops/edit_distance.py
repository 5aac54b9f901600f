"""edit_distance: Levenshtein's distance of token sequences. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integers
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import Dim, Spec, product

MOST_IGNORED = 32
"""Ids that can be ignored."""


class EditDistance(Op):
    """y [sequences, 1] = the fewest insertions, deletions and substitutions that turn a hypothesis
    into its reference; over the reference's length where ``normalized`` (an empty reference is an
    error then).

    hyps and refs i64: packed [T] or [T, 1] on an axis each, or rows [N, L]; ``hyps_length`` and
    ``refs_length`` [N] say how many tokens count from the start. Ids in ``ignored`` are taken out
    first.
    """

    name = "edit_distance"
    forward = Kernel(
        "edit_distance.forward(hyps: i64, refs: i64, hyps_length?: i64, refs_length?: i64; normalized: bool, "
        "ignored: list) -> (y: f32, work: i64)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"normalized": True, "ignored": ()}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        hyps, refs = args["hyps"], args["refs"]
        rows = [self._rows(k, args[k], args[f"{k}_length"]) for k in ("hyps", "refs")]
        check(rows[0] == rows[1], self.name, f"hyps are {hyps}, refs are {refs}")
        check(
            len(integers(attrs, "ignored")) <= MOST_IGNORED,
            self.name,
            f"{len(integers(attrs, 'ignored'))} ignored ids, at most {MOST_IGNORED}",
        )
        parent = None if refs.axis is None else refs.axis.parent
        work = 2 * product(refs.shape) + rows[1]
        return {"y": Spec((rows[0], Dim(1)), "f32", parent), "work": Spec((work,), "i64")}

    def _rows(self, name: str, ids: Spec, length: Spec | None) -> Dim:
        """How many sequences there are."""
        if ids.axis is None:
            known = ids.ndim >= 2 and product(ids.shape[1:]).known
            check(known, self.name, f"{name} are {ids}; [N, tokens] or a ragged axis is needed")
        else:
            one = product(ids.shape) == ids.axis.total
            check(one, self.name, f"{name} are {ids}; one id for each token is needed")
        rows = ids.shape[0] if ids.axis is None else ids.axis.sequences
        fits = length is None or product(length.shape) == rows
        check(fits, self.name, f"{name} are {ids}, their lengths {length}")
        return rows

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """None."""
        return {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """By the recursion on prefixes."""
        import numpy as np

        hyps, refs = (
            self._kept(args[k], args[f"{k}_length"], integers(attrs, "ignored"))
            for k in ("hyps", "refs")
        )
        found = np.array([_distance(a, b) for a, b in zip(hyps, refs, strict=True)], np.float64)
        if attrs["normalized"]:
            lengths = np.array([len(ref) for ref in refs], np.float64)
            return {"y": (found / lengths).reshape(-1, 1)}
        return {"y": found.reshape(-1, 1)}

    def _kept(self, ids: Any, length: Any, ignored: Sequence[int]) -> list[list[int]]:
        """The tokens that count, for each sequence."""
        if isinstance(ids, Ragged):
            values, edges = ids.values.reshape(-1).tolist(), ids.offsets.tolist()
            rows = [values[a:b] for a, b in pairwise(edges)]
        else:
            rows = [row.reshape(-1).tolist() for row in ids]
        if length is not None:
            rows = [r[:n] for r, n in zip(rows, length.reshape(-1).tolist(), strict=True)]
        return [[i for i in r if i not in ignored] for r in rows]

    def samples(self) -> Sequence[Sample]:
        """Two axes, rows, rows of given lengths, ignored ids; few different ids."""

        def ids(*shape: int | str) -> Arg:
            return Arg(shape, "i64", low=0, high=2)

        def lengths(low: int, high: int) -> Arg:
            return Arg(("N",), "i64", low=low, high=high)

        plain: dict[str, Attr] = {"normalized": False, "ignored": ()}
        cut = {"hyps_length": lengths(0, 5), "refs_length": lengths(1, 4)}
        packed = {"hyps": ids("h"), "refs": ids("r", 1)}
        rows = {"hyps": ids("N", 5), "refs": ids("N", 4)}
        return [
            Sample(packed, plain, axes=("h", "r")),
            Sample(packed, {**plain, "ignored": (0, 2)}, axes=("h", "r")),
            Sample(rows, {**plain, "normalized": True}),
            Sample({**rows, **cut}, {**plain, "normalized": True}),
            Sample(
                {"hyps": ids("N", 7), "refs": ids("r")}, {**plain, "ignored": (1,)}, axes=("r",)
            ),
        ]


def _distance(hyp: Sequence[int], ref: Sequence[int]) -> int:
    row = list(range(len(ref) + 1))
    for i, token in enumerate(hyp):
        above, row = row, [i + 1]
        for j, wanted in enumerate(ref):
            row.append(min(above[j] + (token != wanted), above[j + 1] + 1, row[j] + 1))
    return row[-1]


OP = EditDistance()
