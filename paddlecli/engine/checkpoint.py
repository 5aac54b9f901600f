"""Checkpoints: whole or not at all.

    checkpoints/step-00000900/model.safetensors       parameters and states of the graph
                             /optimizer.safetensors   what only training needs
                             /state.json              place in the data, best value, sums
                             /manifest.json           bytes and sha256 of the others
    checkpoints/last, best                            one line: the folder's name

A checkpoint is written to a hidden folder, synced and renamed, so a name always means a whole checkpoint. One that was
damaged later fails its checksums and is passed over for the one before, with a warning.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.engine.files import json_page, read_json, replace, saving, sync_folder, write_synced
from paddlecli.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

FORMAT = 1
MODEL, OPTIMIZER, STATE, MANIFEST = (
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "manifest.json",
)
LAST, BEST = "last", "best"
NOTE = "paddlecli"
"""Key of the JSON object in a safetensors file's metadata; one key, since the library writes several in random order."""
_NAME = re.compile(r"step-(\d{8,})")
_OLD = ".old"


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint holds.

    Attributes:
        model: arrays that predictions need.
        optimizer: arrays that only training needs.
        state: plain data; `step` (steps done) and, when a monitor is set and was measured here, `value`.
        choice: why `model/` would take these weights: `last`, or `best test.loss 0.03`.
    """

    model: Arrays
    optimizer: Arrays
    state: Mapping[str, Any]
    choice: str = "last"

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self.state["step"])


@dataclass
class Store:
    """The checkpoints of one run."""

    folder: Path
    keep_last: int
    keep_best: int = 0
    smaller_is_better: bool = True
    _values: dict[str, float | None] = field(default_factory=dict)

    def save(self, snapshot: Snapshot) -> Path:
        """Writes a checkpoint, moves the pointers, removes what need not be kept; returns its folder.

        Raises:
            ResourceError: the disk is full; every older checkpoint is intact.
        """
        name = f"step-{snapshot.step:08d}"
        target, temporary = self.folder / name, self.folder / f".{name}.tmp"
        with saving(self.folder):
            self.folder.mkdir(exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            try:
                temporary.mkdir()
                _write(temporary, snapshot)
                _rename(temporary, target)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        self._values[name] = snapshot.state.get("value")
        replace(self.folder / LAST, f"{name}\n".encode(), durable=False)
        self._prune(name)
        return target

    def best(self) -> str | None:
        """Name of the best checkpoint, None when none was measured; of equals, the earliest."""
        ranked = self._ranked()
        return ranked[0] if ranked else None

    def newest(self, warn: Callable[[str], None]) -> Snapshot | None:
        """The newest checkpoint that is whole, None without any; `warn` is told of each damaged one.

        Raises:
            RunError: there are checkpoints, and all are damaged: to start over is the user's choice.
        """
        folders = list_folders(self.folder)
        for path in reversed(folders):
            try:
                return load(path)
            except RunError as error:
                if path == folders[0]:
                    raise RunError(
                        f"{error}; there is no checkpoint before it",
                        hint=f"start over with `paddlecli train --config {self.folder.parent / 'config.yaml'}`",
                    ) from None
                warn(f"{error}; using the checkpoint before it")
        return None

    def resume_at(self, step: int) -> None:
        """Removes checkpoints behind `step` (damaged ones, since the newest whole one is at `step`) and learns the values
        of the others."""
        self._values.clear()
        with saving(self.folder):
            for path in list_folders(self.folder):
                if _step(path) > step:
                    shutil.rmtree(path)
                else:
                    self._values[path.name] = _value(path)

    def _ranked(self) -> list[str]:
        sign = 1.0 if self.smaller_is_better else -1.0
        measured = [
            (sign * v, name) for name, v in self._values.items() if v is not None and v == v
        ]
        return [name for _, name in sorted(measured)]

    def _prune(self, newest: str) -> None:
        with saving(self.folder):
            ranked = self._ranked()
            if self.keep_best and ranked:
                replace(self.folder / BEST, f"{ranked[0]}\n".encode(), durable=False)
            folders = list_folders(self.folder)
            kept = (
                {p.name for p in folders[-self.keep_last :]}
                | set(ranked[: self.keep_best])
                | {newest}
            )
            for path in folders:
                if path.name not in kept:
                    self._values.pop(path.name, None)
                    shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, snapshot: Snapshot) -> None:
    from safetensors.numpy import save

    note = {
        NOTE: json.dumps(
            {"format": FORMAT, "step": snapshot.step, "choice": snapshot.choice}, sort_keys=True
        )
    }
    contents: dict[str, Callable[[], bytes]] = {
        MODEL: lambda: save(dict(snapshot.model), note),
        OPTIMIZER: lambda: save(dict(snapshot.optimizer), note),
        STATE: lambda: json_page(snapshot.state),
    }
    files = {}
    for name, make in contents.items():
        data = make()
        files[name] = {"bytes": len(data), "sha256": write_synced(folder / name, data)}
    write_synced(
        folder / MANIFEST, json_page({"format": FORMAT, "step": snapshot.step, "files": files})
    )
    sync_folder(folder)


def _rename(temporary: Path, target: Path) -> None:
    """Gives the finished folder its name. One of the same step (the same parameters, an earlier place in the loop) steps
    aside first; `list_folders` finds it there should a kill come in between."""
    aside = target.with_name(target.name + _OLD)
    shutil.rmtree(aside, ignore_errors=True)
    if target.exists():
        target.rename(aside)
    temporary.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _step(path: Path) -> int:
    found = _NAME.match(path.name)
    return int(found.group(1)) if found else -1


def _value(path: Path) -> float | None:
    """The monitored value that a checkpoint was saved with."""
    try:
        value = read_json(path / STATE).get("value")
    except RunError:
        return None
    return float(value) if isinstance(value, int | float) else None


def list_folders(folder: Path) -> list[Path]:
    """Checkpoint folders by rising step, whole or not."""
    if not folder.is_dir():
        return []
    for aside in folder.glob(f"step-*{_OLD}"):
        target = aside.with_name(aside.name.removesuffix(_OLD))
        if not target.exists():
            aside.rename(target)
    return sorted(
        (p for p in folder.iterdir() if p.is_dir() and _NAME.fullmatch(p.name)), key=_step
    )


def load(folder: Path) -> Snapshot:
    """A checkpoint, after its checksums were compared.

    Raises:
        RunError: a file is missing, cut off or changed; names it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as parse

    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise RunError(
            f"{folder}: written in format {manifest.get('format')}, this version reads {FORMAT}"
        )
    data = {name: _checked(folder / name, manifest) for name in (MODEL, OPTIMIZER, STATE)}
    try:
        return Snapshot(parse(data[MODEL]), parse(data[OPTIMIZER]), json.loads(data[STATE]))
    except (SafetensorError, ValueError) as error:
        raise RunError(f"{folder}: cannot be read: {error}") from None


def _checked(path: Path, manifest: Mapping[str, Any]) -> bytes:
    expected = manifest.get("files", {}).get(path.name, {})
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None
    if len(data) != expected.get("bytes"):
        raise RunError(f"{path}: has {len(data)} bytes, the manifest says {expected.get('bytes')}")
    if hashlib.sha256(data).hexdigest() != expected.get("sha256"):
        raise RunError(f"{path}: its checksum is not the manifest's: it is damaged")
    return data
