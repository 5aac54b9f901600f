"""Every shipped recipe opens with the editor's line, its command and its expected result, and they hold."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from paddlecli import assets
from paddlecli.cli.app import main
from paddlecli.cli.recipe_files import schema_text
from paddlecli.config.load import load_recipe
from paddlecli.config.yaml_text import Source, decode, parse
from paddlecli.data.formats.images import png
from paddlecli.engine.prepare import fields_of
from paddlecli.models.build import build

FOLDER = assets.directory("recipes")
SCHEMA = assets.SCHEMA
NAMES = assets.names("recipes")


def lines(name: str) -> list[str]:
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()


def commands(name: str) -> list[list[str]]:
    """The words of the commands in a recipe's second line: `paddlecli dataset download ... && paddlecli
    train ...`; the last one is about the recipe."""
    found = [shlex.split(part) for part in lines(name)[1].removeprefix("# ").split("&&")]
    assert all(words[0] == "paddlecli" for words in found), lines(name)[1]
    return [words[1:] for words in found]


def called(name: str) -> str:
    """How users call the recipe in that file."""
    return name.removesuffix(f"/{assets.DEFAULT_RECIPE}")


def test_all_recipes_are_found() -> None:
    assert len(NAMES) >= 15
    assert {called(n) for n in NAMES} == set(assets.recipe_names())


def test_the_schema_beside_the_recipes_is_current() -> None:
    found = (FOLDER / SCHEMA).read_text(encoding="utf-8")
    assert found == schema_text(), (
        f"the recipe language has changed: python -m paddlecli recipe schema --output recipes/{SCHEMA}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_modeline_leads_to_the_schema(name: str) -> None:
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", lines(name)[0])
    assert found is not None, lines(name)[0]
    assert ((FOLDER / f"{name}.yaml").parent / found[1]).resolve() == (FOLDER / SCHEMA).resolve()


def test_every_recipe_fits_the_schema() -> None:
    """An editor underlines nothing in what ships."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft7Validator(
        json.loads((FOLDER / SCHEMA).read_text(encoding="utf-8"))
    )
    for name in NAMES:
        source = Source(name)
        assert decode((FOLDER / f"{name}.yaml").read_bytes(), source)
        tree = parse(source)
        assert tree is not None
        assert [e.message for e in validator.iter_errors(tree.plain())] == [], name


@pytest.mark.parametrize("name", NAMES)
def test_the_header_says_what_comes_out(name: str) -> None:
    """The numbers of `expect` stand in it too."""
    header = "\n".join(line for line in lines(name)[2:] if line.startswith("#"))
    assert re.match(r"# Expect\b", header), f"{name}: the third line begins with `# Expect`"
    for bounds in load_recipe(called(name)).expect.values():
        for limit in filter(None, (bounds.min, bounds.max)):
            assert re.search(rf"\b{re.escape(f'{limit:g}')}0*\b", header), f"{name}: {limit}"


OWN = {
    "flowers.csv": "width,height,kind\n" + "1,2,a\n3,1,b\n" * 20,
    "houses.csv": "area,price\n" + "".join(f"{n},{3 * n}\n" for n in range(40)),
    "reviews.txt": "good\tI liked it a lot\nbad\tI did not like it\n" * 20,
    "rows.jsonl": '{"a": 1, "label": "x"}\n{"a": 2, "label": "y"}\n' * 20,
}
"""Files that recipes for a user's own data speak of."""


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with a user's own files. Published data sets come from the cache, never from the
    network."""
    monkeypatch.setenv("PADDLECLI_OFFLINE", "1")
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    for name, text in OWN.items():
        Path(name).write_text(text, encoding="utf-8")
    for number in range(20):
        path = Path("pictures") / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(np.full((3, 80, 80), 12 * number, np.uint8)))


def weights(model: str) -> None:
    """A file with first values of a network for 1,000 classes."""
    recipe = Path("recipe.yaml")
    recipe.write_text(
        f"name: {model}\ndata: {{name: synthetic/images, size: [64, 64], classes: 1000}}\n"
        f"model: {{name: {model}}}\n"
    )
    loaded = load_recipe(recipe)
    save_file(dict(build(loaded, fields_of(loaded)).starts(0)), f"{model}.safetensors")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("data")
def test_the_command_in_the_header_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Up to the first step; where its data are not on this machine it says so, naming the command
    that fetches them."""
    *before, words = commands(name)
    assert words[0] in ("train", "bench")
    assert called(name) in words
    section = load_recipe(called(name)).data
    for other in before:
        assert section is not None and other == ["dataset", "download", section.name]
    if "train.init_from=resnet18.safetensors" in words:
        weights("resnet18")
    arguments = ["train", words[1]] if words[0] == "bench" else words
    found = main([*arguments, "--dry-run"])
    err = capsys.readouterr().err
    published = section is not None and section.name in assets.names("datasets")
    if published and found == 4:
        assert f"paddlecli dataset download {section.name}" in err  # it is not on this machine
    else:
        assert found == 0, err
