"""The cases of tests/bench/peers, as far as they can be checked without the peer."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from paddlecli.config.load import load_recipe

FOLDER = Path(__file__).parent / "bench" / "peers"
CASES = sorted(p for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_case(path: Path) -> None:
    """A short file that names a recipe of ours and builds the peer's step."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    tree = ast.parse(text)
    assert "peer" in [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    (call,) = (
        n.value
        for n in tree.body
        if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "CASE"
    )
    assert isinstance(call, ast.Call)
    read = ("batch", "steps", "speed", "options")
    given = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg in read}
    options = given.get("options", ())
    recipe = load_recipe(
        ast.literal_eval(call.args[0]), [*options, f"train.batch_size={given['batch']}"]
    )
    assert recipe.data is not None and recipe.data.name == "generated"
    assert given["steps"] > 0 and given["speed"] >= 1
