"""class_samples: each row's class and others drawn at random, for losses that look at some classes only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops import _random
from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec, product

SAMPLERS = ("uniform", "log_uniform")
"""What the attribute ``sampler`` counts; log_uniform draws class k as often as ln((k + 2) / (k + 1)), as the original's
does: the last class only where it is a label."""


class ClassSamples(Op):
    """ids[n, 0] = label[n], then ``count`` classes of row n, drawn with replacement from its own random numbers.

    label i64 [N] or [N, 1]; ids [N, 1 + count]. ``given`` i64 [count] or [N, count], optional, stands for the draw.
    expected [N, 1 + count]: how often the sampler draws that class among ``count``; hit: 1 where a drawn class is the
    row's label, else 0. ``sampler`` is an index into :data:`SAMPLERS`.
    """

    name = "class_samples"
    forward = Kernel(
        "class_samples.forward(label: i64, given?: i64; classes: int, count: int, sampler: int)"
        " -> (ids: i64, expected: f32, hit: f32)",
        random=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"sampler": 0}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[N, 1 + count] each."""
        label, given, count = args["label"], args["given"], integer(attrs, "count")
        one = label.ndim > 0 and product(label.shape) == label.shape[0]
        check(one, self.name, f"label {label} is not one class a row")
        check(integer(attrs, "classes") > 1, self.name, f"{attrs['classes']} classes")
        check(count > 0, self.name, f"count is {count}, expected at least 1")
        known = 0 <= integer(attrs, "sampler") < len(SAMPLERS)
        check(known, self.name, f"sampler {attrs['sampler']} is unknown")
        if given is not None:
            fits = given.size in (Dim(count), label.shape[0] * count)
            check(fits, self.name, f"given {given} are not {count} classes, for all rows or each")
        found = (label.shape[0], Dim(1 + count))
        made = {"expected": Spec(found, "f32", label.axis), "hit": Spec(found, "f32", label.axis)}
        return {"ids": Spec(found, "i64", label.axis), **made}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The same numbers."""
        import numpy as np

        label, given = values_of(args["label"]).reshape(-1, 1), args.get("given")
        n, classes, count = len(label), integer(attrs, "classes"), integer(attrs, "count")
        log = SAMPLERS[integer(attrs, "sampler")] == "log_uniform"
        bits = _random.bits(random, random.first * count, n * count).reshape(n, count)
        if given is not None:
            drawn = np.broadcast_to(values_of(given).reshape(-1, count), (n, count))
        elif log:
            u = (bits >> np.uint32(8)).astype(np.float64) * 2.0**-24
            drawn = np.minimum(np.exp(u * np.log(classes)).astype(np.int64) - 1, classes - 2)
        else:
            drawn = ((bits.astype(np.uint64) * np.uint64(classes)) >> np.uint64(32)).astype(
                np.int64
            )
        ids = np.concatenate([label, drawn], axis=1).astype(np.int64)
        share = np.log((ids + 2) / (ids + 1)) / np.log(classes) if log else 1 / classes
        hit = (ids == label) * np.array([0.0] + [1.0] * count)
        return {"ids": ids, "expected": count * share * np.ones(ids.shape), "hit": hit}

    def samples(self) -> Sequence[Sample]:
        """Both samplers, few and many classes; given ones."""

        def case(classes: int, count: int, sampler: int, **more: Arg) -> Sample:
            args = {"label": Arg(("N", 1), "i64", 0, classes - 1), **more}
            return Sample(args, {"classes": classes, "count": count, "sampler": sampler})

        return [
            case(4, 6, 0),
            case(1000, 3, 1),
            case(2, 5, 1, label=Arg(("N",), "i64", 0, 1)),
            case(7, 3, 1, given=Arg((3,), "i64", 0, 6)),
            case(7, 3, 0, given=Arg(("N", 3), "i64", 0, 6)),
        ]


OP = ClassSamples()
