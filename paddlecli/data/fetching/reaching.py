"""Whether a host can be reached: found out within ten seconds, and remembered for a while."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from urllib.parse import urlsplit

CONNECT_SECONDS = 10.0
_REMEMBERED_SECONDS = 300.0
_REACHED: dict[
    tuple[str, int], tuple[str | None, float]
] = {}  # why not, and when that was found out
_SILENT: dict[tuple[str, int], int] = {}  # how often a host took a connection and said nothing


class Unreachable(Exception):
    """The source cannot be reached, or broke off too often. `again`: the user was told before."""

    def __init__(self, reason: str, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


def reach(url: str) -> None:
    """Finds out within 10 s, over all of a host's addresses at once, whether it (or its proxy)
    takes connections.

    A resolver that hangs, or a host with several dead addresses, would otherwise cost a multiple of
    the timeout. The answer is remembered for a while, so that a dead host costs its time once and
    not for every file.
    """
    host, port = _gate(url)
    reason, when = _REACHED.get((host, port), (None, float("-inf")))
    again = time.monotonic() - when <= _REMEMBERED_SECONDS
    if not again:
        reason = _connect(host, port)
        _REACHED[host, port] = reason, time.monotonic()
    if reason is not None:
        raise Unreachable(reason, again)


def _gate(url: str) -> tuple[str, int]:
    """Host and port that are connected to: the address's own, or those of its proxy."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(host) or parts.scheme not in proxies:
        return host, port
    proxy = urlsplit(proxies[parts.scheme])
    return proxy.hostname or host, proxy.port or 80


def silent(url: str) -> str:
    """Notes that a host took a connection and said nothing; the second time it counts as dead."""
    host, port = _gate(url)
    reason = f"{host}:{port}: no answer within {CONNECT_SECONDS:.0f} s"
    _SILENT[host, port] = _SILENT.get((host, port), 0) + 1
    if _SILENT[host, port] > 1:
        _REACHED[host, port] = reason, time.monotonic()
    return reason


def _connect(host: str, port: int) -> str | None:
    """None if one address of the host answers; else why not."""
    done, faults = (
        threading.Event(),
        [f"no connection to {host}:{port} within {CONNECT_SECONDS:.0f} s"],
    )
    reached = threading.Event()

    def one(address: tuple[object, ...], family: int) -> str | None:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(CONNECT_SECONDS)
                probe.connect(address)
        except OSError as error:
            return error.strerror or str(error)
        reached.set()
        done.set()
        return None

    def all_addresses() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            faults[0] = f"{host}: {error.strerror or error}"
            done.set()
            return
        results: list[str | None] = []
        threads = [
            threading.Thread(target=lambda a=a: results.append(one(a[4], a[0])), daemon=True)
            for a in found
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not reached.is_set():
            faults[0] = f"{host}:{port}: {next((r for r in results if r), 'no address')}"
        done.set()

    threading.Thread(target=all_addresses, daemon=True).start()
    done.wait(CONNECT_SECONDS)
    return None if reached.is_set() else faults[0]
