"""What a network learned about words, films and other things with a vector each: neighbours,
similarity, analogies, a picture, and the vectors themselves for other programs.

Similarity is the cosine of two vectors, as in the original's word-distance tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.entities import Entities
from paddlecli.engine.files import ELSEWHERE, replace
from paddlecli.engine.modeldir import Model
from paddlecli.errors import DataError, UsageError
from paddlecli.graph.ir import Graph, flat

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Near:
    """The name of a row and the cosine of its vector with another."""

    name: str
    cosine: float

    def as_dict(self) -> dict[str, Any]:
        """The pair as plain data."""
        return {"name": self.name, "cosine": self.cosine}


class Table:
    """A table of vectors with the names of its rows.

    Args:
        name: of the parameter.
        names: words, titles of films and so on, by row.
        vectors: [names, width].
        entities: the things that the rows are about, in the rows' order; None for words.
    """

    def __init__(
        self, name: str, names: Sequence[str], vectors: Vectors, entities: Entities | None = None
    ) -> None:
        self.name, self.names, self.vectors = name, tuple(names), vectors
        self.entities = entities
        self.what = "word" if entities is None else entities.name
        """What one row is about: `word`, `film`, `user`."""

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: i for i, name in reversed(list(enumerate(self.names)))}

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            found.setdefault(name.casefold(), []).append(row)
        return found

    @cached_property
    def units(self) -> Vectors:
        """The vectors with length 1; one of length 0 stays."""
        lengths = np.linalg.norm(self.vectors.astype(np.float64), axis=1, keepdims=True)
        return np.asarray(self.vectors / np.maximum(lengths, 1e-30), np.float32)

    @cached_property
    def _by_id(self) -> dict[int, int]:
        rows = () if self.entities is None else self.entities.rows
        return {int(known["id"]): row for row, known in enumerate(rows)}

    def row(self, name: str) -> int:
        """The row of a word; of other things also by number, or by a part of a name that only one has.

        Raises:
            DataError: there is none, or there are several; names near ones.
        """
        if self.entities is not None:
            label = self._folded.get(name.strip().casefold(), [])
            if len(label) == 1:
                return label[0]
            return self._by_id[int(self.entities.find(name)["id"])]
        if name in self._rows:
            return self._rows[name]
        folded = self._folded.get(name.casefold(), [])
        if len(folded) == 1:
            return folded[0]
        from paddlecli.config.nodes import close_names

        near = close_names(name, self.names)
        meant = f"did you mean {', '.join(near)}?" if near else f"there are {len(self.names)} words"
        raise DataError(f"{name!r} has no vector in the table {self.name}: {meant}")

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two rows' vectors."""
        return float(self.units[self.row(one)] @ self.units[self.row(other)])

    def neighbors(self, name: str, top: int = 10) -> list[Near]:
        """The rows whose vectors are nearest to one's, itself left out."""
        row = self.row(name)
        return self._nearest(self.units[row], {row}, top)

    def analogy(self, a: str, b: str, c: str, top: int = 10) -> list[Near]:
        """Rows that are to c what b is to a: nearest to b - a + c of unit length; these left out."""
        rows = [self.row(w) for w in (a, b, c)]
        first, second, third = self.units[rows]
        return self._nearest(second - first + third, set(rows), top)

    def _nearest(self, vector: Vectors, without: set[int], top: int) -> list[Near]:
        length = max(float(np.linalg.norm(vector)), 1e-30)
        cosines = self.units @ (vector / length)
        best = [i for i in np.argsort(-cosines, kind="stable").tolist() if i not in without]
        return [Near(self.names[i], float(cosines[i])) for i in best[:top]]

    def chosen(self, names: Sequence[str], count: int) -> tuple[list[str], Vectors]:
        """These rows' names with their vectors; without any the first `count`, which are the most
        frequent in vocabularies by falling count."""
        rows = [self.row(n) for n in names] or list(range(min(count, len(self.names))))
        return [self.names[i] for i in rows], self.vectors[rows]


def tables(model: Model) -> dict[str, Table]:
    """The tables of a model whose rows have names, in the order of their first use."""
    found: dict[str, Table] = {}
    for parameter, field in _uses(model.graph):
        vectors = np.asarray(model.values[parameter], np.float32)
        table = _named(parameter, vectors, model.preprocessing, field)
        if parameter not in found and table is not None:
            found[parameter] = table
    return found


def table_of(model: Model, name: str | None = None) -> Table:
    """The table of that name, or the only one, or the first.

    Raises:
        UsageError: no such table, or the model has none.
    """
    found = tables(model)
    if not found:
        raise UsageError(
            f"{model.path}: no table of this network has rows with names",
            hint="networks on words have one: `paddlecli recipe list` shows which there are",
        )
    if name is not None and name not in found:
        raise UsageError(f"--table {name}: there is no such table; there are {', '.join(found)}")
    return found[name] if name is not None else next(iter(found.values()))


def _uses(graph: Graph) -> Iterable[tuple[str, str]]:
    """Parameter and input of every embedding that reads an input."""
    for entry in graph.entries.values():
        for node in flat(entry.items):
            if node.kernel.op == "embedding" and node.args["ids"].role == "input":
                yield node.args["w"].name, node.args["ids"].name.partition("@")[0]


