"""Composition: extends, overrides, references, names, and where everything came from."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecli import assets
from paddlecli.config.compose import Flag, FromFile, Preset
from paddlecli.config.load import load_recipe
from paddlecli.config.nodes import dotted, split_path
from paddlecli.errors import ConfigError

from .world import SMALL, fault, faults, load, place


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def test_order_is_defaults_extends_file_command_line() -> None:
    write("a.yaml", "train: {seed: 1, epochs: 1, batch_size: 1, log_every: 1}")
    write("b.yaml", "train: {seed: 2, epochs: 2, batch_size: 2}")
    recipe = load(
        "extends: [a.yaml, b.yaml]\ntrain: {seed: 3, epochs: 3}\n" + SMALL, "train.seed=4"
    )
    train = recipe.train
    assert (train.seed, train.epochs, train.batch_size, train.log_every) == (4, 3, 2, 1)
    assert (train.eval_every, train.shuffle) == (1, "full")
    where = [
        str(recipe.origin(("train", k)))
        for k in ("seed", "epochs", "batch_size", "log_every", "eval_every")
    ]
    assert where == ["-o train.seed=4", "r.yaml:2:26", "b.yaml:1:41", "a.yaml:1:55", "default"]


def test_a_file_extends_relative_to_itself() -> None:
    write("sub/a.yaml", "extends: [./deep/b.yaml]")
    write("sub/deep/b.yaml", "extends: [../../c.yaml]\ntrain: {seed: 7}")
    write("c.yaml", "train: {epochs: 9}")
    recipe = load("extends: [sub/a.yaml]\n" + SMALL)
    assert (recipe.train.seed, recipe.train.epochs) == (7, 9)


def test_lists_are_replaced_and_mappings_merged() -> None:
    write("a.yaml", "metrics: [accuracy]\nexpect: {test.loss: [0, 1], test.accuracy: {min: 0.5}}")
    recipe = load("extends: [a.yaml]\nmetrics: []\nexpect: {test.accuracy: {max: 1}}\n" + SMALL)
    assert recipe.metrics == ()
    assert recipe.as_dict()["expect"] == {
        "test.loss": {"min": 0.0, "max": 1.0},
        "test.accuracy": {"min": 0.5, "max": 1.0},
    }


def test_another_name_replaces_the_arguments_of_the_first() -> None:
    write("a.yaml", "optimizer: {name: momentum, learning_rate: 1, mu: 0.5, clip: {norm: 1}}")
    recipe = load(
        "extends: [a.yaml]\nmodel: {name: linear}\noptimizer: {name: sgd, learning_rate: 2}"
    )
    assert recipe.as_dict()["optimizer"] == {"name": "sgd", "learning_rate": 2.0}


def test_the_same_name_keeps_them() -> None:
    write("a.yaml", "optimizer: {name: momentum, learning_rate: 1, mu: 0.5, clip: {norm: 1}}")
    recipe = load(
        "extends: [a.yaml]\nmodel: {name: linear}\noptimizer: {learning_rate: 2, clip: {value: 3}}"
    )
    assert recipe.as_dict()["optimizer"] == {
        "name": "momentum",
        "learning_rate": 2.0,
        "clip": {"value": 3.0},
        "mu": 0.5,
        "nesterov": False,
    }


def test_a_written_network_replaces_a_named_one() -> None:
    write("a.yaml", "model: {name: linear, size: 3}")
    recipe = load("extends: [a.yaml]\nmodel: {inputs: {x: {}}, layers: [{fc: {size: 1}}]}")
    assert "name" not in recipe.as_dict()["model"]


def test_names_are_not_inherited() -> None:
    write("a.yaml", "name: other\ndescription: kept")
    recipe = load("extends: [a.yaml]\n" + SMALL, name="my first.yaml")
    assert (recipe.name, recipe.description) == ("my-first", "kept")


def test_circles_are_named() -> None:
    write("a.yaml", "extends: [b.yaml]")
    write("b.yaml", "extends: [r.yaml]")
    found = fault("extends: [a.yaml]\n" + SMALL)
    assert place(found) == "b.yaml:1:11"
    assert found.message == "`extends` goes round in a circle: r.yaml -> a.yaml -> b.yaml -> r.yaml"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("extends: a.yaml", "1:10", "`extends` must be a list, got the text"),
        ("extends: [1]", "1:11", "`extends` takes names and paths, got the number 1"),
        ("extends: [nothing.yaml]", "1:11", "the file `nothing.yaml` does not exist"),
        ("extends: ['']", "1:11", "the name of the recipe is empty"),
        ("extends: [./]", "1:11", "is a folder"),
        ("extends: [optimizer/adm]", "1:11", "nothing is named `optimizer/adm`"),
    ],
)
def test_what_cannot_be_extended(text: str, where: str, message: str) -> None:
    found = fault(text + "\n" + SMALL)
    assert (place(found), message in found.message) == (f"r.yaml:{where}", True), str(found)


def test_bare_names_are_fragments_then_recipes() -> None:
    recipe = load("extends: [optimizer/adam, fit_a_line]\n")
    assert recipe.as_dict()["optimizer"]["name"] == "sgd"
    assert "optimizer/adam" in fault("extends: [optimizer/adm]\n" + SMALL).nearest


# names of recipes


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fit_a_line", False),
        ("recognize_digits/conv", False),
        ("./x", True),
        ("../x", True),
        ("/x", True),
        ("x.yaml", True),
        ("a/b.yml", True),
        ("C:\\x", True),
        ("c:x", True),
        ("~/x", True),
        ("a\\b", True),
        (".", True),
        ("x.json", True),
    ],
)
def test_names_and_paths_are_told_apart(text: str, path: bool) -> None:
    assert assets.is_path(text) is path


def test_every_shipped_recipe_loads_and_has_its_name() -> None:
    names = assets.recipe_names()
    assert {"fit_a_line", "recognize_digits", "recognize_digits/conv", "bench/mnist_lenet"} <= set(
        names
    )
    for name in ("fit_a_line", "recognize_digits", "recognize_digits/mlp"):
        assert load_recipe(name).name == name.replace("/", "-")


def test_a_chapter_is_its_default_recipe() -> None:
    default, conv = (
        load_recipe("recognize_digits").as_dict(),
        load_recipe("recognize_digits/conv").as_dict(),
    )
    assert {**default, "name": ""} == {**conv, "name": ""}


def test_the_working_directory_is_not_searched_for_names() -> None:
    write("fit_a_line", "nonsense")
    write("fit_a_line.yaml", "nonsense")
    assert load_recipe("fit_a_line").source == "fit_a_line"
    write("mine.yaml", SMALL)
    with pytest.raises(ConfigError) as caught:
        load_recipe("mine")
    assert caught.value.faults[0].hint == "a file is written as a path: ./mine.yaml"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("fit_a_lin", "fit_a_line"), ("recognise_digits", "recognize_digits"), ("", None)],
)
def test_unknown_recipes_have_neighbours(name: str, nearest: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(name)
    assert (caught.value.faults[0].nearest or (None,))[0] == nearest


def test_escapes_from_the_shipped_folder_are_no_names() -> None:
    assert assets.find("recipes", "a/../fit_a_line") is None
    assert assets.find("recipes", "recognize_digits//conv") is None


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(SMALL.encode() + b"train: {epocs: 1}\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(ConfigError) as caught:
        load_recipe("-")
    assert place(caught.value.faults[0]) == "<stdin>:3:9"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_read_like_a_file() -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=[SMALL + "train: {epochs: 7}\n"])
    writer.start()
    assert load_recipe("./pipe").train.epochs == 7
    writer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
@pytest.mark.parametrize("override", ["", "description=/dev/zero"])
def test_no_more_is_read_than_a_recipe_may_have(override: str) -> None:
    write("r.yaml", SMALL)
    with pytest.raises(ConfigError, match="too many bytes"):
        load_recipe(
            "./r.yaml" if override else "/dev/zero", [FromFile(override)] if override else []
        )


def test_a_path_object_is_never_a_name() -> None:
    write("fit_a_line", SMALL + "train: {epochs: 77}\n")
    assert load_recipe(Path("fit_a_line")).train.epochs == 77


# overrides


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("train.epochs=3", ("train", "epochs"), 3),
        ("description=12", ("description",), "12"),
        ("description=null", ("description",), "null"),
        ("train.init_from=./null", ("train", "init_from"), "./null"),
        ("description=a=b", ("description",), "a=b"),
        ("description=[a, {b", ("description",), "[a, {b"),
        ("description= x ", ("description",), " x "),
        ("description=", ("description",), ""),
        ("description=a | b & 'c'", ("description",), "a | b & 'c'"),
        ("train.shuffle=none", ("train", "shuffle"), "none"),
        ("train={epochs: 3, seed: 4}", ("train", "seed"), 4),
        ("optimizer.learning_rate=1e-3", ("optimizer", "learning_rate"), 0.001),
        ("metrics=[accuracy]", ("metrics",), [{"accuracy": {}}]),
        ("metrics.0={accuracy: {k: 5}}", ("metrics", 0, "accuracy", "k"), 5),
        ("expect.test.loss=[1, 2]", ("expect", "test.loss"), {"min": 1.0, "max": 2.0}),
        ("expect.test.loss.min=1", ("expect", "test.loss", "min"), 1.0),
        ('expect."test.loss".max=1', ("expect", "test.loss", "max"), 1.0),
        ("model.size=5", ("model", "size"), 5),
        ("predict.labels=[a, b]", ("predict", "labels"), ["a", "b"]),
    ],
)
def test_override(override: str, path: tuple[str | int, ...], value: object) -> None:
    found: object = load(SMALL, override).as_dict()
    for part in path:
        found = found[part]  # type: ignore[index]
    assert (type(found), found) == (type(value), value)


def test_null_leaves_out_what_may_be_left_out() -> None:
    """A text too; one that must be there takes the word."""
    text = SMALL + "train: {init_from: last, class_weights: balanced}\n"
    train = load(text, "train.init_from=null", "train.class_weights=null").train
    assert train.init_from is None and train.class_weights is None


def test_overrides_accumulate_and_the_last_wins() -> None:
    recipe = load(SMALL, "train.epochs=1", "train.seed=5", "train.epochs=2")
    assert (recipe.train.epochs, recipe.train.seed) == (2, 5)
    assert str(recipe.origin(("train", "epochs"))) == "-o train.epochs=2"


def test_deleting() -> None:
    text = SMALL + "metrics: [accuracy, {accuracy: {k: 2}}]\ntrain: {seed: 4}\n"
    recipe = load(text, "~train.seed", "~metrics.0")
    assert recipe.train.seed == 0
    assert recipe.as_dict()["metrics"] == [{"accuracy": {"k": 2}}]


def test_list_items() -> None:
    text = "model: {inputs: {x: {}}, layers: [{fc: {size: 1}}, {fc: {size: 2}}]}\n"
    recipe = load(text, "model.layers.1.fc.size=7", "model.layers.2={fc: {size: 9}}")
    sizes = [layer["fc"]["size"] for layer in recipe.as_dict()["model"]["layers"]]
    assert sizes == [1, 7, 9]


@pytest.mark.parametrize(
    ("override", "where", "message", "nearest"),
    [
        ("train.epocs=3", "1:1", "unknown key `epocs` in `train`", ("epochs",)),
        (
            "train.epochs=x",
            "1:14",
            '`epochs` must be a whole number, at least 1, got the text "x"',
            (),
        ),
        ("train.epochs=", "1:14", "got nothing", ()),
        ("train.epochs=true", "1:14", "got true", ()),
        ("train.epochs=-1", "1:14", "`epochs` must be at least 1, got -1", ()),
        ("train.epochs=.nan", "1:14", "`.nan` is not a finite number", ()),
        ("train={epochs: x}", "1:16", "`epochs` must be", ()),
        ("train={epocs: 1}", "1:8", "unknown key `epocs`", ("epochs",)),
        ("train={epochs: 1", "1:17", "`{` is not closed before this", ()),
        ("train={seed: 1, seed: 2}", "1:17", "the key `seed` comes twice", ()),
        ("train.epochs=!!int 3", "1:14", "tag", ()),
        ("train.epochs.x=3", "1:1", "`epochs` must be", ()),
        ("optimizer.name=sdg", "1:16", "unknown optimizer `sdg`", ("sgd",)),
        ("model.size.x=3", "1:1", "`size` must be", ()),
        ("metrics.1=accuracy", "1:1", "`metrics` is a list of 0, `1` is no place in it", ()),
        ("metrics.x=accuracy", "1:1", "`metrics` is a list of 0, `x` is no place in it", ()),
        ("~train.epochs", "1:1", "there is no `train.epochs` to delete", ()),
        (
            "~optimizer.learning_rat",
            "1:1",
            "there is no `optimizer.learning_rat`",
            ("learning_rate",),
        ),
        ("~train=3", "1:1", "`~` deletes and takes no value", ()),
        ("train.epochs", "1:1", "a `=` is missing", ()),
        ("=3", "1:1", "this is not a path of keys", ()),
        ("a..b=3", "1:1", "this is not a path of keys", ()),
        ("extends=[x]", "1:1", "`extends` is read before `-o`", ()),
        ("extends.0=x", "1:1", "`extends` is read before `-o`", ()),
    ],
)
def test_override_fault(override: str, where: str, message: str, nearest: tuple[str, ...]) -> None:
    found = fault(SMALL + "metrics: []\n", override)
    assert (place(found), message in found.message) == (f"-o:{where}", True), str(found)
    assert (found.nearest, found.where.text) == (nearest, override)


def test_the_number_of_the_option_is_its_line() -> None:
    found = faults(SMALL, "train.seed=1", "train.epocs=3", "train.sed=1")
    assert [place(f) for f in found] == ["-o:2:1", "-o:3:1"]


def test_what_a_command_adds_itself_has_no_number() -> None:
    own = [Preset("~model"), Preset("model.name=digits_mlp")]
    found = faults(SMALL, *own, "model.hiden=3", "train.sed=1")
    assert [place(f) for f in found] == ["-o:1:1", "-o:2:1"]
    assert load(SMALL, *own, "model.hidden=3").model.arguments == {"hidden": 3}


def test_a_flag_is_told_as_it_was_given() -> None:
    found = faults(SMALL, "train.sed=1", Flag("train.batch_size=x"), Flag("name=a b"))
    assert [(place(f), f.where.text) for f in found] == [
        ("--batch-size:1:14", "--batch-size x"),
        ("--name:1:8", "--name a b"),
        ("-o:1:1", "train.sed=1"),
    ]
    recipe = load(SMALL, "train.epochs=1", Flag("train.epochs=2"))
    assert (recipe.train.epochs, str(recipe.origin(("train", "epochs")))) == (2, "--epochs 2")


@pytest.mark.parametrize("index", ["7", "-1"])
def test_an_index_says_that_a_list_is_meant(index: str) -> None:
    found = fault(SMALL, f"metrics.{index}=accuracy")
    assert found.message == f"`metrics` is a list of 0, `{index}` is no place in it"
    assert [c.call for c in load(SMALL, "metrics.0=accuracy").metrics] == ["accuracy"]


def test_a_key_that_belongs_beside_a_call() -> None:
    found = fault(SMALL, "metrics=[{accuracy: {from: [p, y]}}]")
    assert (found.message[:18], found.nearest) == ("unknown key `from`", ())
    assert found.hint == "`from` stands beside `accuracy`: {accuracy: {...}, from: ...}"


def test_a_value_below_a_scalar() -> None:
    found = fault(SMALL + "train: {epochs: 3}\n", "train.epochs.x=3")
    assert (place(found), found.message) == ("-o:1:1", "`train.epochs` is not a mapping")


@given(st.lists(st.text(alphabet="abc._-019", min_size=1), min_size=1, max_size=4))
def test_paths_survive_writing(parts: list[str]) -> None:
    assert split_path(dotted(tuple(parts))) == parts


@given(st.text(max_size=30))
def test_text_settings_take_any_text(text: str) -> None:
    if "${" not in text:
        assert load(SMALL, f"description={text}").description == text


# references


@pytest.mark.parametrize(
    ("description", "value"),
    [
        ("run ${train.epochs}", "run 3"),
        ("${name}", "r"),
        ("'$${name} ${train.drop_last}'", "${name} false"),
        ("${env:PK_TEST:none}", "none"),
        ("${env:PK_SET:none}", "12"),
        ("x${env:PK_SET}y", "x12y"),
        ("${env:PK_TEST:a:b}", "a:b"),
        ("${env:PK_TEST:}", ""),
        ("${optimizer.name}", "sgd"),
        ('${expect."test.loss".min}', "1"),
        ("$ {name} $name {name}", "$ {name} $name {name}"),
    ],
)
def test_reference(description: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PK_SET", "12")
    text = SMALL + "train: {epochs: 3}\nexpect: {test.loss: {min: 1}}\n"
    assert load(text + f"description: {description}\n").description == value


def test_references_keep_their_type_and_reach_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PK_SET", "12")
    recipe = load("""\
