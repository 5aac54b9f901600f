"""The three tables of MovieLens: users, films and ratings.

Reads MovieLens 1M (`users.dat`, `movies.dat`, `ratings.dat`, `::` between the columns) and 100K
(`u.user`, `u.item`, `u.data`, or the same tables as `.user`, `.item`, `.inter` with a header line).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Rows

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


def read_tables(found: Mapping[str, bytes], source: str) -> Tables:
    """The tables from the files of an archive, by name.

    Raises:
        DataError: tables of no known layout, or damaged.
    """
    read = next((r for names, r in _LAYOUTS.items() if set(names) <= set(found)), None)
    if read is None:
        raise DataError(
            f"{source}: holds no MovieLens tables; it needs "
            + " or ".join(", ".join(names) for names in _LAYOUTS)
        )
    return read(found, source)


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
