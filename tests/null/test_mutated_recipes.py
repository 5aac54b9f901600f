"""Mutated shipped recipes, with all that is registered, up to the network: a graph or an error that can
be shown, never another exception. PADDLECLI_FUZZ=20 tries twenty times as many."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from config.test_fuzz import EDITS, mutate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecli import assets
from paddlecli.config.load import load_recipe
from paddlecli.config.yaml_text import Source, parse
from paddlecli.engine.prepare import fields_of
from paddlecli.errors import ConfigError, DataError
from paddlecli.models.build import build

EFFORT = int(os.environ.get("PADDLECLI_FUZZ", "1"))


def texts() -> list[str]:
    """Shipped recipes that say most themselves, and the networks of the tests."""
    files = [assets.directory("recipes") / f"{n}.yaml" for n in ("fit_a_line", "bench/word2vec")]
    files += sorted((Path(__file__).parent.parent / "tracers").glob("*.yaml"))
    return [f.read_text(encoding="utf-8") for f in files]


TEXTS = st.sampled_from(texts())


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def survives(text: str) -> None:
    Path("r.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        recipe = load_recipe("./r.yaml")
        build(recipe, fields_of(recipe))
    except (ConfigError, DataError) as error:
        assert str(error)
        json.dumps(error.as_dict(), allow_nan=False)
        for fault in getattr(error, "faults", ()):
            assert fault.message


QUICK = settings(
    max_examples=100 * EFFORT,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@QUICK
@given(TEXTS, EDITS)
def test_mutated_texts(text: str, edits: list[tuple[int, int, str]]) -> None:
    for start, length, piece in edits:
        place = start % (len(text) + 1)
        text = text[:place] + piece + text[place + length :]
    survives(text)


@QUICK
@given(TEXTS, st.data())
def test_mutated_settings(text: str, data: st.DataObject) -> None:
    source = Source("r.yaml")
    source.set_text(text)
    root = parse(source)
    assert root is not None
    value = root.plain()
    for _ in range(data.draw(st.integers(1, 3))):
        value = mutate(value, data.draw)
    survives(yaml.safe_dump(value, allow_unicode=True))
