"""Predictions: records of inputs in, records of answers out, in the same order.

A record that could not be read passes through with its error and does not disturb the others. Where the inputs carry their
labels, the graph's metrics are measured too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from paddlecli.engine.answers import Shape
from paddlecli.engine.files import ELSEWHERE, flagged, read_json, saving
from paddlecli.engine.machine import Machine
from paddlecli.engine.modeldir import GRAPH, REPORT, Model, described, open_model, restricted
from paddlecli.engine.passes import passes_for
from paddlecli.engine.pictures import Album, Picture
from paddlecli.engine.requests import Call, InputPlace, Maker
from paddlecli.engine.sentences import Sentences
from paddlecli.engine.tally import Tally
from paddlecli.errors import ConfigError, DataError, RunError, UsageError
from paddlecli.graph.prune import values_read

_BATCH = 64


@dataclass(frozen=True)
class Prediction:
    """One answer.

    Attributes:
        input: name of the input.
        answer: plain data for JSON; empty when there is an `error`.
        notes: what was done to the input that a user should know.
        values: the output's row where it is a picture; no part of the record.
    """

    input: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None
    values: NDArray[Any] | None = None

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

    def __init__(
        self, predictor: Predictor, records: Iterable[Record], album: Album | None = None
    ) -> None:
        self.model = predictor.model
        self.total = self.failed = 0
        self._predictor, self._records, self._album = predictor, records, album

    def __iter__(self) -> Iterator[Prediction]:
        for prediction in self._predictor.run(self._records):
            self.total += 1
            self.failed += prediction.error is not None
            yield self._kept(prediction)
        if self._album is not None:
            self._album.close()

    def _kept(self, prediction: Prediction) -> Prediction:
        """The answer, with the file that its picture is in."""
        if self._album is None or prediction.values is None:
            return prediction
        file = self._album.add(self.total, prediction.input, prediction.values)
        return replace(prediction, answer={**prediction.answer, **file})

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
        """The network's metrics over those inputs, and the accuracy of classes; empty without any."""
        return self._predictor.metrics()

    @property
    def confusion(self) -> Tally | None:
        """Of predictions of classes over those inputs: which class was taken for which."""
        return self._predictor.tally if self.measured else None

    def as_dict(self) -> dict[str, Any]:
        """What is known when all is predicted: the object that `predict --metrics FILE` writes."""
        tally = self.confusion
        return flagged({
            "schema": 1,
            "model": described(self.model.note),
            "inputs": self.total,
            "failed": self.failed,
            "labelled": self.measured,
            "metrics": self.metrics(),
            "confusion": None if tally is None else tally.as_dict(),
        })  # fmt: skip


def records_of(
    model: Model,
    paths: Sequence[str] = (),
    fields: Sequence[str] = (),
    texts: Sequence[str] = (),
    arrays: Mapping[str, Any] | None = None,
    saved: str | Path | None = None,
    lists: Sequence[str] = (),
    recursive: bool = True,
    samples: int | None = None,
) -> Iterator[Record]:
    """What is to be predicted: files and fields as `read_inputs` reads them, arrays, or so many samples that the network
    makes up.

    Args:
        arrays: by input field, [rows, ...] in the shape and type of the data set.
        saved: a folder that gets what the network sees of each input.
        lists, recursive: see `read_inputs`.
        samples: how many, of a network that reads no values.

    Raises:
        UsageError: nothing to read, or it does not fit the model.
    """
    if samples is not None:
        if paths or fields or texts or lists or arrays is not None:
            raise UsageError("samples are asked for beside inputs", hint="give one or the other")
        records = _samples(model, samples)
    elif arrays is None and not (paths or fields or texts or lists) and not _read(model):
        raise UsageError("no input given", hint="this network makes samples up: --samples 64")
    elif arrays is None:
        records = read_inputs(model.preprocessing, paths, fields, texts, lists, recursive)
    elif paths or fields or texts or lists:
        raise UsageError("arrays are given beside other inputs", hint="predict them one by one")
    else:
        records = _rows_of(model.preprocessing, arrays)
    return records if saved is None else _saving(records, Path(saved))


