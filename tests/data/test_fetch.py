"""Downloads from a server that cuts, lies and serves rubbish; mirrors, locks and caches."""

from __future__ import annotations

import errno
import gzip
import hashlib
import multiprocessing
import os
import shutil
import socket
import ssl
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from bad_server import Answer, Server, serving
from packing import put, tar

from paddlecli.data.cards import Card, shipped
from paddlecli.data.fetching import cache, reaching, transfer
from paddlecli.data.fetching.fetch import download
from paddlecli.data.opening import open_dataset
from paddlecli.errors import ConfigError, DataError, NetworkError, ResourceError

CONTENT = bytes(range(256)) * 2000
BODY = gzip.compress(CONTENT, mtime=0)
BODY += bytes(300_000)  # long enough to be cut in several places


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


class Notes:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.said: list[str] = []
        self.count = 0

    def start(self, name: str, total: int, source: str) -> None:
        self.sources.append(source)

    def advance(self, count: int) -> None:
        self.count += count

    def say(self, text: str) -> None:
        self.said.append(text)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def card(make_card: Callable[..., Card]) -> Callable[..., Card]:
    def make(*urls: str, body: bytes = BODY, **file: object) -> Card:
        entry = {"name": "a.gz", "bytes": len(body), "sha256": sha(body), "magic": "1f8b", **file}
        return make_card(files=[entry], sources=[{"kind": "url", "url": u} for u in urls])

    return make


def stored(card: Card, name: str = "a.gz") -> Path:
    return cache.folder(card) / name


def test_a_plain_download(server: Server, card: Callable[..., Card]) -> None:
    toy, notes = card(server.answer("/a.gz", Answer(BODY))), Notes()
    (fetched,) = download(toy, notes)
    assert fetched.path.read_bytes() == BODY and notes.count == len(BODY)
    assert fetched.source == server.url + "/a.gz"
    assert sorted(p.name for p in cache.folder(toy).iterdir()) == [".a.gz.lock", "a.gz"]
    (again,) = download(toy)
    assert again.source is None and len(server.requests) == 1


def test_url_template_names_the_file(server: Server, card: Callable[..., Card]) -> None:
    server.answer("/x/a.gz", Answer(BODY))
    download(card(server.url + "/x/{file}"))
    assert server.requests == [("/x/a.gz", None)]


def test_a_cut_transfer_is_resumed_by_range(server: Server, card: Callable[..., Card]) -> None:
    url = server.answer("/a.gz", Answer(BODY, cut=100_000), Answer(BODY, cut=50_000), Answer(BODY))
    toy = card(url)
    download(toy)
    assert stored(toy).read_bytes() == BODY
    asked = [r for _, r in server.requests]
    assert asked[0] is None and len(asked) == 3
    starts = [int(r.removeprefix("bytes=").rstrip("-")) for r in asked[1:] if r]
    assert 0 < starts[0] <= 100_000 and starts[0] < starts[1] <= 150_000


def test_a_line_that_breaks_often_brings_the_file_all_the_same(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_FIRST_PAUSE", 0.0)
    piece = len(BODY) // 6
    toy = card(server.answer("/a.gz", Answer(BODY, cut=piece)))
    download(toy)
    assert stored(toy).read_bytes() == BODY and len(server.requests) > transfer.ATTEMPTS + 2


def test_what_one_source_began_goes_when_another_brings_the_file(
    tmp_path: Path, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"name": "a", "bytes": len(CONTENT), "sha256": sha(CONTENT)}
    toy = make_card(files=[{"name": "a.gz", "sha256": "0" * 64, "content": content}])
    put(tmp_path / "mirror" / "toy" / "a", CONTENT)
    put(cache.folder(toy) / "a.gz.part", b"\x1f\x8b")
    monkeypatch.setenv("PADDLECLI_MIRROR", (tmp_path / "mirror").as_uri())
    download(toy)
    assert [p.name for p in cache.folder(toy).iterdir() if p.suffix != ".lock"] == ["a"]


def test_a_cut_transfer_is_resumed_by_the_next_run(
    server: Server, card: Callable[..., Card]
) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY, cut=100_000, ranges=False)))
    with pytest.raises(NetworkError, match="3 attempts"):
        download(toy)
    assert (cache.folder(toy) / "a.gz.part").exists() and not stored(toy).exists()
    server.answer("/a.gz", Answer(BODY))
    download(toy)
    assert stored(toy).read_bytes() == BODY
    assert server.requests[-1][1] is not None


