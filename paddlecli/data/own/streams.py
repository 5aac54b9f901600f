"""Pictures that are made when a batch needs them: those that do not fit in memory, and what is random
in training.

A field of pictures has transforms that always do the same, and behind the first random one the rest.
The first part is done once and held as one array of bytes, if all pictures get one size and the array
stays below the limit; else every picture is read and made anew. What a row becomes is the same both
ways, and depends on (seed, epoch, row) alone. Beside what is held, the rows of a request take at most
64 MiB, and one more request is made ahead in a thread (`engine/requests.py`, `engine/ahead.py`).
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from paddlecli.config import plugins
from paddlecli.data.columns import Column, Rows, Split
from paddlecli.data.own.frame import Faults
from paddlecli.data.transforms.base import Chain
from paddlecli.data.transforms.colours import Mixup, check_order
from paddlecli.data.transforms.pictures import Decode, Draw, Picture, PictureTransform, odd_size
from paddlecli.errors import ConfigError, DataError, PaddleCliError, ResourceError

_STREAM = crc32(b"transforms")
_PARTNER = crc32(b"partner")
_CHUNK = 16  # pictures a task
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class Recipe:
    """How pictures of a field are made: the paths, and the transforms before and behind the first
    random one."""

    files: tuple[str, ...]
    """Path of every row."""
    sources: tuple[str, ...]
    """File that names the path, where relative ones start."""
    decode: Decode
    steps: tuple[PictureTransform, ...]
    cut: int
    """How many steps come before the first random one."""

    def first_part(self, row: int) -> Picture:
        """The picture of a row behind the steps that always do the same.

        Raises:
            DataError: the file is missing or damaged.
        """
        picture = self.decode.open(self.files[row], self.sources[row])
        for step in self.steps[: self.cut]:
            picture = _made(step, picture, None)
        return picture

    def rest(self, picture: Picture, draw: Draw | None) -> Picture:
        """The steps from the first random one on."""
        for place, step in enumerate(self.steps[self.cut :]):
            picture = _made(step, picture, draw.at(place) if draw is not None else None)
        return picture


def _made(step: PictureTransform, picture: Picture, draw: Draw | None) -> Picture:
    made: object = step.one(picture, draw)
    if isinstance(made, np.ndarray) and made.ndim == 3:
        return made
    raise ConfigError(
        f"the transform {type(step).__name__} gave no picture",
        hint="`one` returns an array [height, width, channels]",
    )


def recipe_of(chain: Chain, files: Sequence[str], sources: Sequence[str]) -> Recipe:
    """The recipe of a chain that begins with `decode`.

    Raises:
        ConfigError: transforms that do not go with pictures, or in the wrong order.
    """
    names = [name for name, _ in chain.written]
    for name, step in zip(names[1:], chain.steps[1:], strict=True):
        if not isinstance(step, PictureTransform):
            raise ConfigError(f"the transforms of {chain.name}: `{name}` does not take pictures")
    steps = cast(list[PictureTransform], chain.steps[1:])
    check_order(steps, names[1:])
    cut = next((i for i, step in enumerate(steps) if step.random), len(steps))
    return Recipe(tuple(files), tuple(sources), cast(Decode, chain.steps[0]), tuple(steps), cut)


class PictureStream:
    """The pictures of one split.

    Args:
        recipe: how they are made.
        faults: takes what is wrong with single files.
        seed: start of the random numbers.
        limit: the most bytes that may be held.
        workers: processes that make pictures that are not held; 0 makes them in threads.
    """

    def __init__(
        self, recipe: Recipe, faults: Faults, *, seed: int = 0, limit: int = 0, workers: int = 0
    ) -> None:
        self.recipe, self.seed, self.workers = recipe, seed, workers
        self.held: NDArray[Any] | None = None
        foreign = next((s for s in recipe.steps if not _known_elsewhere(type(s))), None)
        if workers and foreign is not None:
            raise ConfigError(
                f"data.workers: other processes cannot know {type(foreign).__name__}",
                hint="put it into a file that is given with --code, or set workers to 0: pictures are "
                "then made in threads",
            )
        first = recipe.first_part(0) if not faults.gather else None
        self._read(faults, first, limit)

    def _read(self, faults: Faults, first: Picture | None, limit: int) -> None:
        """Reads every file once: damaged ones are found before training, and what fits is kept."""
        rows = len(self.recipe.files)
        fits = first is not None and rows * first.nbytes <= limit
        whole = self.recipe.cut == len(self.recipe.steps)
        with ThreadPoolExecutor(_THREADS, "pictures") as pool:
            for begin in range(0, rows, 4 * _CHUNK * _THREADS):
                part = range(begin, min(rows, begin + 4 * _CHUNK * _THREADS))
                for row, found in zip(part, pool.map(self._guarded, part), strict=True):
                    if isinstance(found, str):
                        faults.add(row, found.removeprefix(f"{faults.frame.place(row).file}: "))
                        continue
                    if first is None:
                        first = found
                    if found.shape != first.shape:
                        if whole:
                            faults.add(row, odd_size(found, first.shape))
                        fits, self.held = False, None
                    if fits:
                        if self.held is None:
                            self.held = np.empty((rows, *first.shape), first.dtype)
                        self.held[row] = found
        self.shape, self.dtype = self._form(first, faults)

    def _guarded(self, row: int) -> Picture | str:
        try:
            return self.recipe.first_part(row)
        except DataError as error:
            return error.message

    def _form(self, first: Picture | None, faults: Faults) -> tuple[tuple[int, ...], str]:
        """Shape [channels, height, width] and type of what comes out."""
        if first is None:
            raise DataError(f"{faults.frame.files[0]}: no picture can be read")
        made = self.recipe.rest(first, None)
        return (made.shape[2], made.shape[0], made.shape[1]), str(made.dtype)

    @property
    def fixed(self) -> bool:
        """Whether all pictures are held and nothing is random: a plain column."""
        return self.held is not None and self.recipe.cut == len(self.recipe.steps)

    @property
    def mixup(self) -> Mixup | None:
        """The transform that lays two pictures over each other."""
        return next((s for s in self.recipe.steps if isinstance(s, Mixup)), None)

    def column(self) -> Column:
        """The pictures as a plain column; only where they are `fixed`."""
        assert self.held is not None
        return Column(np.ascontiguousarray(self.held.transpose(0, 3, 1, 2)))

    def take(self, rows: Rows, epoch: int | None) -> Column:
        """The pictures of some rows; in training with what is random in that epoch.

        Raises:
            DataError: a file has changed since the data set was opened.
            UserCodeError: a transform of the user's raised in another process.
            ResourceError: such a process was killed.
        """
        out = np.empty((rows.size, *self.shape), self.dtype)
        parts = [slice(i, i + _CHUNK) for i in range(0, rows.size, _CHUNK)]
        chunks = [(rows[part].tolist(), epoch) for part in parts]
        run = self._pool.map if len(parts) > 1 or self._in_processes else map
        task: Callable[..., NDArray[Any]] = _in_worker if self._in_processes else self._chunk
        try:
            for part, made in zip(parts, run(task, chunks), strict=True):
                out[part] = made
        except BrokenExecutor:
            raise ResourceError(
                "data.workers: a process that makes pictures was ended from outside",
                hint="if memory ran out, set fewer workers or 0: pictures are then made in threads",
            ) from None
        return Column(out)

    def shares(self, rows: Rows, epoch: int | None) -> list[tuple[int, float]]:
        """The row that is mixed into each, and the first one's share."""
        mixup = self.mixup
        if mixup is None or epoch is None:
            return [(int(row), 1.0) for row in rows]
        count = len(self.recipe.files)
        return [mixup.share(self._draw(epoch, int(row)).at(_PARTNER), count) for row in rows]

    def _chunk(self, task: tuple[list[int], int | None]) -> NDArray[Any]:
        rows, epoch = task
        shares = self.shares(np.asarray(rows, np.int64), epoch)
        made = []
        for row, (other, share) in zip(rows, shares, strict=True):
            picture = self._one(row, epoch, row)
            if share < 1.0:
                second = self._one(other, epoch, row, _PARTNER)
                mixed = picture.astype(np.float64) * share + second.astype(np.float64) * (1 - share)
                picture = np.rint(mixed).astype(np.uint8)
            if picture.shape != (*self.shape[1:], self.shape[0]):
                raise DataError(
                    f"{self.recipe.files[row]}: {odd_size(picture, (*self.shape[1:], self.shape[0]))}"
                )
            made.append(picture.transpose(2, 0, 1))
        return np.stack(made)

    def _one(self, row: int, epoch: int | None, *key: int) -> Picture:
        picture = self.held[row] if self.held is not None else self.recipe.first_part(row)
        return self.recipe.rest(picture, None if epoch is None else self._draw(epoch, *key))

    def _draw(self, epoch: int, *key: int) -> Draw:
        return Draw(_STREAM, self.seed, epoch, *key)

    # -- who makes them ---------------------------------------------------------------------------
    @property
    def _in_processes(self) -> bool:
        return self.workers > 0 and self.held is None

    @cached_property
    def _pool(self) -> Executor:
        if not self._in_processes:
            return ThreadPoolExecutor(_THREADS, "pictures")
        # spawned, never forked: the core's threads and locks would not survive a fork
        context = multiprocessing.get_context("spawn")
        given = (_Code(), _Maker(self.recipe, self.seed, self.shape))
        return ProcessPoolExecutor(self.workers, context, _start, given)

    def fingerprint(self) -> bytes:
        """Names and lengths of the files, and everything that is held."""
        digest = hashlib.sha256(f"{self.shape}/{self.dtype};".encode())
        if self.held is not None:
            digest.update(np.ascontiguousarray(self.held).data)
            return digest.digest()
        for file, source in zip(self.recipe.files, self.recipe.sources, strict=True):
            path = Path(file) if Path(file).is_absolute() else Path(source).parent / file
            size = path.stat().st_size if path.exists() else -1
            digest.update(os.fsencode(f"{path.parent.name}/{path.name}/{size};"))
        return digest.digest()

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return 0 if self.held is None else self.held.nbytes


