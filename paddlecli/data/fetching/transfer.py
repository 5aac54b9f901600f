"""One file over HTTP or from a local mirror: streamed, resumed, checked before it gets its name.

A transfer ends in one of three ways: the file is there and right; `Unfit` (this source does not
have the right file, another may); `Unreachable` (this source cannot be reached or gave up, another
may).
"""

from __future__ import annotations

import importlib
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from paddlecli import __version__, settings
from paddlecli.data.fetching import reaching
from paddlecli.data.fetching.cache import Wanted, writing
from paddlecli.data.fetching.reaching import Unreachable
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import httpx

READ_SECONDS = 30.0
ATTEMPTS = 3
MOST_BYTES = 1 << 34
"""No data set is larger; files whose length is not known end here."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_CHUNK = 1 << 16
_PATIENT = {408, 425, 429, 500, 502, 503, 504}


class Unfit(Exception):
    """The source answered, but not with the file that is wanted."""


class _Cut(Exception):
    """The transfer broke off; what came is kept and may be continued. `pause` is what the server
    asked for."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class Progress(Protocol):
    """Told what happens; the command line draws it."""

    def start(self, name: str, total: int | None, source: str) -> None:
        """A transfer of `total` bytes begins; None: how many is unknown."""

    def advance(self, count: int) -> None:
        """`count` more bytes are there; negative where a start has to be repeated."""

    def say(self, text: str) -> None:
        """One sentence for the user."""


class Quiet:
    """Progress that nobody sees."""

    def start(self, name: str, total: int | None, source: str) -> None:
        """Nothing."""

    def advance(self, count: int) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Target:
    """A file to be made: where it goes and what it must be."""

    path: Path
    wanted: Wanted

    @property
    def part(self) -> Path:
        """What has come so far."""
        return self.path.with_name(self.path.name + ".part")

    @property
    def have(self) -> int:
        """Bytes that have come so far."""
        return self.part.stat().st_size if self.part.exists() else 0

    @property
    def bad(self) -> Path:
        """A file that came whole with the wrong content."""
        return self.path.with_name(self.path.name + ".bad")


def plain_url(url: str) -> str:
    """The address without a password, for messages."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))


@contextmanager
def client(certificates: str | None = None) -> Iterator[httpx.Client]:
    """An HTTP client that obeys the environment's proxies and certificates (SSL_CERT_FILE,
    HTTPS_PROXY, NO_PROXY).

    `truststore`, where it is installed, adds the operating system's certificates.
    """
    import httpx

    timeout = httpx.Timeout(reaching.CONNECT_SECONDS)  # a body that has begun gets READ_SECONDS
    headers = {"User-Agent": f"paddlecli/{__version__}", "Accept-Encoding": "identity"}
    with httpx.Client(
        timeout=timeout,
        headers=headers,
        follow_redirects=True,
        trust_env=True,
        verify=_certificates(certificates),
    ) as made:
        yield made


def _certificates(file: str | None) -> ssl.SSLContext | bool:
    named = (settings.environment(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))
    file = next(filter(None, named), file)
    if file:
        try:
            return ssl.create_default_context(cafile=file)
        except OSError as error:
            raise ConfigError(
                f"{file}: cannot be used as a file of certificates: {error}"
            ) from None
    try:
        truststore = importlib.import_module("truststore")
    except ImportError:
        return True
    context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return context


def fetch(http: httpx.Client, url: str, target: Target, progress: Progress) -> None:
    """Makes the target from one address.

    Raises:
        Unfit: no such file there, or another content than is wanted; kept as `.bad` if it came
            whole.
        Unreachable: no connection within 10 s, or broken off in three attempts of which none brought
            more of the file than was there.
        ResourceError: no room, or the folder cannot be written.
    """
    if url.startswith("file:"):
        _copy(url, target, progress)
        return
    reaching.reach(url)
    resumed = target.part.exists()
    attempt, most = 0, target.have
    while True:
        try:
            _receive(http, url, target, progress)
            break
        except _Cut as cut:
            # a line that breaks often still brings the file, as long as every attempt brings more
            attempt = 1 if target.have > most else attempt + 1
            most = max(most, target.have)
            if attempt == ATTEMPTS:
                raise Unreachable(f"{cut} ({ATTEMPTS} attempts)") from None
            pause = min(cut.pause or _FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE)
            progress.say(f"{plain_url(url)}: {cut}; trying again in {pause:.1f} s")
            time.sleep(pause)
            resumed = resumed or target.part.exists()
    try:
        accept(target)
    except Unfit:
        if not resumed:
            raise
        progress.say(
            f"{target.path.name}: the resumed file is wrong; fetching it once from the start"
        )
        target.bad.unlink(missing_ok=True)
        fetch(http, url, target, progress)


def accept(target: Target) -> None:
    """Gives a complete `.part` its name if its hash is right, else keeps it as `.bad`.

    Raises:
        Unfit: shows both hashes.
    """
    wanted = target.wanted
    with target.part.open("rb") as stream:
        digest = wanted.digest.of_stream(stream)
    if digest == wanted.digest.value:
        target.part.replace(target.path)
        target.bad.unlink(missing_ok=True)
        return
    target.part.replace(target.bad)
    raise Unfit(
        f"wrong content: {wanted.digest.algorithm} is {digest}, not {wanted.digest.value}; "
        f"kept as {target.bad}"
    )


def local_path(url: str) -> Path:
    """The file that a file:// address means."""
    return Path(url2pathname(urlsplit(url).path))


