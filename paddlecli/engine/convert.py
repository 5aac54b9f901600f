"""Weights that another program wrote for an architecture that is here too, under our names and in our shapes.

Every array of the file is used exactly once or left out by a rule, and every array of the network is filled; all that
does not fit is told at once.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.config.import_map import ImportMap, Rule
from paddlecli.config.nodes import close_names
from paddlecli.engine import modeldir
from paddlecli.engine.checkpoint import MODEL, NOTE
from paddlecli.engine.files import replace, saving
from paddlecli.engine.fitting import Misfit, Shapes, shape_text, table
from paddlecli.engine.foreign import Weights
from paddlecli.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset
    from paddlecli.engine.fitting import Arrays
    from paddlecli.graph.ir import Graph


SUFFIX = ".safetensors"
_NO_DISK = "make room, or write somewhere else"


@dataclass(frozen=True)
class Converted:
    """Arrays under our names.

    Attributes:
        arrays: parameters and states of the network, all of them.
        sources: by our name, the file's.
        left: names of the file that a rule leaves out.
    """

    arrays: Arrays
    sources: Mapping[str, str]
    left: Sequence[str]


def convert(weights: Weights, rules: ImportMap, wanted: Shapes) -> Converted:
    """The arrays of a file as those of a network.

    Raises:
        RunError: something does not fit; a table of all of it, with shapes and near names. Or the file has our names.
    """
    found, misfits = match(weights, rules, wanted)
    if misfits:
        if weights.arrays.keys() == wanted.keys():
            raise RunError(
                f"{weights.path}: these are weights of this network already, there is nothing to convert",
                hint=f"paddlecli train RECIPE --init-from {shlex.quote(str(weights.path))}",
            )
        bad = {m.target for m in misfits}
        raise refusal(weights.path, misfits, len(found.arrays.keys() - bad), len(wanted))
    return found


def match(weights: Weights, rules: ImportMap, wanted: Shapes) -> tuple[Converted, list[Misfit]]:
    """What fits, and what does not."""
    taking = _Taking(wanted)
    for name, array in weights.arrays.items():
        taking.take(name, array, rules.rule(name, array.ndim))
    lost = [m.source or "" for m in taking.misfits if m.what == "left over"]
    for target, shape in wanted.items():
        if target not in taking.sources:
            near = next(iter(close_names(target.replace("/", "."), lost)), "")
            taking.misfits.append(Misfit("missing", None, None, target, shape, near))
    return Converted(taking.arrays, taking.sources, taking.left), taking.misfits


class _Taking:
    """The arrays of a network as they are filled, one array of a file after the other."""

    def __init__(self, wanted: Shapes) -> None:
        self.wanted = wanted
        self.arrays: dict[str, NDArray[np.generic]] = {}
        self.sources: dict[str, str] = {}
        self.left: list[str] = []
        self.misfits: list[Misfit] = []

    def take(self, name: str, array: NDArray[np.generic], rule: Rule | None) -> None:
        """One array, with the rule that fits it."""
        if rule is not None and rule.leave:
            self.left.append(name)
            return
        target = name.replace(".", "/") if rule is None else rule.target(name)
        goal = self.wanted.get(target)
        if rule is None or goal is None:
            near = next(iter(close_names(target, list(self.wanted))), "")
            told = None if rule is None else target
            self._refuse("left over", name, array, told, near)
        elif target in self.sources and not rule.add:
            self._refuse("twice", name, array, target, self.sources[target])
        else:
            self._put(name, array, target, rule)

    def _put(self, name: str, array: NDArray[np.generic], target: str, rule: Rule) -> None:
        turned = _turned(array, rule)
        if array.dtype.kind != "f":
            self._refuse(f"type {array.dtype}", name, array, target)
        elif turned is None or turned.shape != self.wanted[target]:
            self._refuse("shape", name, array, target)
        elif target in self.arrays:
            self.arrays[target] = self.arrays[target] + turned  # type: ignore[operator]
        else:
            self.arrays[target] = turned
        before = self.sources.get(target)
        self.sources[target] = name if before is None else f"{before} + {name}"

    def _refuse(
        self, what: str, name: str, array: NDArray[np.generic], target: str | None, near: str = ""
    ) -> None:
        goal = None if target is None else self.wanted.get(target)
        self.misfits.append(Misfit(what, name, array.shape, target, goal, near))


def _turned(array: NDArray[np.generic], rule: Rule) -> NDArray[np.generic] | None:
    """The array with its dimensions and blocks as the rule says; None where it has others."""
    import numpy as np

    if rule.transpose is not None:
        if len(rule.transpose) != array.ndim:
            return None
        array = array.transpose(rule.transpose)
    if rule.blocks is None:
        return array
    count = len(rule.blocks)
    if array.ndim == 0 or array.shape[-1] % count:
        return None
    parts = np.split(array, count, axis=-1)
    return np.concatenate([parts[i] for i in rule.blocks], axis=-1)


def refusal(path: Path, misfits: Sequence[Misfit], fitting: int, wanted: int) -> RunError:
    """The error for what does not fit."""
    kinds: dict[str, int] = {}
    for misfit in misfits:
        kinds[misfit.what] = kinds.get(misfit.what, 0) + 1
    counted = ", ".join(f"{n} {what}" for what, n in kinds.items())
    head = f"{path}: the weights do not fit the network: {counted}"
    rows = [
        (m.what, m.source or "-", shape_text(m.source_shape), m.target or "-", shape_text(m.target_shape), m.near)
        for m in misfits
    ]  # fmt: skip
    lines = table(("", "in the file", "shape", "here", "shape", "near"), rows)
    some = "is it the network that you mean? its arguments are changed with -o model.NAME=VALUE"
    hint = f"{fitting} of {wanted} fit; {some}" if fitting else f"not one array fits: {some}"
    return RunError("\n".join([head, *lines]), hint=hint)


def other_classes(misfits: Sequence[Misfit], classes: int) -> int | None:
    """The number of classes that the file was written with, where the network was built for `classes` and that is not it; else
    None."""
    found = set()
    for m in misfits:
        if m.what == "shape" and m.source_shape is not None and m.target_shape is not None:
            theirs, ours = Counter(m.source_shape), Counter(m.target_shape)
            more, less = list((theirs - ours).elements()), list((ours - theirs).elements())
            if less == [classes] and len(more) == 1:
                found.add(more[0])
    return found.pop() if len(found) == 1 else None


def write(
    output: Path, found: Converted, weights: Weights, graph: Graph, data: Dataset | None
) -> Path:
    """Writes a file of weights, or a model folder that `predict` takes where `data` says how inputs are read; gives the path of
    the weights.

    Raises:
        RunError, ResourceError: it cannot be written.
    """
    place, folder = (output, output.parent) if output.suffix == SUFFIX else (output / MODEL, output)
    with saving(folder, _NO_DISK):
        folder.mkdir(parents=True, exist_ok=True)
    if data is not None and place != output:
        report = {"output": None, "top": None, "labels": None, "pictures": None}
        modeldir.prepare(folder, graph, data.preprocessing(), report, _NO_DISK)
    _save(place, found.arrays, f"converted from {weights.path.name}")
    return place


def _save(place: Path, arrays: Arrays, choice: str) -> None:
    import numpy as np
    from safetensors.numpy import save

    plain = {n: np.ascontiguousarray(a, dtype=np.float32) for n, a in arrays.items()}
    note = {NOTE: json.dumps({"choice": choice, "step": 0}, sort_keys=True)}
    replace(place, save(plain, note), hint=_NO_DISK)


def report(weights: Weights, found: Converted, rules: str, to: str, place: Path) -> dict[str, Any]:
    """What was done, as `--json` prints it."""
    count = sum(a.size for a in found.arrays.values())
    return {
        "schema": 1, "weights": str(weights.path), "to": to, "map": rules, "output": str(place),
        "arrays": len(found.arrays), "numbers": count, "left": sorted(found.left),
        "cast": dict(weights.cast), "names": dict(sorted(found.sources.items())),
    }  # fmt: skip


def remarks(report: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    said = [f"{report['arrays']} arrays, {report['numbers']:,} numbers, by the map {report['map']}"]
    if report["left"]:
        said.append(f"{len(report['left'])} arrays have no place here: {report['left'][0]} ...")
    said += [f"{n} arrays were {kind} and are float32 now" for kind, n in report["cast"].items()]
    return said
