"""dot_attention: rows ask the tokens of a sequence by products of queries and keys, in one or several heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attention import Attention
from paddlecli.ops._attrs import integer, number
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Kernel, Ragged, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_ARGS = "query: f32, keys: f32, values: f32, sequence?: i64"
_OWN = "heads: int, scale: float, causal: bool"


class DotAttention(Attention):
    """score = scale * query . key; context [rows, D] is the weighted sum of values [T, D]; head h owns the h-th part of the columns.

    ``causal``: query and keys lie on one axis, and a token sees the tokens up to itself.
    """

    name = "dot_attention"
    forward = Kernel(f"dot_attention.forward({_ARGS}; {_OWN}) -> (context: f32)", rowwise=True)
    backward_query = Kernel(
        f"dot_attention.backward_query({_ARGS}, context: f32, dcontext: f32; {_OWN}) -> (dquery: f32)",
        rowwise=True,
    )
    backward_source = Kernel(
        f"dot_attention.backward_source({_ARGS}, context: f32, dcontext: f32; {_OWN}) -> (dkeys: f32, dvalues: f32, work_rows: i64)",
        rowwise=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """[rows, D]."""
        self.check_rows(args)
        query, keys, values, heads = (
            args["query"],
            args["keys"],
            args["values"],
            integer(attrs, "heads"),
        )
        check(
            query.shape[1] == keys.shape[1],
            self.name,
            f"query {query} and keys {keys} have not the same width",
        )
        fits = heads > 0 and not any(t.shape[1].coefficient % heads for t in (keys, values))
        check(
            fits,
            self.name,
            f"the widths of keys {keys} and values {values} do not divide into {heads} heads",
        )
        packed = query.axis is not None and query.axis == keys.axis
        check(
            not attrs["causal"] or packed,
            self.name,
            f"causal needs query {query} on the axis of keys {keys}",
        )
        return self.context(args)

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Head by head."""
        import numpy as np

        heads, scale = integer(attrs, "heads"), number(attrs, "scale")
        found = []
        for h in range(heads):
            own = {k: _part(args[k], h, heads) for k in ("query", "keys", "values")}
            own["sequence"] = args.get("sequence")
            found.append(
                values_of(self.answers(own, lambda q, k: scale * (k @ q), bool(attrs["causal"])))
            )
        return {"context": like(args["query"], np.concatenate(found, axis=1))}

    def samples(self) -> Sequence[Sample]:
        """A row a sequence, cross, self and causal attention; one head and several."""

        def case(rows: str, h: int, d: int, heads: int, causal: bool = False) -> Sample:
            shapes = {"query": (rows, h), "keys": ("s", h), "values": ("s", d)}
            axes = ("s", "t") if rows == "t" else ("s",)
            attrs: dict[str, Attr] = {"heads": heads, "scale": 0.7, "causal": causal}
            return Sample({k: Arg(x) for k, x in shapes.items()}, attrs, axes, tolerance=1e-5)

        return [
            case("N", 3, 4, 1),
            case("t", 6, 3, 3),
            case("s", 34, 36, 2),
            case("s", 4, 4, 2, causal=True),
        ]


def _part(array: Any, head: int, heads: int) -> Any:
    """The columns of a head."""
    values = values_of(array)
    width = values.shape[1] // heads
    own = values[:, head * width : (head + 1) * width]
    return Ragged(own, array.offsets) if isinstance(array, Ragged) else own


OP = DotAttention()
