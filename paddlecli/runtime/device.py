"""Where a session runs: device and threads, from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecli import settings
from paddlecli.errors import UsageError
from paddlecli.runtime import native


@dataclass(frozen=True)
class Device:
    """A device by kind (a backend of ``native.BACKENDS``) and number, and the host threads of a session (at least 1)."""

    kind: str
    index: int
    threads: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if self.kind == "cuda" else self.kind


def named(name: str | None = None) -> tuple[str, int]:
    """Kind and number of the device of that name (``cpu``, ``cuda``, ``cuda:1``, ``auto``), which need not be
    there; without a name that of the settings.

    ``cuda-emulated`` runs the CUDA kernels on the host where that library was built; ``auto`` is the CPU.

    Raises:
        UsageError: not a device's name.
    """
    name = settings.device() if name is None else name
    kind, _, number = name.partition(":")
    if kind not in ("auto", *native.BACKENDS) or (
        number and not (kind == "cuda" and number.isdecimal())
    ):
        raise UsageError(f"unknown device {name!r}", hint="cpu, cuda, cuda:1 or auto")
    return "cpu" if kind == "auto" else kind, int(number or 0)


def device(name: str | None = None, threads: int | None = None) -> Device:
    """The device of that name, ready to be used; see :func:`named`.

    Raises:
        UsageError: not a device's name.
        ResourceError: this installation has no backend for it, or this machine no such device.
    """
    kind, number = named(name)
    count = threads or settings.threads()
    if kind != "cpu":
        native.use_device(kind, number)
    return Device(kind, number, count)
