"""Archives in every packing are read in place; the ones that attack are refused."""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packing import PACKERS, header, put, tar, tar_of, zipped

from paddlecli.data.formats import archives
from paddlecli.data.formats.archives import gunzip, is_archive, read_members
from paddlecli.errors import DataError

MEMBERS = {"a/one.txt": b"1" * 700, "a/two.txt": b"", "b/three.bin": bytes(range(256)) * 9}


def everything(name: str) -> bool:
    return True


@pytest.mark.parametrize("packing", [*PACKERS, "zip"])
def test_members_in_every_packing(tmp_path: Path, packing: str) -> None:
    raw = zipped(MEMBERS) if packing == "zip" else tar(MEMBERS, packing)
    path = put(tmp_path / "some.name", raw)
    assert is_archive(path)
    assert list(read_members(path, everything)) == list(MEMBERS.items())
    assert list(read_members(path, everything, strict=True)) == list(MEMBERS.items())
    wanted = list(read_members(path, lambda name: name.startswith("b/")))
    assert wanted == [("b/three.bin", MEMBERS["b/three.bin"])]


def test_a_folder_is_an_archive_too(tmp_path: Path) -> None:
    for name, content in MEMBERS.items():
        put(tmp_path / "top" / name, content)
    names = set(MEMBERS)
    found = list(read_members(tmp_path / "top", lambda name: name in names))
    assert found == sorted(MEMBERS.items())
    # the names may include the folder's own
    inside = list(read_members(tmp_path / "top" / "a", lambda name: name in names))
    assert [name for name, _ in inside] == ["a/one.txt", "a/two.txt"]


def test_a_leading_dot_is_dropped(tmp_path: Path) -> None:
    path = put(tmp_path / "x", tar({"./a/b": b"x"}))
    assert list(read_members(path, everything)) == [("a/b", b"x")]


def test_several_xz_streams_and_padding(tmp_path: Path) -> None:
    raw = tar(MEMBERS, "")
    packed = PACKERS["xz"](raw[:3000]) + bytes(8) + PACKERS["xz"](raw[3000:]) + bytes(4)
    assert list(read_members(put(tmp_path / "x", packed), everything)) == list(MEMBERS.items())


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_cut_off_archives(tmp_path: Path, packing: str) -> None:
    raw = tar({"a": bytes(range(256)) * 400}, packing)
    for share in (0.3, 0.9):
        path = put(tmp_path / f"x{share}", raw[: int(len(raw) * share)])
        with pytest.raises(DataError, match="cut off") as caught:
            list(read_members(path, everything))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"just text", b"PK\x03\x04 not a zip", b"\x1f\x8b" + b"\0" * 40]
)
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "x", content)
    with pytest.raises(DataError, match="x: "):
        list(read_members(path, everything))


# --- attacks ---