def test_a_server_without_ranges_starts_over(server: Server, card: Callable[..., Card]) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY, cut=9_000), Answer(BODY, ranges=False)))
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_a_wrong_continuation_is_fetched_once_more(
    server: Server, card: Callable[..., Card]
) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY)))
    cache.folder(toy).mkdir(parents=True)
    (cache.folder(toy) / "a.gz.part").write_bytes(b"\x1f\x8b" + bytes(70_000))
    download(toy)
    assert stored(toy).read_bytes() == BODY
    assert [r for _, r in server.requests] == ["bytes=70002-", None]


def test_a_misplaced_range_is_not_trusted(server: Server, card: Callable[..., Card]) -> None:
    wrong = Answer(BODY, headers={"Content-Range": f"bytes 5-{len(BODY) - 1}/{len(BODY)}"})
    toy = card(server.answer("/a.gz", Answer(BODY, cut=9_000), wrong, Answer(BODY)))
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_wrong_bytes_are_kept_aside_with_both_hashes(
    server: Server, card: Callable[..., Card]
) -> None:
    rubbish = b"\x1f\x8b" + bytes(len(BODY) - 2)
    toy = card(server.answer("/a.gz", Answer(rubbish)))
    with pytest.raises(NetworkError) as caught:
        download(toy)
    assert sha(rubbish) in str(caught.value) and sha(BODY) in str(caught.value)
    assert caught.value.exit_code == 8
    assert (cache.folder(toy) / "a.gz.bad").read_bytes() == rubbish
    assert not stored(toy).exists() and len(server.requests) == 1
    server.answer("/a.gz", Answer(BODY))
    download(toy)
    assert not (cache.folder(toy) / "a.gz.bad").exists()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"<!DOCTYPE html><p>sorry", length=None), "wrong length: 23 bytes"),
        (Answer(b"<!DOCTYPE html>" + bytes(len(BODY) - 15)), r"3c 21 .*a web page"),
        (Answer(BODY[:-5]), "wrong length"),
        (Answer(BODY + b"x"), "wrong length"),
        (Answer(b"gone", 404), "HTTP 404"),
        (Answer(b"busy", 503), r"HTTP 503 \(3 attempts\)"),
        (Answer(b"", 302, headers={"Location": "/a.gz"}), "redirect"),
    ],
)
def test_rubbish_is_recognised(
    server: Server, card: Callable[..., Card], answer: Answer, reason: str
) -> None:
    toy = card(server.answer("/a.gz", answer))
    with pytest.raises(NetworkError, match=reason):
        download(toy)
    assert not stored(toy).exists()


def test_more_than_promised_without_a_length(server: Server, card: Callable[..., Card]) -> None:
    body = BODY + bytes(500_000)
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    headers = {"Transfer-Encoding": "chunked", "Content-Length": ""}
    toy = card(server.answer("/a.gz", Answer(chunked, headers=headers)))
    with pytest.raises(NetworkError, match="more than"):
        download(toy)
    assert not stored(toy).exists()


def test_a_busy_server_is_asked_again(server: Server, card: Callable[..., Card]) -> None:
    busy = Answer(b"busy", 503, headers={"Retry-After": "0"})
    toy, notes = card(server.answer("/a.gz", busy, Answer(BODY))), Notes()
    download(toy, notes)
    assert stored(toy).read_bytes() == BODY and "HTTP 503; trying again" in notes.said[0]


