"""What `paddlecli doctor` says of the machine: processor, memory, folders and the room in them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paddlecli import settings
from paddlecli.errors import ResourceError

Status = Literal["ok", "warning", "fault"]
_GB = 1e9
LITTLE_DISK, NO_DISK = 2 * _GB, 0.1 * _GB
LITTLE_MEMORY = 1 * _GB


@dataclass(frozen=True)
class Finding:
    """What a check found, the cure where something is wrong, the exit code of a fault."""

    text: str
    status: Status = "ok"
    cure: str = ""
    code: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)


def processor() -> Finding:
    """Cores against threads."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    threads = settings.threads()
    values = {"cores": cores, "threads": threads}
    text = f"{cores} cores may be used, {threads} threads"
    if threads > cores:
        cure = "set PADDLECLI_THREADS (or OMP_NUM_THREADS) to the number of cores"
        return Finding(f"{text}: they will wait for each other", "warning", cure, values=values)
    return Finding(text, values=values)


def memory() -> Finding:
    """What this process may still take."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free, limit = _meminfo("MemAvailable") or total, _limit()
    if limit is not None:
        total, free = min(total, limit), min(free, limit)
    values = {"total_bytes": total, "free_bytes": free}
    text = f"{free / _GB:.1f} GB free of {total / _GB:.1f} GB"
    if free < LITTLE_MEMORY:
        cure = "end other programs, or use smaller batches (train.batch_size, train.accumulate) "
        cure += "or train.recompute"
        return Finding(text, "warning", cure, values=values)
    return Finding(text, values=values)


def _meminfo(key: str) -> int:
    file = Path("/proc/meminfo")
    found = (
        re.search(rf"^{key}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
        if file.is_file()
        else None
    )
    return int(found[1]) * 1024 if found else 0


def _limit() -> int | None:
    """The memory that a container may use."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        file = Path("/sys/fs/cgroup") / name
        text = file.read_text().strip() if file.is_file() else ""
        if text.isdecimal():
            return int(text)
    return None


def folder(setting: str, find: Callable[[], Path]) -> Finding:
    """A folder: where, by which rule, whether it can be written, and how much room there is."""
    place, source = find().absolute(), settings.lookup(setting)[1]
    row = next(s for s in settings.TABLE if s.name == setting)
    rule = {"environment": row.variable, "config file": str(settings.user_file()),
            "default": f"default: {row.default}"}.get(source, source)  # fmt: skip
    there = next(p for p in (place, *place.parents) if p.exists())
    free = shutil.disk_usage(there).free
    values = {"path": str(place), "rule": rule, "exists": there == place, "free_bytes": free}
    made = "" if there == place else ", made when needed"
    text = f"{place} ({rule}{made}), {free / _GB:.1f} GB free"
    code = ResourceError.exit_code
    if not there.is_dir() or not _writable(there):
        cure = f"make {there} writable, or let {row.variable} name another folder"
        return Finding(f"{place} ({rule}): {there} cannot be written", "fault", cure, code, values)
    if free < LITTLE_DISK:
        cure = f"free space there, or let {row.variable} name a folder elsewhere"
        full = free < NO_DISK
        return Finding(text, "fault" if full else "warning", cure, code if full else 0, values)
    return Finding(text, values=values)


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def features() -> set[str]:
    """The processor's features that kernels use, where the system tells."""
    known = {
        "sse4_2",
        "avx",
        "avx2",
        "fma",
        "f16c",
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "asimd",
    }
    return set((cpuinfo("flags") or cpuinfo("Features")).split()) & known


def cpuinfo(key: str) -> str:
    """The first value of a key in /proc/cpuinfo; empty where there is none."""
    file = Path("/proc/cpuinfo")
    text = file.read_text(errors="replace") if file.is_file() else ""
    found = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""