class _Maker(PictureStream):
    """A stream inside a worker process: it reads nothing before it is asked."""

    def __init__(self, recipe: Recipe, seed: int, shape: tuple[int, ...]) -> None:
        self.recipe, self.seed, self.shape = recipe, seed, shape
        self.held, self.workers = None, 0


_WORKER: list[_Maker] = []


class _Code:
    """Arrives in another process as the code files that are loaded here: what is given behind it may be
    made of their classes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return plugins.load_code, (plugins.loaded_files(),)


def _start(code: object, maker: _Maker) -> None:
    _WORKER[:] = [maker]


def _known_elsewhere(kind: type) -> bool:
    """Whether another process finds a class: that of this package, of a code file or a plug-in."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__.startswith("paddlecli.") or (bool(file) and plugins.is_users(str(file)))


def _in_worker(task: tuple[list[int], int | None]) -> NDArray[Any]:
    try:
        return _WORKER[0]._chunk(task)
    except PaddleCliError:
        raise
    except Exception as error:  # its traceback does not leave this process
        raise plugins.raised_by_user(error) or error from error


class StreamedSplit(Split):
    """A split with fields that are made when they are needed.

    Args:
        name: of the split.
        columns: the fields in memory.
        streams: the fields that are made, by name.
        labels: name of the field of class ids and number of classes, where pictures are mixed.
    """

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Column],
        streams: Mapping[str, PictureStream],
        mixed: tuple[str, str, int] | None = None,
    ) -> None:
        self.streams, self.mixed = dict(streams), mixed
        if columns:
            super().__init__(name, columns)
        else:
            self.name, self.columns = name, {}
            self.rows = len(next(iter(streams.values())).recipe.files)

    @property
    def streamed(self) -> bool:
        """See `Split.streamed`."""
        return True

    @property
    def made(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """See `Split.made`."""
        found = {name: (stream.shape, stream.dtype) for name, stream in self.streams.items()}
        if self.mixed is not None:
            found[self.mixed[0]] = ((self.mixed[2],), "float32")
        return found

    @property
    def nbytes(self) -> int:
        """See `Split.nbytes`; the pictures that are held with them."""
        return super().nbytes + sum(stream.nbytes for stream in self.streams.values())

    def digest(self) -> bytes:
        """See `Split.digest`."""
        return b"".join(stream.fingerprint() for _, stream in sorted(self.streams.items()))

    def take(self, rows: Rows, epoch: int | None = None) -> dict[str, Column]:
        """See `Split.take`."""
        found = super().take(rows)
        for name, stream in self.streams.items():
            found[name] = stream.take(rows, epoch)
        if self.mixed is not None:
            target, label, classes = self.mixed
            stream = next(iter(self.streams.values()))
            found[target] = self._shares(stream.shares(rows, epoch), rows, label, classes)
        return found

    def _shares(
        self, shares: Sequence[tuple[int, float]], rows: Rows, label: str, classes: int
    ) -> Column:
        ids = self.columns[label].values
        made = np.zeros((rows.size, classes), np.float32)
        for i, (row, (other, share)) in enumerate(zip(rows, shares, strict=True)):
            made[i, ids[row]] += share
            made[i, ids[other]] += 1.0 - share
        return Column(made)
