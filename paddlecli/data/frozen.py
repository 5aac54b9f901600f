"""Fields with what they learned, as plain data beside files of words, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paddlecli.data.fields import Field
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


def thaw(preprocessing: Mapping[str, Any]) -> list[Field]:
    """The fields of what `Dataset.preprocessing()` gave."""
    tables = preprocessing.get("vocabularies", {})
    found = []
    for field in preprocessing["pipelines"]:
        parts = []
        for part in field["parts"]:
            steps = [{**step, "state": _whole(step["state"], tables)} for step in part["steps"]]
            parts.append({**part, "steps": steps})
        found.append(Field.thaw({**field, "parts": parts}))
    return found


def _states(field: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part in field["parts"]:
        yield from (step["state"] for step in part["steps"] if "vocabulary" in step["state"])


def _whole(state: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    if "table" not in state:
        return dict(state)
    table = tables[state["table"]]
    return {"vocabulary": table["words"], "unknown": table["unknown"]}
