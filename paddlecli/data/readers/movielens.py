"""MovieLens: who gave which film how many stars, as the original's samples.

Reads MovieLens 1M (`users.dat`, `movies.dat`, `ratings.dat`, `::` between the columns) and 100K
(`u.user`, `u.item`, `u.data`, or the same tables as `.user`, `.item`, `.inter` with a header line).

A rating r becomes the score 2r - 5. Every rating draws one number, in the file's order, from
numpy's MT19937 started with `seed`; below `test_share` it tests. Titles lose their year and are cut
at white space, in small letters. Title words and categories are numbered in sorted order; the
original numbered them in the order of a Python set, which is another one in every process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Fraction, Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Column, Dataset, Rows
    from paddlecli.data.entities import Entities
    from paddlecli.data.vocab import Vocabulary

AGES = (1, 18, 25, 35, 45, 50, 56)
"""Lowest ages of the groups."""
_TITLE = re.compile(r"^(.*)\((\d+)\)$")
_GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary",
    "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller",
    "War", "Western",
)  # fmt: skip
_JOBS = 21
_JOBS_100K = (
    "administrator", "artist", "doctor", "educator", "engineer", "entertainment", "executive",
    "healthcare", "homemaker", "lawyer", "librarian", "marketing", "none", "other", "programmer",
    "retired", "salesman", "scientist", "student", "technician", "writer",
)  # fmt: skip


@dataclass(frozen=True)
class User:
    """Gender 0 is M, 1 is F; `age` is an index of `AGES`."""

    gender: int
    age: int
    job: int


@dataclass(frozen=True)
class Movie:
    """Title, its words and the categories of a film."""

    name: str
    title: tuple[str, ...]
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """The three tables; a rating is (user, film, stars, time)."""

    users: Mapping[int, User]
    movies: Mapping[int, Movie]
    ratings: Rows


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
        source = str(files[file])
        read = next((r for names, r in _LAYOUTS.items() if set(names) <= set(found)), None)
        if read is None:
            raise DataError(
                f"{source}: holds no MovieLens tables; it needs "
                + " or ".join(", ".join(names) for names in _LAYOUTS)
            )
        tables = read(found, source)
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


# --- the two layouts ---


def _read_1m(found: Mapping[str, bytes], source: str) -> Tables:
    users, movies = {}, {}
    for line, cells in _rows(found["users.dat"], "::", 5, f"{source}: users.dat"):
        number = _whole(cells[0], f"{source}: users.dat: line {line}")
        place = f"{source}: users.dat: line {line}"
        users[number] = _user(cells[1], cells[2], _whole(cells[3], place), place)
    for line, cells in _rows(found["movies.dat"], "::", 3, f"{source}: movies.dat"):
        number = _whole(cells[0], f"{source}: movies.dat: line {line}")
        movies[number] = _movie(cells[1], cells[2].split("|"))
    ratings = _numbers(found["ratings.dat"].replace(b"::", b" "), f"{source}: ratings.dat")
    return _checked(Tables(users, movies, ratings), f"{source}: ratings.dat")


def _read_100k(found: Mapping[str, bytes], source: str) -> Tables:
    users, movies = {}, {}
    for line, cells in _rows(found["u.user"], "|", 5, f"{source}: u.user"):
        place = f"{source}: u.user: line {line}"
        users[_whole(cells[0], place)] = _user(cells[2], cells[1], _job(cells[3], place), place)
    for line, cells in _rows(found["u.item"], "|", 5 + len(_GENRES_100K), f"{source}: u.item"):
        genres = [g for g, mark in zip(_GENRES_100K, cells[5:], strict=True) if mark == "1"]
        movies[_whole(cells[0], f"{source}: u.item: line {line}")] = _movie(cells[1], genres)
    return _checked(Tables(users, movies, _numbers(found["u.data"], f"{source}: u.data")), source)


def _read_atomic(found: Mapping[str, bytes], source: str) -> Tables:
    users, movies = {}, {}
    name = "ml-100k"
    for line, cells in _rows(found[f"{name}.user"], "\t", 5, f"{source}: {name}.user", header=True):
        place = f"{source}: {name}.user: line {line}"
        users[_whole(cells[0], place)] = _user(cells[2], cells[1], _job(cells[3], place), place)
    for line, cells in _rows(found[f"{name}.item"], "\t", 4, f"{source}: {name}.item", header=True):
        place = f"{source}: {name}.item: line {line}"
        movies[_whole(cells[0], place)] = _movie(cells[1], cells[3].split())
    ratings = found[f"{name}.inter"].partition(b"\n")[2]
    return _checked(Tables(users, movies, _numbers(ratings, f"{source}: {name}.inter")), source)


_LAYOUTS: dict[tuple[str, ...], Callable[[Mapping[str, bytes], str], Tables]] = {
    ("users.dat", "movies.dat", "ratings.dat"): _read_1m,
    ("u.user", "u.item", "u.data"): _read_100k,
    ("ml-100k.user", "ml-100k.item", "ml-100k.inter"): _read_atomic,
}


def _rows(
    data: bytes, separator: str, width: int, source: str, header: bool = False
) -> list[tuple[int, list[str]]]:
    """Numbered rows of a Latin-1 table (UTF-8 where there is a header)."""
    text = data.decode("utf-8" if header else "latin-1", "replace")
    rows = []
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip() or (header and line == 1):
            continue
        cells = row.rstrip("\r").split(separator)
        if len(cells) != width:
            raise DataError(f"{source}: line {line} has {len(cells)} columns, not {width}")
        rows.append((line, cells))
    if not rows:
        raise DataError(f"{source}: holds no rows")
    return rows


def _whole(text: str, place: str) -> int:
    if not text.isdecimal():
        raise DataError(f"{place}: {text!r} is no whole number")
    return int(text)


def _job(name: str, place: str) -> int:
    if name not in _JOBS_100K:
        raise DataError(f"{place}: unknown job {name!r}")
    return _JOBS_100K.index(name)


def _user(gender: str, age: str, job: int, place: str) -> User:
    if job >= _JOBS:
        raise DataError(f"{place}: job {job}; there are 0 to {_JOBS - 1}")
    if gender not in ("M", "F"):
        raise DataError(f"{place}: the gender {gender!r} is neither M nor F")
    years = _whole(age, place)
    return User(int(gender == "F"), max(sum(years >= low for low in AGES) - 1, 0), job)


def _movie(title: str, categories: Sequence[str]) -> Movie:
    return Movie(title, _words(title), tuple(categories))


def _words(title: str) -> tuple[str, ...]:
    found = _TITLE.match(title)
    return tuple(w.lower() for w in (found[1] if found else title).split())


def _numbers(data: bytes, source: str) -> Rows:
    """Rows of four whole numbers between white space."""
    import warnings

    import numpy as np

    lines = [line for line in data.split(b"\n") if line.strip()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # says less than the search below
        try:
            found = np.fromstring(data, np.int64, sep=" ")
        except ValueError:
            found = np.zeros(0, np.int64)
    if found.size != 4 * len(lines):
        _complain(lines, source)
    if not len(lines):
        raise DataError(f"{source}: holds no rows")
    return found.reshape(-1, 4)


def _complain(lines: Sequence[bytes], source: str) -> None:
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if len(cells) != 4 or not all(c.isdigit() for c in cells):
            raise DataError(f"{source}: line {number}: {line[:60]!r} is no rating")
    raise DataError(f"{source}: holds no rows of four numbers")


def _checked(tables: Tables, source: str) -> Tables:
    import numpy as np

    ratings = tables.ratings
    for column, known, what in ((0, tables.users, "user"), (1, tables.movies, "film")):
        odd = np.flatnonzero(~np.isin(ratings[:, column], np.fromiter(known, np.int64)))
        if odd.size:
            row = int(odd[0])
            raise DataError(
                f"{source}: line {row + 1}: no {what} {ratings[row, column]} in the tables "
                f"({odd.size} such lines)"
            )
    odd = np.flatnonzero((ratings[:, 2] < 1) | (ratings[:, 2] > 5))
    if odd.size:
        row = int(odd[0])
        raise DataError(f"{source}: line {row + 1}: {ratings[row, 2]} stars; there are 1 to 5")
    return tables
