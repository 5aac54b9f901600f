"""class_targets: labels of classes as rows of probabilities, smoothed and weighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec, as_dim


class ClassTargets(Op):
    """``y[n, c] = weight[c]*((1 - epsilon)*(c == label[n]) + epsilon/classes)``; label [N, ...] or
    [N, ..., 1], weight [classes], 1 if absent, y [N, ..., classes]. Rows whose label is
    ``ignore_index`` are 0."""

    name: ClassVar[str] = "class_targets"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "class_targets.forward(label: i64, weight?: f32; classes: int, epsilon: float, "
        "ignore_index: int) -> (y: f32)",
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"epsilon": 0.0, "ignore_index": -100}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        label, weight, classes = args["label"], args.get("weight"), int(number(attrs, "classes"))
        check(classes > 0, self.name, f"classes is {classes}")
        check(
            weight is None or weight.shape == (as_dim(classes),),
            self.name,
            f"weight is {weight}, there are {classes} classes",
        )
        one = label.ndim > 1 and label.shape[-1] == as_dim(1)
        rows = label.shape[:-1] if one else label.shape
        return {"y": Spec((*rows, as_dim(classes)), "f32", label.axis)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        from paddlecli.ops._unary import like, values_of

        classes, epsilon = int(number(attrs, "classes")), number(attrs, "epsilon")
        label = values_of(args["label"])
        rows = label.reshape(label.shape[:-1] if label.shape[-1:] == (1,) else label.shape)
        hot = rows[..., None] == np.arange(classes)
        y = (1 - epsilon) * hot + epsilon / classes
        y = y * (1 if args.get("weight") is None else args["weight"])
        return {"y": like(args["label"], y * (rows != attrs["ignore_index"])[..., None])}

    def samples(self) -> Sequence[Sample]:
        """Few and many classes, columns, weights, and a class that is ignored."""

        def case(shape: tuple[Any, ...], classes: int, **more: Any) -> Sample:
            args = {"label": Arg(shape, "i64", low=0, high=classes - 1)}
            if more.pop("weighted", False):
                args["weight"] = Arg((classes,), low=0, high=3)
            attrs = {"classes": classes, "epsilon": 0.1, "ignore_index": -100, **more}
            axes = ("s",) if shape[0] == "s" else ()
            return Sample(args, attrs, axes=axes)

        return [
            case(("N", 1), 3),
            case(("N", 2), 19, weighted=True),
            case(("N", 1), 1, epsilon=0.0),
            case(("s",), 4, ignore_index=2, weighted=True),
        ]


OP = ClassTargets()
