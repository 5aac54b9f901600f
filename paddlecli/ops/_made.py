"""Ragged axes that ops make: lengths that follow from those of the axes they come from.

The name of a made axis says how: ``concat(a,b)``, ``slice(a,1,3)``, ``reshape(a,6,4)``, ``expand(a,b)``.
Whoever knows the lengths of a and b knows its own, so sizes are there before a batch runs, and nothing
depends on values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from paddlecli.ops.spec import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Lengths = NDArray[np.int64]

KINDS = ("concat", "slice", "reshape", "expand")
_NAME = re.compile(rf"^({'|'.join(KINDS)})\((.*)\)$")


def make(kind: str, of: Sequence[Axis], *numbers: int) -> Axis:
    """The axis of an op's output; ``of`` have the same outer axis.

    ``concat``: the sequences of all, one behind the other. ``slice``: from a start (negative ones count
    from the end) at most a size. ``reshape``: rows of the first width as rows of the second. ``expand``: each sequence of the first for
    every row of the second, which is the outer axis then.
    """
    name = f"{kind}({','.join([*(a.name for a in of), *map(str, numbers)])})"
    return Axis(name, of[0].input, of[1] if kind == "expand" else of[0].parent, tuple(of))


def recipe(name: str) -> tuple[str, list[str]] | None:
    """Kind and arguments of a made axis, by its name; None for an axis of the data."""
    found = _NAME.match(name)
    if found is None:
        return None
    parts, depth = [""], 0
    for letter in found[2]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return found[1], parts


def sources(name: str) -> list[str]:
    """The axes of the data that an axis comes from, by name; itself where it is one."""
    known = recipe(name)
    if known is None:
        return [name]
    made_of = known[1] if known[0] in ("concat", "expand") else known[1][:1]
    return list(dict.fromkeys(s for part in made_of for s in sources(part)))


def lengths(name: str, known: Callable[[str], Lengths]) -> Lengths:
    """Length of each sequence of an axis; ``known`` gives those of the data's axes.

    Raises:
        ValueError: a sequence has no whole rows of the new width; the text names it.
    """
    import numpy as np

    made = recipe(name)
    if made is None:
        return known(name)
    kind, parts = made
    if kind == "concat":
        return np.asarray(sum(lengths(part, known) for part in parts), np.int64)
    if kind == "expand":
        return np.repeat(*(lengths(part, known) for part in parts))
    old, (a, b) = lengths(parts[0], known), (int(p) for p in parts[1:])
    if kind == "slice":
        first = np.minimum(a, old) if a >= 0 else np.maximum(old + a, 0)
        return np.asarray(np.minimum(old - first, b), np.int64)
    if (old * a % b).any():
        at = int(np.flatnonzero(old * a % b)[0])
        text = f"sequence {at} has {old[at]} rows of {a} numbers: no whole rows of {b}"
        raise ValueError(f"[sequence_reshape] {text}")
    return np.asarray(old * a // b, np.int64)


def per_sample(name: str, known: Callable[[str], Lengths]) -> Lengths:
    """Rows of each sample; those of :func:`lengths` but for ``expand``, which has several sequences a sample."""
    made = recipe(name)
    if made is None or made[0] != "expand":
        return lengths(name, known)
    first, second = (lengths(part, known) for part in made[1])
    return first * second


def offsets(name: str, known: Callable[[str], Lengths]) -> Lengths:
    """Offsets [sequences + 1] of an axis; see :func:`lengths`."""
    import numpy as np

    return np.concatenate([[0], np.cumsum(lengths(name, known))]).astype(np.int64)


class Axes(dict[str, Axis]):
    """Axes by name; those that ops make are made when they are asked for."""

    def __missing__(self, name: str) -> Axis:
        made = recipe(name)
        if made is None:
            raise KeyError(name)
        kind, parts = made
        if kind in ("concat", "expand"):
            return make(kind, [self[p] for p in parts])
        return make(kind, [self[parts[0]]], *(int(p) for p in parts[1:]))
