"""Pickles of numbers, texts, lists, dictionaries and arrays are read; whatever else one asks for is
refused before anything runs."""

from __future__ import annotations

import io
import os
import pickle
import random
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from paddlecli.data.formats import unpickle
from paddlecli.data.formats.unpickle import loads
from paddlecli.errors import DataError

VALUE = {
    "data": np.arange(24, dtype=np.uint8).reshape(4, 6),
    "fortran": np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3)),
    "big": np.array([1.5, -2.5], ">f8"),
    "labels": [1, 200, 70000, -5, 1 << 40],
    "text": "päge",
    "bytes": bytes(range(256)) * 2,
    "tuple": (1, 2, 3, (4.5, None, True, False)),
    "empty": [[], {}, ()],
}


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_values_as_the_general_reader_has_them(protocol: int) -> None:
    found = loads(pickle.dumps(VALUE, protocol), "p")
    assert found.keys() == VALUE.keys()
    for key, value in VALUE.items():
        if isinstance(value, np.ndarray):
            assert found[key].dtype == value.dtype
            np.testing.assert_array_equal(found[key], value)
        else:
            assert found[key] == value and type(found[key]) is type(value)


class _Old(pickle._Pickler):
    """Writes byte strings as Python 2 did, so as CIFAR's files have them."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)

    def save_old_bytes(self, value: bytes) -> None:
        if len(value) < 256:
            self.write(b"U" + bytes([len(value)]) + value)
        else:
            self.write(b"T" + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    dispatch[bytes] = save_old_bytes


def old_pickle(value: Any) -> bytes:
    """What Python 2's cPickle would have written."""
    out = io.BytesIO()
    _Old(out, 2).dump(value)
    return out.getvalue()


def test_the_opcodes_of_python_2() -> None:
    batch = {
        b"batch_label": b"training batch 1 of 5",
        b"labels": [6, 9],
        b"data": np.zeros((2, 3072), np.uint8),
    }
    raw = old_pickle(batch)
    assert b"U\x05" not in raw[:2] and b"T" in raw
    found = loads(raw, "p")
    assert found[b"batch_label"] == batch[b"batch_label"] and found[b"labels"] == [6, 9]
    np.testing.assert_array_equal(found[b"data"], batch[b"data"])


class Evil:
    """Asks for a call when it is read."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "call",
    [(os.system, ("touch pwned",)), (eval, ("1/0",)), (getattr, ("x", "upper")), (OrderedDict, ())],
    ids=["system", "eval", "getattr", "harmless"],
)
def test_calls_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = pickle.dumps({"data": [1, Evil(*call)]}, protocol)
    with pytest.raises(DataError, match="the pickle names") as caught:
        loads(raw, "some batch")
    assert "some batch: byte" in str(caught.value) and not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"cos\nsystem\n(S'id'\ntR.",
        b"\x80\x02cbuiltins\nexec\nq\x00X\x01\x00\x00\x001\x85R.",
        b"\x80\x02cnumpy\nload\n.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n.",  # a type as a value
        b"\x80\x02cnumpy\nndarray\n)R.",
        b"\x80\x02cnumpy\ndtype\nU\x02O8\x85R.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02(i__main__\nX\n.",
        b"\x80\x02}(U\x01aK\x01.",
        b"\x80\x02K",
        b"\x80\x02.",
        b"",
        b"\x80\x02h\x05.",
        b"\x80\x02X\xff\xff\xff\x7f.",
        b"\x80\x02T\xff\xff\xff\xff.",
        b"\x80\x02]K\x01b.",
        b"\x80\x02K\x01K\x02s.",
        b"\x82\x01.",  # an extension of copyreg
        b"P1\n.",  # a persistent id
    ],
    ids=range(19),
)
def test_crafted_pickles(raw: bytes) -> None:
    with pytest.raises(DataError, match="p: byte"):
        loads(raw, "p")


def test_arrays_of_objects() -> None:
    with pytest.raises(DataError):
        loads(pickle.dumps(np.array([{}, []], object), 2), "p")


def test_an_array_that_claims_more_than_it_has() -> None:
    raw = pickle.dumps(np.zeros((2, 3), np.uint8), 2)
    for shape in (b"M\xff\xff", b"J\xff\xff\xff\x7f"):
        changed = raw.replace(b"K\x02K\x03\x86", shape + b"K\x03\x86", 1)
        assert changed != raw
        with pytest.raises(DataError, match="in 6 bytes"):
            loads(changed, "p")


def test_containers_that_hold_themselves_or_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(DataError, match="containers within containers"):
        loads(pickle.dumps(loop, 2), "p")
    monkeypatch.setattr(unpickle, "_MOST_ITEMS", 100_000)
    laughs: list[Any] = [b"ha"] * 10
    for _ in range(12):
        laughs = [laughs] * 10
    with pytest.raises(DataError, match="more values"):
        loads(pickle.dumps(laughs, 2), "p")


def test_any_damage_is_a_data_error() -> None:
    """A thousand bytes changed at random: a value or one line, never anything else."""
    raw = bytearray(pickle.dumps(VALUE, 2))
    rng = random.Random(1)
    for _ in range(1000):
        changed = bytearray(raw)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(raw))] = rng.randrange(256)
        try:
            loads(bytes(changed[: rng.randint(1, len(raw))]), "p")
        except DataError:
            continue
