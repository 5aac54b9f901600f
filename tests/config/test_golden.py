"""Broken recipes and the messages that they give, word for word, in `broken.txt`.

A message that is meant to change: PADDLECLI_RENEW=1 pytest tests/config/test_golden.py, then read the
difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from paddlecli.config.compose import FromFile
from paddlecli.config.load import load_recipe
from paddlecli.errors import ConfigError

from .broken import CASES, Broken

GOLDEN = Path(__file__).with_name("broken.txt")
RENEW = bool(os.environ.get("PADDLECLI_RENEW"))
MARK = "=== "


def broken(case: Broken) -> ConfigError:
    """The error of a case."""
    for name, content in {**case.files, "r.yaml": case.text}.items():
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(Path().rglob("*"))
    with pytest.raises(ConfigError) as caught:
        load_recipe("./r.yaml", [*map(FromFile, case.set_files), *case.options])
    assert sorted(Path().rglob("*")) == before, "something was written"
    return caught.value


def shown(error: ConfigError) -> str:
    """The error as it is printed; what no file can hold is escaped, as stderr does."""
    return str(error).encode("utf-8", "backslashreplace").decode()


def golden() -> dict[str, str]:
    parts = GOLDEN.read_text(encoding="utf-8").split(MARK)[1:]
    return dict(part.rstrip("\n").split("\n", 1) for part in parts)


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert RENEW or list(golden()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    error = broken(CASES[name])
    if RENEW:
        first = name == next(iter(CASES))
        with GOLDEN.open("w" if first else "a", encoding="utf-8") as file:
            file.write(
                f"{MARK}{name}\n{shown(error)}\n\n"
                if name != list(CASES)[-1]
                else f"{MARK}{name}\n{shown(error)}\n"
            )
        return
    assert shown(error) == golden()[name], "see the head of this file for how to renew it"


@pytest.mark.parametrize("name", CASES)
def test_every_fault_can_be_acted_on(name: str) -> None:
    """A place, and something that tells what to do: what was expected, a near name, or a hint; a
    sentence of the schema's own says it itself."""
    error = broken(CASES[name])
    assert error.exit_code == 3
    for fault in error.faults:
        assert fault.where.file, fault
        assert fault.where.line or "bytes" in fault.message, fault
        if fault.where.line and fault.where.text:
            assert 1 <= fault.where.column <= len(fault.where.text) + 1, fault


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_data(name: str) -> None:
    error = broken(CASES[name])
    found = json.loads(json.dumps(error.as_dict(), allow_nan=False))["error"]
    assert (found["code"], found["kind"]) == (3, "config")
    assert len(found["where"]) == len(found["faults"]) == len(error.faults)
    for fault, told in zip(error.faults, found["faults"], strict=True):
        assert told["message"] == fault.message
        assert told["where"]["line"] == fault.where.line
        assert told["where"]["key"] == fault.where.key
        assert fault.where.text.startswith(told["where"]["text"])


def test_no_two_faults_are_the_same() -> None:
    for name, case in CASES.items():
        found = [(f.message, f.where) for f in broken(case).faults]
        assert len(found) == len(set(found)), name