def _named(
    parameter: str, vectors: Vectors, preprocessing: Mapping[str, Any], field: str
) -> Table | None:
    """The table with the names of what the ids of a field stand for; None where they have none."""
    known = next((f for f in preprocessing["fields"] if f["name"] == field), None)
    vocabularies = preprocessing.get("vocabularies", {})
    words: Sequence[str] | None = None
    if known is not None and known.get("vocabulary") in vocabularies:
        words = vocabularies[known["vocabulary"]]["words"]
    for pipeline in preprocessing.get("pipelines", ()) if words is None else ():
        if pipeline["name"] != field or len(pipeline["parts"]) != 1:
            continue
        for step in pipeline["parts"][0]["steps"]:
            state = step["state"]
            if "table" in state and step["name"] != "predicate":
                words = vocabularies[state["table"]]["words"]
            elif "entities" in state and step["arguments"].get("give", "id") == "id":
                return _about(
                    parameter, vectors, Entities.of(preprocessing["entities"][state["entities"]])
                )
    fits = words is not None and len(words) == len(vectors)
    return Table(parameter, words, vectors) if words is not None and fits else None


def _about(parameter: str, vectors: Vectors, entities: Entities) -> Table | None:
    """The rows of numbers that stand for something; those of other numbers never trained."""
    ids = [int(row["id"]) for row in entities.rows]
    if max(ids, default=0) >= len(vectors):
        return None
    return Table(parameter, [entities.label(i) for i in ids], vectors[ids], entities)


# -- two dimensions -------------------------------------------------------------------------------


def principal(vectors: Vectors) -> NDArray[np.float64]:
    """The two directions in which the vectors differ most (PCA): [words, 2]. The sign of each is such
    that its largest element is positive."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = np.zeros((len(vectors), 2))
    width = min(2, s.size)
    found[:, :width] = u[:, :width] * s[:width]
    for column in found.T:
        if column[np.abs(column).argmax()] < 0:
            column *= -1
    return found


def neighbourly(
    vectors: Vectors, perplexity: float = 15.0, steps: int = 500
) -> NDArray[np.float64]:
    """t-SNE (van der Maaten and Hinton 2008), exact, from the principal directions: [words, 2]."""
    n = len(vectors)
    p = _affinities(vectors.astype(np.float64), min(perplexity, max((n - 1) / 3, 1.0)))
    y = principal(vectors)
    y *= 1e-2 / max(float(y.std()), 1e-30)
    speed = np.zeros_like(y)
    for step in range(steps):
        distances = _distances(y)
        q = 1.0 / (1.0 + distances)
        np.fill_diagonal(q, 0.0)
        pull = (p * (4.0 if step < 100 else 1.0) - q / max(float(q.sum()), 1e-30)) * q
        gradient = 4.0 * (pull.sum(axis=1)[:, None] * y - pull @ y)
        speed = (0.5 if step < 100 else 0.8) * speed - max(n / 12.0, 10.0) * gradient
        y = y + speed
    return np.asarray(y - y.mean(axis=0))


def _distances(x: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (x * x).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2.0 * x @ x.T, 0.0))


def _affinities(x: NDArray[np.float64], perplexity: float) -> NDArray[np.float64]:
    """Joint probabilities; each point's width is found by halving until the entropy fits."""
    distances, n = _distances(x), len(x)
    p = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        row = distances[i, others] - distances[i, others].min(initial=np.inf)
        low, high, beta = 0.0, np.inf, 1.0 / max(float(row.mean()) if row.size else 1.0, 1e-30)
        for _ in range(60):
            weights = np.exp(-row * beta)
            total = weights.sum()
            entropy = np.log(total) + beta * float((row * weights).sum()) / total
            if entropy > np.log(perplexity):
                low, beta = beta, beta * 2 if np.isinf(high) else (beta + high) / 2
            else:
                high, beta = beta, (beta + low) / 2
        p[i, others] = weights / total
    return np.asarray(np.maximum((p + p.T) / (2.0 * n), 1e-12))


def picture(
    names: Sequence[str], points: NDArray[np.float64], path: Path, size: int = 1000
) -> None:
    """Writes a PNG with every name at its point.

    Raises:
        ResourceError: the disk is full.
        RunError: it cannot be written for another reason.
    """
    import io

    from PIL import Image, ImageDraw

    margin = size // 12
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-30)
    places = margin + (points - low) / span * (size - 2 * margin)
    image = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(image)
    for name, (x, y) in zip(names, places.tolist(), strict=True):
        top = size - y
        draw.ellipse((x - 3, top - 3, x + 3, top + 3), fill=(31, 119, 180))
        draw.text((x + 5, top - 6), name.encode("ascii", "replace").decode(), fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    replace(path, out.getvalue(), hint=ELSEWHERE)


def export(table: Table, path: Path) -> None:
    """Writes the vectors in word2vec's text format: how many and how wide, then a name and its
    numbers a line. White space in names becomes `_`.

    Raises:
        ResourceError: the disk is full.
        RunError: it cannot be written for another reason.
    """
    lines = [f"{len(table.names)} {table.vectors.shape[1]}"]
    for name, row in zip(table.names, table.vectors, strict=True):
        lines.append(" ".join(["_".join(name.split()), *(f"{v:.9g}" for v in row.tolist())]))
    text = "\n".join(lines) + "\n"
    replace(path, text.encode("utf-8", "backslashreplace"), hint=ELSEWHERE)
