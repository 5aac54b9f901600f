"""What attention ops share: which sequence a row asks, shapes, gradients, references."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._recurrent import every_row
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Attr, Emitter, Kernel, NodeLike, Op, Ragged, Shape, check
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np

Weigh = Callable[["np.ndarray", "np.ndarray"], "np.ndarray"]
"""(query of one row, keys of its tokens) -> their scores."""


class Attention(Op):
    """Rows of ``query`` ask the tokens of one sequence each; ``keys`` give the scores, ``values`` what is answered.

    A row's sequence is ``sequence`` [rows], where given; else the one it lies in, where the rows are packed; else the rows are dealt
    out evenly, rows / sequences to each sequence in order. A sequence without tokens answers zeros. Weights are not kept: the
    gradients compute them anew from ``query`` and ``keys``.
    """

    backward_query: ClassVar[Kernel]
    backward_source: ClassVar[Kernel]

    def check_rows(self, args: Mapping[str, Any]) -> None:
        """Raises ShapeError unless query, keys, values and sequence fit each other."""
        query, keys, values, sequence = (args[k] for k in ("query", "keys", "values", "sequence"))
        check(query.ndim == 2, self.name, f"query {query} must be [rows, width]")
        packed = keys.axis is not None and keys.ndim == values.ndim == 2
        check(
            packed and values.axis == keys.axis,
            self.name,
            f"keys {keys} and values {values} must be rows on one ragged axis",
        )
        if sequence is not None:
            check(
                sequence.shape == query.shape[:1],
                self.name,
                f"sequence {sequence} does not name one for each row of {query}",
            )
        elif query.axis is not None:
            same = query.axis.sequences == keys.axis.sequences
            check(same, self.name, f"query {query} and keys {keys} have not the same sequences")
        else:
            rows, sequences = query.shape[0], keys.axis.sequences
            even = rows.symbol == sequences.symbol and rows.coefficient % sequences.coefficient == 0
            check(
                even,
                self.name,
                f"query {query} has not as many rows for each sequence of keys {keys}",
            )

    def context(self, args: Mapping[str, Any]) -> dict[str, Spec | list[Spec]]:
        """The shape of the answers."""
        query, values = args["query"], args["values"]
        return {"context": Spec((query.shape[0], values.shape[1]), "f32", query.axis)}

    def scratch(self, node: NodeLike) -> dict[str, Spec]:
        """Room that ``backward_source`` needs."""
        rows, axis = node.args["query"].spec.shape[0], node.args["keys"].spec.axis
        return {"work_rows": Spec.of(every_row(rows) + axis.sequences + 1, dtype="i64")}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The rows' own gradient, and behind all rows that of the tokens."""
        a = node.args
        args = {**a, "context": node.results["context"], "dcontext": dy["context"]}
        found: dict[str, Any] = {}
        if g.needs("query"):
            found["query"] = g.emit(
                self.backward_query, args, dict(node.attrs), out={"dquery": a["query"]}
            )
        ports = [
            p.name.removeprefix("d") for p in self.backward_source.outputs if p.name.startswith("d")
        ]
        if any(g.needs(p) for p in ports):
            out = {**{f"d{p}": a[p] for p in ports}, **self.scratch(node)}
            found |= zip(
                ports, g.emit(self.backward_source, args, dict(node.attrs), out=out), strict=True
            )
        return found

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """A score and a share of the context for every row and token, as in one sequence; their gradients twice that."""
        pairs = shapes["query"][0] * shapes["keys"][0]
        once = 2 * pairs * (math.prod(shapes["query"][1:]) + math.prod(shapes["values"][1:]))
        return once if kernel is self.forward else 2 * once

    def answers(self, args: Mapping[str, Any], weigh: Weigh, causal: bool = False) -> Any:
        """The context in numpy, row by row; ``weigh`` gives scores for one head."""
        import numpy as np

        query, keys, values = (
            values_of(args["query"]),
            args["keys"].values,
            values_of(args["values"]),
        )
        sequences, offsets = _sequences(args), args["keys"].offsets
        y = np.zeros((len(query), values.shape[1]))
        for row, s in enumerate(sequences):
            first, last = offsets[s], min(offsets[s + 1], row + 1) if causal else offsets[s + 1]
            if first < last:
                scores = weigh(query[row], keys[first:last])
                e = np.exp(scores - scores.max())
                y[row] = e / e.sum() @ values[first:last]
        return like(args["query"], y)


def _sequences(args: Mapping[str, Any]) -> np.ndarray:
    """The sequence of each row."""
    import numpy as np

    query, count = args["query"], len(args["keys"].offsets) - 1
    if args.get("sequence") is not None:
        return values_of(args["sequence"]).astype(int)
    if isinstance(query, Ragged):
        return np.repeat(np.arange(count), np.diff(query.offsets))
    return np.repeat(np.arange(count), len(query) // max(count, 1))
