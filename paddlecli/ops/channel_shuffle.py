"""channel_shuffle: the channels of several groups interleaved. Zhang et al., "ShuffleNet", CVPR 2018."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class ChannelShuffle(Op):
    """Channel ``j * groups + i`` of y is channel ``i * (C / groups) + j`` of x [N, C, ...]: the first of each group, then the
    second of each, and so on. The gradient is a shuffle with C / groups."""

    name = "channel_shuffle"
    forward = Kernel("channel_shuffle.forward(x: f32; groups: int) -> (y: f32)", rowwise=True)

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """As x."""
        x, groups = args["x"], integer(attrs, "groups")
        fixed = x.ndim >= 2 and all(d.known for d in x.shape[1:])
        check(fixed, self.name, f"x is {x}; [N, channels, ...] is needed")
        channels = x.shape[1].coefficient
        fits = groups > 0 and channels % groups == 0
        check(fits, self.name, f"{channels} channels do not divide into {groups} groups")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Back to their places."""
        x = node.args["x"]
        each = x.spec.shape[1].coefficient // integer(node.attrs, "groups")
        return {"x": g.emit(self.forward, {"x": dy["y"]}, {"groups": each}, out={"y": x})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Two dimensions swapped."""
        x, groups = args["x"], integer(attrs, "groups")
        split = x.reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])
        return {"y": split.swapaxes(1, 2).reshape(x.shape)}

    def samples(self) -> Sequence[Sample]:
        """Groups from one to all channels; one pixel, none."""
        return [
            Sample({"x": Arg(("N", *shape))}, {"groups": groups})
            for groups, shape in (
                (3, (6, 4, 5)), (2, (8, 1, 1)), (1, (3, 2)), (4, (4, 3)), (5, (35,)),
            )
        ]  # fmt: skip


OP = ChannelShuffle()
