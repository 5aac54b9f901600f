"""linear_chain_crf: negative log-likelihood of tag sequences under a linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import Spec


def check_chain(op: str, emission: Spec, transition: Spec) -> None:
    """Emissions [T, tags] on an axis, transitions [tags + 2, tags]."""
    ragged = emission.axis is not None and emission.ndim == 2
    check(ragged, op, f"emission {emission} is no sequence of scores")
    tags = emission.shape[1]
    fits = transition.ndim == 2 and transition.shape[1] == tags
    fits = fits and transition.shape[0].coefficient == tags.coefficient + 2
    check(fits, op, f"transition {transition} is not [tags + 2, tags] for {tags} tags")


class LinearChainCrf(Op):
    """nll[s] = log of the sum over all tag sequences of exp(score), minus the score of the labels; 0 for an empty sequence.

    emission [T, tags]; transition [tags + 2, tags]: row 0 the start's weights, row 1 the stop's, row 2 + i from tag i; label
    [T] i64. score = start + emissions + transitions + stop. Gives nll [sequences, 1]; saved are alpha [T, tags] with each
    token's largest taken out, and what was (shift [T]). The original calls nll its log-likelihood.
    """

    name = "linear_chain_crf"
    forward = Kernel(
        "linear_chain_crf.forward(emission: f32, transition: f32, label: i64)"
        " -> (nll: f32, alpha: f32, shift: f32, work: f32)"
    )
    backward_x = Kernel(
        "linear_chain_crf.backward_x(emission: f32, transition: f32, label: i64, alpha: f32,"
        " dnll: f32) -> (demission: f32, p: f32, work: f32)"
    )
    backward_w = Kernel(
        "linear_chain_crf.backward_w(emission: f32, transition: f32, label: i64, alpha: f32,"
        " shift: f32, p: f32, dnll: f32) -> (dtransition: f32)"
    )

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, 1], [T, tags], [T]."""
        x, label = args["emission"], args["label"]
        check_chain(self.name, x, args["transition"])
        check(
            label.axis == x.axis and label.size == x.shape[0],
            self.name,
            f"label {label} is not one tag for each row of {x}",
        )
        return {
            "nll": Spec.of(x.axis.sequences, 1, axis=x.axis.parent),
            "alpha": x,
            "shift": Spec((x.shape[0],), "f32", x.axis),
            "work": Spec(x.shape),
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Expected minus observed tags and transitions."""
        a, r = node.args, node.results
        given = {k: a[k] for k in ("emission", "transition", "label")}
        given |= {"alpha": r["alpha"], "dnll": dy["nll"]}
        x = a["emission"]
        dx, p = g.emit(
            self.backward_x, given, out={"demission": x, "p": x, "work": Spec(x.spec.shape)}
        )
        found = {"emission": dx}
        if g.needs("transition"):
            given |= {"shift": r["shift"], "p": p}
            found["transition"] = g.emit(
                self.backward_w, given, out={"dtransition": a["transition"]}
            )
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The recursion, sequence by sequence."""
        import numpy as np

        x, offsets, w = args["emission"].values, args["emission"].offsets, args["transition"]
        label = values_of(args["label"]).reshape(-1).astype(int)
        nll, alpha, shift = np.zeros((len(offsets) - 1, 1)), np.zeros_like(x), np.zeros(len(x))
        for s, (first, last) in enumerate(pairwise(offsets)):
            total, before, score = 0.0, np.zeros(0), 0.0
            for t in range(first, last):
                ways = w[0] if t == first else np.logaddexp.reduce(before[:, None] + w[2:], axis=0)
                alpha[t] = ways + x[t]
                shift[t] = alpha[t].max()
                alpha[t] -= shift[t]
                total, before = total + shift[t], alpha[t]
                score += x[t, label[t]] + w[0 if t == first else 2 + label[t - 1], label[t]]
            if last > first:
                score += w[1, label[last - 1]]
                nll[s] = total + np.logaddexp.reduce(before + w[1]) - score
        axis = args["emission"].offsets
        return {"nll": nll, "alpha": Ragged(alpha, axis), "shift": Ragged(shift, axis)}

    def samples(self) -> Sequence[Sample]:
        """Two tags, a few, more than a vector, scores that a sum of exponentials could not hold."""
        return [
            Sample(
                {
                    "emission": Arg(("s", tags), low=-high, high=high),
                    "transition": Arg((tags + 2, tags)),
                    "label": Arg(("s",), "i64", 0, tags - 1),
                },
                axes=("s",),
                tolerance=1e-5,
                grad_tolerance=1e-3 if high > 9 else 2e-4,
            )
            for tags, high in ((2, 1.0), (3, 2.0), (19, 1.0), (4, 60.0))
        ]


OP = LinearChainCrf()
