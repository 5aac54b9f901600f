"""A user's own texts: one a line with a label (`text_lines`), pairs of them (`text_pairs`), and words
with tags in columns (`conll`)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TextIO

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Count, Name
from paddlecli.data.own.columnar import TEXT_STEPS
from paddlecli.data.own.fields import Field, FieldRecipe
from paddlecli.data.own.frame import Bad, Frame, Values, frame_of, raising
from paddlecli.data.own.packed import Packed
from paddlecli.data.own.reader import Common, Files, OwnReader, fields_of, only
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.readers.base import split_lines, text_stream
from paddlecli.data.transforms.base import Chain, Step, Steps
from paddlecli.errors import ConfigError, DataError

START, END, UNKNOWN = "<s>", "<e>", "<unk>"


class LinesReader(OwnReader):
    """One row a line, its parts separated by a tab.

    Args:
        name: of the format.
        common: what all readers of own files are given.
        columns: names of the parts, in order.
        encoding: of the files.
        made: the fields.
    """

    def __init__(
        self, name: str, common: Common, columns: tuple[str, ...], encoding: str, made: list[Field]
    ) -> None:
        super().__init__(name, common)
        self.columns, self.encoding, self.made = columns, encoding, made
        self.predicts = {"format": "lines", "columns": list(columns), "encoding": encoding}

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        with text_stream(path, self.encoding) as text:
            return lines(text, str(path), self.columns, self.bad)

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        return [Field.thaw(f.freeze()) for f in self.made]


def lines(text: str | TextIO, source: str, columns: tuple[str, ...], bad: Bad = raising) -> Frame:
    """One row a line that is not empty; `bad` is told of one with too few or too many tabs.

    Raises:
        DataError: no line at all.
    """
    columns_of = [Packed("cells") for _ in columns]
    numbers = array("q")
    for number, line in split_lines(text):
        if not line.strip():
            continue
        parts = line.split("\t", len(columns) - 1) if columns[-1] == "text" else line.split("\t")
        if len(parts) != len(columns):
            bad(
                f"{source}: line {number}: expected {' TAB '.join(columns)}, "
                f"found {len(parts) - 1} tab{'' if len(parts) == 2 else 's'}"
            )
            continue
        for column, part in zip(columns_of, parts, strict=True):
            column.append(part.strip())
        numbers.append(number)
    if not numbers:
        raise DataError(f"{source}: holds no text")
    cells = zip(columns, columns_of, strict=True)
    return frame_of({name: Values("cells", c) for name, c in cells}, source, numbers)


@DATASETS.register("text_lines")
def text_lines(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    labelled: bool = True,
    transforms: Steps = TEXT_STEPS,
    classes: tuple[Name, ...] | None = None,
    encoding: Name = "utf-8",
) -> LinesReader:
    """Your own texts, one a line behind its label and a tab: `good<TAB>I liked it`.

    The words of a text are the ragged field `text` of ids, the label is the field `label`.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        labelled: whether the lines have labels.
        transforms: what is done to a text; they end with `vocabulary`.
        classes: the labels in the order of their numbers; found in the train lines if left out.
        encoding: how the files are written, for example `latin-1`.
    """
    step: Step = {"category_ids": {"classes": list(classes)}} if classes else "category_ids"
    made = [Field("text", "input", [Chain(["text"], transforms)])]
    if labelled:
        made.append(Field("label", "label", [Chain(["label"], [step])]))
    columns = ("label", "text") if labelled else ("text",)
    return LinesReader("text_lines", Common(train, valid, test, split), columns, encoding, made)


@DATASETS.register("text_pairs")
def text_pairs(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    transforms: Steps = ("tokenise",),
    source_size: Count = 30000,
    target_size: Count = 30000,
    min_count: Count = 1,
    encoding: Name = "utf-8",
) -> LinesReader:
    """Your own pairs of texts, for translation and the like: `source<TAB>target`.

    Ragged fields of word ids: `source` is the source between the marks <s> and <e>, `target` the target
    behind <s>, and the label `next` the target before <e>, on the axis of `target`.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        transforms: what is done to both texts; they give words.
        source_size: the most entries of the source's vocabulary, three marks included.
        target_size: the most entries of the target's vocabulary, three marks included.
        min_count: words that come less often are unknown.
        encoding: how the files are written, for example `latin-1`.
    """

    def chain(column: str, size: int, marks: dict[str, str]) -> Chain:
        table = {"min_count": min_count, "max_size": size, "first": [START, END, UNKNOWN]}
        return Chain([column], [*transforms, {"marks": marks}, {"vocabulary": table}])

    ends = {"first": START, "last": END, "empty": "error"}
    made = [
        Field("source", "input", [chain("source", source_size, ends)]),
        Field("target", "input", [chain("target", target_size, {"first": START})]),
        Field("next", "label", [chain("target", target_size, {"last": END})], "target"),
    ]
    common = Common(train, valid, test, split)
    return LinesReader("text_pairs", common, ("source", "target"), encoding, made)


class ConllReader(OwnReader):
    """Words in lines, their tags in columns beside them, an empty line behind each sentence.

    Args:
        common: what all readers of own files are given.
        columns: names of the columns, in order; `_` for one that is not used.
        fields: the fields of the network.
        separator: between columns.
        comment: lines that begin with it are passed over.
        encoding: of the files.
    """

    def __init__(
        self, common: Common, columns: tuple[str, ...], fields: Mapping[str, FieldRecipe],
        separator: str, comment: str | None, encoding: str,
    ) -> None:  # fmt: skip
        super().__init__("conll", common)
        self.columns, self.recipes = columns, fields
        self.separator, self.comment, self.encoding = separator, comment, encoding
        self.predicts = {
            "format": "conll", "columns": list(columns), "separator": separator, "comment": comment,
            "encoding": encoding,
        }  # fmt: skip

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        with text_stream(path, self.encoding) as text:
            return sentences(text, str(path), self.predicts, self.bad)

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        return fields_of(self.recipes)


def sentences(
    text: str | TextIO, source: str, options: Mapping[str, Any], bad: Bad = raising
) -> Frame:
    """One row a sentence; the place of a row is its first line.

    Args:
        text: the file's.
        source: its name.
        options: `columns`, `separator` and `comment` as the reader was given them.
        bad: is told of a line with another number of columns.

    Raises:
        DataError: no sentence at all.
    """
    names = list(options["columns"])
    columns = [Packed("words") for _ in names]
    row: list[list[str]] = []
    numbers = array("q")

    def ended() -> None:
        for column, words in zip(columns, row, strict=False):
            column.append(words)
        row.clear()

    for number, line in split_lines(text):
        if options["comment"] and line.startswith(options["comment"]):
            continue
        if not line.strip():
            ended()
            continue
        cells = line.split("\t") if options["separator"] == "tab" else line.split()
        if len(cells) != len(names):
            bad(
                f"{source}: line {number} has {len(cells)} columns, not {len(names)} ({', '.join(names)})"
            )
            continue
        if not row:
            row.extend([] for _ in names)
            numbers.append(number)
        for words, cell in zip(row, cells, strict=True):
            words.append(cell.strip())
    ended()
    if not numbers:
        raise DataError(f"{source}: holds no sentence")
    held = {n: Values("words", c) for n, c in zip(names, columns, strict=True) if n != "_"}
    return frame_of(held, source, numbers)


@DATASETS.register("conll")
def conll(
    *,
    train: Files,
    columns: tuple[Name, ...],
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    inputs: tuple[Name, ...] | None = None,
    label: Name | None = None,
    min_count: Count = 1,
    fields: dict[Name, FieldRecipe] | None = None,
    separator: Literal["space", "tab"] = "space",
    comment: Name | None = None,
    encoding: Name = "utf-8",
) -> ConllReader:
    """Your own tagged sentences: a word a line, its tags in further columns, an empty line between
    sentences.

    Every input and the label are ragged fields of ids on the axis `word`; `fields` says it freely.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        columns: names of the columns, in order; `_` for one that is not used.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        inputs: the columns that are inputs.
        label: the column with the tags to predict.
        min_count: input words that come less often are unknown.
        fields: the fields of the network by name, each made from columns by transforms.
        separator: what is between columns: any white `space`, or a `tab`.
        comment: lines that begin with it are passed over.
        encoding: how the files are written, for example `latin-1`.
    """
    given = {"inputs": inputs, "label": label}
    only(fields, "fields", lambda: [k for k, v in given.items() if v is not None])
    if fields is None and (label is None or not inputs):
        raise ConfigError(
            "data: say which columns are `inputs` and which is the `label`, or write `fields`"
        )
    if fields is None:
        steps: Steps = ({"vocabulary": {"min_count": min_count}},)
        tags: Steps = ({"vocabulary": {"unknown": None}},)
        fields = {c: FieldRecipe(columns=c, transforms=steps, axis="word") for c in inputs or ()}
        fields[str(label)] = FieldRecipe(
            role="label", columns=str(label), transforms=tags, axis="word"
        )
    return ConllReader(
        Common(train, valid, test, split), columns, fields, separator, comment, encoding
    )
