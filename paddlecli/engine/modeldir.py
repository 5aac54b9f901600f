"""`model/`: all that predict, evaluate and export need, apart from the data. It may be moved anywhere.

    model/model.safetensors   parameters and states; its metadata say which checkpoint they are and why it was chosen
         /graph.yaml          the network
         /preprocessing.yaml  how an input becomes arrays (scaling statistics and so on)
         /labels.json         names of the classes by field
         /vocabularies/*.txt  words by id, one a line
         /entities/*.jsonl    what is known of users, films and so on, one object a line
         /report.json         what a prediction reports

Everything but the weights is written once, when training starts; the weights are replaced at one stroke.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.engine.checkpoint import MODEL, NOTE
from paddlecli.engine.files import GO_ON, json_page, read_json, replace, replace_with, saving
from paddlecli.errors import DataError, RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.graph.ir import Graph

VOCABULARIES, ENTITIES = "vocabularies", "entities"
GRAPH, PREPROCESSING, LABELS, REPORT = (
    "graph.yaml",
    "preprocessing.yaml",
    "labels.json",
    "report.json",
)


@dataclass(frozen=True)
class Model:
    """A model folder in memory.

    Attributes:
        graph: its entries go forward only.
        values: parameters and states by name.
        preprocessing: what `read_inputs` takes.
        labels: names of the classes by field.
        report: `output`, `top` and `field` of predictions.
        note: which checkpoint the weights are: `step`, `choice`.
    """

    path: Path
    graph: Graph
    values: Mapping[str, NDArray[np.generic]]
    preprocessing: Mapping[str, Any]
    labels: Mapping[str, list[str]]
    report: Mapping[str, Any]
    note: Mapping[str, Any]


def prepare(
    folder: Path,
    graph: Graph,
    preprocessing: Mapping[str, Any],
    report: Mapping[str, Any],
    hint: str = GO_ON,
) -> None:
    """Writes everything but the weights; `hint` is for a full disk."""
    from paddlecli.config.dump import to_yaml
    from paddlecli.graph.serialize import to_yaml as graph_text

    reading = {k: v for k, v in preprocessing.items() if k != "labels"}
    reading["vocabularies"] = _write_vocabularies(
        folder, preprocessing.get("vocabularies", {}), hint
    )
    if "entities" in preprocessing:
        reading["entities"] = _write_entities(folder, preprocessing["entities"], hint)
    with saving(folder, hint):
        folder.mkdir(exist_ok=True)
    replace(folder / GRAPH, graph_text(graph).encode(), hint=hint)
    replace(folder / PREPROCESSING, to_yaml(reading).encode(), hint=hint)
    replace(folder / LABELS, json_page(preprocessing.get("labels", {})), hint=hint)
    replace(folder / REPORT, json_page(report), hint=hint)


def needed(graph: Graph) -> list[str]:
    """The inputs that predicting reads; evaluation may read more, as the network's labels are."""
    from paddlecli.graph.ir import flat

    entry = graph.entries.get(graph.roles.get("predict", ""))
    if entry is None:
        return list(graph.inputs)
    nodes = flat(entry.items)
    used = {t.name.partition("@")[0] for n in nodes for t in n.inputs if t.role == "input"}
    return sorted(used | {t.name for t in entry.outputs.values() if t.role == "input"})


def abilities(graph: Graph) -> frozenset[str]:
    """What a network can do: its roles, and `samples` where it predicts without reading a value."""
    from paddlecli.graph.prune import values_read

    entry = graph.entries.get(graph.roles.get("predict", ""))
    drawn = entry is not None and not values_read(entry)
    return frozenset(graph.roles) | ({"samples"} if drawn else set())


def _write_vocabularies(folder: Path, tables: Mapping[str, Any], hint: str) -> dict[str, Any]:
    """Writes the words to files; gives the files' names and the entries for unknown words."""
    found = {}
    for number, (name, table) in enumerate(tables.items()):
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
        file = f"{plain}.txt" if plain == name else f"{plain}-{number}.txt"
        with saving(folder / VOCABULARIES, hint):
            (folder / VOCABULARIES).mkdir(parents=True, exist_ok=True)
        words = "".join(f"{w}\n" for w in table["words"]).encode()
        replace(folder / VOCABULARIES / file, words, hint=hint)
        found[name] = {"file": file, "unknown": table["unknown"]}
    return found


def _write_entities(folder: Path, tables: Mapping[str, Any], hint: str) -> dict[str, str]:
    """Writes the tables to files; gives the files' names. Readers choose plain names for tables."""
    from paddlecli.data.entities import Entities

    with saving(folder / ENTITIES, hint):
        (folder / ENTITIES).mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        replace(folder / ENTITIES / f"{name}.jsonl", Entities.of(table).text().encode(), hint=hint)
    return {name: f"{name}.jsonl" for name in tables}


