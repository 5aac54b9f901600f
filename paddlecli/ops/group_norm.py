"""group_norm: each group of channels of a sample normalised by its own mean and variance.

Wu and He, "Group Normalization", ECCV 2018; with one channel a group it is instance norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops._row_norm import RowNorm, kernels_of
from paddlecli.ops.base import Arg, Attr, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class GroupNorm(RowNorm):
    """``y = (x - mean) * rstd * w + b`` of x [N, C, ...], whose C channels are cut into ``groups``.

    w, b [C] or none. mean and rstd [N, groups], of the biased variance plus ``epsilon``.
    """

    name = "group_norm"
    cut = "groups"
    forward, backward_x, backward_w = kernels_of(name, cut)
    defaults: ClassVar[Mapping[str, Attr]] = {"epsilon": 1e-5}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x, and one element for each group of a sample."""
        x, groups = args["x"], integer(attrs, "groups")
        fixed = x.ndim >= 2 and all(d.known for d in x.shape[1:])
        check(fixed, self.name, f"x is {x}; [N, channels, ...] is needed")
        channels = x.shape[1].coefficient
        fits = groups > 0 and channels % groups == 0
        check(fits, self.name, f"{channels} channels do not divide into {groups} groups")
        self.check_weights(args, x.shape[1])
        each = Spec.of(x.shape[0], groups)
        return {"y": x, "mean": each, "rstd": each}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """By the definition."""
        import numpy as np

        x, groups = args["x"], integer(attrs, "groups")
        rows = x.reshape(len(x), groups, int(np.prod(x.shape[1:])) // groups)
        mean = rows.mean(axis=2)
        rstd = 1 / np.sqrt(rows.var(axis=2) + number(attrs, "epsilon"))
        y = ((rows - mean[:, :, None]) * rstd[:, :, None]).reshape(x.shape)
        wide = (-1, *[1] * (x.ndim - 2))
        if args.get("w") is not None:
            y = y * args["w"].reshape(wide)
        if args.get("b") is not None:
            y = y + args["b"].reshape(wide)
        return {"y": y, "mean": mean, "rstd": rstd}

    def samples(self) -> Sequence[Sample]:
        """One group, several, one channel each; planes above and below sixteen, one pixel, none."""

        def case(groups: int, *shape: int, w: bool = True, b: bool = True) -> Sample:
            args = {"x": Arg(("N", *shape), low=-2, high=3)}
            args |= {"w": Arg(shape[:1], low=0.5, high=1.5)} if w else {}
            args |= {"b": Arg(shape[:1])} if b else {}
            attrs: dict[str, Attr] = {"groups": groups, "epsilon": 1e-2}
            return Sample(args, attrs, tolerance=1e-5, grad_tolerance=1e-3)

        return [
            case(3, 6, 3, 2),
            case(1, 4, 5, 7),
            case(5, 5, 4, 5, b=False),
            case(2, 6, w=False),
            case(4, 4, 1, 1, w=False, b=False),
            case(2, 38, 1, 1),
        ]


OP = GroupNorm()