def test_a_stalled_transfer_is_resumed(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "READ_SECONDS", 0.3)
    toy, notes = card(server.answer("/a.gz", Answer(BODY, stall=70_000), Answer(BODY))), Notes()
    start = time.monotonic()
    download(toy, notes)
    assert stored(toy).read_bytes() == BODY and time.monotonic() - start < 1.4
    assert "nothing came" in notes.said[0]
    asked = [r for _, r in server.requests]
    assert asked[0] is None and asked[1] == "bytes=70000-"


def test_a_server_that_says_nothing_is_left_at_once(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes connections, but no answer comes: the next source follows without another try."""
    monkeypatch.setattr(reaching, "CONNECT_SECONDS", 0.3)
    silent = server.answer("/silent", Answer(BODY, stall=-1))
    start = time.monotonic()
    (fetched,) = download(card(silent, server.answer("/good", Answer(BODY))))
    assert fetched.source is not None and fetched.source.endswith("/good")
    assert time.monotonic() - start < 1.4
    assert [path for path, _ in server.requests].count("/silent") == 1


def test_a_silent_host_is_given_up_after_two_files(
    server: Server, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaching, "CONNECT_SECONDS", 0.3)
    files = [{"name": f"f{i}", "bytes": 1, "sha256": "0" * 64, "needed": False} for i in range(6)]
    toy = make_card(files=files, sources=[{"kind": "url", "url": server.url + "/{file}"}])
    for i in range(6):
        server.answer(f"/f{i}", Answer(b"x", stall=-1))
    start = time.monotonic()
    assert download(toy) == []
    assert time.monotonic() - start < 1.5 and len(server.requests) == 2


def test_a_slow_body_may_take_longer_than_a_connection(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaching, "CONNECT_SECONDS", 0.3)
    server.stall_seconds = 0.6
    toy = card(server.answer("/a.gz", Answer(BODY, stall=70_000), Answer(BODY)))
    download(toy)
    assert stored(toy).read_bytes() == BODY and len(server.requests) == 2


@pytest.fixture
def company(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server over TLS whose certificate no system knows, and the file of that certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "company.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
               "-nodes", "-days", "2", "-subj", "/CN=company", "-addext",
               "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(context) as running:
        yield running, certificate


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificates_of_the_environment_are_used(
    company: tuple[Server, Path],
    card: Callable[..., Card],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    server, certificate = company
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    toy = card(server.answer("/a.gz", Answer(BODY)))
    with pytest.raises(NetworkError, match="certificate verify failed"):
        download(toy)
    monkeypatch.setenv(variable, str(certificate))
    download(toy)
    assert stored(toy).read_bytes() == BODY
    monkeypatch.setenv(variable, str(certificate) + ".not")
    with pytest.raises(ConfigError, match="file of certificates"):
        download(toy, force=True)


def test_redirects_are_followed(server: Server, card: Callable[..., Card]) -> None:
    server.answer("/there", Answer(BODY))
    toy = card(server.answer("/a.gz", Answer(b"", 302, headers={"Location": "/there"})))
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_sources_in_order(server: Server, card: Callable[..., Card]) -> None:
    second = server.answer("/second", Answer(b"no", 404))
    third = server.answer("/third", Answer(BODY))
    (fetched,) = download(card("http://127.0.0.1:9/a.gz", second, third))
    assert fetched.source == third


def test_a_dead_host_costs_its_time_once(
    make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All addresses of a host together, for all files together."""
    monkeypatch.setattr(reaching, "CONNECT_SECONDS", 0.3)
    calls = []

    def silent(*args: object, **kwargs: object) -> list[object]:
        calls.append(args)
        time.sleep(5)
        raise socket.gaierror("too late")

    monkeypatch.setattr(reaching.socket, "getaddrinfo", silent)
    files = [{"name": f"f{i}", "bytes": 1, "sha256": "0" * 64} for i in range(1)]
    toy = make_card(files=files, sources=[{"kind": "url", "url": "http://dead.example/{file}"}])
    start, notes = time.monotonic(), Notes()
    for _ in range(3):
        with pytest.raises(NetworkError, match=r"no connection to dead\.example:80 within"):
            download(toy, notes)
    assert len(notes.said) == 1
    assert time.monotonic() - start < 2 and len(calls) == 1


def test_the_mirror_comes_first(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = card(server.answer("/official", Answer(BODY)))
    server.answer("/m/toy/a.gz", Answer(BODY))
    monkeypatch.setenv("PADDLECLI_MIRROR", server.url + "/m/")
    download(toy)
    assert [p for p, _ in server.requests] == ["/m/toy/a.gz"]


def test_a_wrong_mirror_falls_back(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, notes = card(server.answer("/official", Answer(BODY))), Notes()
    server.answer("/toy/a.gz", Answer(b"\x1f\x8b" + bytes(len(BODY) - 2)))
    monkeypatch.setenv("PADDLECLI_MIRROR", server.url)
    download(toy, notes)
    assert stored(toy).read_bytes() == BODY and "wrong content" in notes.said[0]


@pytest.mark.parametrize("content", [False, True])
def test_a_file_mirror_works_offline(
    tmp_path: Path, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch, content: bool
) -> None:
    packed = gzip.compress(CONTENT, mtime=0)
    toy = make_card(files=[{
        "name": "a.gz", "bytes": len(packed), "sha256": sha(packed), "magic": "1f8b",
        "content": {"name": "a", "bytes": len(CONTENT), "sha256": sha(CONTENT)}}])  # fmt: skip
    mirror = tmp_path / "ein Spiegel é"
    (mirror / "toy").mkdir(parents=True)
    (mirror / "toy" / ("a" if content else "a.gz")).write_bytes(CONTENT if content else packed)
    monkeypatch.setenv("PADDLECLI_MIRROR", "file://" + quote(str(mirror)))
    monkeypatch.setenv("PADDLECLI_OFFLINE", "1")
    download(toy)
    assert cache.locate(toy)["a.gz"].name == ("a" if content else "a.gz")


def test_a_mirror_that_is_no_address(
    card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLI_MIRROR", "/srv/mirror")
    with pytest.raises(ConfigError, match="is no address"):
        download(card())


def test_offline_asks_nobody(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY)))
    monkeypatch.setenv("PADDLECLI_OFFLINE", "1")
    monkeypatch.setenv("PADDLECLI_MIRROR", server.url)
    with pytest.raises(DataError, match="network is switched off") as caught:
        download(toy)
    assert caught.value.exit_code == 4 and not server.requests


def test_a_proxy_of_the_environment_is_used(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.answer("http://far.example/a.gz", Answer(BODY))
    toy = card("http://far.example/a.gz")
    download(toy)
    assert server.requests[0][0] == "http://far.example/a.gz"


def test_a_body_without_a_length(server: Server, card: Callable[..., Card]) -> None:
    chunked = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
    headers = {"Transfer-Encoding": "chunked", "Content-Length": ""}
    toy = card(server.answer("/a.gz", Answer(chunked, headers=headers)))
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_a_body_that_claims_to_be_encoded(server: Server, card: Callable[..., Card]) -> None:
    """Some servers call a .gz file an encoding of what is in it; the file itself is wanted."""
    toy = card(server.answer("/a.gz", Answer(BODY, headers={"Content-Encoding": "gzip"})))
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_passwords_are_not_shown(
    card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLI_MIRROR", "http://me:secret@127.0.0.1:9")
    with pytest.raises(NetworkError) as caught:
        download(card())
    assert "secret" not in str(caught.value) and "***@127.0.0.1" in str(caught.value)


def _download_in_process(text: str, folder: str) -> None:
    os.environ["PADDLECLI_CACHE_DIR"] = folder
    download(Card.model_validate_json(text))


def test_eight_processes_make_one_download(
    server: Server, card: Callable[..., Card], cache_dir: Path
) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY)))
    context = multiprocessing.get_context("spawn")
    arguments = (toy.model_dump_json(exclude_none=True), str(cache_dir))
    workers = [context.Process(target=_download_in_process, args=arguments) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0] * 8
    assert stored(toy).read_bytes() == BODY and len(server.requests) == 1


def test_force_fetches_again(server: Server, card: Callable[..., Card]) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY)))
    download(toy)
    download(toy, force=True)
    assert len(server.requests) == 2 and stored(toy).read_bytes() == BODY


