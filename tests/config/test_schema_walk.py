"""Walks the schema: every field, at its own depth, misspelt and of the wrong type, in the file,
through `extends` and through `-o`; the place of each fault is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecli.config import nodes
from paddlecli.config.load import Recipe
from paddlecli.config.yaml_text import Source, parse
from paddlecli.errors import Fault

from .test_round_trip import FULL, sections
from .world import faults

OTHER = """\
model: {name: linear, size: 3}
optimizer: {name: sgd, learning_rate: 1, clip: {value: 1}, regularizer: {l1: 1}}
train: {epochs: 1, max_steps: 5, batch_size: 4, drop_last: true, seed: 1, shuffle: full,
  limit_batches: 3, accumulate: 2, eval_every: 1, eval_split: valid, log_every: 3}
checkpoint: {every_epochs: 1, every_steps: 2, keep_last: 1, keep_best: 1, monitor: test.loss,
  mode: max}
predict: {output: a, top: 2, labels: [a, b]}
"""
ENTRIES = """\
model:
  inputs: {x: {}}
  blocks:
    b:
      inputs: [i]
      statics: [s]
      memories: {h: {shape: [1], dtype: int64, next: n}}
      layers: [{fc: {size: 1}}]
      outputs: {o: n}
  entries: {e: {layers: [b], loss: {cross_entropy: {}, name: l, from: x}, outputs: {o: x}}}
optimizer: {a: {name: sgd, learning_rate: 1, clip: {norm: 1}}}
"""
TEXTS = {"full": FULL, "other": OTHER, "entries": ENTRIES}


def tree(text: str) -> nodes.Node:
    source = Source("r.yaml")
    source.set_text(text)
    root = parse(source)
    assert root is not None
    return root


def keys(text: str) -> list[nodes.Path]:
    """Paths of all keys that the schema names (not those that the recipe's author invents)."""
    known = {
        f.alias or n for s in sections(Recipe).values() for n, f in s.model_fields.items()
    }  # fmt: skip
    found = [path for path, _ in tree(text).walk()]
    return [p for p in found if p and p[-1] in known and p[-2:-1] not in (("blocks",), ("inputs",))]


CASES = [(name, path) for name, text in TEXTS.items() for path in keys(text)]
IDS = [f"{name}:{nodes.dotted(path)}" for name, path in CASES]


def edited(text: str, node: nodes.Node, old: str, new: str, at_key: bool) -> tuple[str, int, int]:
    """The text with one token replaced, and the place of the new one."""
    origin = node.key if at_key else node.origin
    assert origin is not None
    lines = text.split("\n")
    line = lines[origin.line - 1]
    start = origin.column - 1
    assert line[start:].startswith(old), (line, old)
    lines[origin.line - 1] = line[:start] + new + line[start + len(old) :]
    return "\n".join(lines), origin.line, origin.column


def at(found: list[Fault], file: str, line: int, column: int) -> list[Fault]:
    return [
        f for f in found if (f.where.file, f.where.line, f.where.column) == (file, line, column)
    ]


@pytest.mark.parametrize("through_extends", [False, True], ids=["file", "extends"])
@pytest.mark.parametrize(("name", "path"), CASES, ids=IDS)
def test_every_key_misspelt(name: str, path: nodes.Path, through_extends: bool) -> None:
    text = TEXTS[name]
    node = tree(text).at(path)
    assert node is not None
    key = str(path[-1])
    changed, line, column = edited(text, node, key, key + "zz", at_key=True)
    file = "r.yaml"
    if through_extends:
        Path("base.yaml").write_text(changed)
        changed, file = "extends: [base.yaml]\ndescription: x\n", "base.yaml"
    found = faults(changed)
    here = at(found, file, line, column)
    call = path[-1] in ("name", "from", "repeat") and len(path) > 1
    assert here or call, "\n".join(map(str, found))
    assert not here or key in here[0].nearest or not here[0].message.startswith("unknown key")


def _free_text(path: nodes.Path) -> bool:
    """Settings that take any text literally."""
    own_names = path[-1] == "name" and path[0] in ("metrics", "model") and len(path) > 2
    return own_names or path[-1] in ("description", "next", "output", "from", "ragged")


SCALARS = [
    (name, path)
    for name, path in CASES
    if not isinstance((tree(TEXTS[name]).at(path) or nodes.Node(None)).value, dict | list)
]


@pytest.mark.parametrize("through_extends", [False, True], ids=["file", "extends"])
@pytest.mark.parametrize(
    ("name", "path"), SCALARS, ids=[f"{n}:{nodes.dotted(p)}" for n, p in SCALARS]
)
def test_every_value_of_the_wrong_type(name: str, path: nodes.Path, through_extends: bool) -> None:
    text = TEXTS[name]
    node = tree(text).at(path)
    assert node is not None
    old = _token(text, node)
    changed, line, column = edited(text, node, old, "{}", at_key=False)
    file = "r.yaml"
    if through_extends:
        Path("base.yaml").write_text(changed)
        changed, file = "extends: [base.yaml]\n", "base.yaml"
        if path == ("name",):  # not inherited, so that nothing is wrong with it
            return
    found = at(faults(changed), file, line, column)
    assert found, nodes.dotted(path)
    assert found[0].where.key == nodes.dotted(path)
    assert found[0].expected


STRICT = [(name, path) for name, path in SCALARS if not _free_text(path)]


@pytest.mark.parametrize(
    ("name", "path"), STRICT, ids=[f"{n}:{nodes.dotted(p)}" for n, p in STRICT]
)
def test_every_value_of_the_wrong_type_by_option(name: str, path: nodes.Path) -> None:
    option = f"{nodes.dotted(path)}={{a: {{}}}}"
    value: Any = tree(TEXTS[name]).at(path)
    found = faults(TEXTS[name], option)
    column = len(nodes.dotted(path)) + 2
    assert [f for f in found if f.where.file == "-o" and f.where.column in (1, column)], value


def _token(text: str, node: nodes.Node) -> str:
    """The scalar as it is written."""
    rest = text.split("\n")[node.origin.line - 1][node.origin.column - 1 :]
    if rest[0] in "\"'":
        return rest[: rest.index(rest[0], 1) + 1]
    token = next(iter(yaml.scan("[" + rest.rstrip("]}, ") + "]")), None)
    assert token is not None
    end = min((rest.index(c) for c in ",}]" if c in rest), default=len(rest))
    return rest[:end].rstrip()
