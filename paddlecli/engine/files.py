"""Writing so that a kill or a full disk never leaves half a file under its final name."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from paddlecli.errors import ResourceError, RunError

_SURROGATE = re.compile("[\ud800-\udfff]")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


GO_ON = "make room and continue with `paddlecli train --resume`; what was saved before is intact"
ELSEWHERE = "make room, or choose another place"
"""The hint for files that a user asked for by name."""


def now(parts: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=parts).replace("+00:00", "Z")


@contextmanager
def saving(place: Path, hint: str = GO_ON) -> Iterator[None]:
    """Turns the operating system's refusals into errors that say what to do; `hint` is for a full disk.

    Raises:
        ResourceError: the disk is full.
        RunError: anything else that forbids writing.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ResourceError(
                f"{place}: the disk is full ({_free(place) / 1e6:.1f} MB free)",
                hint=hint,
            ) from None
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from None


def _free(place: Path) -> int:
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def write_synced(path: Path, data: bytes, durable: bool = True) -> str:
    """Writes a new file and returns its sha256 in hexadecimal; with `durable` it waits until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def sync_folder(folder: Path) -> None:
    """Waits until the disk has the names in a folder; systems that cannot open folders need no such wait."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, data: bytes, durable: bool = True, hint: str = GO_ON) -> None:
    """Gives `path` a new content at one stroke: a reader sees the old bytes or the new ones; `hint` as in `saving`.

    Files that can be made again from others need not be `durable`: a power cut may then lose the newest content.
    A device or a pipe (`/dev/stdout`, `/dev/full`) is written into and a link's target is replaced: neither name is lost.
    """
    with saving(path, hint):
        if path.exists() and not path.is_file():
            write_synced(path, data, durable=False)
            return
        if path.is_symlink():
            path = path.resolve()
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            write_synced(temporary, data, durable)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def replace_with(path: Path, source: Path) -> None:
    """Like `replace` with the bytes of another file; they share the disk's blocks where that can be."""
    temporary = path.with_name(f".{path.name}.tmp")
    with saving(path):
        try:
            temporary.unlink(missing_ok=True)
            try:
                os.link(source, temporary)
            except OSError:
                shutil.copyfile(source, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def finite(value: Any) -> Any:
    """The same data with None where a number is NaN or infinite: JSON has neither."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


def flagged(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object as JSON can hold it; where numbers were not finite, `nonfinite` lists their dotted paths."""
    lost = sorted(_nonfinite(value, ""))
    found: dict[str, Any] = finite(value)
    return {**found, "nonfinite": lost} if lost else found


def _nonfinite(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _nonfinite(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _nonfinite(below, f"{path}.{index}")


def json_line(value: Mapping[str, Any]) -> str:
    """One line of JSON with sorted keys, without NaN and infinity (see `flagged`)."""
    return json_text(flagged(value))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys; bytes of file names that are no UTF-8 are escaped, so that the text can
    be encoded and reads back as the same name."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def json_page(value: Mapping[str, Any]) -> bytes:
    """Indented JSON with sorted keys, as a file's content."""
    return (json_text(flagged(value), indent=2) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        RunError: it is missing or not what it should be.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise RunError(f"{path}: expected a JSON object")
    return found
