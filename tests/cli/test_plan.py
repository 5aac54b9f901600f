"""The command `plan`: every stage can be printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runs import call, recipe, strict


@pytest.mark.parametrize("stage", ["graph", "gradients", "fused", "memory"])
@pytest.mark.parametrize("name", ["fit_a_line", "recognize_digits"])
def test_stages(tmp_path: Path, stage: str, name: str) -> None:
    text = call(tmp_path, "plan", name, "--stage", stage).stdout
    assert text.strip()
    found = strict(call(tmp_path, "plan", name, "--stage", stage, "--json").stdout)
    assert (found["schema"], found["recipe"], found["stage"], found["text"]) == (
        1,
        name,
        stage,
        text,
    )


def test_stages_show_what_they_are_for(tmp_path: Path) -> None:
    name = recipe(tmp_path)
    texts = {
        s: call(tmp_path, "plan", name, "--stage", s).stdout
        for s in ("graph", "gradients", "fused", "memory")
    }
    assert ".backward" not in texts["graph"] and ".backward" in texts["gradients"]
    assert ".update" in texts["fused"]
    assert " without sharing" in texts["memory"]


def test_without_data(tmp_path: Path) -> None:
    """The inputs that a network declares are enough."""
    text = (tmp_path / recipe(tmp_path)).read_text()
    start, end = text.index("data:"), text.index("model:")
    assert call(tmp_path, "plan", recipe(tmp_path, text[:start] + text[end:])).stdout


def test_unknown_stage(tmp_path: Path) -> None:
    assert (
        "graph, gradients, fused, memory"
        in call(tmp_path, "plan", "fit_a_line", "--stage", "x", code=2).stderr
    )
