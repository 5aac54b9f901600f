"""The tree of errors: codes, kinds, and the two forms in which they are shown."""

from __future__ import annotations

import json

import pytest

from paddlecli import errors
from paddlecli.errors import ConfigError, Fault, Interrupted, PaddleCliError, Where

CODES = {
    "UsageError": (2, "usage"), "ConfigError": (3, "config"), "UserCodeError": (3, "user_code"),
    "DataError": (4, "data"), "RunError": (5, "run"), "NumericalError": (6, "numerical"),
    "ResourceError": (7, "resource"), "NetworkError": (8, "network"), "MetricError": (9, "metric"),
    "Interrupted": (130, "interrupted"),
}  # fmt: skip


def test_codes_and_kinds() -> None:
    found = {
        name: (c.exit_code, c.kind)
        for name, c in vars(errors).items()
        if isinstance(c, type) and issubclass(c, PaddleCliError) and c is not PaddleCliError
    }
    assert found == CODES


@pytest.mark.parametrize("name", CODES)
def test_the_docstring_draws_every_class(name: str) -> None:
    assert errors.__doc__ is not None
    line = next(n for n in errors.__doc__.splitlines() if f" {name} " in n)
    assert str(CODES[name][0]) in line
    assert CODES[name][1] in line


def test_the_form_for_people() -> None:
    error = PaddleCliError("it broke", hint="mend it", where=[Where("a.yaml", 3, 4)])
    assert str(error) == "a.yaml:3:4: it broke\nhint: mend it"


def test_the_form_for_programs() -> None:
    fault = Fault("bad", Where("a.yaml", 3, 4, "x.y", "text"), "good", ("god",), "mend it")
    found = ConfigError.of([fault], "a").as_dict()
    assert json.loads(json.dumps(found)) == {
        "error": {
            "code": 3, "kind": "config", "message": "1 fault in a", "hint": None,
            "where": [{"file": "a.yaml", "line": 3, "column": 4, "key": "x.y", "text": "text"}],
            "faults": [{
                "message": "bad", "expected": "good", "nearest": ["god"], "hint": "mend it",
                "where": {"file": "a.yaml", "line": 3, "column": 4, "key": "x.y", "text": "text"},
            }],
        }
    }  # fmt: skip


def test_faults_are_in_the_order_of_their_places() -> None:
    places = [("b", 1, 1), ("a", 2, 1), ("a", 1, 5), ("a", 1, 2)]
    error = ConfigError.of([Fault("x", Where(*p)) for p in places])
    assert [str(f.where) for f in error.faults] == ["a:1:2", "a:1:5", "a:2:1", "b:1:1"]


def test_carets_stand_under_tabs() -> None:
    assert "    | \t\t^" in str(Fault("x", Where("a", 1, 3, "", "\t\tx")))


def test_carets_stand_under_letters_of_two_cells() -> None:
    text = "{日本: 1, e\u0301: x}"
    shown = str(Fault("x", Where("a", 1, text.index("x") + 1, "", text))).splitlines()[2]
    assert shown == "    | " + " " * (text.index("x") + 2 - 1) + "^"


def test_sigterm_has_its_own_code() -> None:
    assert Interrupted("stopped", exit_code=143).as_dict()["error"]["code"] == 143
