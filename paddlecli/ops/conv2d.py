"""conv2d: two-dimensional convolution of NCHW images, with bias and activation in the same pass.
After PaddlePaddle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._window import four, image, output_size, two, windows_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    Sample,
    Shape,
    check,
)
from paddlecli.ops.fc import ACTIVATIONS
from paddlecli.ops.spec import Spec

_ATTRS = "stride: list, padding: list, dilation: list, groups: int"


class Conv2d(Op):
    """``y = act(conv(x, w)*scale + b + z)``: x [N, C, H, W], w [out, C/groups, kh, kw], b and scale
    [out], z and y [N, out, H', W']; b, scale and z may be absent.

    ``padding``: two numbers (height, width) or four (top, bottom, left, right). H' is
    ``(H + pads - dilation*(kh - 1) - 1) // stride + 1``. ``activation`` is an index into
    :data:`fc.ACTIVATIONS`.
    """

    name = "conv2d"
    version = 3
    forward = Kernel(
        f"conv2d.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; {_ATTRS}, activation: int)"
        " -> (y: f32)",
        rowwise=True,
    )
    backward_x = Kernel(f"conv2d.backward_x(dy: f32, w: f32; {_ATTRS}) -> (dx: f32)", rowwise=True)
    backward_w = Kernel(f"conv2d.backward_w(x: f32, dy: f32; {_ATTRS}) -> (dw: f32)", rowwise=True)
    backward_b = Kernel("conv2d.backward_b(dy: f32) -> (db: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "activation": 0,
    }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, w, b, groups = args["x"], args["w"], args.get("b"), attrs["groups"]
        channels, height, width = image(self.name, x)
        check(
            w.ndim == 4 and all(d.known and d.coefficient > 0 for d in w.shape),
            self.name,
            f"w is {w}; [out, channels/groups, kh, kw] is needed",
        )
        out, share, kh, kw = (d.coefficient for d in w.shape)
        check(
            isinstance(groups, int)
            and groups >= 1
            and share * groups == channels
            and out % groups == 0,
            self.name,
            f"w is {w}, x {x} has {channels} channels, groups are {groups}",
        )
        for name, each in (("b", b), ("scale", args.get("scale"))):
            text = f"{name} is {each}, w has {out} filters"
            check(each is None or each.shape == w.shape[:1], self.name, text)
        check(
            attrs["activation"] in range(len(ACTIVATIONS)),
            self.name,
            f"activation {attrs['activation']} is unknown",
        )
        stride, dilation = two(attrs, "stride", self.name), two(attrs, "dilation", self.name)
        top, bottom, left, right = four(attrs, self.name)
        oh = output_size(height, kh, stride[0], top, bottom, dilation[0])
        ow = output_size(width, kw, stride[1], left, right, dilation[1])
        check(
            oh > 0 and ow > 0,
            self.name,
            f"a {kh}x{kw} filter does not fit into {height}x{width} with these paddings",
        )
        y, z = x.with_shape(x.shape[0], out, oh, ow), args.get("z")
        check(z is None or z.shape == y.shape, self.name, f"z is {z}, y {y}")
        return {"y": y}

    def room(self, kernel: Kernel, x: Spec, w: Spec, y: Spec) -> dict[str, Spec]:
        """The scratch outputs of a kernel; x, w, y are the shapes of the forward pass."""
        return {}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        from paddlecli import ops

        x, w, dz = node.args["x"], node.args["w"], dy["y"]
        if node.attrs["activation"]:
            act: Any = ops.get(ACTIVATIONS[integer(node.attrs, "activation")])
            dz = g.emit(act.backward, {"y": node.results["y"], "dy": dz}, out={"dx": dz})
        attrs = {name: node.attrs[name] for name, _ in self.backward_x.attrs}
        found = {p: dz for p in ("z",) if node.args.get(p) is not None and g.needs(p)}
        if node.args["b"] is not None and g.needs("b"):
            found["b"] = g.emit(Conv2d.backward_b, {"dy": dz}, out={"db": node.args["b"]})
        scale = node.args.get("scale")
        if scale is not None:
            if g.needs("scale"):
                sums = g.apply(self.name, x, w, None, None, None, **attrs, activation=0)
                add: Any = ops.get("add")
                found["scale"] = g.emit(
                    add.reduce, {"dz": g.apply("mul", dz, sums, axis=-1)}, {"axis": 1, "scale": 1.0}, out={"d": scale}
                )  # fmt: skip
            dz = g.apply("mul", dz, scale, axis=1)
        if g.needs("w"):  # first: where nobody reads x later, dx may lie on it
            room = self.room(self.backward_w, x.spec, w.spec, dz.spec)
            found["w"] = g.emit(self.backward_w, {"x": x, "dy": dz}, attrs, out={"dw": w, **room})
        if g.needs("x"):
            room = self.room(self.backward_x, x.spec, w.spec, dz.spec)
            found["x"] = g.emit(self.backward_x, {"dy": dz, "w": w}, attrs, out={"dx": x, **room})
        return found

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any] | None:
        """Convolution, scale, bias, what is added, activation."""
        plain: dict[str, Attr] = {**node.attrs, "activation": 0}
        b, scale, z = (node.args.get(p) for p in ("b", "scale", "z"))
        if b is scale is z is None and not node.attrs["activation"]:
            return None
        y = g.apply(self.name, node.args["x"], node.args["w"], None, None, None, **plain)
        y = y if scale is None else g.apply("mul", y, scale, axis=1)
        y = y if b is None else g.apply("bias", y, b, axis=1)
        y = y if z is None else g.apply("add", y, z, axis=-1)
        activation = ACTIVATIONS[integer(node.attrs, "activation")]
        return {"y": y if activation == "none" else g.apply(activation, y)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, w, b, groups = args["x"], args["w"], args.get("b"), integer(attrs, "groups")
        (top, bottom, left, right), size = four(attrs, self.name), (w.shape[2], w.shape[3])
        stride, dilation = two(attrs, "stride", self.name), two(attrs, "dilation", self.name)
        out = (
            output_size(x.shape[2], size[0], stride[0], top, bottom, dilation[0]),
            output_size(x.shape[3], size[1], stride[1], left, right, dilation[1]),
        )
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        seen = windows_of(padded, size, stride, dilation, out)
        n, c = x.shape[:2]
        seen = seen.reshape(n, groups, c // groups, *out, *size)
        filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        z = np.einsum("ngchwij,gocij->ngohw", seen, filters).reshape(n, w.shape[0], *out)
        z = z if args.get("scale") is None else z * args["scale"][:, None, None]
        z = z if b is None else z + b[:, None, None]
        z = z if args.get("z") is None else z + args["z"]
        act = (lambda v: v, lambda v: np.maximum(v, 0), np.tanh, lambda v: 1 / (1 + np.exp(-v)))
        return {"y": act[integer(attrs, "activation")](z)}

    def samples(self) -> Sequence[Sample]:
        """Odd sizes, groups, dilation, four paddings, every activation, one-pixel images."""
        case = self.case
        return [
            case((3, 7, 8), (4, 3, 3, 2), stride=(3, 3), padding=(1, 0)),
            case((2, 8, 7), (3, 2, 3, 3), stride=(2, 1), padding=(2, 1), dilation=(2, 2)),
            case((4, 5, 4), (6, 2, 3, 3), bias=True, groups=2),
            case((4, 1, 1), (2, 4, 3, 3), bias=True, padding=(1, 1)),
            case((2, 4, 5), (2, 2, 3, 3), padding=(0, 2, 1, 0), stride=(2, 2)),
            case((3, 5, 4), (2, 3, 1, 1), stride=(2, 3)),
            case((3, 5, 4), (6, 1, 3, 3), groups=3, padding=(1, 1), activation=2),
            case(
                (5, 7, 21), (5, 1, 3, 3), bias=True, groups=5, padding=(0, 2, 1, 0), stride=(2, 2)
            ),
            case((2, 8, 9), (4, 1, 5, 2), groups=2, padding=(1, 2), dilation=(2, 1), stride=(3, 1)),
            case((2, 5, 35), (2, 1, 3, 3), bias=True, groups=2, padding=(1, 1)),
            case((2, 6, 70), (2, 1, 3, 3), groups=2, padding=(1, 1), stride=(2, 2), activation=1),
            case((3, 5, 70), (4, 3, 3, 3), padding=(1, 1), stride=(2, 2)),
            case((1, 9, 20), (5, 1, 5, 5), bias=True, activation=3),
            case((2, 6, 19), (17, 2, 2, 2), bias=True, low=0.1, activation=1),
            case((3, 5, 4), (6, 3, 2, 2), True, activation=2, z=(6, 4, 3)),
            case((3, 5, 4), (3, 1, 3, 3), groups=3, padding=(1, 1), z=(3, 5, 4)),
        ]

    def case(
        self,
        x: tuple[int, int, int],
        w: tuple[int, int, int, int],
        bias: bool = False,
        low: float = -1,
        tolerance: float = 2e-6,
        z: tuple[int, ...] = (),
        **attrs: Attr,
    ) -> Sample:
        """A sample of these shapes; with ``z`` also with a scale."""
        args = {"x": Arg(("N", *x), low=low), "w": Arg(w, low=low)}
        args |= {"b": Arg((w[0],))} if bias else {}
        args |= {"scale": Arg((w[0],)), "z": Arg(("N", *z))} if z else {}
        return Sample(args, {**self.defaults, **attrs}, tolerance=tolerance)

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*(channels/groups)*kh*kw for each element of y or dy; the bias gradient multiplies
        nothing. Cells that lie on the padding count, as in the literature."""
        if kernel is Conv2d.backward_b:
            return 0
        w = shapes["w"] if "w" in shapes else shapes["dw"]
        return 2 * math.prod(w[1:]) * math.prod(shapes["y"] if "y" in shapes else shapes["dy"])


OP = Conv2d()