def _samples(model: Model, count: int) -> Iterator[Record]:
    """Rows of zeros, which the network counts and does not read."""
    read = _read(model)
    if read:
        raise UsageError(
            f"this network makes nothing up: it reads {', '.join(read)}",
            hint="give it inputs, not a number of samples",
        )
    wanted = inputs_of(model.preprocessing)
    zeros = {
        f["name"]: np.zeros((1, *f["shape"]) if f.get("axes") else tuple(f["shape"]), f["dtype"])
        for f in wanted
    }
    return (Record(f"sample {i}", zeros) for i in range(1, count + 1))


def _read(model: Model) -> list[str]:
    """The inputs whose values predictions depend on."""
    name = model.graph.roles.get("predict")
    return (
        list(model.graph.inputs) if name is None else sorted(values_read(model.graph.entries[name]))
    )


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
            with saving(folder, ELSEWHERE):
                save_preprocessed(record, folder, number)
        yield record


class Predictor:
    """Runs a model on records."""

    def __init__(
        self, model: Model, threads: int | None = None, batch_size: int | None = None, seed: int = 0
    ) -> None:
        self.model, self._batch_size = model, batch_size or _BATCH
        name = model.graph.roles.get("predict")
        if name is None:
            raise ConfigError(f"{model.path}: this network has no outputs to predict")
        used = restricted(model.graph, ("predict", "evaluate"))
        artifact = compile_graph(used, seed=seed, passes=passes_for())
        self.machine = Machine(artifact, threads=threads)
        self.machine.write(model.values)
        self.entry = artifact.entries[name]
        self.measuring = artifact.entries.get(model.graph.roles.get("evaluate", ""))
        self.measured = 0
        self._spec = _spec(model.preprocessing)
        self._place = InputPlace(artifact, self._spec)
        self._shape = Shape.of(model)
        output = model.graph.entries[name].outputs[self._shape.output]
        self.picture = Picture.of(self._shape.output, output.spec, model.report.get("pictures"))
        self.tally = self._shape.tally(model)
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
        """The metrics over all inputs that carried their labels; of classes the accuracy too."""
        if self.measuring is None or not self.measured:
            return {}
        found = self.machine.metrics(self.measuring)
        if self.tally is not None and self.tally.total:
            found.setdefault("accuracy", self.tally.accuracy())
        return found

    def _batch(self, records: list[Record]) -> Iterator[Prediction]:
        columns = stack(self.model.preprocessing, records)
        split = Split("inputs", columns)
        answers = self._answers(split, records)
        self._measure(split, records)
        self._place.passed(split)
        for record, (answer, values) in zip(records, answers, strict=True):
            yield Prediction(record.input, answer, record.notes, values=values)

    def _answers(
        self, split: Split, records: list[Record]
    ) -> list[tuple[dict[str, Any], NDArray[Any] | None]]:
        """For each record its answer, and the row where it is a picture."""
        if self._sentences is not None:
            return [(a, None) for a in self._sentences.answers(self._outputs(split))]
        rows = self._rows(split)
        if self.picture is not None:
            return [(self.picture.answer(row, self._shape.names), row) for row in rows]
        for record, row in zip(records, rows, strict=True):
            if self.tally is not None and self.tally.label in record.labels:
                self.tally.add(
                    int(record.labels[self.tally.label].reshape(-1)[0]), int(row.argmax())
                )
        together = zip(records, rows, strict=True)
        return [(self._shape.answer(row, record.words), None) for record, row in together]

    def _outputs(self, split: Split) -> Mapping[str, NDArray[Any]]:
        """All outputs of the network for a batch."""
        maker = Maker(self.machine.artifact, [Call(self.entry)], self._spec, split, len(split))
        work = self._place.of(maker.make(np.arange(len(split)), 0, 1, 0, gather=True))
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
        work = self._place.of(maker.make(np.arange(len(whole)), 0, 1, 0, gather=True))
        self.machine.run(work, whole)
        self.measured += len(whole)


def album_of(
    predictor: Predictor, folder: str | Path | None, grid: str | Path | None, count: int = 0
) -> Album | None:
    """Where the pictures go that a model gives; None where nobody wants them. `count`: how many there
    will be at least.

    Raises:
        UsageError: it gives none, or more than a grid holds.
    """
    if folder is None and grid is None:
        return None
    if predictor.picture is None:
        raise UsageError(
            "what this model predicts is no picture",
            hint="its recipe says which values are black and white: `predict: {pictures: {low: 0, high: 1}}`",
        )
    places = (None if p is None else Path(p).expanduser() for p in (folder, grid))
    album = Album(predictor.picture, *places)
    album.expect(count)
    return album


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
