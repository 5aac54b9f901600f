"""additive_attention: rows ask the tokens of a sequence through a small net, as the book's translation chapter does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attention import Attention
from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Kernel, NodeLike, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_ARGS = "query: f32, keys: f32, values: f32, v: f32, sequence?: i64"


class AdditiveAttention(Attention):
    """score = v . tanh(query + key), or without ``tanh`` v . (query + key); context [rows, D] is the weighted sum of values [T, D].

    query [rows, H] and keys [T, H] are projected already, v has H elements. Without ``tanh`` the query adds the same to every token
    of its row, so the weights do not depend on it and its gradient is exactly 0 (book, chapter 8).
    """

    name = "additive_attention"
    forward = Kernel(
        f"additive_attention.forward({_ARGS}; tanh: bool) -> (context: f32)", rowwise=True
    )
    backward_query = Kernel(
        f"additive_attention.backward_query({_ARGS}, context: f32, dcontext: f32; tanh: bool) -> (dquery: f32)",
        rowwise=True,
    )
    backward_source = Kernel(
        f"additive_attention.backward_source({_ARGS}, context: f32, dcontext: f32; tanh: bool)"
        " -> (dkeys: f32, dvalues: f32, dv: f32, work_rows: i64, work_v: f32)",
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"tanh": True}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """[rows, D]."""
        self.check_rows(args)
        query, keys, v = args["query"], args["keys"], args["v"]
        check(
            query.shape[1] == keys.shape[1],
            self.name,
            f"query {query} and keys {keys} have not the same width",
        )
        check(v.size == query.shape[1], self.name, f"v {v} has not the width of query {query}")
        return self.context(args)

    def scratch(self, node: NodeLike) -> dict[str, Spec]:
        """And a row of v's gradient for each sequence."""
        keys = node.args["keys"].spec
        return {**super().scratch(node), "work_v": Spec.of(keys.axis.sequences, keys.shape[1])}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Row by row."""
        import numpy as np

        v = values_of(args["v"]).reshape(-1)
        inner = np.tanh if attrs["tanh"] else np.asarray
        return {"context": self.answers(args, lambda q, k: inner(q + k) @ v)}

    def samples(self) -> Sequence[Sample]:
        """A row a sequence, three rows a sequence, packed rows; narrow and wide."""

        def case(rows: int | str, h: int, d: int, tanh: bool) -> Sample:
            shapes = {"query": (rows, h), "keys": ("s", h), "values": ("s", d), "v": (h,)}
            axes = ("s", "t") if rows == "t" else ("s",)
            return Sample(
                {k: Arg(x) for k, x in shapes.items()}, {"tanh": tanh}, axes, tolerance=1e-5
            )

        return [
            case("N", 3, 4, True),
            case("N", 2, 20, False),
            case("t", 17, 3, True),
            case("s", 4, 2, True),
        ]


OP = AdditiveAttention()
