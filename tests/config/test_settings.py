"""Settings: who wins, what is refused, and that nothing else reads the environment."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import paddlecli
from paddlecli import settings
from paddlecli.errors import UsageError


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("PADDLECLI_") or name in ("OMP_NUM_THREADS", "NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def user_file(text: str) -> None:
    path = settings.user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_defaults() -> None:
    assert settings.runs_dir() == Path("runs")
    assert settings.mirror() is None
    assert (settings.offline(), settings.device(), settings.isa()) == (False, "auto", "auto")
    assert (settings.log_level(), settings.debug()) == ("info", 0)
    assert settings.cache_dir().name == "paddlecli"
    assert settings.threads() >= 1
    assert settings.lookup("mirror") == (None, "default")


def test_flag_beats_environment_beats_file(monkeypatch: pytest.MonkeyPatch) -> None:
    user_file('device = "a"\noffline = true\nthreads = 3\n')
    assert settings.lookup("device") == ("a", "config file")
    assert (settings.offline(), settings.threads()) == (True, 3)
    monkeypatch.setenv("PADDLECLI_DEVICE", "b")
    assert settings.lookup("device") == ("b", "environment")
    with settings.flags(device="c", offline=None):
        assert settings.lookup("device") == ("c", "command line")
        with settings.flags(threads=2):
            assert (settings.device(), settings.threads(), settings.offline()) == ("c", 2, True)
    assert settings.device() == "b"


def test_the_environment_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("/a", "/b"):
        monkeypatch.setenv("PADDLECLI_CACHE_DIR", value)
        assert settings.cache_dir() == Path(value)
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", "")
    assert settings.cache_dir() != Path()


def test_nothing_is_created() -> None:
    settings.cache_dir()
    settings.runs_dir()
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("YES", True), ("0", False), ("off", False)]
)
def test_yes_and_no(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLI_OFFLINE", text)
    assert settings.offline() is value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PADDLECLI_OFFLINE", "maybe", "PADDLECLI_OFFLINE: expected 1 or 0, got 'maybe'"),
        ("PADDLECLI_THREADS", "-1", "PADDLECLI_THREADS: expected a whole number, got '-1'"),
        ("PADDLECLI_ISA", "sse9", "PADDLECLI_ISA: expected baseline, avx2, avx512, neon, auto"),
        ("PADDLECLI_LOG_LEVEL", "loud", "PADDLECLI_LOG_LEVEL: expected debug, info"),
        ("PADDLECLI_DEBUG", "x", "PADDLECLI_DEBUG: expected a whole number"),
    ],
)
def test_refused(name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    setting = next(s for s in settings.TABLE if s.variable == name)
    with pytest.raises(UsageError, match=re.escape(message)):
        settings.lookup(setting.name)


def test_a_flag_is_named_in_its_error() -> None:
    with settings.flags(isa="x"), pytest.raises(UsageError, match="--isa: expected baseline"):
        settings.isa()


@pytest.mark.parametrize(
    ("text", "message"),
    [("devise = 1", "unknown setting 'devise'"), ("device = ", "config.toml: ")],
)
def test_a_wrong_user_file(text: str, message: str) -> None:
    user_file(text)
    with pytest.raises(UsageError, match=message):
        settings.device()


def test_threads_follow_openmp_where_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert settings.threads() == 5
    monkeypatch.setenv("PADDLECLI_THREADS", "3")
    assert settings.threads() == 3
    monkeypatch.setenv("PADDLECLI_THREADS", "0")
    assert settings.threads() == 5


def test_mirrors_lose_their_last_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLI_MIRROR", "file:///a/b/")
    assert settings.mirror() == "file:///a/b"


class Stream:
    def __init__(self, tty: bool) -> None:
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize(
    ("variables", "tty", "color"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
    ],
)
def test_color(
    variables: dict[str, str], tty: bool, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CLICOLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert settings.color(Stream(tty)) is color  # type: ignore[arg-type]


def test_every_row_is_documented() -> None:
    for row in settings.TABLE:
        assert row.variable.startswith("PADDLECLI_")
        assert row.help
        assert callable(getattr(settings, row.name))
    assert len({row.variable for row in settings.TABLE}) == len(settings.TABLE)


def test_no_other_module_reads_the_environment() -> None:
    folder = Path(paddlecli.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "settings.py":
            assert "os.environ" not in path.read_text(encoding="utf-8"), path
            assert "getenv" not in path.read_text(encoding="utf-8"), path
