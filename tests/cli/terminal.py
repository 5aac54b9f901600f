"""Running the command with a terminal on stdout, stderr or both."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.runs import command, environment


@dataclass(frozen=True)
class Shown:
    """What came out of each stream, as bytes."""

    code: int
    out: bytes
    err: bytes


class _Screen:
    """The other end of a terminal of a given width, read until the program has let go of it."""

    def __init__(self, columns: int) -> None:
        self._master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._parts: list[bytes] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._master, 65536)
            except OSError:  # all ends of the program are closed
                return
            if not part:
                return
            self._parts.append(part)

    def text(self) -> bytes:
        os.close(self.slave)
        self._thread.join(timeout=30)
        os.close(self._master)
        return b"".join(self._parts).replace(b"\r\n", b"\n")


def shown(
    folder: Path, *arguments: str | bytes, out: bool = False, err: bool = False, columns: int = 80,
    env: Mapping[str, str] | None = None,
) -> Shown:  # fmt: skip
    """Runs a command whose stdout (`out`) or stderr (`err`) is a terminal; the other goes to a pipe."""
    screens = {name: _Screen(columns) for name, wanted in (("out", out), ("err", err)) if wanted}
    given = {**environment(folder), **(env or {})}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR"):
        if name not in (env or {}):
            given.pop(name, None)
    given.setdefault("TERM", "xterm")
    if given["TERM"] == "dumb" and "TERM" not in (env or {}):
        given["TERM"] = "xterm"
    done = subprocess.run(
        [*command(), *arguments], cwd=folder, env=given, stdin=subprocess.DEVNULL, timeout=300, check=False,
        stdout=screens["out"].slave if out else subprocess.PIPE,
        stderr=screens["err"].slave if err else subprocess.PIPE,
    )  # fmt: skip
    return Shown(
        done.returncode,
        screens["out"].text() if out else done.stdout,
        screens["err"].text() if err else done.stderr,
    )
