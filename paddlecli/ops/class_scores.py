"""class_scores: scores of some classes only, each row with its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._unary import values_of
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
    Shape,
    check,
)
from paddlecli.ops.spec import Spec, product


class ClassScores(Op):
    """z[n, k] = x[n] . w[ids[n, k]] + b[ids[n, k]], 0 where the id is -1.

    x [N, D], w [classes, D], b [classes] or none, ids i64 [N, K], z [N, K]. ``sparse``: the gradient of w is rows
    (:class:`RowGrad`) instead of a dense table. Another id outside of the classes is an error.
    """

    name = "class_scores"
    forward = Kernel(
        "class_scores.forward(x: f32, w: f32, b?: f32, ids: i64; sparse: bool) -> (z: f32)",
        rowwise=True,
    )
    backward_x = Kernel(
        "class_scores.backward_x(dz: f32, w: f32, ids: i64) -> (dx: f32)", rowwise=True
    )
    backward_w = Kernel(
        "class_scores.backward_w(dz: f32, x: f32, ids: i64) -> (dw: f32)", rowwise=True
    )
    backward_rows = Kernel("class_scores.backward_rows(dz: f32, x: f32) -> (rows: f32)")
    backward_b = Kernel("class_scores.backward_b(dz: f32, ids: i64) -> (db: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"sparse": False}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[N, K]."""
        x, w, b, ids = args["x"], args["w"], args["b"], args["ids"]
        fits = x.ndim == 2 and w.ndim == 2 and w.shape[1] == x.shape[1]
        check(fits, self.name, f"w {w} does not fit x {x}")
        check(b is None or b.size == w.shape[0], self.name, f"b is {b}, w is {w}")
        check(
            ids.ndim == 2 and ids.shape[0] == x.shape[0] and ids.shape[1].known,
            self.name,
            f"ids {ids} are no rows of classes for x {x}",
        )
        return {"z": Spec(ids.shape, "f32", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Each pair gives its class's row to dx and x's row to its class."""
        a, dz, found = node.args, dy["z"], {}
        if g.needs("x"):
            args = {"dz": dz, "w": a["w"], "ids": a["ids"]}
            found["x"] = g.emit(self.backward_x, args, out={"dx": a["x"]})
        if g.needs("w") and node.attrs["sparse"]:
            found["w"] = self._rows(g, a, dz)
        elif g.needs("w"):
            args = {"dz": dz, "x": a["x"], "ids": a["ids"]}
            found["w"] = g.emit(self.backward_w, args, out={"dw": a["w"]})
        if a["b"] is not None and g.needs("b"):
            args = {"dz": dz, "ids": a["ids"]}
            found["b"] = g.emit(self.backward_b, args, out={"db": a["b"]})
        return found

    def _rows(self, g: Emitter, a: Mapping[str, Any], dz: Any) -> RowGrad:
        from paddlecli import ops

        count = product(a["ids"].spec.shape)
        kernel = ops.get("embedding").row_ids  # type: ignore[attr-defined]
        flat = {"rows": Spec((count,), "i64")}
        ids = g.emit(kernel, {"ids": a["ids"]}, {"padding_idx": -1}, out=flat)
        out = {"rows": Spec((count, a["x"].spec.shape[1]))}
        return RowGrad(ids, g.emit(self.backward_rows, {"dz": dz, "x": a["x"]}, out=out))

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's indexing."""
        import numpy as np

        x, w, ids = values_of(args["x"]), args["w"], values_of(args["ids"])
        z = np.einsum("nd,nkd->nk", x, w[ids])
        if args.get("b") is not None:
            z = z + args["b"].reshape(-1)[ids]
        return {"z": np.where(ids < 0, 0.0, z)}

    def samples(self) -> Sequence[Sample]:
        """One class, several, missing ones; repeated ones; dense and sparse; wide rows."""

        def case(d: int, k: int, low: int = 0, bias: bool = True, sparse: bool = False) -> Sample:
            args = {"x": Arg(("N", d)), "w": Arg((6, d)), "ids": Arg(("N", k), "i64", low, 5)}
            args |= {"b": Arg((6,))} if bias else {}
            return Sample(args, {"sparse": sparse})

        return [
            case(3, 4),
            case(5, 1, bias=False),
            case(2, 3, low=-1),
            case(20, 7, low=-1, sparse=True),
            case(300, 2),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*D for each pair, in each of the products."""
        if kernel is self.backward_b:
            return 0
        n, k = shapes.get("z") or shapes["dz"]
        return 2 * n * k * (shapes.get("w") or shapes["x"])[1]


OP = ClassScores()
