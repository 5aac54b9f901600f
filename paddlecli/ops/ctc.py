"""ctc: negative log-likelihood of labels under all their alignments with frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import Axis, Dim, Spec, Symbol, product

if TYPE_CHECKING:
    import numpy as np


def _lattice(frames: Axis, labels: Axis) -> Dim:
    """2*labels + 1 states for each frame, over all sequences."""
    return Dim(2, Symbol("pairs", axis=frames, other=labels)) + frames.total


def _two_rows(labels: Axis) -> Dim:
    """Two rows of states for each sequence."""
    return 4 * labels.total + 2 * labels.sequences


class Ctc(Op):
    """nll[s] of the labels of sequence s, given the scores of its frames; connectionist temporal classification.

    logits [T, classes] on one axis (log-softmax is inside), label i64 on another one, a class other than ``blank``
    each. Between labels, before and behind them any number of blanks may stand, a label may last several frames, and
    between equal neighbours a blank must stand: a label that needs more frames than there are is an error that names
    its sequence. nll [sequences, 1], 0 for a sequence without frames and labels. Nothing is saved: the
    gradient finds the forward variables again.

    ``norm``: 1 divides the gradients of a sequence by its frames and leaves nll alone, which is PaddlePaddle's
    norm_by_times; 2 divides nll, and so its gradients, by the sequence's labels; each by 1 at least.
    """

    name = "ctc"
    version = 2
    forward = Kernel(
        "ctc.forward(logits: f32, label: i64; blank: int, norm: int) -> (nll: f32, work: f32)"
    )
    backward = Kernel(
        "ctc.backward(logits: f32, label: i64, dnll: f32; blank: int, norm: int)"
        " -> (dlogits: f32, work: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"blank": 0, "norm": 0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, 1]."""
        x, label, blank = args["logits"], args["label"], integer(attrs, "blank")
        check(x.axis is not None and x.ndim == 2, self.name, f"logits {x} are no rows on an axis")
        one = label.axis is not None and product(label.shape) == label.shape[0]
        check(one, self.name, f"label {label} is not one class a token on an axis")
        fits = one and label.axis.sequences == x.axis.sequences
        check(fits, self.name, f"label {label} and logits {x} have not the same sequences")
        classes = x.shape[1].coefficient
        check(0 <= blank < classes, self.name, f"blank {blank} of {classes} classes")
        check(attrs["norm"] in (0, 1, 2), self.name, f"norm {attrs['norm']} is not 0, 1 or 2")
        nll = Spec.of(x.axis.sequences, 1, axis=x.axis.parent)
        return {"nll": nll, "work": Spec((x.shape[0] + _two_rows(label.axis),))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Softmax minus the share of the alignments that pass by each class."""
        x, label = node.args["logits"], node.args["label"]
        args = {"logits": x, "label": label, "dnll": dy["nll"]}
        frames, labels = x.spec.axis, label.spec.axis
        room = frames.total + _lattice(frames, labels) + _two_rows(labels)
        out = {"dlogits": x, "work": Spec((room,))}
        return {"logits": g.emit(self.backward, args, dict(node.attrs), out=out)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The recursion, sequence by sequence."""
        import numpy as np

        x, label = args["logits"].values, values_of(args["label"]).reshape(-1)
        log_p = x - np.logaddexp.reduce(x, axis=1, keepdims=True) if len(x) else x
        spans = zip(pairwise(args["logits"].offsets), pairwise(args["label"].offsets), strict=True)
        nll = [
            _sequence(log_p[f:g], label[k:m], integer(attrs, "blank")) for (f, g), (k, m) in spans
        ]
        found = np.array(nll, np.float64)
        if attrs["norm"] == 2:
            found = found / np.maximum(np.diff(args["label"].offsets), 1)
        return {"nll": found.reshape(-1, 1)}

    def samples(self) -> Sequence[Sample]:
        """Few classes so that labels repeat; the blank first, last and between; large scores. No case has norm 1,
        whose gradient is not that of nll."""

        def case(classes: int, blank: int, high: float = 1.0, norm: int = 0) -> Sample:
            labels = tuple(float(c) for c in range(classes) if c != blank)
            args = {"logits": Arg(("f", classes), low=-high, high=high)}
            args["label"] = Arg(("l",), "i64", choices=labels)
            return Sample(
                args,
                {"blank": blank, "norm": norm},
                axes=("f", "l"),
                lengths={"f": (7, 10)},
                tolerance=1e-5,
                grad_tolerance=1e-3,
            )

        return [case(3, 0), case(4, 3), case(19, 5), case(5, 1, 30.0), case(4, 0, norm=2)]


def _sequence(log_p: np.ndarray, label: np.ndarray, blank: int) -> float:
    """The loss of one sequence, by the forward variables of its states."""
    import numpy as np

    if not len(log_p):
        return 0.0
    states = np.full(2 * len(label) + 1, blank)
    states[1::2] = label
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    alpha = np.full(len(states), -np.inf)
    alpha[:2] = log_p[0, states[:2]]
    for row in log_p[1:]:
        before = np.concatenate([[-np.inf, -np.inf], alpha])
        ways = np.logaddexp(before[2:], before[1:-1])
        ways = np.where(skips, np.logaddexp(ways, before[:-2]), ways)
        alpha = ways + row[states]
    return float(-np.logaddexp.reduce(alpha[-2:]))


OP = Ctc()
