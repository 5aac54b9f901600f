"""embedding: rows of a table by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    RowGrad,
    Sample,
    check,
)
from paddlecli.ops.spec import ONE, Spec, product


def _lookups(ids: Spec) -> Spec:
    """One lookup an element; a last dimension of 1 is dropped (fluid's [..., 1] labels)."""
    drop = ids.ndim > 1 and ids.shape[-1] == ONE
    return Spec(ids.shape[:-1] if drop else ids.shape, "i64", ids.axis)


class Embedding(Op):
    """y[...] = w[ids[...]], w [height, width]; zeros where the id is ``padding_idx`` (-1: none), which gets no gradient either.

    ``sparse``: the gradient of w is rows (:class:`RowGrad`) instead of a dense table. An id outside of the table is an error.
    """

    name = "embedding"
    forward = Kernel(
        "embedding.forward(ids: i64, w: f32; padding_idx: int, sparse: bool) -> (y: f32)",
        rowwise=True,
    )
    backward_w = Kernel(
        "embedding.backward_w(ids: i64, dy: f32; padding_idx: int) -> (dw: f32)", rowwise=True
    )
    row_ids = Kernel("embedding.row_ids(ids: i64; padding_idx: int) -> (rows: i64)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"padding_idx": -1, "sparse": False}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """The lookups' shape, then the width."""
        ids, w = args["ids"], args["w"]
        check(w.ndim == 2, self.name, f"w {w} must have 2 dimensions")
        height, padding = w.shape[0].coefficient, integer(attrs, "padding_idx")
        check(
            -1 <= padding < height, self.name, f"padding_idx {padding} of a table of {height} rows"
        )
        found = _lookups(ids)
        return {"y": Spec((*found.shape, w.shape[1]), "f32", ids.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows added to those of w, or handed on as rows (padding has the id -1)."""
        from paddlecli import ops

        if not g.needs("w"):
            return {}
        ids, w = node.args["ids"], node.args["w"]
        attrs = {"padding_idx": node.attrs["padding_idx"]}
        if not node.attrs["sparse"]:
            return {"w": g.emit(self.backward_w, {"ids": ids, "dy": dy["y"]}, attrs, out={"dw": w})}
        found = _lookups(ids.spec)
        rows, values = ids, dy["y"]
        if ids.spec.ndim > 1 or attrs["padding_idx"] != -1:
            rows = g.emit(
                self.row_ids,
                {"ids": ids},
                attrs,
                out={"rows": Spec((product(found.shape),), "i64", found.axis)},
            )
        if found.ndim > 1:
            flat = Spec((product(found.shape), w.spec.shape[1]))
            values = g.emit(
                ops.get("reshape").forward,
                {"x": values},
                {"dims": (-1, w.spec.shape[1].coefficient)},
                out={"y": flat},
            )
        return {"w": RowGrad(rows, values)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's indexing."""
        ids, w = values_of(args["ids"]), args["w"]
        ids = ids[..., 0] if ids.ndim > 1 and ids.shape[-1] == 1 else ids
        y = w[ids.astype(int)]
        y[ids == attrs["padding_idx"]] = 0.0
        return {"y": like(args["ids"], y)}

    def samples(self) -> Sequence[Sample]:
        """One id a row, several, fluid's [N, 1], padding, packed rows; dense and sparse gradient."""

        def case(
            shape: tuple[int | str, ...], padding: int = -1, sparse: bool = False, width: int = 5
        ) -> Sample:
            args = {"ids": Arg(shape, "i64", 0, 5), "w": Arg((6, width))}
            return Sample(
                args,
                {"padding_idx": padding, "sparse": sparse},
                axes=("s",) if shape[0] == "s" else (),
            )

        return [
            case(("N",)),
            case(("N", 1)),
            case(("N", 4)),
            case(("N", 3, 1), 2),
            case(("s",), width=300),
            case(("s", 1), 0),
            case(("N",), sparse=True),
            case(("N", 1), 5, True),
            case(("N", 3), -1, True),
            case(("s", 1), 3, True),
        ]


OP = Embedding()
