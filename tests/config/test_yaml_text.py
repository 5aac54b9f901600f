"""The text stage: YAML 1.2 scalars, positions, and everything that is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecli.config.dump import to_yaml
from paddlecli.config.yaml_text import MAX_BYTES, Source, decode, parse, scalar_of

from .world import SMALL, fault, faults, load, place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("+.5", 0.5),
        ("5.", 5.0),
        ("-0", 0),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("yes", "yes"),
        ("y", "y"),
        ("true", True),
        ("FALSE", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("1_000", "1_000"),
        ("2020-01-01", "2020-01-01"),
        ("12:30:45", "12:30:45"),
        ("0b11", "0b11"),
        ("1e", "1e"),
        (".", "."),
        ("-", "-"),
        ("=", "="),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    found = scalar_of(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text", [".inf", "-.INF", ".nan", ".NaN", "1e999", "9223372036854775808", "9" * 5000]
)
def test_what_no_machine_number_holds_is_nan(text: str) -> None:
    found = scalar_of(text)
    assert isinstance(found, float) and math.isnan(found)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_what_is_written_is_read(value: object) -> None:
    source = Source("x")
    source.set_text(to_yaml({"v": value}))
    root = parse(source)
    assert root is not None and not source.text_faults and not source.schema_faults
    expected = {"v": _escaped(value)}
    assert root.plain() == expected
    assert repr(root.plain()) == repr(expected)


def _escaped(value: object) -> object:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_escaped(v) for v in value]
    return {k: _escaped(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_bom_and_line_ends_change_nothing(end: str) -> None:
    text = "\ufeff" + SMALL.replace("\n", end) + f"train:{end}  epocs: 1{end}"
    found = fault(text.encode())
    assert place(found) == "r.yaml:4:3"
    assert found.where.text == "  epocs: 1"


def test_columns_count_characters() -> None:
    found = fault(SMALL + "train: {seed: 1, 日本語: 2}\n")
    assert place(found) == "r.yaml:3:18"
    assert "日本語" in found.message


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (SMALL.encode() + b"name: caf\xe9\n", "r.yaml:3:10", "byte 0xe9 is not UTF-8"),
        (SMALL.encode("utf-16"), "r.yaml:1:1", "UTF-16"),
        (SMALL + "train:\n\tepochs: 3\n", "r.yaml:4:1", "a tab cannot indent"),
        (SMALL + "train: !!python/object:os.system {}\n", "r.yaml:3:8", "tag"),
        (SMALL + "train: {epochs: !!int 3}\n", "r.yaml:3:17", "tag"),
        (SMALL + "train: ! {}\n", "r.yaml:3:8", "tag"),
        (SMALL + "train: {epochs: 3\n", "r.yaml:4:1", "`{` is not closed before this"),
        (SMALL + "a: b: c\n", "r.yaml:3:5", "a `:` does not fit here"),
        (SMALL + "train: *nothing\n", "r.yaml:3:8", "undefined alias"),
        (SMALL + "train: &a [*a]\n", "r.yaml:3:8", "an alias contains itself"),
        (SMALL + "---\nmodel: {}\n", "r.yaml:3:1", "a second document"),
        (SMALL + "? [a, b]\n: 3\n", "r.yaml:3:3", "cannot be a key"),
        (SMALL + "name: \x07\n", "r.yaml:3:7", "is not allowed"),
        (SMALL + "train: " + "[" * 70 + "]" * 70 + "\n", "r.yaml:3:71", "nested too deeply"),
        (b"", "r.yaml:1:1", "the file is empty"),
        (b"# nothing\n", "r.yaml:1:1", "the file is empty"),
        (b"- a\n- b\n", "r.yaml:1:1", "a recipe must be a mapping, got a list"),
        (b"hello\n", "r.yaml:1:1", "a recipe must be a mapping, got the text"),
        (b"x" * (MAX_BYTES + 1), "r.yaml", "too many bytes"),
    ],
)
def test_refused_text(text: str | bytes, where: str, message: str) -> None:
    found = fault(text)
    assert (place(found), message in found.message) == (where, True), str(found)


def test_aliases_that_explode() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "aliases make this text too large" in fault("\n".join(levels)).message


def test_plain_aliases_are_copies() -> None:
    recipe = load("""\
model: {name: linear}
optimizer:
  a: &o {name: sgd, learning_rate: 0.5}
  b: *o
""")
    assert recipe.optimizers()["b"].learning_rate == 0.5


def test_all_tags_of_a_file_are_reported() -> None:
    found = faults("model: !a {name: !b linear}\n")
    assert [place(f) for f in found] == ["r.yaml:1:8", "r.yaml:1:18"]


def test_text_faults_of_all_files_and_options_come_together() -> None:
    Path("one.yaml").write_text("a: [\n")
    Path("two.yaml").write_text("a:\n\tb: 1\n")
    found = faults("extends: [one.yaml, two.yaml, three.yaml]\n" + SMALL, "x")
    assert [place(f) for f in found] == ["-o:1:1", "one.yaml:2:1", "r.yaml:1:31", "two.yaml:2:1"]


def test_a_schema_fault_waits_for_the_text() -> None:
    found = faults("train: {epocs: 1}\nmodel: !x {}\n")
    assert [place(f) for f in found] == ["r.yaml:2:8"]


def test_text_in_lists_with_references_advises_quotes() -> None:
    found = fault(SMALL + "train: {epochs: ${train.seed}}\n")
    assert "quote" in found.hint


@given(st.binary(max_size=300))
def test_no_bytes_escape(raw: bytes) -> None:
    source = Source("x")
    if decode(raw, source):
        parse(source)
