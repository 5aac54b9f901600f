"""Files that users bring: judged by their content, refused when dangerous, marked when unofficial."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packing import header, put, tar, tar_of, zipped

from paddlecli.data import manage
from paddlecli.data.cards import Card, shipped
from paddlecli.data.fetching import cache, digests, glance, imports
from paddlecli.data.fetching.imports import bring_in
from paddlecli.errors import DataError, ResourceError

ONE, TWO = b"first member\n" * 50, b"second member\n" * 50
GROUP = {f"set/g/{i}.txt": b"%d" % i for i in range(4)}
MEMBERS = {"set/one.txt": ONE, "set/two.txt": TWO, **GROUP}


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.fixture
def toy(make_card: Callable[..., Card]) -> Card:
    """A card whose archive is known by an md5 that nothing here has, and by its members."""
    tree = digests.tree(
        (name.removeprefix("set/"), hashlib.sha256(c).hexdigest()) for name, c in GROUP.items()
    )
    return make_card(files=[{
        "name": "toy.tar.gz", "md5": "0" * 32,
        "members": [{"path": r"set/one\.txt", "md5": md5(ONE)},
                    {"path": r"set/two\.txt", "blob": blob(TWO)},
                    {"path": r"set/(g/\d+\.txt)", "count": 4, "sha256": tree, "what": "notes"},
                    {"path": r"set/extra\.txt", "needed": False, "md5": "0" * 32}],
        "also": r"pictures/\d+\.png"}])  # fmt: skip


@pytest.mark.parametrize("packing", ["", "gz", "bz2", "xz", "zip"])
def test_an_archive_packed_anew_is_the_published_one(
    tmp_path: Path, toy: Card, packing: str
) -> None:
    members = dict(reversed(MEMBERS.items()))  # the order does not matter either
    raw = zipped(members) if packing == "zip" else tar(members, packing)
    (taken,) = bring_in(toy, put(tmp_path / "whatever.bin", raw))
    assert taken.official and taken.path.read_bytes() == raw
    found = cache.present(toy)["toy.tar.gz"]
    assert found.place == "imported" and found.wanted.official
    assert cache.check(toy, toy.files[0]).state == "ok"
    assert glance.state(toy.model_dump()) == "ready"


def test_an_unpacked_archive(tmp_path: Path, toy: Card) -> None:
    for name, content in {**MEMBERS, "set/readme": b"passed over"}.items():
        put(tmp_path / "there" / name, content)
    (taken,) = bring_in(toy, tmp_path / "there")
    assert taken.official
    shutil.rmtree(tmp_path / "there" / "set" / "g")
    with tarfile.open(taken.path) as archive:
        assert sorted(archive.getnames()) == sorted(MEMBERS)
    # the folder itself may be the archive's own
    (taken,) = bring_in(toy, tmp_path / "there" / "set", unofficial=True)
    assert not taken.official and taken.reason == "no notes"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"set/one.txt": ONE + b"x"}, "set/one.txt is another one"),
        ({"set/two.txt": b""}, "set/two.txt is another one"),
        ({"set/g/2.txt": b"other"}, "notes is another one"),
        ({"set/g/9.txt": b"one more"}, "5 of 4 notes"),
        ({"set/extra.txt": b"not the published one"}, "set/extra.txt is another one"),
    ],
    ids=range(5),
)
def test_other_content_needs_unofficial(
    tmp_path: Path, toy: Card, changed: dict[str, bytes], reason: str
) -> None:
    path = put(tmp_path / "mine.tgz", tar({**MEMBERS, **changed}))
    with pytest.raises(DataError) as caught:
        bring_in(toy, path)
    message = str(caught.value)
    assert caught.value.exit_code == 4 and reason in message
    assert md5(path.read_bytes()) in message and "0" * 32 in message
    assert "--unofficial" in (caught.value.hint or "")
    assert glance.state(toy.model_dump()) == "missing"
    (taken,) = bring_in(toy, path, unofficial=True)
    assert not taken.official and reason in taken.reason
    assert glance.state(toy.model_dump()) == "unofficial"
    assert cache.check(toy, toy.files[0]).state == "unofficial"
    assert "mine.tgz" in cache.reasons(toy, ["toy.tar.gz"])
    record = json.loads((cache.folder(toy) / "imported.json").read_text())["files"]["toy.tar.gz"]
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["origin"] == "mine.tgz" and record["official"] is False


def test_what_is_official_is_not_marked(tmp_path: Path, toy: Card) -> None:
    path = put(tmp_path / "x", tar(MEMBERS))
    (taken,) = bring_in(toy, path, unofficial=True)
    assert taken.official


def test_a_part_of_an_archive(tmp_path: Path, toy: Card) -> None:
    path = put(tmp_path / "x", tar({"set/one.txt": ONE}))
    with pytest.raises(DataError, match=r"no set/two\.txt, no notes"):
        bring_in(toy, path)
    assert not bring_in(toy, path, unofficial=True)[0].official


def test_another_form(tmp_path: Path, toy: Card) -> None:
    path = put(tmp_path / "x", tar({"pictures/1.png": b"", "pictures/2.png": b""}))
    with pytest.raises(DataError, match="another form of the data: 2 files"):
        bring_in(toy, path)
    assert not bring_in(toy, path, unofficial=True)[0].official


def test_the_published_one_wins_in_a_folder(tmp_path: Path, toy: Card) -> None:
    put(tmp_path / "d" / "a", tar({"set/one.txt": b"other"}))
    good = put(tmp_path / "d" / "b", tar(MEMBERS))
    (taken,) = bring_in(toy, tmp_path / "d", unofficial=True)
    assert taken.official and taken.path.read_bytes() == good.read_bytes()


def test_two_unofficial_ones_are_not_guessed_at(tmp_path: Path, toy: Card) -> None:
    for name in "ab":
        put(tmp_path / "d" / name, tar({"set/one.txt": name.encode()}))
    with pytest.raises(DataError, match=r"a, b: any of them could be toy\.tar\.gz"):
        bring_in(toy, tmp_path / "d", unofficial=True)


def test_what_has_nothing_to_do_with_it(tmp_path: Path, toy: Card) -> None:
    path = put(tmp_path / "x", tar({"other/file": b""}))
    for unofficial in (False, True):
        with pytest.raises(DataError, match="holds no file of the data set toy") as caught:
            bring_in(toy, path, unofficial=unofficial)
        assert hashlib.sha256(path.read_bytes()).hexdigest() in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        bring_in(toy, tmp_path / "none")


@pytest.mark.parametrize(
    "info",
    [header("../../evil"), header("l", tarfile.SYMTYPE, "/etc"), header("d", tarfile.CHRTYPE)],
    ids=["outside", "link", "device"],
)
def test_dangerous_archives_are_refused_whatever_is_given(
    tmp_path: Path, toy: Card, info: tarfile.TarInfo
) -> None:
    path = put(tmp_path / "x", tar_of(header("set/one.txt"), info, content=ONE))
    with pytest.raises(DataError, match="refused"):
        bring_in(toy, path, unofficial=True)
    assert glance.state(toy.model_dump()) == "missing"
    assert not (tmp_path.parent / "evil").exists()


def test_a_cut_archive_is_not_taken(tmp_path: Path, toy: Card) -> None:
    path = put(tmp_path / "x", tar({"set/one.txt": os.urandom(5000)})[:3000])
    with pytest.raises(DataError, match="cut off"):
        bring_in(toy, path, unofficial=True)


def test_files_that_are_no_archives_go_by_their_names(tmp_path: Path) -> None:
    card, labels = shipped("mnist"), "t10k-labels-idx1-ubyte"
    path = put(tmp_path / f"{labels}.gz", gzip.compress(b"other labels", mtime=0))
    with pytest.raises(DataError, match="has the name, but not the published checksum"):
        bring_in(card, path)
    (taken,) = bring_in(card, path, unofficial=True)
    assert (taken.file, taken.official) == (f"{labels}.gz", False)
    other = put(tmp_path / "some.gz", b"x")
    with pytest.raises(DataError, match="holds no file"):
        bring_in(card, other, unofficial=True)


def test_an_import_replaces_the_one_before(tmp_path: Path, toy: Card) -> None:
    bring_in(toy, put(tmp_path / "a", tar({"set/one.txt": b"other"})), unofficial=True)
    (taken,) = bring_in(toy, put(tmp_path / "b", tar(MEMBERS)))
    assert taken.official and glance.imported("toy")["toy.tar.gz"].official


def test_an_unofficial_file_does_not_hide_the_published_one(
    tmp_path: Path, make_card: Callable[..., Card]
) -> None:
    raw = tar(MEMBERS)
    entry = {"name": "toy.tar.gz", "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest(),
             "members": [{"path": "set/one.txt"}]}  # fmt: skip
    card = make_card(files=[entry])
    odd = put(tmp_path / "odd", tar({"set/one.txt": b"x"}))
    bring_in(card, odd, unofficial=True)
    bring_in(card, put(tmp_path / "good", raw))
    assert cache.present(card)["toy.tar.gz"].place == "cache"
    assert glance.state(card.model_dump()) == "ready"
    with pytest.raises(DataError, match="here already as it was published"):
        bring_in(card, odd, unofficial=True)


def test_a_cache_that_cannot_be_written_is_explained(
    tmp_path: Path, toy: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its folders are there already and the lock is the first thing to be made."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    (cache.folder(toy) / "imported").mkdir(parents=True)
    odd = put(tmp_path / "x", tar(MEMBERS))
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(ResourceError, match="Read-only file system") as caught:
        bring_in(toy, odd)
    assert "PADDLECLI_CACHE_DIR" in str(caught.value) and caught.value.exit_code == 7


def test_a_damaged_record_says_so(tmp_path: Path, toy: Card) -> None:
    put(cache.folder(toy) / "imported.json", b"{")
    with pytest.raises(DataError, match=r"imported\.json: damaged"):
        cache.present(toy)


def test_remove(tmp_path: Path, toy: Card) -> None:
    bring_in(toy, put(tmp_path / "x", tar(MEMBERS)))
    gone, size = manage.remove(toy)
    assert gone == [cache.folder(toy)] and size > 100 and not cache.folder(toy).exists()
    assert manage.remove(toy) == ([], 0)


@pytest.mark.parametrize("data", [b"", b"text", bytes(range(256)) * 5000])
def test_digests(tmp_path: Path, data: bytes) -> None:
    path = put(tmp_path / "x", data)
    for digest, value in (
        (digests.Digest("sha256", ""), hashlib.sha256(data).hexdigest()),
        (digests.Digest("md5", ""), md5(data)),
    ):
        assert digest.of(data) == digest.of_file(path) == value
    assert digests.Digest("blob", "").of(data) == blob(data)
    assert imports.digests.sha256_of(path) == hashlib.sha256(data).hexdigest()
