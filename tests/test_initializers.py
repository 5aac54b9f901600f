"""Initialisers: distributions, fans, and what a parameter's first values depend on."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.errors import ConfigError
from paddlecli.models.initializers import Stream, fans, initialise, normal

UNIFORM_42 = [0.8897586464881897, 0.876872718334198, -0.827136754989624, -0.739264965057373]
NORMAL_42 = [0.28829556703567505, 0.2434290051460266, 0.17401659488677979]


@pytest.mark.parametrize(("shape", "expected"), [
    ((30, 50), (30, 50)), ((20, 3, 5, 5), (75, 500)), ((8, 2, 3), (6, 24)), ((7,), (7, 7)),
    ((), (1, 1)),
])  # fmt: skip
def test_fans(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert fans(shape) == expected


@pytest.mark.parametrize(("spec", "shape", "bound"), [
    ("xavier", (30, 50), sqrt(6 / 80)),
    ("xavier", (20, 3, 5, 5), sqrt(6 / 575)),
    ({"name": "xavier", "fan_in": 10.0, "fan_out": 14.0}, (30, 50), 0.5),
    ("msra", (30, 50), sqrt(6 / 30)),
    ({"uniform": {"low": -0.25, "high": 0.25}}, (40, 40), 0.25),
])  # fmt: skip
def test_uniform_ones_fill_their_range(spec: Any, shape: tuple[int, ...], bound: float) -> None:
    values = initialise(spec, shape, 1, "w")
    assert values.dtype == np.float32
    assert values.shape == shape
    assert 0.98 * bound < np.abs(values).max() <= bound
    assert np.std(values) == pytest.approx(bound / sqrt(3), rel=0.06)
    assert abs(np.mean(values)) < 0.1 * bound


@pytest.mark.parametrize(("spec", "shape", "std"), [
    ({"name": "xavier", "distribution": "normal"}, (100, 60), sqrt(2 / 160)),
    ({"msra": {"distribution": "normal"}}, (20, 3, 5, 5), sqrt(2 / 75)),
    ({"normal": {"std": 0.02}}, (101, 51), 0.02),
    ({"truncated_normal": {"std": 2.0}}, (100, 100), 2.0 * 0.8796),
])  # fmt: skip
def test_normal_ones_have_their_deviation(spec: Any, shape: tuple[int, ...], std: float) -> None:
    values = initialise(spec, shape, 1, "w")
    assert np.std(values) == pytest.approx(std, rel=0.06)
    assert abs(np.mean(values)) < 0.1 * std


def test_normal_values_are_normal() -> None:
    z = initialise("normal", (200_000,), 5, "w").astype(np.float64)
    for edge, share in ((1.0, 0.6827), (2.0, 0.9545), (3.0, 0.9973)):
        assert np.mean(np.abs(z) < edge) == pytest.approx(share, abs=0.004)
    assert np.mean(z**4) == pytest.approx(3.0, rel=0.05)
    assert abs(np.corrcoef(z[:100_000], z[100_000:])[0, 1]) < 0.01


def test_a_mean_shifts() -> None:
    assert np.mean(
        initialise({"normal": {"mean": 3.0, "std": 0.1}}, (500,), 0, "w")
    ) == pytest.approx(3.0, abs=0.02)
    assert np.abs(initialise("truncated_normal", (50_000,), 0, "w")).max() < 2.0


def test_first_values_follow_seed_and_name_alone() -> None:
    a = initialise("xavier", (40, 30), 7, "fc1/w")
    initialise("xavier", (4, 3), 7, "other")
    np.testing.assert_array_equal(initialise("xavier", (40, 30), 7, "fc1/w"), a)
    assert np.mean(initialise("xavier", (40, 30), 8, "fc1/w") == a) < 0.01
    assert np.mean(initialise("xavier", (40, 30), 7, "fc2/w") == a) < 0.01


def test_they_do_not_change_from_release_to_release() -> None:
    """Runs name their seed, so these numbers are a promise."""
    np.testing.assert_array_equal(
        initialise("uniform", (4,), 42, "w"), np.array(UNIFORM_42, np.float32)
    )
    np.testing.assert_allclose(initialise("normal", (3,), 42, "w"), NORMAL_42, rtol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 7, 131_071, 131_072, 262_149])
def test_pieces_are_the_whole(count: int) -> None:
    """Large tensors are drawn some numbers at a time: the same ones."""
    whole = (0.5 + 0.1 * Stream(3, "w").normal(count)).astype(np.float32)
    found = normal((count,), Stream(3, "w"), mean=0.5, std=0.1)
    assert found.tobytes() == whole.tobytes()


def test_bilinear_enlarges_a_line_to_a_line() -> None:
    weights = initialise("bilinear", (2, 1, 4, 4), 0, "w")
    row = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(weights[1, 0], np.outer(row, row))


def test_assign_and_constant() -> None:
    np.testing.assert_array_equal(
        initialise({"constant": {"value": 1.5}}, (2, 2), 0, "w"), np.full((2, 2), 1.5)
    )
    np.testing.assert_array_equal(initialise("constant", (3,), 0, "b"), np.zeros(3))
    values = [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(
        initialise({"assign": {"values": values}}, (2, 2), 0, "w"), values
    )


def test_numbers_of_a_file(tmp_path: Path) -> None:
    """As the word vectors of the original's semantic roles: 16 bytes, then float32."""
    values = np.arange(6, dtype="<f4").reshape(3, 2)
    path = tmp_path / "emb"
    path.write_bytes(b"h" * 16 + values.tobytes())
    spec = {"file": {"path": str(path), "header": 16}}
    np.testing.assert_array_equal(initialise(spec, (3, 2), 0, "emb"), values)
    for wrong, shape, words in (
        (spec, (4, 2), r"40 bytes; a header of 16 and \[4, 2\] numbers take 48"),
        ({"file": {"path": str(tmp_path / "none")}}, (3, 2), "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=words):
            initialise(wrong, shape, 0, "emb")
    path.write_bytes(b"h" * 16 + np.full(6, np.nan, "<f4").tobytes())
    with pytest.raises(ConfigError, match="not finite"):
        initialise(spec, (3, 2), 0, "emb")


def test_an_empty_parameter_is_legal() -> None:
    assert initialise("xavier", (0, 3), 0, "w").shape == (0, 3)


@pytest.mark.parametrize(("spec", "shape", "words"), [
    ("xavir", (2,), "unknown initializer `xavir`"),
    ({"name": "normal", "sdt": 1.0}, (2,), "sdt"),
    ({"normal": {"std": -1.0}}, (2,), "std"),
    ({"uniform": {"low": 2.0}}, (2,), "above high"),
    ({"assign": {"values": [1, 2, 3]}}, (2,), "3 values for shape"),
    ("bilinear", (2, 1, 4, 3), "bilinear"),
    ({"normal": {}, "uniform": {}}, (2,), "one name"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(spec: Any, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        initialise(spec, shape, 0, "w")