def test_a_stored_file_that_was_cut_since(server: Server, card: Callable[..., Card]) -> None:
    toy = card(server.answer("/a.gz", Answer(BODY)))
    download(toy)
    stored(toy).write_bytes(BODY[:100])
    with pytest.raises(DataError, match="cut off or changed"):
        cache.locate(toy)
    assert cache.check(toy, toy.files[0]).state == "wrong"
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_a_stored_file_that_was_changed_since(server: Server, card: Callable[..., Card]) -> None:
    """Its length is right: only the checksum tells."""
    toy = card(server.answer("/a.gz", Answer(BODY)))
    download(toy)
    stored(toy).write_bytes(bytes([BODY[0] ^ 1]) + BODY[1:])
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_files_of_the_original_cache(
    server: Server, make_card: Callable[..., Card], cache_dir: Path
) -> None:
    toy = make_card(
        original_cache="mnist",
        files=[{"name": "a.gz", "bytes": len(BODY), "sha256": sha(BODY)}],
        sources=[{"kind": "url", "url": server.answer("/a.gz", Answer(BODY))}],
    )
    folder = Path.home() / ".cache" / "paddle" / "dataset" / "mnist"
    folder.mkdir(parents=True)
    (folder / "a.gz").write_bytes(bytes(len(BODY)))
    assert cache.find(toy, toy.files[0]) is None
    (folder / "a.gz").write_bytes(BODY)
    assert cache.locate(toy)["a.gz"] == folder / "a.gz"
    (fetched,) = download(toy)
    assert fetched.source == str(folder / "a.gz") and not server.requests
    assert cache.locate(toy)["a.gz"] == cache_dir / "datasets" / "toy" / "a.gz"


