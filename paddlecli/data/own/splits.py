"""Which rows of a user's files train, which validate and which test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from paddlecli.config.sections import Section, complain
from paddlecli.config.types import Fraction, Name, Natural
from paddlecli.data.columns import Rows
from paddlecli.data.loader import random_words
from paddlecli.data.own.frame import Faults, Frame, cells_of
from paddlecli.errors import DataError

SPLITS = ("train", "valid", "test")
_STREAM = crc32(b"splits")


class SplitRule(Section):
    """How the rows of one set of files are shared out. Shares and seed make the same splits on any
    machine; every split keeps the order of the files."""

    valid: Fraction = 0.0
    """Share of the rows that validate."""
    test: Fraction = 0.0
    """Share of the rows that test."""
    stratify: Name | None = None
    """Column whose values have the same shares in every split, as near as whole rows allow."""
    group: Name | None = None
    """Column whose equal values stay together: no patient, author or day is in two splits. It is no
    input unless the recipe says so."""
    column: Name | None = None
    """Column that says `train`, `valid` or `test` for every row, instead of shares; it is no input."""
    seed: Natural = 0
    """Start of the random numbers that pick the rows."""

    @model_validator(mode="after")
    def _agree(self) -> SplitRule:
        if self.column is not None and (self.valid or self.test or self.stratify or self.group):
            complain(
                "`column` says which row is in which split: leave the other keys out", "column"
            )
        if self.column is None and not (self.valid or self.test):
            complain("give the share of `test` or `valid`, or a `column`")
        if self.valid + self.test >= 1:
            complain("`valid` and `test` together leave nothing to train on", "test")
        if self.stratify and self.group:
            complain("`stratify` and `group` cannot both be kept", "group")
        return self


def cut(frame: Frame, rule: SplitRule) -> dict[str, Frame]:
    """The frame's rows by split.

    Raises:
        DataError: a split would have no rows, or a row names no split.
    """
    if rule.column is not None:
        chosen = _named(frame, rule.column)
    else:
        chosen = np.zeros(len(frame), np.int64)
        if rule.group is not None:
            cells = cells_of(frame.column(rule.group), rule.group, Faults(frame))
            _share_groups(_groups(cells), rule, chosen)
        for rows in _alike(frame, rule):
            _share_rows(rows, rule, chosen)
    return {name: frame.take(rows) for name, rows in _by_split(frame, chosen, rule).items()}


def _files(frame: Frame) -> str:
    more = len(frame.files) - 1
    return frame.files[0] + (f" and {more} more file{'s' * (more > 1)}" if more else "")


def _by_split(frame: Frame, chosen: NDArray[np.int64], rule: SplitRule) -> Mapping[str, Rows]:
    found = {name: np.flatnonzero(chosen == i) for i, name in enumerate(SPLITS)}
    wanted = {"train": 1.0, "valid": rule.valid, "test": rule.test}
    for name, rows in found.items():
        if not rows.size and (wanted[name] if rule.column is None else name == "train"):
            raise DataError(
                f"split: {name} would have none of the {len(frame)} rows of {_files(frame)}",
                hint="raise its share, or give a file of its own",
            )
    return {name: rows for name, rows in found.items() if rows.size}


def _named(frame: Frame, column: str) -> NDArray[np.int64]:
    faults = Faults(frame).about(column)
    chosen = np.zeros(len(frame), np.int64)
    for row, cell in enumerate(cells_of(frame.column(column), column, faults)):
        if cell not in SPLITS:
            faults.add(row, f"{cell!r} is no split; there are {', '.join(SPLITS)}")
        chosen[row] = SPLITS.index(cell)
    return chosen


def _alike(frame: Frame, rule: SplitRule) -> list[Rows]:
    """Rows that are shared out one by one; each list of them on its own."""
    if rule.group is not None:
        return []
    if rule.stratify is None:
        return [np.arange(len(frame), dtype=np.int64)]
    return _groups(cells_of(frame.column(rule.stratify), rule.stratify, Faults(frame)))


def _groups(cells: Sequence[str]) -> list[Rows]:
    _, inverse = np.unique(np.asarray(list(cells), dtype=str), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


def _share_rows(rows: Rows, rule: SplitRule, chosen: NDArray[np.int64]) -> None:
    """Marks rows by split: first test, then valid, the rest trains."""
    order = np.argsort(random_words(chosen.size, _STREAM, rule.seed)[rows], kind="stable")
    middles = np.arange(rows.size) + 0.5
    test, rest = _edges(rows.size, rule)
    chosen[rows[order[middles < rest]]] = SPLITS.index("valid")
    chosen[rows[order[middles < test]]] = SPLITS.index("test")


def _share_groups(groups: list[Rows], rule: SplitRule, chosen: NDArray[np.int64]) -> None:
    """Likewise for groups whose rows stay together."""
    firsts = np.asarray([group[0] for group in groups], np.int64)
    order = np.argsort(random_words(chosen.size, _STREAM, rule.seed)[firsts], kind="stable")
    test, rest = _edges(chosen.size, rule)
    done = 0
    for group in (groups[i] for i in order):
        middle = done + group.size / 2
        if middle < rest:
            chosen[group] = SPLITS.index("test" if middle < test else "valid")
        done += group.size


def _edges(rows: int, rule: SplitRule) -> tuple[float, float]:
    """Where the rows of test end, and those of valid behind them."""
    return rows * rule.test, rows * (rule.test + rule.valid)
