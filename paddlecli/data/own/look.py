"""A first look at a user's own data: what a file or folder seems to be, which settings read it, and
what a user should know of it. `recipe new` writes down what is found here.

Everything is a guess that is said aloud: the recipe's comments name it, and a flag overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli.data.formats import images
from paddlecli.data.own.frame import Frame
from paddlecli.data.own.look_facts import LEAST_ROWS, Look, Task, counted, many, split
from paddlecli.data.own.look_tables import (
    MOST_CATEGORIES,
    TEXT_WORDS,
    look_at_table,
    options_of,
    section_of,
)
from paddlecli.data.readers.base import read_text
from paddlecli.data.readers.delimited import table
from paddlecli.data.readers.image_folder import pictures_in
from paddlecli.data.readers.jsonl import json_lines
from paddlecli.data.readers.text_files import lines as text_rows
from paddlecli.data.readers.text_folder import texts_in
from paddlecli.errors import DataError, UsageError

_PICTURES_MEASURED = 500
_LARGEST_SIDE = 64


def look(
    path: Path, target: str | None = None, task: Task | None = None, encoding: str = "utf-8"
) -> Look:
    """Looks at a table, a file of texts, or a folder with one folder a class.

    Args:
        path: the file or folder.
        target: the column to predict; guessed by its name if None.
        task: guessed from the target if None.
        encoding: of text files.

    Raises:
        DataError: broken, empty, or nothing that can be learned from; names the line.
        UsageError: the target cannot be guessed (names the columns), or does not exist.
    """
    if path.is_dir():
        found = _folder(path)
        if target is not None or task == "regression":
            raise UsageError(
                f"{path}: the folders are the classes: --target and --task do not apply"
            )
        return found
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    suffix = path.suffix.lower()
    if suffix in images.SUFFIXES:
        raise DataError(f"{path}: is one picture", hint="give a folder with one folder a class")
    if suffix in (".jsonl", ".ndjson", ".json"):
        return look_at_table(json_lines(path), path, {"name": "jsonl"}, target, task)
    text = read_text(path, encoding)
    options = options_of(text, path)
    extra = {} if encoding == "utf-8" else {"encoding": encoding}
    if target is None and _labelled_text(text, options):
        return _text_lines(text, path, extra)
    frame = table(text, str(path), {"quote": '"', "columns": None, "comment": None, **options})
    return look_at_table(frame, path, {**section_of(options), **extra}, target, task)


# -- texts ----------------------------------------------------------------------------------------
def _labelled_text(text: str, options: Mapping[str, Any]) -> bool:
    """Whether lines are `label TAB text`: two parts, few labels, several words, no header."""
    if options["delimiter"] != "\t" or options["header"]:
        return False
    rows = [line.split("\t") for line in text.splitlines() if line.strip()][:1000]
    if any(len(row) < 2 for row in rows) or len(rows) < LEAST_ROWS:
        return False
    labels = {row[0].strip() for row in rows}
    words = sum(len(cell.split()) for row in rows for cell in row[1:]) / len(rows)
    return words >= TEXT_WORDS and len(labels) <= max(2, min(MOST_CATEGORIES, len(rows) // 2))


def _text_lines(text: str, path: Path, extra: Mapping[str, Any]) -> Look:
    frame = text_rows(text, str(path), ("label", "text"))
    data = {"name": "text_lines", "train": str(path.absolute()), **extra}
    return _texts(frame, path, data, "lines of a label, a tab and a text")


def _texts(frame: Frame, path: Path, data: dict[str, Any], what: str) -> Look:
    labels = list(frame.columns["label"].rows)
    classes = counted(labels)
    if len(classes) < LEAST_ROWS:
        raise DataError(f"{path}: {many(len(classes), 'class')}: there is nothing to learn")
    lengths = sorted(len(t.split()) for t in frame.columns["text"].rows)
    data = {**data, "split": split(len(frame), "label", classes)}
    notes = (
        f"words in a text: {lengths[0]:,} to {lengths[-1]:,}, "
        f"half have at most {lengths[len(lengths) // 2]:,}",
        *frame.notes,
    )
    text = f"{what}: {many(len(frame), 'text')}"
    return Look(text, data, "classification", "label", len(frame), classes, notes=notes)


# -- folders --------------------------------------------------------------------------------------
def _folder(path: Path) -> Look:
    """One folder a class, of pictures or of texts."""
    inside = [p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")]
    pictures = sum(p.suffix.lower() in images.SUFFIXES for p in inside)
    texts = sum(p.suffix.lower() in (".txt", "") for p in inside)
    if not inside:
        raise DataError(f"{path}: holds no file")
    if not pictures and not texts:
        raise DataError(
            f"{path}: holds neither pictures nor text files, but {inside[0].suffix or inside[0].name}",
            hint="pictures and texts lie in one folder a class; a table is given as its file",
        )
    if texts > pictures:
        return _texts(texts_in(path), path, {"name": "text_folder", "train": str(path.absolute())},
                      "one folder a class with a file a text")  # fmt: skip
    return _pictures(path)


def _pictures(path: Path) -> Look:
    frame = pictures_in(path)
    files, labels = frame.columns["image"].rows, frame.columns["label"].rows
    classes = counted(labels)
    if len(classes) < LEAST_ROWS:
        raise DataError(f"{path}: holds one class: there is nothing to learn")
    step = max(1, len(files) // _PICTURES_MEASURED)
    sizes, grey = _measured([Path(f) for f in files[::step]])
    height, width = (int(np.median([s[i] for s in sizes])) for i in (0, 1))
    scale = min(1.0, _LARGEST_SIDE / max(height, width))
    size = [max(8, round(height * scale)), max(8, round(width * scale))]
    data: dict[str, Any] = {"name": "image_folder", "train": str(path.absolute()), "size": size}
    if grey:
        data["channels"] = 1
    data["split"] = split(len(files), "label", classes)
    smallest, largest = min(sizes), max(sizes)
    span = f"{smallest[1]}x{smallest[0]}" + (
        f" to {largest[1]}x{largest[0]}" if smallest != largest else ""
    )
    notes = (
        f"pixels: {span}, {'grey' if grey else 'colours'}; all are scaled to {size[1]}x{size[0]}",
        *frame.notes,
    )
    what = f"one folder a class: {many(len(files), 'picture')}"
    return Look(what, data, "classification", "label", len(files), classes, notes=notes)


def _measured(files: Sequence[Path]) -> tuple[list[tuple[int, int]], bool]:
    """Heights and widths, and whether all are grey."""
    sizes, grey = [], True
    for file in files:
        image = images.load(file.read_bytes(), str(file))
        sizes.append((image.height, image.width))
        grey &= image.mode in ("1", "L", "LA", "I;16", "I")
    return sizes, grey
