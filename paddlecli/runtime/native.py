"""The core libraries: the only file that touches cffi. There is one for each backend, all with the same interface.

The library and its cffi module lie in ``paddlecli/_core`` (installed), or in the folder that PADDLECLI_CORE names (a build
folder of ``core/CMakeLists.txt``). Loading compares the interface version and the layout of structures; a plan's kernels are
compared with the library's, text by text, when the plan is created.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import ops, settings
from paddlecli.errors import ConfigError, PaddleCliError, ResourceError
from paddlecli.runtime.errors import OK, CoreFault, exception

if TYPE_CHECKING:
    import numpy as np

    from paddlecli.compiler.plan_info import PlanInfo

Names = Callable[[], "PlanInfo | None"]
"""How a call learns the plan's names when it needs them for a message."""

ABI = 1
STEP_BYTES = 96
BACKENDS = {
    "cpu": "paddlecore",
    "cuda": "paddlecore_cuda",
    "cuda-emulated": "paddlecore_cuda_emulated",
}
"""Library of each backend; the emulated one runs the CUDA kernels on the host, for tests."""


@dataclass(frozen=True)
class Info:
    """What the library says of itself."""

    backend: str
    level: str
    build: str
    kernels: int


@dataclass(frozen=True)
class Counters:
    """Counts since the library was loaded: those of `pk_counters` that are read here."""

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


def headers() -> Path:
    """Where the headers lie that libraries of ops are compiled with."""
    installed = folder() / "include"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "core" / "include"


def library_name(backend: str = "cpu") -> str:
    """File name of a backend's library on this system."""
    name = BACKENDS[backend]
    return {"darwin": f"lib{name}.dylib", "win32": f"{name}.dll"}.get(sys.platform, f"lib{name}.so")


def library_path(backend: str) -> Path:
    """Where the library of a backend should lie."""
    return folder() / library_name(backend)


def installed(backend: str) -> bool:
    """Whether this installation has the library of a backend."""
    try:
        return library_path(backend).is_file()
    except ResourceError:
        return False


