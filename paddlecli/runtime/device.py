"""Where a session runs: device and threads, from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecli import settings
from paddlecli.errors import ResourceError, UsageError


@dataclass(frozen=True)
class Device:
    """A device by kind and number, and the host threads of a session (at least 1)."""

    kind: str
    index: int
    threads: int

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"


def device(name: str | None = None, threads: int | None = None) -> Device:
    """The device of that name (``cpu``, ``cuda``, ``cuda:1``, ``auto``); without a name that of the settings.

    Raises:
        UsageError: not a device's name.
        ResourceError: this installation has no backend for it.
    """
    name = settings.device() if name is None else name
    count = threads or settings.threads()
    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise UsageError(f"unknown device {name!r}", hint="cpu, cuda, cuda:1 or auto")
    if kind == "cuda":
        raise ResourceError("this installation has no CUDA backend", hint="use --device cpu")
    return Device("cpu", 0, count)
