"""batch_norm: normalises each channel by the batch's statistics, or by given ones.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class BatchNorm(Op):
    """``y = act((x - mean)*rstd*w + b + z)`` per channel (axis 1) of x and z [N, C, ...]; w, b, mean,
    rstd [C]; z may be absent.

    ``forward`` takes mean and biased variance of the batch, ``inference`` given ones; ``again`` gives
        the bits of ``forward`` a second time, from its statistics.
    ``backward`` sees what the relu let pass in y where z was added; else x says so, and ``b`` stands
        for the relu.
    ``update_running`` moves the running statistics: ``running = momentum*running + (1 -
        momentum)*batch``; it is a kernel of its own so that a guard can stop it.
    ``fold`` writes ``inference`` of x + bias as x*scale + shift, for a convolution that ends so.
    ``activation``: 0 none, 1 relu.
    """

    name = "batch_norm"
    forward = Kernel(
        "batch_norm.forward(x: f32, w: f32, b: f32, z?: f32; epsilon: float, activation: int) -> "
        "(y: f32, mean: f32, rstd: f32)",
        inplace={"y": "x"},
    )
    again = Kernel(
        "batch_norm.again(x: f32, w: f32, b: f32, mean: f32, rstd: f32, z?: f32; epsilon: float, "
        "activation: int) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    inference = Kernel(
        "batch_norm.inference(x: f32, w: f32, b: f32, mean: f32, variance: f32, z?: f32; epsilon: float, "
        "activation: int) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "batch_norm.backward(x: f32, w: f32, mean: f32, rstd: f32, dy: f32, y?: f32, b?: f32; epsilon: float) -> "
        "(dx?: f32, dw?: f32, db?: f32)",
        inplace={"dx": "dy"},
    )
    backward_inference = Kernel(
        "batch_norm.backward_inference(x: f32, w: f32, mean: f32, variance: f32, dy: f32, y?: f32, b?: f32; "
        "epsilon: float) -> (dx?: f32, dw?: f32, db?: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    update_running = Kernel(
        "batch_norm.update_running(mean: f32, variance: f32, batch_mean: f32, batch_rstd: f32; momentum: float, "
        "epsilon: float) -> (mean_out: f32, variance_out: f32)",
        inplace={"mean_out": "mean", "variance_out": "variance"},
        updates=True,
    )
    fold = Kernel(
        "batch_norm.fold(w: f32, b: f32, mean: f32, variance: f32, bias?: f32; epsilon: float) -> "
        "(scale: f32, shift: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"epsilon": 1e-5, "activation": 0, "momentum": 0.9}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, w, b = args["x"], args["w"], args["b"]
        check(
            x.ndim >= 2 and all(d.known for d in x.shape[1:]),
            self.name,
            f"x is {x}; [N, channels, ...] is needed",
        )
        channels = x.shape[1:2]
        check(
            w.shape == channels and b.shape == channels,
            self.name,
            f"w is {w}, b is {b}, x has {channels[0]} channels",
        )
        z = args.get("z")
        check(z is None or z.shape == x.shape, self.name, f"z is {z}, x is {x}")
        check(
            attrs["activation"] in (0, 1),
            self.name,
            f"activation {attrs['activation']} is not 0 (none) or 1 (relu)",
        )
        return {"y": x, "mean": Spec(channels), "rstd": Spec(channels)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Of ``forward`` and of ``inference``: the latter's statistics are constants."""
        from paddlecli import ops

        ports, given = ("x", "w", "b"), node.args.get("mean") is not None
        dz, masked = dy["y"], node.args.get("z") is not None
        if masked and node.attrs["activation"]:
            relu: Any = ops.get("relu")
            dz = g.emit(relu.backward, {"y": node.results["y"], "dy": dz}, out={"dx": dz})
        beside = {"z": dz} if masked and g.needs("z") else {}
        if not any(g.needs(p) for p in ports):
            return beside
        args = {"x": node.args["x"], "w": node.args["w"], "dy": dz}
        relu_alone = node.attrs["activation"] and not masked
        args |= {"y": None, "b": node.args["b"] if relu_alone else None}
        if given:
            args |= {"mean": node.args["mean"], "variance": node.args["variance"]}
        else:
            args |= {"mean": node.results["mean"], "rstd": node.results["rstd"]}
        kernel = self.backward_inference if given else self.backward
        out: dict[str, Any] = {f"d{p}": node.args[p] if g.needs(p) else None for p in ports}
        found = g.emit(kernel, args, {"epsilon": node.attrs["epsilon"]}, out=out)
        return beside | {p: d for p, d in zip(ports, found, strict=True) if d is not None}

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any] | None:
        """Normalisation, then what is added, then relu."""
        z, args = node.args.get("z"), [node.args[p] for p in ("x", "w", "b")]
        if not node.attrs["activation"] and z is None:
            return None
        y, mean, rstd = g.apply(self.name, *args, None, epsilon=node.attrs["epsilon"], activation=0)
        y = y if z is None else g.apply("add", y, z, axis=-1)
        return {
            "y": g.apply("relu", y) if node.attrs["activation"] else y,
            "mean": mean,
            "rstd": rstd,
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, w, b, epsilon = args["x"], args["w"], args["b"], number(attrs, "epsilon")
        axes = (0, *range(2, x.ndim))
        empty = x.size == 0
        mean = np.zeros(x.shape[1]) if empty else x.mean(axis=axes)
        variance = np.zeros(x.shape[1]) if empty else x.var(axis=axes)
        rstd = 1 / np.sqrt(variance + epsilon)
        wide = (-1, *[1] * (x.ndim - 2))
        y = (x - mean.reshape(wide)) * (rstd * w).reshape(wide) + b.reshape(wide)
        y = y if args.get("z") is None else y + args["z"]
        return {"y": np.maximum(y, 0) if attrs["activation"] else y, "mean": mean, "rstd": rstd}

    def samples(self) -> Sequence[Sample]:
        """Columns and planes, below and above sixteen; the relu is kept from its kink by a large
        shift."""

        def case(
            *shape: int, activation: int = 0, epsilon: float = 1e-5, z: bool = False
        ) -> Sample:
            c, shift = (
                shape[0],
                Arg((shape[0],), choices=(-9.0, 9.0)) if activation else Arg((shape[0],)),
            )
            args = {
                "x": Arg(("N", *shape), low=-2, high=3),
                "w": Arg((c,), low=0.5, high=1.5),
                "b": shift,
            } | ({"z": Arg(("N", *shape))} if z else {})
            # A batch of one row has a variance of 0, where float32 and central differences part.
            return Sample(
                args,
                {"epsilon": epsilon, "activation": activation},
                tolerance=1e-5,
                grad_tolerance=1e-3,
            )

        return [
            case(4, 2, 3),
            case(3, epsilon=1e-2),
            case(19, epsilon=1e-2),
            case(2, 5, 7),
            case(3, 4, 4, activation=1),
            case(5, epsilon=1e-2, activation=1),
            case(2, 1, 1, epsilon=1e-2),
            case(3, 2, 5, activation=1, z=True),
            case(5, epsilon=1e-2, z=True),
        ]


OP = BatchNorm()
