"""Registries: signatures as schemas, lazy filling, and users' own code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from paddlecli.config import plugins
from paddlecli.config.registry import LAYERS, METRICS, Call, Registry
from paddlecli.config.types import Count, Fraction
from paddlecli.errors import ConfigError, UserCodeError

from .world import SMALL, fault, load


def layer(net: Any, *xs: Any, size: Count, rate: Fraction = 0.5, kind: str | None = None) -> None:
    """Positional parameters are the caller's."""


class Reader:
    """Classes are registered by their constructors."""

    def __init__(
        self, card: Any, *, columns: tuple[str, ...], path: Path | None = None
    ) -> None: ...


def test_keyword_only_parameters_are_the_schema() -> None:
    LAYERS.register("mine")(layer)
    found = LAYERS.get("mine").parameters
    assert list(found) == ["size", "rate", "kind"]
    assert [p.required for p in found.values()] == [True, False, False]


def test_binding_fills_in_defaults_and_python_types() -> None:
    LAYERS.register("mine")(layer)
    LAYERS.register("reader")(Reader)
    assert LAYERS.bind("mine", {"size": 3}) == {"size": 3, "rate": 0.5, "kind": None}
    bound = LAYERS.bind("reader", {"columns": ["a"], "path": "x"})
    assert bound == {"columns": ("a",), "path": Path("x")}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "size"),
        ({"size": True}, "size"),
        ({"size": 1, "rate": 1}, "rate"),
        ({"size": 1, "x": 1}, "x"),
    ],
)
def test_binding_refuses_what_does_not_fit(arguments: dict[str, Any], part: str) -> None:
    LAYERS.register("mine")(layer)
    with pytest.raises(ConfigError, match=f"layer `mine`: {part}: "):
        LAYERS.bind("mine", arguments)


def test_arguments_may_have_names_that_pydantic_uses_itself() -> None:
    def odd(net: Any, *, copy: bool = False, model_x: int = 1, schema: str = "") -> None: ...

    LAYERS.register("odd")(odd)
    assert LAYERS.bind("odd", {"copy": True}) == {"copy": True, "model_x": 1, "schema": ""}


def test_calls_inside_arguments_are_bound() -> None:
    def odd(*, init: Annotated[str | dict[str, Any], Call("initializer")] = "xavier") -> None: ...

    LAYERS.register("odd")(odd)
    assert LAYERS.bind("odd", {"init": {"constant": {"value": 1.0}}})
    with pytest.raises(ConfigError, match="unknown initializer `xavir`"):
        LAYERS.bind("odd", {"init": "xavir"})
    with pytest.raises(ConfigError, match="initializer `constant`: value"):
        LAYERS.bind("odd", {"init": {"constant": {"value": "x"}}})


def test_a_parameter_without_a_type_is_told() -> None:
    def bad(net: Any, *, size=3) -> None: ...  # type: ignore[no-untyped-def]

    LAYERS.register("bad")(bad)
    with pytest.raises(ConfigError, match="the keyword parameter `size` has no type hint"):
        LAYERS.bind("bad", {})


def test_a_name_is_taken_once() -> None:
    LAYERS.register("mine")(layer)
    LAYERS.register("mine")(layer)
    with pytest.raises(ConfigError, match="the layer `mine` is registered twice"):
        LAYERS.register("mine")(Reader)