@cache
def ffi() -> Any:
    """The cffi interface, one for all libraries."""
    spec = importlib.util.spec_from_file_location("paddlecli._core._ffi", folder() / "_ffi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi


def lib(backend: str = "cpu") -> Any:
    """The functions of a backend's library, checked; a call releases the GIL.

    Raises:
        ResourceError: it is missing, of another version, or lacks the instruction-set level that is set.
        ConfigError: a library of ops that users' code added cannot be loaded into it.
    """
    library = _load(backend)
    for path in ops.libraries():
        if (backend, path) not in _opened:
            _open_ops(library, backend, path)
    return library


_opened: set[tuple[str, Path]] = set()
"""Libraries of ops, and the backends that have them."""


def _open_ops(library: Any, backend: str, path: Path) -> None:
    """Loads a library of ops, and compares its kernels with the Python half."""
    fault = ffi().new("pk_error *")
    if not hasattr(library, "pk_load_ops"):
        raise ResourceError("this core loads no libraries of ops", hint="build the core again")
    if library.pk_load_ops(os.fsencode(path), fault) != OK:
        text = ffi().string(fault.message).decode("utf-8", "replace")
        raise ConfigError(f"{path}: {text.removeprefix(f'{path}: ')}")
    found = set(_signatures(library))
    for kernel in (k for op in ops.of_library(path) for k in op.kernels):
        if kernel.signature not in found:
            like = [s for s in found if s.startswith(f"{kernel.full_name}(")]
            text = f"it has {like[0]}" if like else f"it has no kernel {kernel.full_name}"
            raise ConfigError(f"{path}: {text}; the Python half says {kernel.signature}")
    _opened.add((backend, path))


@cache
def _load(backend: str) -> Any:
    path = library_path(backend)
    if not path.is_file():
        raise ResourceError(
            f"this installation has no {backend} backend: {path} is missing",
            hint="use --device cpu, or build core/ with a CUDA compiler and PK_CUDA=ON",
        )
    try:
        library = ffi().dlopen(str(path))
    except OSError as error:
        raise ResourceError(f"the core library cannot be loaded: {error}") from None
    found = ffi().new("pk_info *")
    library.pk_get_info(found)
    sizes = (found.sizeof_error, found.sizeof_step, ffi().sizeof("pk_step"))
    if found.abi != ABI or sizes != (ffi().sizeof("pk_error"), STEP_BYTES, STEP_BYTES):
        raise ResourceError(
            f"{path} has interface {found.abi} and sizes {sizes}, this program needs interface {ABI}",
            hint="build the core again",
        )
    level = settings.isa()
    if backend == "cpu":
        _set_level(
            library, "" if level == "auto" else level, "PADDLECLI_ISA names the instruction set"
        )
    return library


def _set_level(library: Any, level: str, hint: str) -> None:
    fault = ffi().new("pk_error *")
    if library.pk_set_level(level.encode(), fault) != OK:
        raise ResourceError(ffi().string(fault.message).decode(), hint=hint)


@cache
def use_device(backend: str, index: int) -> None:
    """Chooses the device of a backend for this process.

    Raises:
        ResourceError: the library is missing, there is no such device, or plans of another one exist.
    """
    if backend == "cpu":
        return
    library = lib(backend)  # where that is missing, it says so itself
    try:
        _set_level(library, str(index), "")
    except ResourceError as error:
        if "first plan" in str(error):
            raise
        raise ResourceError(
            f"there is no {backend} device {index} on this machine",
            hint="use --device cpu; `nvidia-smi` shows which devices the driver knows",
        ) from None


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


def call(function: str, *args: Any, info: Names | None = None, backend: str = "cpu") -> None:
    """Calls ``function(*args, error)`` and raises what it reports; only then ``info`` is asked for names."""
    error = ffi().new("pk_error *")
    if getattr(lib(backend), function)(*args, error) != OK:
        raise failure(error, info() if info else None)


def create(
    function: str, kind: str, free: str, *args: Any, info: Names | None = None, backend: str = "cpu"
) -> Any:
    """Calls ``function(*args, &handle, error)``; the handle is freed with its last reference. Those of a cycle go in any order."""
    place = ffi().new(f"{kind} **")
    call(function, *args, place, info=info, backend=backend)
    release: Callable[[Any], None] = getattr(lib(backend), free)
    return ffi().gc(place[0], release)


def address(array: np.ndarray | None) -> int:
    """Address of an array's first byte, 0 for None."""
    return 0 if array is None else int(array.ctypes.data)


def pointer(array: np.ndarray | None, kind: str = "void *") -> Any:
    """The array as a C pointer; the caller keeps the array alive and contiguous."""
    return ffi().cast(kind, address(array))


def info(backend: str = "cpu") -> Info:
    """Backend, instruction-set level, build and number of kernels."""
    found = ffi().new("pk_info *")
    lib(backend).pk_get_info(found)
    text = ffi().string
    return Info(
        text(found.backend).decode(),
        text(found.level).decode(),
        text(found.build).decode(),
        found.kernels,
    )


def counters(backend: str = "cpu") -> Counters:
    """Plans, steps and allocations in them since the library was loaded."""
    found = ffi().new("pk_counters *")
    lib(backend).pk_get_counters(found)
    return Counters(*(getattr(found, name) for name in Counters.__dataclass_fields__))


def signatures(backend: str = "cpu") -> tuple[str, ...]:
    """Signature text of every kernel in a backend's library; needs no device."""
    return tuple(_signatures(lib(backend)))


def _signatures(library: Any) -> Iterator[str]:
    index = 0
    while (row := library.pk_kernel_signature(index)) != ffi().NULL:
        yield ffi().string(row).decode()
        index += 1


def mismatches() -> list[str]:
    """Kernels that Python and the library do not share, one line each; empty when both sides agree."""
    native = set(signatures())
    python = {k.signature for name in ops.names() for k in ops.get(name).kernels}
    lines = [f"only in Python: {s}" for s in sorted(python - native)]
    return lines + [f"only in the library: {s}" for s in sorted(native - python)]
