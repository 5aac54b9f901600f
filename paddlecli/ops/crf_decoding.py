"""crf_decoding: the most likely tag sequence of a linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample
from paddlecli.ops.linear_chain_crf import check_chain
from paddlecli.ops.spec import Spec


class CrfDecoding(Op):
    """path [T] i64: the tags of the largest score (see linear_chain_crf); of equal ones the smaller tag. With label [T] it
    is 1 where the decoded tag is right and 0 where it is not, as in the original."""

    name = "crf_decoding"
    forward = Kernel(
        "crf_decoding.forward(emission: f32, transition: f32, label?: i64)"
        " -> (path: i64, work_from: i32, work_best: f32)"
    )
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T]."""
        x = args["emission"]
        check_chain(self.name, x, args["transition"])
        return {
            "path": Spec((x.shape[0],), "i64", x.axis),
            "work_from": Spec(x.shape, "i32"),
            "work_best": Spec(x.shape),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Viterbi, sequence by sequence."""
        import numpy as np

        x, offsets, w = args["emission"].values, args["emission"].offsets, args["transition"]
        path = np.zeros(len(x), np.int64)
        for first, last in pairwise(offsets):
            best, came = np.zeros(0), []
            for t in range(first, last):
                scores = w[:1] if t == first else best[:, None] + w[2:]
                came.append(scores.argmax(axis=0))
                best = scores.max(axis=0) + x[t]
            tag = int((best + w[1]).argmax()) if last > first else 0
            for t in reversed(range(first, last)):
                path[t] = tag
                tag = int(came[t - first][tag])
        if args.get("label") is not None:
            path = (path == values_of(args["label"]).reshape(-1)).astype(np.int64)
        return {"path": Ragged(path, offsets)}

    def samples(self) -> Sequence[Sample]:
        """One tag, few, many; with labels."""

        def case(tags: int, label: bool) -> Sample:
            args = {"emission": Arg(("s", tags)), "transition": Arg((tags + 2, tags))}
            return Sample(
                args | ({"label": Arg(("s",), "i64", 0, tags - 1)} if label else {}), axes=("s",)
            )

        return [case(1, False), case(3, False), case(19, False), case(4, True)]


OP = CrfDecoding()
