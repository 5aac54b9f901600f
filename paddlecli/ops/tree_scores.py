"""tree_scores: log-probabilities of all classes from the turns of a complete binary tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec


class TreeScores(Op):
    """y[n, c]: the logarithm of the probability that row n goes to class c, where inner node i turns to its second
    child with probability sigmoid(z[n, i]); z [N, classes - 1], y [N, classes].

    Nodes and classes are those of tree_path: with node 1 the root, node k has the children 2k and 2k + 1, and z[:, i]
    is that of node i + 1; class c is node classes + c.
    """

    name = "tree_scores"
    forward = Kernel("tree_scores.forward(z: f32) -> (y: f32, work: f32)", rowwise=True)
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[N, classes]."""
        z = args["z"]
        known = z.ndim == 2 and z.shape[1].known and z.shape[1].coefficient > 0
        check(known, self.name, f"z {z} is not [N, classes - 1]")
        classes = Dim(z.shape[1].coefficient + 1)
        return {
            "y": Spec((z.shape[0], classes), "f32", z.axis),
            "work": Spec((z.shape[0], classes)),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Node by node from the root."""
        import numpy as np

        z = values_of(args["z"])
        nodes = z.shape[1]
        found = np.zeros((len(z), 2 * nodes + 2))
        for node in range(1, nodes + 1):
            score = z[:, node - 1]
            found[:, 2 * node] = found[:, node] - np.logaddexp(0, score)
            found[:, 2 * node + 1] = found[:, node] - np.logaddexp(0, -score)
        return {"y": like(args["z"], found[:, nodes + 1 :])}

    def samples(self) -> Sequence[Sample]:
        """Two classes, full and ragged trees, packed rows; large scores."""
        return [
            Sample({"z": Arg(("N", 1))}),
            Sample({"z": Arg(("N", 7), low=-3, high=3)}),
            Sample({"z": Arg(("s", 18), low=-40, high=40)}, axes=("s",)),
        ]


OP = TreeScores()
