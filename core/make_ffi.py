"""Writes the cffi module of the core from its header: ``make_ffi.py paddlecore.h _ffi.py``. CMake runs it; it needs cffi."""

import sys
from pathlib import Path

from cffi import FFI


def main(header: str, module: str) -> None:
    """Reads the declarations of ``header`` and writes the out-of-line module (ABI mode: any Python version loads it)."""
    lines = Path(header).read_text(encoding="utf-8").splitlines()
    ffi = FFI()
    ffi.cdef("\n".join(line for line in lines if not line.startswith("#")))
    ffi.set_source("_ffi", None)
    ffi.emit_python_code(module)


if __name__ == "__main__":
    main(*sys.argv[1:])
