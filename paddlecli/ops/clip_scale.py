"""The factor that brings a norm down to a limit: limit / max(limit, norm), element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample
from paddlecli.ops.spec import Spec


class ClipScale(Op):
    """Exactly 1 at or below the limit; NaN stays NaN."""

    name: ClassVar[str] = "clip_scale"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "clip_scale.forward(norm: f32; limit: float) -> (factor: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        return {"factor": args["norm"]}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        return {"factor": attrs["limit"] / np.maximum(attrs["limit"], args["norm"])}

    def samples(self) -> Sequence[Sample]:
        return [Sample({"norm": Arg((n,), low=0.0, high=3.0)}, {"limit": 1.5}) for n in (1, 17, 0)]


OP = ClipScale()
