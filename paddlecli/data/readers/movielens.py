"""MovieLens: who gave which film how many stars, as the original's samples.

`movielens_tables` reads the files of MovieLens 1M and 100K.

A rating r becomes the score 2r - 5. Every rating draws one number, in the file's order, from
numpy's MT19937 started with `seed`; below `test_share` it tests. Titles lose their year and are cut
at white space, in small letters. Title words and categories are numbered in sorted order; the
original numbered them in the order of a Python set, which is another one in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Fraction, Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.data.readers.movielens_tables import Tables, read_tables
from paddlecli.data.spec import FieldSpec

if TYPE_CHECKING:
    from paddlecli.data.columns import Column, Dataset, Rows
    from paddlecli.data.entities import Entities
    from paddlecli.data.vocab import Vocabulary


@READERS.register("movielens")
class MovielensReader(ArchivedReader):
    """One sample a rating.

    Args:
        seed: start of the random numbers that cut the ratings into train and test.
        test_share: share of the ratings that tests.
        history: adds the field history: so many of the films that the user rated before, as far as
            they are in the train split, the latest last; 0: no such field.
    """

    def __init__(
        self, card: Card, *, seed: Natural = 0, test_share: Fraction = 0.1, history: Natural = 0
    ) -> None:
        super().__init__(card, seed=seed, test_share=test_share, history=history)
        self.seed, self.test_share, self.history = seed, test_share, history

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        found = super().fields(sizes)
        if not self.history:
            return found
        films = next(f.classes for f in found if f.name == "movie_id")
        past = FieldSpec("history", "input", (), "int64", ("history",), films)
        return [*found[:-1], past, found[-1]]

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        import numpy as np

        (file,) = files
        found = {n.rpartition("/")[2]: data for n, data in self.members(files, file)}
        tables = read_tables(found, str(files[file]))
        draws = np.random.RandomState(self.seed).random_sample(len(tables.ratings))
        tests = draws < self.test_share
        vocabularies = _vocabularies(tables)
        past = _Past(tables.ratings[~tests], self.history) if self.history else None
        make = _Samples(tables, vocabularies, past)
        splits = {
            name: make.columns(tables.ratings[rows])
            for name, rows in (("train", ~tests), ("test", tests))
            if rows.any()
        }
        films = max(tables.movies) + 1
        most = {"user_id": max(tables.users) + 1, "movie_id": films, "history": films}
        known = make.entities(tables.ratings[~tests])
        made = self.made(splits, vocabularies, at_least=most, entities=known)
        names = tuple(
            known["movie"].label(i) for i in range(made.spec.find("movie_id").classes or 0)
        )
        fields = (replace(f, names=names) if f.name == "movie_id" else f for f in made.spec.fields)
        made.spec = replace(made.spec, fields=tuple(fields))
        return made


def _vocabularies(tables: Tables) -> dict[str, Vocabulary]:
    from paddlecli.data.vocab import Vocabulary

    movies = tables.movies.values()
    return {
        "title": Vocabulary(sorted({w for m in movies for w in m.title})),
        "category": Vocabulary(sorted({c for m in movies for c in m.categories})),
    }


class _Samples:
    """Looks the users and films of ratings up."""

    def __init__(
        self, tables: Tables, vocabularies: Mapping[str, Vocabulary], past: _Past | None
    ) -> None:
        import numpy as np

        self.past = past
        self.tables = tables
        self.users = np.zeros((max(tables.users) + 1, 3), np.int64)
        for number, user in tables.users.items():
            self.users[number] = user.gender, user.age, user.job
        self.categories = _ragged(
            {n: vocabularies["category"].encode(m.categories) for n, m in tables.movies.items()}
        )
        self.titles = _ragged(
            {n: vocabularies["title"].encode(m.title) for n, m in tables.movies.items()}
        )

    def columns(self, ratings: Rows) -> Columns:
        """The columns of some ratings, in their order."""
        import numpy as np

        from paddlecli.data.columns import Column

        user, movie = np.ascontiguousarray(ratings[:, 0]), np.ascontiguousarray(ratings[:, 1])
        gender, age, job = (Column(np.ascontiguousarray(c)) for c in self.users[user].T)
        return {
            "user_id": Column(user),
            "gender_id": gender,
            "age_id": age,
            "job_id": job,
            "movie_id": Column(movie),
            "category_id": self.categories.take(movie),
            "movie_title": self.titles.take(movie),
            "score": Column((2 * ratings[:, 2] - 5).astype(np.float32)[:, None]),
            **({"history": self.past.before(user, ratings[:, 3])} if self.past else {}),
        }

    def entities(self, ratings: Rows) -> dict[str, Entities]:
        """What is known of every user and film; `rows` counts these ratings, `rated` are a user's films."""
        import numpy as np

        from paddlecli.data.entities import Entities

        def counts(column: int, known: Mapping[int, object]) -> list[int]:
            found: list[int] = np.bincount(ratings[:, column], minlength=max(known) + 1).tolist()
            return found

        users, films = counts(0, self.tables.users), counts(1, self.tables.movies)
        rated = _rated(ratings)
        rows = [
            {"id": n, "rows": users[n], "gender_id": u.gender, "age_id": u.age, "job_id": u.job,
             "rated": rated.get(n, [])}
            for n, u in sorted(self.tables.users.items())
        ]  # fmt: skip
        if self.past is not None:
            ids = np.asarray([row["id"] for row in rows], np.int64)
            whole = self.past.before(ids, np.full(ids.size, _LATEST))
            rows = [{**row, "history": whole.row(i).tolist()} for i, row in enumerate(rows)]  # type: ignore[union-attr]
        return {
            "user": Entities("user", rows),
            "movie": Entities("film", [
                {
                    "id": n, "name": m.name, "rows": films[n],
                    "category_id": self.categories.row(n).tolist(),  # type: ignore[union-attr]
                    "movie_title": self.titles.row(n).tolist(),  # type: ignore[union-attr]
                }
                for n, m in sorted(self.tables.movies.items())
            ]),
        }  # fmt: skip


