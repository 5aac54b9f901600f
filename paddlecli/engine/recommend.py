"""Recommendations: all that a table of the data set holds (films), in the order in which a model rates
them for one of another table (a user)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddlecli.data.entities import Entities
from paddlecli.data.inputs import read_inputs
from paddlecli.data.records import Record
from paddlecli.engine.modeldir import Model
from paddlecli.engine.predict import Predictor
from paddlecli.errors import DataError, UsageError


@dataclass(frozen=True)
class Recommended:
    """One line of the ranking.

    Attributes:
        rows: train rows that were about it; 0: the model knows only what it is.
        answer: what the model predicts, as `predict` tells it.
    """

    rank: int
    id: int
    name: str
    rows: int
    answer: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The line as plain data."""
        line = {"rank": self.rank, "id": self.id, "name": self.name, "rows": self.rows}
        return {**line, **self.answer}


@dataclass(frozen=True)
class Ranking:
    """The best of a table for one input: `total` were ranked; `notes` is what a user should know of it."""

    given: str
    total: int
    best: tuple[Recommended, ...]
    notes: tuple[str, ...] = ()


def recommend(
    model: Model,
    user: str,
    top: int = 10,
    threads: int | None = None,
    batch_size: int | None = None,
    include_rated: bool = False,
) -> Ranking:
    """The `top` best films for a user.

    Args:
        model: one whose data set has the tables `user` and `movie`.
        user: the user's number.
        include_rated: also films that the user rated in the training.

    Raises:
        UsageError: the model does not rate films for users.
        DataError: there is no such user.
    """
    users, movies = _tables(model)
    row = users.find(user)
    predictor = Predictor(model, threads, batch_size)
    shape_of_answers = _columns(model)
    if "movie" not in shape_of_answers:
        scores, answers = _by_class(predictor, model, user, movies)
    else:
        scores, answers = _one_by_one(predictor, model, user, movies)
    rated = frozenset[int]() if include_rated else frozenset(row.get("rated", ()))
    order = np.argsort(-np.asarray(scores), kind="stable").tolist()
    left = [i for i in order if movies.rows[i]["id"] not in rated]
    best = []
    for rank, i in enumerate(left[:top], 1):
        known = movies.rows[i]
        number = int(known["id"])
        best.append(Recommended(rank, number, movies.label(number), int(known["rows"]), answers[i]))
    notes = _notes(row, best, len(order) - len(left))
    return Ranking(f"{users.name} {row['id']}", len(left), tuple(best), notes)


def _notes(row: Mapping[str, Any], best: Sequence[Recommended], rated: int) -> tuple[str, ...]:
    notes = []
    if rated:
        notes.append(
            f"{rated} films that user {row['id']} rated in the training are left out "
            "(--include-rated lists them too)"
        )
    if not row["rows"]:
        notes.append(
            f"user {row['id']} rated nothing in the training: the answer rests on what else is known "
            "of the user"
        )
    cold = sum(not line.rows for line in best)
    if cold:
        notes.append(f"{cold} of these films were never rated in the training (rows: 0)")
    return tuple(notes)


def _tables(model: Model) -> tuple[Entities, Entities]:
    tables = model.preprocessing.get("entities", {})
    if not {"user", "movie"} <= set(tables):
        raise UsageError(
            f"{model.path}: this model does not rate films for users: its data set has no such tables",
            hint="train a network on ratings of films by users: `paddlecli recipe list` shows which do",
        )
    return Entities.of(tables["user"]), Entities.of(tables["movie"])


def _columns(model: Model) -> set[str]:
    """The columns that the network's inputs are made of."""
    needed = set(model.preprocessing["needed"])
    fields = (f for f in model.preprocessing["pipelines"] if f["name"] in needed)
    return {c for f in fields for part in f["parts"] for c in part["columns"]}


def _one_by_one(
    predictor: Predictor, model: Model, user: str, movies: Entities
) -> tuple[list[float], list[dict[str, float]]]:
    """The prediction for every film."""
    first = int(movies.rows[0]["id"])
    (made,) = read_inputs(model.preprocessing, fields=[f"user={user}", f"movie={first}"])
    if made.error is not None:
        raise DataError(made.error)
    answers = []
    for prediction in predictor.run(_records(made, model, movies)):
        found = {k: v for k, v in prediction.answer.items() if isinstance(v, float)}
        answers.append(found)
    return [a["prediction"] for a in answers], answers


def _records(made: Record, model: Model, movies: Entities) -> Iterator[Record]:
    """The record of the user with every film in turn."""
    of_films = {}
    for field in model.preprocessing["pipelines"]:
        (part,) = field["parts"]
        step = part["steps"][0]
        if part["columns"] == ["movie"] and field["name"] in made.arrays:
            of_films[field["name"]] = step["arguments"].get("give", "id")
    for row in movies.rows:
        values = {n: np.asarray(row[give], made.arrays[n].dtype) for n, give in of_films.items()}
        yield Record(movies.label(int(row["id"])), {**made.arrays, **values})


def _by_class(
    predictor: Predictor, model: Model, user: str, movies: Entities
) -> tuple[list[float], list[dict[str, float]]]:
    """The probability of every film, from a network that gives them all at once."""
    (made,) = read_inputs(model.preprocessing, fields=[f"user={user}"])
    if made.error is not None:
        raise DataError(made.error)
    scores = predictor.values(made).reshape(-1)
    found = [float(scores[int(row["id"])]) for row in movies.rows]
    return found, [{"probability": p} for p in found]
