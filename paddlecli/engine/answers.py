"""How a row of a network's output becomes an answer: ranked classes, labels of words, a number in its unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.engine.modeldir import Model
from paddlecli.engine.tally import Tally
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import flat

_SOFTMAX = "softmax"


@dataclass(frozen=True)
class Shape:
    """How a row of the output becomes an answer.

    Attributes:
        output: name of the reported output.
        names: of the classes; empty for numbers.
        key: `probability` when the network ends in a softmax over the classes, else `score`.
        top: classes listed.
        tags: whether the output holds numbers of classes, not scores.
        unit: what a number is in the unit of the data set: its name, a factor and a shift.
    """

    output: str
    names: tuple[str, ...]
    key: str
    top: int
    tags: bool = False
    unit: tuple[str, float, float] | None = None

    @classmethod
    def of(cls, model: Model) -> Shape:
        entry = model.graph.entries[model.graph.roles["predict"]]
        output = model.report.get("output") or next(iter(entry.outputs))
        if output not in entry.outputs:
            raise ConfigError(
                f"predict.output: no output `{output}`",
                hint=f"there are {', '.join(entry.outputs)}",
            )
        tensor = entry.outputs[output]
        scores = (
            tensor.spec.dtype.startswith("f")
            and tensor.spec.ndim > 1
            and tensor.spec.shape[-1].known
        )
        width = tensor.spec.shape[-1].coefficient if scores else 1
        makers = {id(t): n.kernel.op for n in flat(entry.items) for t in n.outputs}
        key = "probability" if makers.get(id(tensor)) == _SOFTMAX else "score"
        top, unit = int(model.report.get("top") or 3), model.preprocessing.get("unit")
        if tensor.spec.dtype.startswith("i"):
            return cls(output, _tag_names(model), key, top, tags=True)
        found = (str(unit["name"]), unit["scale"], unit["shift"]) if unit and width == 1 else None
        return cls(output, _names(model, width), key, top, unit=found)

    def tally(self, model: Model) -> Tally | None:
        """Where inputs are counted whose label is one of the classes; None where the output has none."""
        fitting = [f for f, names in model.labels.items() if tuple(names) == self.names]
        output = model.graph.entries[model.graph.roles["predict"]].outputs[self.output]
        known = self.names and not self.tags and output.spec.ndim == 2 and output.spec.axis is None
        return Tally(self.names, fitting[0]) if known and len(fitting) == 1 else None

    @property
    def chunked(self) -> bool:
        """Whether the classes mark where chunks begin and go on."""
        return any(name.startswith("B-") for name in self.names)

    def answer(self, row: NDArray[Any], words: Sequence[str] = ()) -> dict[str, Any]:
        """The answer for one input; `words` are those of its sequence."""
        if not self.names:
            found = {"prediction": row.item() if row.size == 1 else row.tolist()}
            if self.unit is not None and row.size == 1:
                name, scale, shift = self.unit
                found[name] = row.item() * scale + shift
            return found
        if self.tags or row.ndim > 1:
            ids = row if self.tags else row.argmax(axis=-1)
            labels = [self.names[i] for i in ids.reshape(-1)]
            if len(words) != len(labels):
                return {"labels": labels}
            chunks = {"chunks": _chunks(labels, words)} if self.chunked else {}
            return {"labels": labels, "words": list(words), **chunks}
        order = np.argsort(-row, kind="stable")[: self.top]
        ranked = [{"label": self.names[i], self.key: float(row[i])} for i in order]
        plural = "probabilities" if self.key == "probability" else "scores"
        return {**ranked[0], plural: ranked}


def _tag_names(model: Model) -> tuple[str, ...]:
    """Names of the classes when the output has their numbers; empty where it is not clear which."""
    labels = {f["name"] for f in model.preprocessing["fields"] if f["role"] == "label"}
    found = [names for field, names in model.labels.items() if field in labels]
    return tuple(found[0]) if len(found) == 1 else ()


def _chunks(labels: Sequence[str], words: Sequence[str]) -> list[dict[str, str]]:
    """Runs of words that labels mark: B- where one begins, I- where it goes on."""
    chunks: list[dict[str, str]] = []
    previous = "O"
    for label, word in zip(labels, words, strict=True):
        mark, _, kind = label.partition("-")
        if mark == "I" and previous in (f"B-{kind}", f"I-{kind}"):
            chunks[-1]["words"] += f" {word}"
        elif mark in ("B", "I") and kind:
            chunks.append({"label": kind, "words": word})
        previous = label
    return chunks


def _names(model: Model, width: int) -> tuple[str, ...]:
    """Names of the classes when the output has one column a class."""
    chosen = model.report.get("labels")
    if chosen is not None:
        if len(chosen) != width:
            raise ConfigError(f"predict.labels has {len(chosen)} names, the output {width} columns")
        return tuple(chosen)
    fitting = [names for names in model.labels.values() if len(names) == width and width > 1]
    return tuple(fitting[0]) if len(fitting) == 1 else ()
