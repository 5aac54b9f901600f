"""Predictions: records of inputs in, records of answers out, in the same order.

A record that could not be read passes through with its error and does not disturb the others. Where the inputs carry their
labels, the graph's metrics are measured too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.plugins import CodeFile
from paddlecli.data.axes import levels
from paddlecli.data.columns import Split
from paddlecli.data.inputs import read_inputs, save_preprocessed, stack, stacked
from paddlecli.data.records import Record, inputs_of
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine import rundir, stored
from paddlecli.engine.files import read_json
from paddlecli.engine.machine import Machine
from paddlecli.engine.modeldir import GRAPH, REPORT, Model, open_model, restricted
from paddlecli.engine.requests import Call, Maker
from paddlecli.engine.sentences import Sentences
from paddlecli.errors import ConfigError, DataError, RunError, UsageError
from paddlecli.graph.ir import flat

_BATCH = 64
_SOFTMAX = "softmax"


@dataclass(frozen=True)
class Prediction:
    """One answer.

    Attributes:
        input: name of the input.
        answer: plain data for JSON; empty when there is an `error`.
        notes: what was done to the input that a user should know.
    """

    input: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The record that `predict --json` prints."""
        found: dict[str, Any] = {"input": self.input, **self.answer}
        if self.error is not None:
            found["error"] = self.error
        return {**found, "notes": list(self.notes)} if self.notes else found


def model_of(text: str, code: Sequence[CodeFile] = ()) -> Model:
    """The model that a user means: a run (path, id, `last`), or a model folder that was moved somewhere.

    Args:
        code: the files of user code that were loaded.

    Raises:
        RunError: no such run, nothing was saved in it yet, or the network has ops of code that was not loaded.
    """
    path = Path(text).expanduser()
    if not (path / GRAPH).is_file():
        run = rundir.find(text)
        path = run.model
        if not (path / GRAPH).is_file():
            raise RunError(f"{run.path}: holds no model yet")
    report = path / REPORT
    with stored.asking(read_json(report) if report.is_file() else {}, code):
        return open_model(path)


class Predictions:
    """The answers to come, in the order of the inputs: iterate once. What is counted grows meanwhile.

    Attributes:
        model: the model that answers; `model.note` says which parameters it has.
        total: answers so far, failed ones included.
        failed: inputs so far that could not be predicted; their records say why.
    """

    def __init__(self, predictor: Predictor, records: Iterable[Record]) -> None:
        self.model = predictor.model
        self.total = self.failed = 0
        self._predictor, self._records = predictor, records

    def __iter__(self) -> Iterator[Prediction]:
        for prediction in self._predictor.run(self._records):
            self.total += 1
            self.failed += prediction.error is not None
            yield prediction

    def demand_all(self) -> None:
        """Raises DataError where an input could not be predicted."""
        if self.failed:
            raise DataError(
                f"{self.failed} of {self.total} inputs could not be predicted; their records say why"
            )

    @property
    def measured(self) -> int:
        """Inputs so far that carried their labels."""
        return self._predictor.measured

    def metrics(self) -> dict[str, float]:
        """The network's metrics over those inputs; empty without any."""
        return self._predictor.metrics()


def records_of(
    model: Model,
    paths: Sequence[str] = (),
    fields: Sequence[str] = (),
    texts: Sequence[str] = (),
    arrays: Mapping[str, Any] | None = None,
    saved: str | Path | None = None,
) -> Iterator[Record]:
    """What is to be predicted: files and fields as `read_inputs` reads them, or arrays.

    Args:
        arrays: by input field, [rows, ...] in the shape and type of the data set.
        saved: a folder that gets what the network sees of each input.

    Raises:
        UsageError: nothing to read, or it does not fit the model.
    """
    if arrays is None:
        records = read_inputs(model.preprocessing, paths, fields, texts)
    elif paths or fields or texts:
        raise UsageError("arrays are given beside other inputs", hint="predict them one by one")
    else:
        records = _rows_of(model.preprocessing, arrays)
    return records if saved is None else _saving(records, Path(saved))


def _rows_of(preprocessing: Mapping[str, Any], arrays: Mapping[str, Any]) -> Iterator[Record]:
    wanted = {f["name"]: f for f in inputs_of(preprocessing)}
    if set(arrays) != set(wanted):
        raise UsageError(
            f"the model's inputs are {', '.join(wanted)}, given are {', '.join(arrays)}"
        )
    columns = {}
    for name, value in arrays.items():
        shape = tuple(wanted[name]["shape"])
        column = np.asarray(value)
        if wanted[name].get("axes") or column.shape[1:] != shape:
            raise UsageError(
                f"{name} has the shape {list(column.shape)}, the model takes [rows, {', '.join(map(str, shape))}]"
            )
        columns[name] = column.astype(wanted[name]["dtype"])
    sizes = {len(column) for column in columns.values()}
    if len(sizes) != 1:
        raise UsageError(f"the arrays have different numbers of rows: {sorted(sizes)}")
    return (
        Record(f"row {i}", {name: column[i] for name, column in columns.items()})
        for i in range(sizes.pop())
    )