def test_unknown_names() -> None:
    with pytest.raises(ConfigError) as caught:
        METRICS.get("acuracy")
    assert caught.value.message == "unknown metric `acuracy`"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean `accuracy`? known: accuracy;")


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, **modules: str) -> None:
    root = folder / "pk_test_things"
    root.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (root / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    for name in [n for n in sys.modules if n.startswith("pk_test_things")]:
        monkeypatch.delitem(sys.modules, name)


def fresh(*modules: str) -> Registry:
    from paddlecli.config import registry

    found = Registry("test thing", *modules)
    registry.KINDS.pop("test thing")
    return found


def test_a_registry_fills_itself_when_it_is_first_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = "import sys\nsys.modules['pk_registry'].REG.register({!r})(lambda: None)\n"
    package(tmp_path, monkeypatch, one=register.format("one"), two=register.format("two"))
    found = fresh("pk_test_things", "no.such.package")
    monkeypatch.setitem(sys.modules, "pk_registry", type("M", (), {"REG": found}))
    assert not [n for n in sys.modules if n.startswith("pk_test_things")]
    assert found.names() == ["one", "two"]


def test_what_is_broken_in_a_module_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, monkeypatch, broken="import pk_no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="pk_no_such_module"):
        fresh("pk_test_things").names()


def test_absent_packages_are_an_error_when_looked_up() -> None:
    with pytest.raises(ConfigError) as caught:
        fresh("pk_absent").get("x")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("nothing provides any test thing here")


def test_providers_make_only_what_is_looked_up() -> None:
    made: list[str] = []
    found = fresh()

    @found.provider(lambda: ["a", "b"])
    def several(name: str) -> Any:
        if name in ("a", "b"):
            made.append(name)
            return layer
        return None

    assert found.names() == ["a", "b"]
    assert made == []
    assert found.find("a") is found.find("a")
    assert found.find("c") is None
    assert made == ["a"]
    with pytest.raises(ConfigError, match="the test thing `b` is registered twice"):
        found.register("b")(Reader)


def test_a_look_up_imports_no_more_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = "import sys\nsys.modules['pk_registry'].REG.register({!r})(lambda: None)\n"
    package(tmp_path, monkeypatch, one=register.format("one"), two=register.format("two"))
    found = fresh("pk_test_things.one", "pk_test_things.two")
    monkeypatch.setitem(sys.modules, "pk_registry", type("M", (), {"REG": found}))
    assert found.find("one") is not None
    assert "pk_test_things.two" not in sys.modules
    assert found.names() == ["one", "two"]


def test_a_users_name_may_not_be_one_of_a_module_that_is_not_yet_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = "import sys\nsys.modules['pk_registry'].REG.register({!r})(lambda: None)\n"
    package(tmp_path, monkeypatch, one=register.format("one"))
    found = fresh("pk_test_things.one")
    monkeypatch.setitem(sys.modules, "pk_registry", type("M", (), {"REG": found}))
    with pytest.raises(ConfigError, match="the test thing `one` is registered twice"):
        found.register("one")(layer)


def test_isolation_ends() -> None:
    found = fresh()
    found.register("outside")(layer)
    with found.isolated():
        found.register("inside")(layer)
        assert found.names() == ["inside"]
    assert found.names() == ["outside"]


# users' own code

CODE = """\
from paddlecli.config.registry import METRICS

@METRICS.register("mine")
def mine(*, weight: float = 1.0) -> None:
    pass
"""


@pytest.fixture(autouse=True)
def nothing_loaded() -> Iterator[None]:
    with plugins.isolated():
        yield


def test_code_registers_names() -> None:
    Path("mine.py").write_text(CODE)
    hint = fault(SMALL + "metrics: [mine]\n").hint
    assert hint.endswith("mine.py registers `mine`: add --code mine.py")
    plugins.load_code(["mine.py", "mine.py"])
    assert load(SMALL + "metrics: [{mine: {weight: 2}}]\n").metrics[0].call == "mine"
    assert fault(SMALL + "metrics: [{mine: {wight: 2}}]\n").nearest == ("weight",)


@pytest.mark.parametrize(
    ("name", "message"),
    [("nothing.py", "the file does not exist"), ("mine.txt", "expected a Python file")],
)
def test_code_that_is_no_file(name: str, message: str) -> None:
    Path("mine.txt").write_text(CODE)
    with pytest.raises(ConfigError, match=message):
        plugins.load_code([name])


def test_a_failing_import_shows_only_the_users_lines() -> None:
    Path("mine.py").write_text("import json\n\ndef f():\n    return json.loads('{')\n\nf()\n")
    with pytest.raises(UserCodeError) as caught:
        plugins.load_code(["mine.py"])
    error = caught.value
    assert error.exit_code == 3
    assert error.message.startswith("mine.py failed: JSONDecodeError: ")
    assert 'mine.py", line 6, in <module>' in error.trace
    assert "in f" in error.trace
    assert "importlib" not in error.trace
    assert "plugins.py" not in error.trace


@pytest.mark.parametrize("text", ["def f(:\n", "raise SystemExit(3)\n", "1 / 0\n"])
def test_whatever_user_code_does_is_told(text: str) -> None:
    Path("mine.py").write_text(text)
    with pytest.raises(UserCodeError) as caught:
        plugins.load_code(["mine.py"])
    assert "mine.py" in caught.value.trace
    assert "mine.py failed" in str(caught.value)


def test_a_name_that_is_taken_is_told_with_the_users_line() -> None:
    Path("mine.py").write_text(CODE.replace('"mine"', '"accuracy"'))
    with pytest.raises(UserCodeError, match="the metric `accuracy` is registered twice") as caught:
        plugins.load_code(["mine.py"])
    assert "line 3" in caught.value.trace or "line 4" in caught.value.trace


def test_code_with_the_same_name_in_two_folders() -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        (Path(folder) / "mine.py").write_text(CODE.replace("mine", f"mine_{folder}"))
    plugins.load_code(["a/mine.py", "b/mine.py"])
    assert {"mine_a", "mine_b"} <= set(METRICS.names())
