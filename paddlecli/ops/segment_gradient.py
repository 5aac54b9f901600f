"""The gradient that a composed optimizer's rule sees: clipped and regularised, parameter by
parameter over a flat range, as the built-in optimizers do it inside their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class SegmentGradient(Op):
    """p, g [n]; scale (from clipping by norm) [1] or [segments]; bounds [segments, 2]; l2, l1, clips
    [segments] -> d [n], 0 outside the segments. ``clip_value`` 0 clips no value."""

    name: ClassVar[str] = "segment_gradient"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "segment_gradient.forward(p: f32, g: f32, scale?: f32, bounds: i64, l2: f32, l1: f32, "
        "clips: i32; clip_value: float) -> (d: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        p, g = args["p"], args["g"]
        check(p.shape == g.shape, self.name, f"p is {p}, g is {g}")
        for name in ("l2", "l1", "clips"):
            fits = args[name].shape == args["bounds"].shape[:1]
            check(fits, self.name, f"{name} is {args[name]}, bounds is {args['bounds']}")
        return {"d": g}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        p, g = args["p"], args["g"]
        d = np.zeros_like(p)
        limit = number(attrs, "clip_value") or np.inf
        for s, (first, length) in enumerate(args["bounds"].astype(int)):
            at = slice(first, first + length)
            own = g[at]
            if args["clips"][s]:
                scale = args.get("scale")
                own = own * (1.0 if scale is None else scale[s if len(scale) > 1 else 0])
                own = np.clip(own, -limit, limit)
            d[at] = own + args["l2"][s] * p[at] + args["l1"][s] * np.sign(p[at])
        return {"d": d}

    def samples(self) -> Sequence[Sample]:
        three = ((0, 6), (16, 13), (32, 7))
        return [
            self._sample(40, three, (1, 0, 1), (), 0.0),
            self._sample(40, three, (1, 1, 0), (0.5,), 0.3),
            self._sample(9024, ((0, 5001), (5024, 4000)), (1, 1), (0.5, 2.0), 0.9),
            self._sample(0, (), (), (), 0.0),
        ]

    def _sample(
        self,
        n: int,
        bounds: Sequence[tuple[int, int]],
        clips: Sequence[int],
        scale: tuple[float, ...],
        clip_value: float,
    ) -> Sample:
        count = len(bounds)
        args = {"p": Arg((n,)), "g": Arg((n,))}
        if scale:
            args["scale"] = Arg((len(scale),), values=scale)
        flat = tuple(float(x) for pair in bounds for x in pair)
        args["bounds"] = Arg((count, 2), "i64", values=flat)
        args["l2"] = Arg((count,), values=(0.1, 0.0, 0.25)[:count])
        args["l1"] = Arg((count,), values=(0.0, 0.2, 0.0)[:count])
        args["clips"] = Arg((count,), "i32", values=tuple(map(float, clips)))
        return Sample(args, {"clip_value": clip_value})


OP = SegmentGradient()
