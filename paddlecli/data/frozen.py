"""Fields with what they learned, as plain data beside files of words, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paddlecli.data.own.fields import Field
from paddlecli.data.spec import FieldSpec
from paddlecli.data.vocab import Vocabulary


def freeze(fields: Sequence[Field]) -> tuple[dict[str, Any], dict[str, Vocabulary]]:
    """Plain data for `preprocessing`, in which a name stands for each vocabulary; and those."""
    frozen = [field.freeze() for field in fields]
    tables: dict[str, Vocabulary] = {}
    for field in frozen:
        for state in _states(field):
            name = (
                field["name"] if field["name"] not in tables else f"{field['name']}-{len(tables)}"
            )
            tables[name] = Vocabulary(state.pop("vocabulary"), state.pop("unknown"))
            state["table"] = name
    return {"pipelines": frozen}, tables


def pipelines(predict: Mapping[str, Any], specs: Sequence[FieldSpec]) -> dict[str, Any]:
    """What a card says of reading inputs, as plain data in the form of `freeze`.

    Args:
        predict: the card's `predict`.
        specs: the fields of the opened data set.
    """
    made = []
    for spec in specs:
        if spec.name not in predict["fields"]:
            continue
        field = predict["fields"][spec.name]
        steps = [_step(step, spec) for step in field["transforms"]]
        made.append({
            "name": spec.name, "role": spec.role, "axis": spec.axes[0] if spec.axes else None,
            "shape": list(spec.shape), "dtype": spec.dtype, "ragged": bool(spec.axes), "usual": None,
            "preprocess": None, "parts": [{"columns": [field["column"]], "steps": steps}],
        })  # fmt: skip
    columns = predict["columns"]
    source = {"format": "lines", "columns": columns, "encoding": "utf-8", "undecodable": "escape"}
    return {"kind": "fields", "pipelines": made, "source": source}


def _step(step: str | Mapping[str, Any], spec: FieldSpec) -> dict[str, Any]:
    """One transform with what it has to know: the field's vocabulary or classes, or a named table."""
    name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
    state: dict[str, Any] = {}
    if name == "vocabulary":
        state = {"table": spec.vocabulary}
    elif name == "category_ids":
        state = {"vocabulary": list(spec.names), "unknown": None}
    elif name == "lookup":
        state = {"entities": arguments["table"]}
    elif "forms" in arguments:
        state = {"table": arguments["forms"]}
    return {"name": name, "arguments": dict(arguments), "state": state}


def thaw(preprocessing: Mapping[str, Any]) -> list[Field]:
    """The fields of what `Dataset.preprocessing()` gave."""
    tables = preprocessing.get("vocabularies", {})
    things = preprocessing.get("entities", {})
    found = []
    for field in preprocessing["pipelines"]:
        parts = []
        for part in field["parts"]:
            steps = [
                {**step, "state": _whole(step["state"], tables, things)} for step in part["steps"]
            ]
            parts.append({**part, "steps": steps})
        found.append(Field.thaw({**field, "parts": parts}))
    return found


def _states(field: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part in field["parts"]:
        yield from (step["state"] for step in part["steps"] if "vocabulary" in step["state"])


def _whole(
    state: Mapping[str, Any], tables: Mapping[str, Any], things: Mapping[str, Any]
) -> dict[str, Any]:
    if "entities" in state:
        return {"entities": things[state["entities"]]}
    if "table" not in state:
        return dict(state)
    table = tables[state["table"]]
    return {"vocabulary": table["words"], "unknown": table["unknown"]}
