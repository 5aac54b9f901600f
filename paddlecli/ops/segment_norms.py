"""The norm of each parameter's gradient in a flat range, for clipping by norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._optimizer import CHUNK
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class SegmentNorms(Op):
    """g [n], bounds [segments, 2] (offset, length), clips [segments] -> norm [segments], 0 where it
    is not to be clipped."""

    name: ClassVar[str] = "segment_norms"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "segment_norms.forward(g: f32, bounds: i64, clips: i32) -> (norm: f32, work: f64)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        bounds, clips = args["bounds"], args["clips"]
        check(bounds.shape[:1] == clips.shape, self.name, f"bounds is {bounds}, clips is {clips}")
        chunks = -(-args["g"].size.coefficient // CHUNK)
        return {
            "norm": clips.with_dtype("f32"),
            "work": Spec.of(chunks + bounds.shape[0].coefficient, dtype="f64"),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        g = np.asarray(args["g"], np.float64)
        each = [
            np.linalg.norm(g[a : a + n]) if c else 0.0
            for (a, n), c in zip(args["bounds"], args["clips"], strict=True)
        ]
        return {"norm": np.array(each, np.float64)}

    def samples(self) -> Sequence[Sample]:
        return [
            self._sample(40, (0, 6, 16, 13, 32, 0, 32, 7), (1, 0, 1, 1)),
            self._sample(9024, (0, 5001, 5008, 12, 5024, 4000), (1, 1, 1)),
            self._sample(0, (), ()),
        ]

    def _sample(self, n: int, bounds: Sequence[int], clips: Sequence[int]) -> Sample:
        pairs = Arg((len(clips), 2), "i64", values=tuple(map(float, bounds)))
        return Sample(
            {
                "g": Arg((n,)),
                "bounds": pairs,
                "clips": Arg((len(clips),), "i32", values=tuple(map(float, clips))),
            }
        )


OP = SegmentNorms()