OUTSIDE = ["../../etc/passwd", "/etc/passwd", "a/../../b", "..\\..\\b", "C:/b", "\\b"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_that_leave_the_archive(tmp_path: Path, name: str, kind: str) -> None:
    members = {"good": b"x", name: b"evil"}
    path = put(tmp_path / "x", tar(members) if kind == "tar" else zipped(members))
    with pytest.raises(DataError, match="leads out of the archive"):
        list(read_members(path, everything))
    # not even among members that nobody asked for, where the archive is a stranger's
    with pytest.raises(DataError, match="leads out of the archive"):
        list(read_members(path, lambda n: n == "good", strict=True))
    assert list(read_members(path, lambda n: n == "good")) == [("good", b"x")]


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (header("l", tarfile.SYMTYPE, "/etc/passwd"), "is a link to '/etc/passwd'"),
        (header("l", tarfile.LNKTYPE, "../secret"), "is a link to '../secret'"),
        (header("l", tarfile.CHRTYPE), "no plain file"),
        (header("l", tarfile.BLKTYPE), "no plain file"),
        (header("l", tarfile.FIFOTYPE), "no plain file"),
        (header("l", tarfile.GNUTYPE_SPARSE), "no plain file|damaged"),
    ],
    ids=["symlink", "hardlink", "character", "block", "fifo", "sparse"],
)
def test_links_and_devices(tmp_path: Path, info: tarfile.TarInfo, message: str) -> None:
    path = put(tmp_path / "x", tar_of(header("good"), info, content=b"x"))
    with pytest.raises(DataError, match=message):
        list(read_members(path, everything))
    with pytest.raises(DataError, match=message):
        list(read_members(path, lambda n: n == "good", strict=True))


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    path = put(tmp_path / "x", out.getvalue())
    with pytest.raises(DataError, match="no plain file"):
        list(read_members(path, everything))


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zip"])
def test_bombs(tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FREE", 1 << 18)
    monkeypatch.setattr(archives, "MOST_RATIO", 10)
    members = {"a": bytes(4 << 20)}
    raw = zipped(members) if packing == "zip" else tar(members, packing)
    path = put(tmp_path / "x", raw)
    with pytest.raises(DataError, match="bomb"):
        list(read_members(path, everything))
    if packing != "zip":  # also where the big member is only passed over
        with pytest.raises(DataError, match="bomb"):
            list(read_members(path, lambda n: False))


def test_a_tar_header_that_claims_an_absurd_size(tmp_path: Path) -> None:
    """Eight GiB in a file of 1 kB; nothing is allocated for it."""
    info = tarfile.TarInfo("a")
    info.size = 1 << 33
    path = put(tmp_path / "x", info.tobuf() + bytes(1024))
    with pytest.raises(DataError, match=r"claims 8589934592 bytes.*bomb"):
        list(read_members(path, everything))


def test_a_zip_entry_that_claims_an_absurd_size(tmp_path: Path) -> None:
    raw = bytearray(zipped({"a": b"x" * 100}))
    place = raw.index(b"PK\x01\x02") + 24  # uncompressed size in the central directory
    raw[place : place + 4] = struct.pack("<I", 0xFFFF0000)
    with pytest.raises(DataError, match="bomb"):
        list(read_members(put(tmp_path / "x", bytes(raw)), everything))


def test_a_zip_entry_that_lies_about_its_size(tmp_path: Path) -> None:
    raw = bytearray(zipped({"a": bytes(100_000)}))
    place = raw.index(b"PK\x01\x02") + 24
    raw[place : place + 4] = struct.pack("<I", 100)
    with pytest.raises(DataError, match="damaged"):
        list(read_members(put(tmp_path / "x", bytes(raw)), everything))


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    members = {str(i): b"" for i in range(5)}
    for raw in (tar(members), zipped(members)):
        with pytest.raises(DataError, match="more than 3 members"):
            list(read_members(put(tmp_path / "x", raw), everything))


def test_a_member_twice(tmp_path: Path) -> None:
    path = put(tmp_path / "x", tar_of(header("a"), header("a"), content=b"x"))
    with pytest.raises(DataError, match="holds a twice"):
        list(read_members(path, everything))


def test_an_encrypted_zip(tmp_path: Path) -> None:
    raw = bytearray(zipped({"a": b"secret"}))
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        place = raw.index(mark) + (6 if mark == b"PK\x03\x04" else 8)
        raw[place] |= 1
    with pytest.raises(DataError, match="encrypted"):
        list(read_members(put(tmp_path / "x", bytes(raw)), everything))


def test_packed_members(monkeypatch: pytest.MonkeyPatch) -> None:
    pack: Callable[[bytes], bytes] = PACKERS["gz"]
    assert gunzip(pack(b"text"), "m") == b"text"
    with pytest.raises(DataError, match="m: damaged"):
        gunzip(pack(b"text" * 100)[:-4], "m")
    monkeypatch.setattr(archives, "MOST_FREE", 1000)
    monkeypatch.setattr(archives, "MOST_RATIO", 2)
    with pytest.raises(DataError, match="bomb"):
        gunzip(pack(bytes(1 << 20)), "m")
