"""What the optimizers share: two kernels, slots, recipe arguments, numpy references.

An optimizer is a rule over single elements. ``update`` applies it to the parameters of a flat
range, each a segment with its own rate multiplier, regulariser and clip flag; ``update_rows`` to
one table whose gradient is rows. The order is clip, regularise, rule, as in the original, so weight
decay is not clipped. The recipe's arguments are the keyword parameters of
:meth:`OptimizerOp.arguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Moved = tuple[Array, dict[str, Array]]

CHUNK = 4096
"""Elements that one partial sum covers; PK_UPDATE_CHUNK of the core."""

_FLAT = (
    "lr: f32, scale?: f32, bounds: i64, rates: f32, l2: f32, l1: f32, clips: i32; clip_value: float"
)
_ROWS = "lr: f32, scale?: f32; rate: float, l2: float, l1: float, clip_value: float"


@dataclass(frozen=True)
class Slot:
    """A state tensor of the parameter's shape: its name, its first value, the range that tests draw
    it from."""

    name: str
    initial: float = 0.0
    low: float = 0.0
    high: float = 1.0


def update_kernel(
    op: str,
    slots: Sequence[str],
    own: str = "",
    *,
    rows: bool = False,
    counted: bool = False,
    norms: bool = False,
    suffix: str = "",
) -> Kernel:
    """The kernel ``<op>.update`` or ``<op>.update_rows``.

    Args:
        own: the rule's own attributes, ``"rho: float, epsilon: float"``.
        counted: it reads the number of updates done so far.
        norms: it needs the norm of each parameter, and scratch to sum it in.
        suffix: for a rule with two forms, ``_centered``.
    """
    first = "p: f32, ids: i64, values: f32, rows: i64" if rows else "p: f32, g: f32"
    inputs = [
        first,
        *(f"{s}: f32" for s in slots),
        *(["count: i64"] if counted else []),
        _ROWS if rows else _FLAT,
    ]
    outputs = ["p_out: f32", *(f"{s}_out: f32" for s in slots), *(["work: f64"] if norms else [])]
    name = ("update_rows" if rows else "update") + suffix
    text = f"{op}.{name}({', '.join(inputs)}{', ' + own if own else ''}) -> ({', '.join(outputs)})"
    return Kernel(text, inplace={f"{s}_out": s for s in ("p", *slots)}, updates=True)


def numbers(attrs: Mapping[str, Attr], *names: str) -> tuple[float, ...]:
    """Attributes as floats."""
    return tuple(float(attrs[n]) for n in names)  # type: ignore[arg-type]


class OptimizerOp(Op):
    """Base of the optimizers. A subclass sets ``forward`` (the flat kernel) and ``update_rows``,
    says its ``arguments`` and ``slots``, and gives the rule in numpy."""

    differentiable: ClassVar[bool] = False
    update_rows: ClassVar[Kernel]
    counted: ClassVar[bool] = False
    norms: ClassVar[bool] = False
    arguments: Callable[..., dict[str, Attr]]
    """The recipe's arguments, typed, with defaults; gives the attributes."""

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        """The state beside the parameter, in the order of the kernel's ports."""
        return ()

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        """True when table rows without a gradient move or change their slots: each step costs the
        whole table. A regulariser does that to every rule."""
        return False

    def kernel(self, attrs: Mapping[str, Attr], rows: bool) -> Kernel:
        """The kernel for a flat range or for a table with a row-sparse gradient."""
        return self.update_rows if rows else self.forward

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        """New parameter and slots in float64, from the clipped and regularised gradient ``d`` and
        update number ``t`` (from 1)."""
        raise NotImplementedError

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        """Attributes of the generated tests' cases."""
        return (self.arguments(),)

    def work(self, elements: int, segments: int) -> Spec:
        """Scratch of the flat kernel of a rule with norms."""
        return Spec.of(2 * -(-elements // CHUNK) + 3 * segments, dtype="f64")

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        names = [p.name[:-4] for p in self.forward.outputs if p.name.endswith("_out")]
        for name in (*names, "g"):
            check(
                args[name].shape == args["p"].shape,
                self.name,
                f"{name} is {args[name]}, p is {args['p']}",
            )
        found: dict[str, Spec | list[Spec]] = {f"{n}_out": args[n] for n in names}
        if self.norms:
            found["work"] = self.work(
                args["p"].size.coefficient, args["bounds"].shape[0].coefficient
            )
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """All segments in numpy, float64; elements between them are left alone."""
        import numpy as np

        names = [p.name[:-4] for p in self.forward.outputs if p.name.endswith("_out")]
        new = {n: np.array(args[n], np.float64) for n in names}
        scale = np.atleast_1d(
            np.float64(1.0) if args.get("scale") is None else np.asarray(args["scale"], np.float64)
        )
        for s, (offset, length) in enumerate(np.asarray(args["bounds"])):
            part = slice(int(offset), int(offset + length))
            clip = bool(args["clips"][s])
            g = np.asarray(args["g"][part], np.float64) * (scale[s % len(scale)] if clip else 1.0)
            limit = numbers(attrs, "clip_value")[0] if clip else 0.0
            lr, l2, l1 = (float(np.ravel(args[k])[i]) for k, i in (("lr", 0), ("l2", s), ("l1", s)))
            self._move(new, part, g, limit, lr * float(args["rates"][s]), l2, l1, args, attrs)
        return {f"{n}_out": v for n, v in new.items()}

    def reference_rows(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """The same for a table: p [R, ...], ids [room], values [room, ...], rows [1]."""
        import numpy as np

        kernel = self.kernel(attrs, rows=True)
        names = [p.name[:-4] for p in kernel.outputs if p.name.endswith("_out")]
        new = {n: np.array(args[n], np.float64) for n in names}
        real = int(np.ravel(args["rows"])[0])
        ids = np.asarray(args["ids"])[:real]
        g = np.zeros_like(new["p"])
        g[ids] = np.asarray(args["values"], np.float64)[:real]
        if args.get("scale") is not None:
            g *= float(np.ravel(args["scale"])[0])
        rate, l2, l1, limit = numbers(attrs, "rate", "l2", "l1", "clip_value")
        whole = self.moves_rows(attrs) or l2 != 0 or l1 != 0
        part = slice(None) if whole else ids
        self._move(
            new, part, g[part], limit, float(np.ravel(args["lr"])[0]) * rate, l2, l1, args, attrs
        )
        return {f"{n}_out": v for n, v in new.items()}

    def _move(
        self,
        new: dict[str, Array],
        part: Any,
        g: Array,
        limit: float,
        rate: float,
        l2: float,
        l1: float,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr],
    ) -> None:
        import numpy as np

        p = new["p"][part]
        d = (np.clip(g, -limit, limit) if limit > 0 else g) + l2 * p + l1 * np.sign(p)
        t = 1 + int(np.ravel(args["count"])[0]) if self.counted else 1
        moved, slots = self.rule(
            p, d, {n: v[part] for n, v in new.items() if n != "p"}, rate, t, attrs
        )
        for name, value in {"p": moved, **slots}.items():
            new[name][part] = value

    def samples(self) -> Sequence[Sample]:
        """Gaps between segments, several chunks, own rates, regularisers and clip flags; each
        variant of the rule."""
        small = ((0, 6), (16, 13), (32, 7))
        large = ((0, 5001), (5008, 12), (5024, 3990))
        found = []
        for attrs in self.variants():
            found += [
                self._sample(40, small, attrs, scale=(0.5,), clip_value=0.0),
                self._sample(40, small, attrs, scale=(0.5, 0.25, 2.0), clip_value=0.0),
                self._sample(9024, large, attrs, scale=None, clip_value=0.3),
                self._sample(0, (), attrs, scale=None, clip_value=0.0),
            ]
        return found

    def _sample(
        self,
        n: int,
        bounds: Sequence[tuple[int, int]],
        attrs: Mapping[str, Attr],
        scale: tuple[float, ...] | None,
        clip_value: float,
    ) -> Sample:
        count = len(bounds)
        flat = tuple(float(x) for pair in bounds for x in pair)
        args = {"p": Arg((n,)), "g": Arg((n,))}
        args |= {s.name: Arg((n,), low=s.low, high=s.high) for s in self.slots(attrs)}
        if self.counted:
            args["count"] = Arg((1,), "i64", values=(4.0,))
        args["lr"] = Arg((1,), values=(0.05,))
        if scale is not None:
            args["scale"] = Arg((len(scale),), values=scale)
        args["bounds"] = Arg((count, 2), "i64", values=flat)
        for name, values, dtype in (
            ("rates", (1.0, 0.5, 2.0), "f32"),
            ("l2", (0.1, 0.0, 0.0), "f32"),
            ("l1", (0.0, 0.2, 0.0), "f32"),
            ("clips", (1.0, 1.0, 0.0), "i32"),
        ):
            args[name] = Arg((count,), dtype, values=values[:count])
        known = {k for k, _ in self.forward.attrs}
        return Sample(
            args,
            {k: v for k, v in attrs.items() if k in known} | {"clip_value": clip_value},
            tolerance=1e-5,
        )
