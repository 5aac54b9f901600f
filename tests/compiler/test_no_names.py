"""Engine, runtime and core serve any network: no recipe's, model's or entry's name stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecli import ops
from paddlecli.assets import directory
from paddlecli.config.load import load_recipe
from paddlecli.config.registry import MODELS
from paddlecli.config.schema_network import WrittenModel
from paddlecli.models import build

TOP = Path(__file__).parents[2]
FOLDERS = ("paddlecli/engine", "paddlecli/runtime", "core")
TRACERS = Path(__file__).parents[1] / "tracers"
WORDS = {
    "predict",
    "linear",
    "bench",
    "scan",
    "decode",
    "softmax",
    "conv",
    "mlp",
    "learn",
    "write",
    "attention",
    "segmentation",
}
"""Names that are also words of the trade. They are searched for as text of their own, in quotes."""
ALLOWED = {"predict", "default", "text", "pictures", "scan", "decode", "plain"}
"""`predict` is a role and a command; an optimizer without a name is the `default` one; `text` and `pictures` are
kinds of data, `scan` and `decode` kinds of nodes, `plain` a layout and a way to mark chunks."""


def names() -> set[str]:
    """Recipes, chapters, registered networks, entries."""
    shipped = directory("recipes")
    files = [*shipped.rglob("*.yaml"), *TRACERS.glob("*.yaml")]
    found = {p.stem for p in files} | {p.name for p in shipped.iterdir() if p.is_dir()}
    found |= set(MODELS.names()) | {build.TRAIN, build.EVALUATE, build.PREDICT}
    for path in files:
        recipe = load_recipe(path)
        found |= {recipe.name.rpartition("/")[2]}
        if isinstance(recipe.model, WrittenModel):
            found |= recipe.model.entries.keys()
    return found


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (
            p
            for s in ("*.py", "*.c", "*.h", "*.cu", "*.cuh")
            for p in sorted((TOP / folder).rglob(s))
        )


def strings(path: Path) -> str:
    """A Python file without docstrings, comments and identifiers: what it compares or looks up. A C file whole."""
    text = path.read_text()
    if path.suffix != ".py":
        return text
    import ast

    tree = ast.parse(text)
    docs = {
        id(n.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)
    }
    literals = [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
    ]
    return "\n".join(f'"{s}"' for s in literals)


def test_the_names_are_known() -> None:
    assert {
        "fit_a_line",
        "digits_conv",
        "train_step",
        "d_fake",
        "two_axes",
        "recognize_digits",
    } <= names()
    assert len(list(sources())) > 40


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name(folder: str) -> None:
    known = names() - set(ops.names())
    words, quoted = known - WORDS - ALLOWED, known & WORDS - ALLOWED
    anywhere = re.compile(rf"\b({any_of(words)})\b")
    alone = re.compile(f'"({any_of(quoted)})"')
    faults = []
    for path in sources():
        if path.is_relative_to(TOP / folder):
            text = strings(path)
            found = {*anywhere.findall(text), *alone.findall(text)}
            faults += [f"{path.relative_to(TOP)}: {name}" for name in sorted(found)]
    assert not faults


def any_of(names: set[str]) -> str:
    """A pattern that one search looks for all of them with."""
    assert names
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def test_entries_are_found_by_their_role_alone() -> None:
    """`predict` is a role too, so the engine says it; it indexes no entry by it."""
    for path in (p for p in sources() if p.suffix == ".py"):
        text = path.read_text()
        assert not re.search(r"entries(\.get\(|\[)\s*[\"']", text), path
