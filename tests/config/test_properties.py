"""What holds for every key and any recipe: it does not matter whether a value stands in the file, in
one that it extends, behind `-o`, in a file of `--set-file`, or in the environment; and what `recipe
show` prints is the same recipe."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecli.cli.app import main
from paddlecli.config import nodes, shape
from paddlecli.config.compose import FromFile
from paddlecli.config.dump import to_yaml
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.errors import ConfigError

from .test_round_trip import FULL
from .test_schema_walk import CASES, at, tree, written
from .world import SMALL, load


def loads(recipe: dict[str, Any]) -> Recipe | None:
    """The recipe, None for samples that lack a key beside theirs."""
    try:
        return load(to_yaml(recipe))
    except ConfigError:
        return None


SOUND = [n for n in CASES if not CASES[n].names]


def without(recipe: dict[str, Any], path: nodes.Path) -> dict[str, Any] | None:
    """The recipe without a key; None where it cannot be loaded then."""
    found = copy.deepcopy(recipe)
    del at(found, path[:-1])[path[-1]]
    return found if loads(found) is not None else None


@pytest.mark.parametrize("name", SOUND)
def test_a_value_is_the_same_by_option_and_by_file(name: str) -> None:
    path, _, recipe, _ = CASES[name]
    expected = loads(recipe)
    rest = without(recipe, path)
    if expected is None or rest is None:
        return
    value = tree(to_yaml(recipe)).at(path)
    assert value is not None
    key = nodes.dotted(path)
    assert load(to_yaml(rest), f"{key}={written(value.plain())}") == expected
    Path("value.yaml").write_text(written(value.plain()) + "\n", encoding="utf-8")
    Path("r.yaml").write_text(to_yaml(rest), encoding="utf-8")
    assert load_recipe("./r.yaml", [FromFile(f"{key}=value.yaml")]) == expected


@pytest.mark.parametrize("name", SOUND)
def test_a_value_may_come_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, recipe, _ = CASES[name]
    expected = loads(recipe)
    value = tree(to_yaml(recipe)).at(path)
    assert value is not None
    if expected is None or isinstance(value.value, dict | list) or path[-1] == "arguments":
        return
    text = written(value.plain())
    monkeypatch.setenv("PK_VALUE", text)
    for reference in ("${env:PK_VALUE}", f"${{env:PK_NO:{text}}}"):
        changed = copy.deepcopy(recipe)
        at(changed, path[:-1])[path[-1]] = "REFERENCE"
        assert load(to_yaml(changed).replace("REFERENCE", json.dumps(reference))) == expected


@pytest.mark.parametrize("name", SOUND)
def test_what_is_shown_is_the_same_recipe(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = loads(CASES[name].recipe)
    if recipe is None:
        return
    assert main(["recipe", "show", "./r.yaml"]) == 0
    text = capsys.readouterr().out
    again = load(text, name="again.yaml")
    assert again == recipe
    assert again.to_yaml() == text
    assert {p: v for p, v, _ in again.origins()} == {p: v for p, v, _ in recipe.origins()}


def test_nothing_shown_comes_from_a_default(capsys: pytest.CaptureFixture[str]) -> None:
    """A saved recipe repeats the run with a later version, whose defaults may be others."""
    load(FULL)
    assert main(["recipe", "show", "./r.yaml"]) == 0
    again = load(capsys.readouterr().out, name="again.yaml")
    assert [p for p, _, origin in again.origins() if origin.kind == "default"] == []


LOSS = ("model", "loss")
"""Replaced as a whole, so it stays together."""
LEAVES = [
    path
    for path, node in tree(FULL).walk()
    if path and (not node.mapping or path == LOSS) and all(isinstance(p, str) for p in path)
    if path[: len(LOSS)] != LOSS or path == LOSS
]


def picked(paths: list[nodes.Path]) -> dict[str, Any]:
    """FULL with some of its values only."""
    whole, found = tree(FULL).plain(), {}
    for path in paths:
        node = found
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = at(whole, path)
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.sampled_from(["base.yaml", "over.yaml", "r.yaml"]),
        min_size=len(LEAVES),
        max_size=len(LEAVES),
    )
)
def test_it_does_not_matter_where_a_value_stands(files: list[str]) -> None:
    """Values spread over three files, `r.yaml` extending the others, are the recipe as a whole."""
    expected = load(FULL)
    for file in ("base.yaml", "over.yaml", "r.yaml"):
        here = [p for p, f in zip(LEAVES, files, strict=True) if f == file]
        here += [("name",)] * (file == "r.yaml")  # not inherited
        # sections that are replaced as a whole stand in one file, and so does what calls a name
        here = [p for p in LEAVES if p in here and not together(p)]
        here += [p for p in LEAVES if together(p) and file == "r.yaml"]
        text = picked(here)
        if file == "r.yaml":
            text["extends"] = ["base.yaml", "over.yaml"]
        Path(file).write_text(raw(text), encoding="utf-8")
    assert load_recipe("./r.yaml") == expected


def together(path: nodes.Path) -> bool:
    return bool({"name", "clip", "regularizer"} & set(path))


def raw(value: Any) -> str:
    """YAML whose texts are as they were read, references included."""
    return to_yaml(value).replace("$${", "${")


VALUES = st.sampled_from(
    [
        n
        for n in SOUND
        if len(CASES[n].path) == 2 and CASES[n].path[0] in ("train", "predict", "checkpoint")
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_options_in_a_row_are_the_last_of_each(names: list[str]) -> None:
    options, last = [], {}
    for name in names:
        path = CASES[name].path
        options.append(f"{nodes.dotted(path)}={written(at(CASES[name].recipe, path))}")
        last[path] = options[-1]
    try:
        expected = load(SMALL, *last.values())
    except ConfigError as error:
        with pytest.raises(ConfigError) as caught:
            load(SMALL, *options)
        assert {f.message for f in caught.value.faults} == {f.message for f in error.faults}
        return
    assert load(SMALL, *options) == expected
    for path, option in last.items():
        if not isinstance(at(expected.as_dict(), path[:1]), dict):
            continue
        assert str(expected.origin(path)) in (f"-o {option}", "default")


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS, st.integers(0, 2**40))
def test_references_fill_in_what_stands_elsewhere(before: str, after: str, seed: int) -> None:
    if "${" in before + "$" or "${" in after or before.endswith("$"):
        return
    text = to_yaml({"description": "HERE", "train": {"seed": seed}})
    quoted = json.dumps(f"{before}${{train.seed}}{after}", ensure_ascii=True)
    found = load(SMALL + text.replace("HERE", quoted))
    assert found.description == f"{before}{seed}{after}"


@settings(max_examples=40, deadline=None)
@given(st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 9))
def test_chains_of_references_end_where_they_begin(order: list[str], value: int) -> None:
    """Whatever the order in which the keys stand."""
    chain = {"a": value, "b": "${expect.test.a.max}", "c": "${expect.test.b.max}",
             "d": "${expect.test.c.max}", "e": "${expect.test.d.max}"}  # fmt: skip
    expect = {f"test.{k}": {"max": chain[k]} for k in order}
    text = SMALL + to_yaml({"expect": expect}).replace("$${", "${")
    found = load(text).as_dict()["expect"]
    assert {v["max"] for v in found.values()} == {float(value)}


def test_text_settings_take_a_file_literally() -> None:
    Path("r.yaml").write_text(SMALL, encoding="utf-8")
    for content, value in (
        ("a: [b\n", "a: [b"),
        ("a\n\n", "a\n"),
        ("", ""),
        ("null\n", "null"),
        ("1e3", "1e3"),
    ):
        Path("text.txt").write_text(content, encoding="utf-8")
        assert load_recipe("./r.yaml", [FromFile("description=text.txt")]).description == value


def test_options_win_over_files_whatever_their_order() -> None:
    Path("r.yaml").write_text(SMALL, encoding="utf-8")
    Path("train.yaml").write_text("epochs: 3\nseed: 4\n", encoding="utf-8")
    file, option = FromFile("train=train.yaml"), "train.seed=5"
    for changes in ([file, option], [option, file]):
        recipe = load_recipe("./r.yaml", changes)
        assert (recipe.train.epochs, recipe.train.seed) == (3, 5)
    assert str(recipe.origin(("train", "epochs"))) == "train.yaml:1:9"
    assert str(recipe.origin(("train", "seed"))) == "-o train.seed=5"


def test_paths_in_a_file_start_at_its_folder() -> None:
    Path("r.yaml").write_text(SMALL, encoding="utf-8")
    Path("sub").mkdir()
    Path("sub/data.yaml").write_text("name: table\npath: t.csv\n", encoding="utf-8")
    recipe = load_recipe("./r.yaml", [FromFile("data=sub/data.yaml")])
    assert recipe.as_dict()["data"]["path"] == str(Path.cwd() / "sub" / "t.csv")


def test_every_command_that_takes_options_takes_files() -> None:
    from paddlecli.cli.app import COMMANDS, build

    top = build()
    seen = []
    for name in COMMANDS:
        command = top.get_command(None, name)
        for below in [command, *getattr(command, "commands", {}).values()]:
            options = {o for p in below.params for o in p.opts}
            if "-o" in options:
                seen.append(f"{name} {below.name}")
                assert "--set-file" in options, seen[-1]
    assert len(seen) >= 5


def test_shape_words_cover_every_type() -> None:
    """`expected:` is never empty."""
    for case in CASES.values():
        assert shape.describe(shape.branches(case.annotation, None)) or case.path[-1] == "values", (
            case
        )
