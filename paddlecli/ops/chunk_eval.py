"""chunk_eval: precision, recall and F1 of the chunks in tag sequences. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import integer, integers
from paddlecli.ops._metric import NAN, MetricOp
from paddlecli.ops.base import Arg, Attr, Kernel, Ragged, Sample, check
from paddlecli.ops.spec import Spec, product

if TYPE_CHECKING:
    import numpy as np

SCHEMES: dict[str, tuple[str, ...]] = {
    "IOB": ("begin", "inside"),
    "IOE": ("inside", "end"),
    "IOBES": ("begin", "inside", "end", "single"),
    "plain": ("",),
}
"""The tags of one chunk type, in order; the attribute ``scheme`` counts the keys."""
MOST_EXCLUDED = 32
"""Types that can be left out."""


def tags_of(scheme: int) -> tuple[str, ...]:
    """The tags of a scheme by its number."""
    return tuple(SCHEMES.values())[scheme]


class ChunkEval(MetricOp):
    """inference and label i64 [T] or [T, 1] on one ragged axis; state: chunks inferred, labelled,
    correct.

    A tag is type * (tags of the scheme) + position in the scheme; types * tags is outside of every
    chunk. A chunk is correct where type, first and last token are. Types in ``excluded`` do not
    count.
    """

    name = "chunk_eval"
    forward = Kernel(
        "chunk_eval.forward(inference: i64, label: i64, state: i64; chunk_types: int, scheme: int, excluded: list) -> "
        "(state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"excluded": ()}

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (3,)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """NaN where there is no chunk on either side; 0 where only one side has chunks."""
        inferred, labelled, correct = (int(s) for s in state)
        if not inferred and not labelled:
            return dict.fromkeys(("precision", "recall", "f1"), NAN)
        return {
            "precision": correct / inferred if inferred else 0.0,
            "recall": correct / labelled if labelled else 0.0,
            "f1": 2 * correct / (inferred + labelled),
        }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        inference, label = args["inference"], args["label"]
        check(
            inference.axis is not None
            and inference.axis == label.axis
            and product(inference.shape) == product(label.shape) == inference.axis.total,
            self.name,
            f"inference is {inference}, label is {label}; one tag for each token of one axis is needed",
        )
        types, excluded = integer(attrs, "chunk_types"), integers(attrs, "excluded")
        check(types >= 1, self.name, f"chunk_types is {types}, must be at least 1")
        check(0 <= integer(attrs, "scheme") < len(SCHEMES), self.name, f"scheme {attrs['scheme']}")
        check(
            len(excluded) <= MOST_EXCLUDED and all(0 <= e < types for e in excluded),
            self.name,
            f"excluded is {list(excluded)}; at most {MOST_EXCLUDED} types, each 0 .. {types - 1}",
        )
        return super().shape(args, attrs)

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: Any
    ) -> dict[str, Any]:
        """The sets of chunks of each sequence, compared."""
        inference, label = args["inference"], args["label"]
        assert isinstance(inference, Ragged) and isinstance(label, Ragged)
        out = args["state"].copy()
        for a, b in zip(inference.offsets[:-1], inference.offsets[1:], strict=True):
            found, wanted = (
                self.chunks(t.values.reshape(-1)[a:b], attrs) for t in (inference, label)
            )
            out += [len(found), len(wanted), len(found & wanted)]
        return {"state_out": out}

    def chunks(self, tags: np.ndarray, attrs: Mapping[str, Attr]) -> set[tuple[int, int, int]]:
        """The chunks (first token, last token, type) of one sequence."""
        names = tags_of(integer(attrs, "scheme"))
        outside = integer(attrs, "chunk_types")
        found: list[list[int]] = []
        before = ("", outside)
        for t, value in enumerate(tags.tolist()):
            tag, kind = names[value % len(names)], value // len(names)
            within = kind == before[1] and not (
                tag in ("begin", "single") or before[0] in ("end", "single")
            )
            if kind != outside and within:
                found[-1][1] = t
            elif kind != outside:
                found.append([t, t, kind])
            before = (tag, kind)
        left_out = integers(attrs, "excluded")
        return {(a, b, kind) for a, b, kind in found if kind not in left_out}

    def samples(self) -> Sequence[Sample]:
        """Every scheme; tags that few differ in, so that chunks are often correct; columns."""
        state, found = Arg((3,), "i64", low=0, high=9), []
        for number, tags in enumerate(SCHEMES.values()):
            top = 2 * len(tags)
            both = {k: Arg(("s",), "i64", low=0, high=top) for k in ("inference", "label")}
            attrs: dict[str, Attr] = {"chunk_types": 2, "scheme": number, "excluded": ()}
            found.append(Sample({**both, "state": state}, attrs, axes=("s",)))
        few = {k: Arg(("s", 1), "i64", choices=(0, 2)) for k in ("inference", "label")}
        attrs = {"chunk_types": 3, "scheme": 0, "excluded": (1, 2)}
        return [*found, Sample({**few, "state": state}, attrs, axes=("s",))]


OP = ChunkEval()