def _saving(records: Iterator[Record], folder: Path) -> Iterator[Record]:
    for number, record in enumerate(records, 1):
        if record.error is None:
            save_preprocessed(record, folder, number)
        yield record


class Predictor:
    """Runs a model on records."""

    def __init__(
        self, model: Model, threads: int | None = None, batch_size: int | None = None
    ) -> None:
        self.model, self._batch_size = model, batch_size or _BATCH
        name = model.graph.roles.get("predict")
        if name is None:
            raise ConfigError(f"{model.path}: this network has no outputs to predict")
        artifact = compile_graph(restricted(model.graph, ("predict", "evaluate")))
        self.machine = Machine(artifact, threads=threads)
        self.machine.write(model.values)
        self.entry = artifact.entries[name]
        self.measuring = artifact.entries.get(model.graph.roles.get("evaluate", ""))
        self.measured = 0
        self._spec = _spec(model.preprocessing)
        self._shape = _Shape.of(model)
        self._sentences = Sentences.of(
            model.graph.entries[name], self._shape.output, self._shape.names
        )

    def run(self, records: Iterable[Record]) -> Iterator[Prediction]:
        """The answers, in order; batches of good records are run together."""
        for (good, _), group in groupby(records, _alike):
            if not good:
                yield from (Prediction(r.input, notes=r.notes, error=r.error) for r in group)
                continue
            for batch in _batches(group, self._batch_size):
                yield from self._batch(batch)

    def values(self, record: Record) -> NDArray[Any]:
        """The chosen output's row of one good input."""
        return self._rows(Split("inputs", stack(self.model.preprocessing, [record])))[0]

    def metrics(self) -> dict[str, float]:
        """The metrics over all inputs that carried their labels."""
        return (
            self.machine.metrics(self.measuring)
            if self.measuring is not None and self.measured
            else {}
        )

    def _batch(self, records: list[Record]) -> Iterator[Prediction]:
        columns = stack(self.model.preprocessing, records)
        split = Split("inputs", columns)
        answers = self._answers(split, records)
        self._measure(split, records)
        for record, answer in zip(records, answers, strict=True):
            yield Prediction(record.input, answer, record.notes)

    def _answers(self, split: Split, records: list[Record]) -> list[dict[str, Any]]:
        if self._sentences is not None:
            return self._sentences.answers(self._outputs(split))
        rows = zip(records, self._rows(split), strict=True)
        return [self._shape.answer(row, record.words) for record, row in rows]

    def _outputs(self, split: Split) -> Mapping[str, NDArray[Any]]:
        """All outputs of the network for a batch."""
        maker = Maker(self.machine.artifact, [Call(self.entry)], self._spec, split, len(split))
        work = maker.make(np.arange(len(split)), 0, 1, 0, gather=True)
        return self.machine.run(work, split, outputs=True).outputs[0]

    def _rows(self, split: Split) -> Sequence[NDArray[Any]]:
        """The chosen output's rows, one array an input."""
        output = self._outputs(split)[self._shape.output]
        axis = self.entry.outputs[self._shape.output].axis
        if axis is None:
            return list(output)
        outermost, *inner = levels(split, axis)
        edges = outermost
        for level in inner:
            edges = level[edges]
        return np.split(output, edges[1:-1])

    def _measure(self, split: Split, records: list[Record]) -> None:
        """Adds the batch to the metrics when every input of it has all labels."""
        wanted = (
            set(self.measuring.inputs) - set(split.columns) if self.measuring is not None else set()
        )
        if self.measuring is None or not all(wanted <= set(r.labels) for r in records):
            return
        ragged = {f.name for f in self._spec.fields if f.axes}
        labels = {n: stacked([r.labels[n] for r in records], n in ragged) for n in wanted}
        whole = Split("inputs", {**split.columns, **labels})
        maker = Maker(self.machine.artifact, [Call(self.measuring)], self._spec, whole, len(whole))
        self.machine.run(maker.make(np.arange(len(whole)), 0, 1, 0, gather=True), whole)
        self.measured += len(whole)


@dataclass(frozen=True)
class _Shape:
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
    def of(cls, model: Model) -> _Shape:
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


def _spec(preprocessing: Mapping[str, Any]) -> DatasetSpec:
    fields = tuple(
        FieldSpec(f["name"], f["role"], tuple(f["shape"]), f["dtype"], tuple(f.get("axes", ())))
        for f in preprocessing["fields"]
    )
    return DatasetSpec("inputs", "", fields, {})


def _alike(record: Record) -> tuple[bool, frozenset[str]]:
    """Records with equal keys may share a batch: whether they are good, and which labels they carry."""
    return record.error is None, frozenset(record.labels)


def _batches(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
