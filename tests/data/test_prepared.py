"""Prepared columns: mapped, keyed by data, settings and code, and never wrong when damaged."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from packing import put, tar
from test_book_sets import PTB, REVIEWS

from paddlecli.data import prepared
from paddlecli.data.cards import shipped
from paddlecli.data.fetching import cache, glance, imports
from paddlecli.data.opening import describe, open_dataset
from paddlecli.errors import DataError

Bring = Callable[..., None]


@pytest.fixture
def bring(tmp_path: Path) -> Bring:
    """Imports an archive of these members, as unofficial."""

    def make(name: str, members: dict[str, bytes], file: str = "x.tar") -> None:
        path = put(tmp_path / "by hand" / file, tar(members, ""))
        imports.bring_in(shipped(name), path, unofficial=True)

    return make


def folders(name: str) -> list[str]:
    root = prepared.root(name)
    return sorted(p.name for p in root.iterdir() if p.is_dir()) if root.exists() else []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every reading of an archive."""
    seen: list[str] = []
    from paddlecli.data.readers import archived

    real = archived.read_members

    def read(path: Path, wants: Callable[[str], bool], **more: bool):  # type: ignore[no-untyped-def]
        seen.append(path.name)
        return real(path, wants, **more)

    monkeypatch.setattr(archived, "read_members", read)
    return seen


def test_the_second_opening_reads_no_archive(bring: Bring, counted: list[str]) -> None:
    bring("imikolov", PTB)
    first = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    second = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    assert len(counted) == 1 and len(folders("imikolov")) == 1
    assert first.fingerprint == second.fingerprint == _slow_fingerprint(second)
    assert first.vocabularies["word"].words == second.vocabularies["word"].words
    assert second.vocabularies["word"].unknown == "<unk>"
    assert second.spec == first.spec and second.spec.find("next").names[0] == "<e>"
    column = second["train"].columns["context"]
    base = column.values
    while getattr(base, "base", None) is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap) and not column.values.flags.writeable


def _slow_fingerprint(data: object) -> str:
    del data.__dict__["fingerprint"]  # type: ignore[attr-defined]
    return data.fingerprint  # type: ignore[attr-defined, no-any-return]


def test_offsets_are_stored_once(bring: Bring) -> None:
    bring("imikolov", PTB)
    data = open_dataset("imikolov", {"cutoff": 0, "mode": "sequence"})
    words, following = (data["train"].columns[f] for f in ("words", "next"))
    assert words.offsets[0] is following.offsets[0]
    assert len(list(prepared.root("imikolov").rglob("*.npy"))) == 6


def test_settings_have_columns_of_their_own(bring: Bring, counted: list[str]) -> None:
    bring("imikolov", PTB)
    for n in (2, 3, 2):
        assert open_dataset("imikolov", {"cutoff": 0, "n": n})["train"].columns[
            "context"
        ].item_shape == (n - 1,)
    assert len(counted) == 2 and len(folders("imikolov")) == 2


def test_other_data_make_new_columns(bring: Bring, counted: list[str]) -> None:
    bring("imikolov", PTB)
    before = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    (old,) = folders("imikolov")
    more = {**PTB, "./simple-examples/data/ptb.train.txt": b" c c c c\n"}
    bring("imikolov", more)
    after = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    assert len(counted) == 2 and before.fingerprint != after.fingerprint
    assert folders("imikolov") != [old] and len(folders("imikolov")) == 1  # the old ones are gone