def _rated(ratings: Rows) -> dict[int, list[int]]:
    """By user the films that are rated, by number."""
    import numpy as np

    pairs = np.unique(ratings[:, :2], axis=0)
    users, firsts = np.unique(pairs[:, 0], return_index=True)
    films = np.split(pairs[:, 1], firsts[1:])
    return {int(u): f.tolist() for u, f in zip(users, films, strict=True)}


_LATEST = 2**40 - 1
"""Behind every time, in seconds since 1970."""


class _Past:
    """The films that users rated, in the order of time.

    Args:
        ratings: of the train split.
        most: films that are looked back on.
    """

    def __init__(self, ratings: Rows, most: int) -> None:
        import numpy as np

        keys = ratings[:, 0] * (_LATEST + 1) + ratings[:, 3]
        order = np.argsort(keys, kind="stable")
        self.keys, self.films, self.most = keys[order], ratings[order, 1], most

    def before(self, users: Rows, times: Rows) -> Column:
        """The films that these users rated before these times."""
        import numpy as np

        from paddlecli.data.columns import Column

        first = np.searchsorted(self.keys, users * (_LATEST + 1))
        stop = np.searchsorted(self.keys, users * (_LATEST + 1) + times)
        lengths = np.minimum(stop - first, self.most)
        offsets = np.zeros(users.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(stop - lengths - offsets[:-1], lengths)
        return Column(np.ascontiguousarray(self.films[places]), (offsets,))


def _ragged(rows: Mapping[int, Sequence[int]]) -> Column:
    """One row a number from 0 on; numbers that are not there have none."""
    import numpy as np

    from paddlecli.data.columns import pack

    return pack((np.asarray(rows.get(i, ()), np.int64) for i in range(max(rows) + 1)), "int64")
