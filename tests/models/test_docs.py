"""The examples of docs/networks.md are recipes that train."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.data.opening import describe
from paddlecli.engine.fit import Options, fit
from paddlecli.models.build import build

TEXT = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
PARTS = re.findall(r"^## (.*?)$|^```yaml\n(.*?)^```$", TEXT, re.M | re.S)
FIRST = PARTS[0][1]
EXAMPLES: dict[str, str] = {}
for heading, body in PARTS:
    if heading:
        title = heading
    elif body != FIRST:
        EXAMPLES[title if title not in EXAMPLES else f"{title}, more"] = body


def example(name: str, folder: Path) -> Recipe:
    (folder / "first.yaml").write_text(FIRST)
    if name == "first":
        return load_recipe(folder / "first.yaml")
    text = EXAMPLES[name]
    if not text.startswith("extends"):
        own = set(re.findall(r"^\w+", text, re.M))
        sections = re.findall(r"^(\w+)(:.*?\n)(?=\w|\Z)", FIRST, re.M | re.S)
        text += "".join(key + rest for key, rest in sections if key not in own)
    (folder / "other.yaml").write_text(text)
    return load_recipe(folder / "other.yaml")


def test_there_is_one_of_each() -> None:
    assert list(EXAMPLES) == [
        "Layers", "Repeats and groups", "Blocks", "Blocks, more", "Settings of parameters", "Loops", "Several networks"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["first", *EXAMPLES])
def test_an_example_trains(name: str, tmp_path: Path) -> None:
    result = fit(example(name, tmp_path), Options(run_dir=tmp_path / "run"))
    assert result.status == "completed" and result.epochs == 1


def test_names_are_as_the_text_says(tmp_path: Path) -> None:
    def names(example_name: str) -> set[str]:
        recipe = example(example_name, tmp_path)
        assert recipe.data is not None
        return set(build(recipe, describe(recipe.data.name, recipe.data.arguments)).parameters)

    said = set(re.findall(r"`([a-z0-9]+(?:/[a-z0-9]+)+)`", TEXT)) - {"tests/tracers"}
    found = {n for name in ("first", *EXAMPLES) for n in names(name)}
    assert said and said <= found


def test_written_networks_lie_where_the_text_says() -> None:
    folder = Path(__file__).parents[2] / "configs" / "model" / "written"
    assert {p.stem for p in folder.glob("*.yaml")} == {
        "digits_conv",
        "vgg_bn_drop",
        "resnet_cifar10",
    }
