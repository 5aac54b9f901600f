"""The table of keys and names that are called otherwise here leads to what exists."""

from __future__ import annotations

import pytest

from paddlecli.config import moved
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import KINDS
from paddlecli.config.schema import Checkpoint, MetricCall, Optimizer, Train
from paddlecli.config.schema_network import LayerCall, LossCall

SECTIONS = {
    "recipe": [Recipe], "train": [Train], "checkpoint": [Checkpoint], "optimizer": [Optimizer],
    "beside": [LayerCall, LossCall, MetricCall],
}  # fmt: skip


def keys(section: str) -> set[str]:
    """The keys of a section, and the arguments of what may be called there."""
    fields = [m.model_fields.items() for m in SECTIONS.get(section, [])]
    found = {f.alias or n for named in fields for n, f in named}
    registry = KINDS.get(section)
    if registry is not None:
        found |= {p for n in registry.names() for p in registry.get(n).parameters}
    return found


@pytest.mark.parametrize("section", moved.KEYS)
def test_keys(section: str) -> None:
    for old, new in moved.KEYS[section].items():
        assert old == old.lower(), "keys are looked up without case"
        assert " " in new or new in keys(section), (old, new)
        own = {f.alias or n for m in SECTIONS.get(section, []) for n, f in m.model_fields.items()}
        assert old not in own, f"{section}.{old} is a key"


@pytest.mark.parametrize("kind", moved.NAMES)
def test_names(kind: str) -> None:
    known = KINDS[kind].names()
    for old, new in moved.NAMES[kind].items():
        assert new in known, (old, new)
        assert old not in known, f"`{old}` is a {kind}"


def test_a_key_of_the_section_is_a_near_name_and_all_else_a_hint() -> None:
    assert moved.key_meant("train", "Max_Epochs", ["epochs"]) == ("epochs", "")
    assert moved.key_meant("train", "max_epochs", []) == ("", "")
    assert moved.key_meant("train", "lr", ["epochs"])[1].startswith("write it as")
    assert moved.key_meant("nothing", "lr", []) == ("", "")
    assert moved.name_meant("loss", "MSE", ["square_error_cost"]) == ("square_error_cost",)
    assert moved.name_meant("loss", "mse", []) == ()