def test_other_code_makes_new_columns(
    bring: Bring, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bring("imikolov", PTB)
    open_dataset("imikolov", {"n": 2})
    monkeypatch.setattr(prepared, "code_version", lambda: "another")
    open_dataset("imikolov", {"n": 2})
    assert len(counted) == 2 and len(folders("imikolov")) == 1


def test_code_version_sees_every_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "data"
    source = Path(prepared.__file__).parent
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("paddlecli.data.__file__", str(copy / "__init__.py"))
    found = set()
    for changed in (
        "",
        "readers/imdb.py",
        "readers/corpus.py",
        "prepared.py",
        "formats/archives.py",
        "formats/unpickle.py",
    ):
        if changed:
            (copy / changed).write_text((copy / changed).read_text() + "\n# changed\n")
        prepared.code_version.cache_clear()
        found.add(prepared.code_version())
    prepared.code_version.cache_clear()
    assert len(found) == 6


@pytest.mark.parametrize("damage", ["cut", "gone", "meta", "words", "no meta"])
def test_damaged_columns_are_made_again(bring: Bring, counted: list[str], damage: str) -> None:
    bring("imikolov", PTB)
    args = {"cutoff": 0, "n": 3}
    before = open_dataset("imikolov", args).fingerprint
    (folder,) = (p for p in prepared.root("imikolov").iterdir() if p.is_dir())
    if damage == "cut":
        raw = (folder / "000.npy").read_bytes()
        (folder / "000.npy").write_bytes(raw[:-8])
    elif damage == "gone":
        (folder / "001.npy").unlink()
    elif damage == "meta":
        (folder / "meta.json").write_text("{")
    elif damage == "no meta":
        (folder / "meta.json").unlink()
    else:
        (folder / "word.vocab").write_text("a\na\n")
    assert open_dataset("imikolov", args).fingerprint == before and len(counted) == 2
    assert open_dataset("imikolov", args).fingerprint == before and len(counted) == 2


def test_a_cache_that_cannot_be_written_still_reads(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring("imikolov", PTB)
    real = Path.mkdir

    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        if "prepared" in self.parts:
            raise OSError(errno.EROFS, "Read-only file system")
        real(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", refuse)
    data = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    assert len(data["train"]) == 7 and not folders("imikolov")
    assert "Read-only file system" in data.spec.remarks[-1]


def test_a_full_disk_still_reads(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    bring("imikolov", PTB)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    data = open_dataset("imikolov", {"cutoff": 0, "n": 3})
    assert len(data["train"]) == 7 and not folders("imikolov")
    assert "No space left" in data.spec.remarks[-1]


def _open_in_process(folder: str) -> None:
    os.environ["PADDLECLI_CACHE_DIR"] = folder
    open_dataset("imikolov", {"cutoff": 0, "n": 3})


def test_processes_share_one_preparation(bring: Bring, cache_dir: Path) -> None:
    bring("imikolov", PTB)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_open_in_process, args=(str(cache_dir),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0] * 3
    assert len(folders("imikolov")) == 1
    meta = json.loads(
        (prepared.root("imikolov") / folders("imikolov")[0] / "meta.json").read_text()
    )
    assert meta["fields"]["next"][0] == 7


# --- what is known before opening ---


def test_unofficial_data_are_described_as_they_are(bring: Bring) -> None:
    assert describe("imdb").sizes == {"train": 25000, "test": 25000}  # nothing is here yet
    bring("imdb", REVIEWS)
    assert glance.altered(shipped("imdb").model_dump())
    spec = describe("imdb")
    assert spec.sizes == {"train": 3, "test": 2} and spec.unofficial
    assert spec.find("words").classes == 1  # nothing comes more than 150 times
    assert (
        "unofficial copy: aclImdb_v1.tar.gz from x.tar: 5 of 50000 labelled reviews"
        in spec.remarks[0]
    )
    data = open_dataset("imdb")
    assert data.preprocessing()["unofficial"] == spec.remarks[0]
    assert data.preprocessing()["vocabularies"]["word"]["words"] == ["<unk>"]


def test_other_settings_need_the_data() -> None:
    with pytest.raises(DataError) as caught:
        describe("imikolov", {"cutoff": 10})
    assert caught.value.hint == "paddlecli dataset download imikolov"


def test_a_changed_import_is_noticed(bring: Bring) -> None:
    bring("imdb", REVIEWS)
    path = cache.locate(shipped("imdb"))["aclImdb_v1.tar.gz"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="cut off or changed") as caught:
        open_dataset("imdb")
    assert caught.value.hint == "paddlecli dataset import imdb FILE"
