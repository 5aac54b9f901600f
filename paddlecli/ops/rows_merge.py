"""rows_merge: row-sparse gradients of all uses of a table made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import ONE, ZERO, Spec


class RowsMerge(Op):
    """Pairs (ids [n] i64, values [n, ...] f32), one for each use -> sorted unique ids, their rows summed, how many there are.

    Rows of one id are added in the order of the pairs, then of their tokens. Negative ids are no rows. The outputs have room for
    all rows; behind the count stand id -1 and zeros.
    """

    name = "rows_merge"
    forward = Kernel(
        "rows_merge.forward(pairs*: any) -> (ids: i64, values: f32, count: i64, work: i64)"
    )
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[rows], [rows, ...], [1]; rows = those of all pairs together."""
        pairs: list[Spec] = args["pairs"]
        check(
            len(pairs) >= 2 and len(pairs) % 2 == 0,
            self.name,
            f"{len(pairs)} tensors are no pairs of ids and values",
        )
        rows, inner = ZERO, pairs[1].shape[1:]
        for ids, values in zip(pairs[::2], pairs[1::2], strict=True):
            types = ids.dtype == "i64" and values.dtype == "f32" and ids.ndim == 1
            check(
                types and values.shape == (*ids.shape, *inner),
                self.name,
                f"ids {ids} and values {values} are no pair",
            )
            rows = rows + ids.shape[0]
        work = Spec((4 * rows,), "i64")
        return {
            "ids": Spec((rows,), "i64"),
            "values": Spec((rows, *inner)),
            "count": Spec((ONE,), "i64"),
            "work": work,
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """None: it works on gradients."""
        return {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """By numpy's unique."""
        import numpy as np

        pairs = [values_of(p) for p in args["pairs"]]
        ids, values = np.concatenate(pairs[::2]).astype(int), np.concatenate(pairs[1::2])
        unique = np.unique(ids[ids >= 0])
        merged, rows = np.zeros_like(values), np.full(len(ids), -1)
        for i, row in enumerate(unique):
            rows[i] = row
            merged[i] = values[ids == row].sum(0)
        return {"ids": rows, "values": merged, "count": np.array([len(unique)])}

    def samples(self) -> Sequence[Sample]:
        """One use, several, repeats, large ids, packed rows."""

        def case(*uses: tuple[int | str, int], width: int = 3) -> Sample:
            pairs = [a for n, high in uses for a in (Arg((n,), "i64", -1, high), Arg((n, width)))]
            return Sample(
                {"pairs": tuple(pairs)}, axes=("s",) if any(n == "s" for n, _ in uses) else ()
            )

        return [
            case(("N", 4)),
            case(("N", 3), ("N", 3), ("N", 3)),
            case((400, 70), width=20),
            case((50, 2**40)),
            case(("s", 3), ("N", 300), width=1),
        ]


OP = RowsMerge()
