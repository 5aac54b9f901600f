"""Weights that another program wrote: a safetensors file, read with care for what people try instead."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_HEADER = 100_000_000
"""Bytes, as the format has it."""
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How files of `torch.save` begin: a zip archive, or a pickle itself."""
_FLOATS = ("F32", "F64", "F16", "BF16")


@dataclass(frozen=True)
class Weights:
    """Arrays by their names in the file: float32 where they were any kind of float.

    Attributes:
        cast: how many arrays had another float type, by its name.
    """

    path: Path
    arrays: Mapping[str, NDArray[np.generic]]
    cast: Mapping[str, int]


def read(path: Path) -> Weights:
    """The arrays of a safetensors file.

    Raises:
        RunError: there is none, it is none, or it is damaged; a pickle is not opened, and the error says how to write
            safetensors from it.
    """
    header, start = _header(path)
    types = {name: str(entry["dtype"]) for name, entry in header.items()}
    arrays = _floats(path, header, start)
    others = sorted({t for t in types.values() if t in _FLOATS} - {"F32"})
    counts = {t: sum(t == one for one in types.values()) for t in others}
    return Weights(path, arrays, counts)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The entries of the arrays, and where their bytes begin; every byte that they promise is there."""
    size, head = _opened(path)
    _no_pickle(path, head)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or not 2 <= length <= _MOST_HEADER:
        raise RunError(f"{path}: no safetensors file: it does not begin with a header's length")
    if 8 + length > size:
        raise _cut(path, f"its header has {length:,} bytes", size)
    try:
        with path.open("rb") as file:
            file.seek(8)
            found = json.loads(file.read(length))
        entries = {n: e for n, e in found.items() if n != "__metadata__"}
        end = max((int(e["data_offsets"][1]) for e in entries.values()), default=0)
        assert all(isinstance(e["dtype"], str) for e in entries.values())
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, IndexError):
        raise RunError(f"{path}: no safetensors file: its header is no table of arrays") from None
    if 8 + length + end > size:
        raise _cut(path, f"its arrays end at byte {8 + length + end:,}", size)
    if not entries:
        raise RunError(f"{path}: holds no arrays")
    return entries, 8 + length


def no_pickle(path: Path) -> None:
    """Raises RunError where a file is what torch.save writes; the error says how to write safetensors from it."""
    _no_pickle(path, _opened(path)[1])


def _no_pickle(path: Path, head: bytes) -> None:
    if head.startswith(_PICKLES):
        raise RunError(
            f"{path}: a pickle, as torch.save writes it; it could run any code and is not opened",
            hint=_from_torch(path),
        )


def _opened(path: Path) -> tuple[int, bytes]:
    """Size and first 8 bytes."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size, file.read(8)
    except IsADirectoryError:
        raise RunError(f"{path}: a folder; a .safetensors file is needed") from None
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None


def _cut(path: Path, what: str, size: int) -> RunError:
    return RunError(f"{path}: cut off: {what}, the file has {size:,}", hint="fetch it again")


def _from_torch(path: Path) -> str:
    out = path.with_suffix(".safetensors").name
    code = (
        f"import torch, safetensors.torch as s; w = torch.load('{path.name}', weights_only=True); "
        f"s.save_file({{k: v.contiguous() for k, v in w.items()}}, '{out}')"
    )
    return f'where PyTorch is: python -c "{code}"'


def _floats(path: Path, header: Mapping[str, Any], start: int) -> dict[str, NDArray[np.generic]]:
    import numpy as np
    from safetensors import SafetensorError, safe_open

    found: dict[str, NDArray[np.generic]] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            for name, entry in header.items():
                if entry["dtype"] == "BF16":
                    found[name] = _bfloat16(path, entry, start)
                    continue
                array = file.get_tensor(name)
                found[name] = (
                    array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array
                )
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise RunError(f"{path}: damaged: {error}") from None
    return found


def _bfloat16(path: Path, entry: Mapping[str, Any], start: int) -> NDArray[np.generic]:
    """numpy has no such type: the upper halves of float32."""
    import numpy as np

    first, last = entry["data_offsets"]
    words = np.fromfile(path, "<u2", (last - first) // 2, offset=start + first)
    return (words.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])