model: {name: linear, size: "${train.batch_size}"}
optimizer:
  a: {name: adam, learning_rate: "${env:PK_RATE:1e-3}", schedule: {name: cosine, epochs: 3}}
  b: {name: sgd, learning_rate: "${optimizer.a.learning_rate}", schedule: "${optimizer.a.schedule}"}
train: {epochs: "${env:PK_SET}", seed: "${train.epochs}", limit_batches: "${train.seed}"}
""")
    values = recipe.as_dict()
    assert values["model"]["size"] == 32
    assert values["optimizer"]["b"]["learning_rate"] == 0.001
    assert values["optimizer"]["b"]["schedule"] == {"name": "cosine", "epochs": 3}
    train = recipe.train
    assert (train.epochs, train.seed, train.limit_batches) == (12, 12, 12)


def test_overrides_are_seen_by_references() -> None:
    text = SMALL + "train: {epochs: 3}\ndescription: ${train.epochs}\n"
    assert load(text, "train.epochs=4").description == "4"
    assert load(text, "description=${train.seed}").description == "0"


@pytest.mark.parametrize(
    ("line", "where", "message"),
    [
        ("description: ${nothing}", "3:14", "there is no `nothing`"),
        ("description: ${train.epocs}", "3:14", "there is no `train.epocs`"),
        ("description: ${description}", "3:14", "`description` refers to itself"),
        ("description: a ${description} b", "3:14", "`description` refers to itself"),
        ("description: ${train.epochs", "3:14", "a `}` is missing after `${`"),
        ("description: ${a b..}", "3:14", "is not a path of keys"),
        ("description: ${env:PK_TEST}", "3:14", "the environment variable `PK_TEST` is not set"),
        ("description: x ${optimizer}", "3:14", "`optimizer` is not a single value"),
        ("train: {epochs: '${env:PK_TEST:x}'}", "3:17", "`epochs` must be a whole number"),
        ("train: {epochs: '${env:PK_TEST:.inf}'}", "3:17", "is not a finite number"),
        ("train: {epochs: '${name}'}", "3:17", "`epochs` must be a whole number"),
        ("train: {seed: '${train.epochs}', epochs: '${train.seed}'}", None, "refers to itself"),
    ],
)
def test_reference_fault(line: str, where: str | None, message: str) -> None:
    found = faults(SMALL + line + "\n")
    assert any(message in f.message for f in found), "\n".join(map(str, found))
    assert where is None or [place(f) for f in found] == [f"r.yaml:{where}"]


# paths in arguments


def test_paths_start_at_their_file_or_at_the_working_directory(tmp_path: Path) -> None:
    write("sub/a.yaml", "data: {name: table, path: t.csv}")
    recipe = load("extends: [sub/a.yaml]\n" + SMALL)
    assert recipe.as_dict()["data"]["path"] == str(tmp_path / "sub" / "t.csv")
    recipe = load("extends: [sub/a.yaml]\n" + SMALL, "data.path=../x=y.csv")
    assert recipe.as_dict()["data"]["path"] == str(tmp_path.parent / "x=y.csv")