def _read_entities(folder: Path, files: Mapping[str, str]) -> dict[str, Any]:
    from paddlecli.data.entities import Entities

    try:
        return {n: Entities.load(folder / ENTITIES / f).plain() for n, f in files.items()}
    except DataError as error:
        raise RunError(error.message) from None


def _read_vocabularies(folder: Path, tables: Mapping[str, Any]) -> dict[str, Any]:
    from paddlecli.data.vocab import Vocabulary

    found = {}
    for name, table in tables.items():
        try:
            words = Vocabulary.load(folder / VOCABULARIES / table["file"], table["unknown"]).words
        except DataError as error:
            raise RunError(error.message) from None
        found[name] = {"words": list(words), "unknown": table["unknown"]}
    return found


def renew(folder: Path, checkpoint: Path) -> None:
    """Makes the weights those of a checkpoint."""
    replace_with(folder / MODEL, checkpoint / MODEL)


def saved_as(folder: Path) -> str:
    """Which parameters a model folder holds: `last, step 2100`; empty without any."""
    if not (folder / MODEL).is_file():
        return ""
    from safetensors import safe_open

    with safe_open(folder / MODEL, framework="numpy") as file:
        return described(_note(file.metadata()))


def _note(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        found = json.loads((metadata or {}).get(NOTE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def described(note: Mapping[str, Any]) -> str:
    """Metadata of weights as a text for users."""
    return f"{note.get('choice', '?')}, step {note.get('step', '?')}"


def read_graph(folder: Path) -> Graph:
    """The network of a model folder.

    Raises:
        RunError: there is none.
    """
    from paddlecli.graph.serialize import from_yaml

    path = folder / GRAPH
    try:
        return from_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing: {folder} is no model folder") from None
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: damaged: {error}") from None
    except RunError as error:
        # a parser's message has many lines
        raise RunError(f"{folder}/{' '.join(error.message.split())}", error.hint) from None


def restricted(graph: Graph, roles: Sequence[str]) -> Graph:
    """The network with the entries of these roles alone."""
    names = [graph.roles[role] for role in roles if role in graph.roles]
    return replace_fields(graph, entries={name: graph.entries[name] for name in names})


def open_model(folder: Path) -> Model:
    """A model folder.

    Raises:
        RunError: it is incomplete or damaged, or its weights do not fit its network.
    """
    graph = read_graph(folder)
    values, note = read_weights(folder / MODEL)
    check_values(graph, values, folder / MODEL)
    labels = read_json(folder / LABELS)
    preprocessing = {**_read_yaml(folder / PREPROCESSING), "labels": labels}
    preprocessing["vocabularies"] = _read_vocabularies(
        folder, preprocessing.get("vocabularies", {})
    )
    if "entities" in preprocessing:
        preprocessing["entities"] = _read_entities(folder, preprocessing["entities"])
    preprocessing["needed"] = needed(graph)
    return Model(folder, graph, values, preprocessing, labels, read_json(folder / REPORT), note)


def read_weights(path: Path) -> tuple[dict[str, NDArray[np.generic]], dict[str, Any]]:
    """Arrays and note of a safetensors file.

    Raises:
        RunError: missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise RunError(
            f"{path}: missing: no checkpoint has been saved yet, or a conversion was cut short",
            hint="let the training reach its first checkpoint, or convert once more",
        )
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, _note(file.metadata())
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path}: damaged: {error}") from None


def check_values(graph: Graph, values: Mapping[str, NDArray[np.generic]], source: Path) -> None:
    """The names and shapes are exactly those of the network.

    Raises:
        RunError: with a line for each difference.
    """
    tensors = {**graph.parameters, **graph.states}
    wanted = {name: [d.coefficient for d in t.spec.shape] for name, t in tensors.items()}
    found = {name: list(v.shape) for name, v in values.items()}
    lines = [
        f"  {name}: the network has {wanted.get(name, 'none')}, the file {found.get(name, 'none')}"
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]
    if lines:
        raise RunError(
            "\n".join([f"{source}: {len(lines)} arrays do not fit the network (shapes):", *lines])
        )


def _read_yaml(path: Path) -> dict[str, Any]:
    from paddlecli.config.yaml_text import parse_file

    try:
        tree, faults = parse_file(path)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None
    if tree is None:
        raise RunError(f"{path}: damaged: {faults[0]}")
    found = json.loads(json.dumps(tree.plain()).replace("$${", "${"))
    if not isinstance(found, dict):
        raise RunError(f"{path}: damaged: expected a mapping")
    return found
