"""The core library: the only file that touches cffi.

The library and its cffi module lie in ``paddlecli/_core`` (installed), or in the folder that PADDLECLI_CORE names (a build
folder of ``core/CMakeLists.txt``). Loading compares the interface version and the layout of structures; a plan's kernels are
compared with the library's, text by text, when the plan is created.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import settings
from paddlecli.errors import PaddleCliError, ResourceError
from paddlecli.runtime.errors import OK, CoreFault, exception

if TYPE_CHECKING:
    import numpy as np

    from paddlecli.compiler.plan_info import PlanInfo

ABI = 1
STEP_BYTES = 96
_NAMES = {"darwin": "libpaddlecore.dylib", "win32": "paddlecore.dll"}


@dataclass(frozen=True)
class Info:
    """What the library says of itself."""

    backend: str
    level: str
    build: str
    kernels: int


@dataclass(frozen=True)
class Counters:
    """Counts since the library was loaded, and bytes of its pools."""

    allocations: int
    used: int
    peak: int
    plans: int
    steps: int
    allocations_in_steps: int


def folder() -> Path:
    """Where the library and its cffi module lie.

    Raises:
        ResourceError: they are not there.
    """
    named = settings.core_folder()
    place = named or Path(__file__).resolve().parent.parent / "_core"
    for path in (place, *_package_folders()):
        if (path / library_name()).is_file() and (path / "_ffi.py").is_file():
            return path
        if named:
            break
    raise ResourceError(
        f"the core library is missing: {place / library_name()} and _ffi.py",
        hint="install paddlecli, or build core/ and let PADDLECLI_CORE name the build folder",
    )


def _package_folders() -> list[Path]:
    """Other folders of the package: an editable install keeps built files apart from the sources."""
    try:
        spec = importlib.util.find_spec("paddlecli._core")
    except (ImportError, ValueError):
        return []
    return [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []


def library_name() -> str:
    """File name of the core library on this system."""
    return _NAMES.get(sys.platform, "libpaddlecore.so")


@cache
def _load() -> tuple[Any, Any]:
    """(ffi, lib), checked; the instruction-set level is set once, here."""
    place = folder()
    spec = importlib.util.spec_from_file_location("paddlecli._core._ffi", place / "_ffi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ffi = module.ffi
    try:
        lib = ffi.dlopen(str(place / library_name()))
    except OSError as error:
        raise ResourceError(f"the core library cannot be loaded: {error}") from None
    found = ffi.new("pk_info *")
    lib.pk_get_info(found)
    sizes = (found.sizeof_error, found.sizeof_step, ffi.sizeof("pk_step"))
    if found.abi != ABI or sizes != (ffi.sizeof("pk_error"), STEP_BYTES, STEP_BYTES):
        raise ResourceError(
            f"{place / library_name()} has interface {found.abi} and sizes {sizes}, this program needs interface {ABI}",
            hint="build the core again",
        )
    level = settings.isa()
    fault = ffi.new("pk_error *")
    if lib.pk_set_level(b"" if level == "auto" else level.encode(), fault) != OK:
        raise ResourceError(ffi.string(fault.message).decode(), hint="PADDLECLI_ISA names the instruction set")
    return ffi, lib


def ffi() -> Any:
    """The cffi interface."""
    return _load()[0]


def lib() -> Any:
    """The library's functions; a call releases the GIL."""
    return _load()[1]


def fault_of(error: Any) -> CoreFault:
    """A ``pk_error *`` as plain values."""
    text = ffi().string
    return CoreFault(
        error.status, error.node, error.tensor, error.step, error.row,
        text(error.op).decode("utf-8", "replace"), text(error.message).decode("utf-8", "replace"),
    )  # fmt: skip


def failure(error: Any, info: PlanInfo | None = None) -> PaddleCliError:
    """The exception for a filled ``pk_error *``."""
    return exception(fault_of(error), info)


def call(function: str, *args: Any, info: PlanInfo | None = None) -> None:
    """Calls ``function(*args, error)`` and raises what it reports."""
    error = ffi().new("pk_error *")
    if getattr(lib(), function)(*args, error) != OK:
        raise failure(error, info)


def create(function: str, kind: str, free: str, *args: Any, info: PlanInfo | None = None) -> Any:
    """Calls ``function(*args, &handle, error)``; the handle is freed with its last reference."""
    place = ffi().new(f"{kind} **")
    call(function, *args, place, info=info)
    release: Callable[[Any], None] = getattr(lib(), free)
    return ffi().gc(place[0], release)


def address(array: np.ndarray | None) -> int:
    """Address of an array's first byte, 0 for None."""
    return 0 if array is None else int(array.ctypes.data)


def pointer(array: np.ndarray | None, kind: str = "void *") -> Any:
    """The array as a C pointer; the caller keeps the array alive and contiguous."""
    return ffi().cast(kind, address(array))


def info() -> Info:
    """Backend, instruction-set level, build and number of kernels."""
    found = ffi().new("pk_info *")
    lib().pk_get_info(found)
    text = ffi().string
    return Info(text(found.backend).decode(), text(found.level).decode(), text(found.build).decode(), found.kernels)


def counters() -> Counters:
    """Allocations, bytes, plans and steps since the library was loaded."""
    found = ffi().new("pk_counters *")
    lib().pk_get_counters(found)
    return Counters(*(getattr(found, name) for name in Counters.__dataclass_fields__))


def reset_peak() -> None:
    """The peak counter starts again from what is in use now."""
    lib().pk_reset_peak()


def signatures() -> tuple[str, ...]:
    """Signature text of every kernel in the library."""
    rows = (lib().pk_kernel_signature(i) for i in range(info().kernels))
    return tuple(ffi().string(row).decode() for row in rows)


def mismatches() -> list[str]:
    """Kernels that Python and the library do not share, one line each; empty when both sides agree."""
    from paddlecli import ops

    native = set(signatures())
    python = {k.signature for name in ops.names() for k in ops.get(name).kernels}
    lines = [f"only in Python: {s}" for s in sorted(python - native)]
    return lines + [f"only in the library: {s}" for s in sorted(native - python)]