def test_a_read_only_home_is_explained(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system says where even root may not write."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ResourceError, match="Read-only file system") as caught:
        download(card(server.answer("/a.gz", Answer(BODY))))
    assert "PADDLECLI_CACHE_DIR" in str(caught.value) and caught.value.exit_code == 7


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_explained(
    server: Server, card: Callable[..., Card], cache_dir: Path
) -> None:
    cache_dir.mkdir()
    cache_dir.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(ResourceError, match="PADDLECLI_CACHE_DIR"):
        download(card(server.answer("/a.gz", Answer(BODY))))


def test_a_cache_that_is_a_file_is_explained(
    server: Server, card: Callable[..., Card], cache_dir: Path
) -> None:
    cache_dir.write_text("in the way")
    with pytest.raises(ResourceError, match="PADDLECLI_CACHE_DIR") as caught:
        download(card(server.answer("/a.gz", Answer(BODY))))
    assert caught.value.exit_code == 7


def test_a_full_disk_is_explained(
    server: Server, card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> Iterator[bytes]:
        yield BODY[:10]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("httpx.Response.iter_raw", full)
    with pytest.raises(ResourceError, match="no room left"):
        download(card(server.answer("/a.gz", Answer(BODY))))


def test_missing_data_say_which_command_fetches_them() -> None:
    with pytest.raises(DataError) as caught:
        open_dataset("mnist")
    assert caught.value.hint == "paddlecli dataset download mnist"


def test_embedded_data_need_nothing() -> None:
    (fetched,) = download(shipped("uci_housing"))
    assert fetched.source is None
    assert cache.check(shipped("uci_housing"), shipped("uci_housing").files[0]).state == "ok"


# --- files that are known by less ---


def test_a_file_of_unknown_length_known_by_its_md5(
    server: Server, make_card: Callable[..., Card], cache_dir: Path
) -> None:
    entry = {"name": "a.gz", "md5": hashlib.md5(BODY).hexdigest(), "magic": "1f8b"}
    url = server.answer("/a.gz", Answer(BODY, cut=50_000), Answer(BODY))
    toy = make_card(files=[entry], sources=[{"kind": "url", "url": url}])
    download(toy)
    assert stored(toy).read_bytes() == BODY and server.requests[-1][1] is not None
    state = cache.check(toy, toy.files[0])
    assert (state.state, state.algorithm) == ("ok", "md5")
    server.answer("/a.gz", Answer(BODY + b"x"))
    with pytest.raises(NetworkError, match=r"md5 is [0-9a-f]{32}, not"):
        download(toy, force=True)
    assert (cache.folder(toy) / "a.gz.bad").exists() and stored(toy).read_bytes() == BODY


def test_no_file_is_larger_than_any_data_set(
    server: Server, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "MOST_BYTES", 1000)
    url = server.answer("/a", Answer(BODY))
    files = [{"name": "a", "md5": "0" * 32}]
    toy = make_card(files=files, sources=[{"kind": "url", "url": url}])
    with pytest.raises(NetworkError, match="more than any data set has"):
        download(toy)


def test_a_file_that_can_be_done_without(server: Server, make_card: Callable[..., Card]) -> None:
    files = [{"name": "a.gz", "bytes": len(BODY), "sha256": sha(BODY)},
             {"name": "extra", "bytes": 5, "sha256": "0" * 64, "needed": False}]  # fmt: skip
    server.answer("/a.gz", Answer(BODY))
    toy = make_card(files=files, sources=[{"kind": "url", "url": server.url + "/{file}"}])
    notes = Notes()
    assert [f.file for f in download(toy, notes)] == ["a.gz"]
    assert "extra: going on without it" in notes.said[-1]
    assert list(cache.locate(toy)) == ["a.gz"]
    assert cache.check(toy, toy.files[1]).state == "absent"


def test_the_original_kept_some_files_under_other_names(
    make_card: Callable[..., Card], cache_dir: Path
) -> None:
    entry = {"name": "a.gz", "bytes": len(BODY), "sha256": sha(BODY), "cached_as": "imdb%2Fa.gz"}
    toy = make_card(original_cache="imdb", files=[entry])
    folder = Path.home() / ".cache" / "paddle" / "dataset" / "imdb"
    folder.mkdir(parents=True)
    (folder / "imdb%2Fa.gz").write_bytes(BODY)
    assert cache.locate(toy)["a.gz"] == folder / "imdb%2Fa.gz"


# --- mirrors on this machine ---


def test_a_mirror_with_the_layout_of_the_original_cache(
    tmp_path: Path, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"name": "a.gz", "bytes": len(BODY), "sha256": sha(BODY), "cached_as": "x%2Fa.gz"}
    toy = make_card(original_cache="toys", files=[entry])
    (tmp_path / "mirror" / "toys").mkdir(parents=True)
    (tmp_path / "mirror" / "toys" / "x%2Fa.gz").write_bytes(BODY)
    monkeypatch.setenv("PADDLECLI_MIRROR", (tmp_path / "mirror").as_uri())
    download(toy)
    assert stored(toy).read_bytes() == BODY


def test_a_mirror_whose_archive_was_packed_anew(
    tmp_path: Path, make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken if the members are the published ones, and only then."""
    member = {"path": "m", "sha256": sha(CONTENT)}
    toy = make_card(files=[{"name": "a.tgz", "md5": "0" * 32, "members": [member]}])
    path = put(tmp_path / "mirror" / "toy" / "a.tgz", tar({"m": CONTENT}, "xz"))
    monkeypatch.setenv("PADDLECLI_MIRROR", (tmp_path / "mirror").as_uri())
    (fetched,) = download(toy)
    assert fetched.path.read_bytes() == path.read_bytes()
    assert cache.present(toy)["a.tgz"].wanted.official
    (again,) = download(toy)
    assert again.source is None
    put(path, tar({"m": CONTENT + b"x"}))
    with pytest.raises(NetworkError, match="m is another one"):
        download(toy, force=True)
