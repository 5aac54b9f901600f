"""layer_norm: each row normalised by its own mean and variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops._row_norm import RowNorm, kernels_of
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample, check
from paddlecli.ops.spec import Spec, product


class LayerNorm(RowNorm):
    """``y = (x - mean) * rstd * w + b`` over dimensions ``begin`` and behind of x; those before it are the rows.

    w, b: one number for each element of a row, or none. mean and rstd [rows], of the biased variance plus ``epsilon``.
    """

    name = "layer_norm"
    cut = "begin"
    forward, backward_x, backward_w = kernels_of(name, cut)
    defaults: ClassVar[Mapping[str, Attr]] = {"begin": 1, "epsilon": 1e-5}

    def is_rowwise(self, kernel: Kernel, attrs: Mapping[str, Attr]) -> bool:
        """Where mean has one element for each row of x."""
        return integer(attrs, "begin") == 1

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x, and one element a row."""
        x, begin = args["x"], integer(attrs, "begin")
        check(0 < begin < x.ndim, self.name, f"begin {begin} of x {x}")
        size = product(x.shape[begin:])
        check(size.known, self.name, f"the rows of x {x} from dimension {begin} on are not fixed")
        self.check_weights(args, size)
        rows = Spec((product(x.shape[:begin]),))
        return {"y": x, "mean": rows, "rstd": rows}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """By the definition."""
        import numpy as np

        x, begin = values_of(args["x"]), integer(attrs, "begin")
        axes = tuple(range(begin, x.ndim))
        mean = x.mean(axis=axes, keepdims=True)
        rstd = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + number(attrs, "epsilon"))
        y = (x - mean) * rstd
        if args.get("w") is not None:
            y = y * args["w"].reshape(x.shape[begin:])
        if args.get("b") is not None:
            y = y + args["b"].reshape(x.shape[begin:])
        return {"y": like(args["x"], y), "mean": mean.reshape(-1), "rstd": rstd.reshape(-1)}

    def samples(self) -> Sequence[Sample]:
        """Rows below and above sixteen, several dimensions, packed rows; with and without w and b."""

        def case(
            *shape: int | str, size: int, w: bool = True, b: bool = True, begin: int = 1
        ) -> Sample:
            args = {"x": Arg(shape, low=-2, high=3)}
            args |= {"w": Arg((size,), low=0.5, high=1.5)} if w else {}
            args |= {"b": Arg((size,))} if b else {}
            return Sample(
                args,
                {"begin": begin, "epsilon": 1e-2},
                axes=("s",) if shape[0] == "s" else (),
                tolerance=1e-5,
                grad_tolerance=1e-3,
            )

        return [
            case("N", 5, size=5),
            case("N", 3, 4, size=12, b=False),
            case("N", 3, 6, size=6, begin=2),
            case("s", 37, size=37),
            case("N", 300, size=300, w=False),
            case("N", 1, size=1, w=False, b=False),
        ]


OP = LayerNorm()