def _copy(url: str, target: Target, progress: Progress) -> None:
    source = local_path(url)
    try:
        size = source.stat().st_size
        stream = source.open("rb")
    except OSError as error:
        raise Unfit(error.strerror or str(error)) from None
    with stream:
        _check_length(size, target.wanted)
        progress.start(target.path.name, target.wanted.size, url)
        with writing(target.part), target.part.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
                progress.advance(len(chunk))
    accept(target)


def _receive(http: httpx.Client, url: str, target: Target, progress: Progress) -> None:
    """One request; on return `.part` is as long as is wanted."""
    import httpx

    have = target.have
    if target.wanted.size is not None:
        if have == target.wanted.size:
            return
        if have > target.wanted.size:
            target.part.unlink()
            have = 0
    headers, answered = {"Range": f"bytes={have}-"} if have else {}, False
    try:
        with http.stream("GET", url, headers=headers) as response:
            answered = True
            response.request.extensions["timeout"]["read"] = READ_SECONDS
            start = _start(response, have, target)
            progress.start(target.path.name, target.wanted.size, plain_url(url))
            progress.advance(start)
            _write(response.iter_raw(), start, target, progress)
    except httpx.TimeoutException as error:
        if not answered:
            raise Unreachable(reaching.silent(url)) from None
        raise _Cut(f"nothing came for {READ_SECONDS:.0f} s ({type(error).__name__})") from None
    except (httpx.ConnectError, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
        raise Unreachable(str(error) or type(error).__name__) from None
    except httpx.TransportError as error:
        raise _Cut(str(error) or type(error).__name__) from None
    except (httpx.InvalidURL, httpx.TooManyRedirects) as error:
        raise Unfit(str(error)) from None
    size = target.part.stat().st_size
    if target.wanted.size is not None and size < target.wanted.size:
        raise _Cut(f"the transfer ended after {size} of {target.wanted.size} bytes")


def _start(response: httpx.Response, have: int, target: Target) -> int:
    """Where the body belongs in the file; judges status and length."""
    status = response.status_code
    if status in _PATIENT:
        asked = response.headers.get("Retry-After", "")
        raise _Cut(f"HTTP {status}", float(asked) if asked.isdecimal() else None)
    if status == 416:  # the part is not a beginning of what the server has
        target.part.unlink(missing_ok=True)
        raise _Cut("the server cannot continue the file")
    if status not in (200, 206):
        raise Unfit(f"HTTP {status} {response.reason_phrase}".strip())
    start = 0
    if status == 206:
        found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        if found is None or int(found[1]) != have:
            target.part.unlink(missing_ok=True)
            raise _Cut("the server continued the file at another place")
        start = have
    length = response.headers.get("Content-Length", "")
    if length.isdecimal():
        _check_length(start + int(length), target.wanted)
    return start


def _check_length(size: int, wanted: Wanted) -> None:
    if wanted.size is not None and size != wanted.size:
        raise Unfit(f"wrong length: {size} bytes, not {wanted.size}")
    if size > MOST_BYTES:
        raise Unfit(f"wrong length: {size} bytes, more than any data set has")


def _write(chunks: Iterator[bytes], start: int, target: Target, progress: Progress) -> None:
    position, magic = start, target.wanted.magic
    most = MOST_BYTES if target.wanted.size is None else target.wanted.size
    with writing(target.part), target.part.open("ab" if start else "wb") as out:
        for chunk in chunks:
            if position == 0 and magic and not chunk.startswith(magic[: len(chunk)]):
                raise Unfit(
                    f"wrong content: begins with {chunk[:8].hex(' ')}, not {magic.hex(' ')} "
                    f"({_looks_like(chunk)})"
                )
            position += len(chunk)
            if position > most:
                out.truncate(0)
                raise Unfit(f"wrong length: more than {most} bytes came")
            out.write(chunk)
            progress.advance(len(chunk))


def _looks_like(chunk: bytes) -> str:
    text = chunk[:64].lstrip().lower()
    if text.startswith((b"<!doctype", b"<html")):
        return "a web page"
    return (
        "text" if text.isascii() and text.decode("ascii").isprintable() else "another kind of file"
    )
