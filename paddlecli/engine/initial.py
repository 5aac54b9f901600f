"""The weights that a training starts from: those of another run or file, where the recipe says `train.init_from`."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import assets
from paddlecli.config.nodes import close_names
from paddlecli.config.recipe import Recipe
from paddlecli.engine import foreign, modeldir, rundir
from paddlecli.engine.checkpoint import MODEL
from paddlecli.errors import ConfigError, RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.graph.ir import Graph

_KEY = ("train", "init_from")
_SHOWN = 50  # rows of a table
_LISTED = 12  # names in a line
_NOTHING_FITS = "not one array fits: is it the network that you mean? `paddlecli convert` takes over weights that other programs wrote"


@dataclass(frozen=True)
class Difference:
    """An array that the network and the file do not both have in the same shape; the missing one's shape is None."""

    name: str
    network: tuple[int, ...] | None
    file: tuple[int, ...] | None

    @property
    def what(self) -> str:
        """`missing` (in the file), `unexpected` (in the network) or `shape`."""
        if self.file is None:
            return "missing"
        return "unexpected" if self.network is None else "shape"


@dataclass(frozen=True)
class Start:
    """Weights to start from.

    Attributes:
        path: the safetensors file; `sha256` of its bytes, in hexadecimal.
        values: the arrays that are taken, by name.
        differences: what was not taken or keeps its initial values.
        skipped: the arrays that `train.init_skip` names, of the network or the file.
    """

    path: Path
    sha256: str
    values: Mapping[str, NDArray[np.generic]]
    differences: tuple[Difference, ...]
    skipped: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What run.json says of it."""
        kept = [d.name for d in self.differences if d.network is not None]
        left = [d.name for d in self.differences if d.file is not None]
        return {
            "file": str(self.path),
            "sha256": self.sha256,
            "taken": sorted(self.values),
            "initial": kept,
            "not_taken": left,
        }

    def text(self) -> str:
        """What is said when training starts: one line, or a table where only a part was taken."""
        head = f"starting from {self.path}: {len(self.values)} arrays"
        if {d.name for d in self.differences} <= set(self.skipped):
            more = len(self.skipped) - _LISTED
            listed = ", ".join(self.skipped[:_LISTED]) + (f" and {more} more" if more > 0 else "")
            return f"{head}; not loaded: {listed}" if self.skipped else head
        taken = [f"  taken       {name}" for name in sorted(self.values)]
        return "\n".join(
            [f"{head} taken, {len(self.differences)} not", *taken, *_table(self.differences)]
        )


def resolved(recipe: Recipe) -> Recipe:
    """The recipe with the file that `train.init_from` means written out, so that a saved recipe means the same for ever.

    A path in a recipe's file starts at that file's folder, one on the command line at the working directory.

    Raises:
        RunError: there is no such run or file, or nothing was saved in it yet.
    """
    text = recipe.train.init_from
    if text is None:
        return recipe
    origin = recipe.origin(_KEY)
    base = Path(origin.file).parent if origin.kind == "file" else Path()
    path = (base / Path(text).expanduser()).absolute()
    several = len(Path(text).parts) > 1
    if assets.is_path(text) or (
        several and (path.exists() or assets.find("recipes", text) is None)
    ):
        found = _weights_in(path)
    else:
        found = _weights_in(rundir.find(text).path.absolute())
    train = recipe.train.model_copy(update={"init_from": str(found)})
    return recipe.model_copy(update={"train": train})


def _weights_in(path: Path) -> Path:
    """The weights of a file, a run, a model folder or a checkpoint."""
    if path.is_file():
        return path
    for candidate in (path / "model" / MODEL, path / MODEL):
        if candidate.is_file():
            return candidate
    what = "holds no weights yet" if path.is_dir() else "no such run or file"
    raise RunError(
        f"train.init_from: {path}: {what}", hint="give a run, a model folder or a .safetensors file"
    )


def start_of(recipe: Recipe, graph: Graph) -> Start | None:
    """The weights that `train.init_from` of a resolved recipe names, compared with the network.

    Raises:
        RunError: they do not fit, with a table of the differences; with `train.allow_partial` only where nothing fits. Or the
            file is damaged or holds numbers that are not finite.
    """
    if recipe.train.init_from is None:
        return None
    path = Path(recipe.train.init_from)
    if path.is_file():
        foreign.no_pickle(path)
    values, _ = modeldir.read_weights(path)
    tensors = {**graph.parameters, **graph.states}
    skipped = _skipped(recipe, list(dict.fromkeys([*tensors, *values])))
    wanted = {name: tuple(d.coefficient for d in t.spec.shape) for name, t in tensors.items()}
    found = {name: tuple(v.shape) for name, v in values.items()}
    differences = tuple(
        Difference(name, wanted.get(name), found.get(name))
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    )
    skips = set(skipped)
    fitting = {n: v for n, v in values.items() if wanted.get(n) == found[n] and n not in skips}
    odd = tuple(d for d in differences if d.name not in skips)
    if odd and not (recipe.train.allow_partial and fitting):
        _refuse(recipe, path, odd, len(fitting))
    _check_finite(path, fitting)
    left = [Difference(n, wanted.get(n), found.get(n)) for n in skipped]
    told = tuple(sorted((*odd, *left), key=lambda d: d.name))
    return Start(path, hashlib.sha256(path.read_bytes()).hexdigest(), fitting, told, skipped)


def _skipped(recipe: Recipe, names: Sequence[str]) -> tuple[str, ...]:
    """The arrays that `train.init_skip` leaves alone.

    Raises:
        ConfigError: a pattern fits none.
    """
    found: list[str] = []
    for place, pattern in enumerate(recipe.train.init_skip):
        fitting = [n for n in names if fnmatch.fnmatchcase(n, pattern)]
        if not fitting:
            near = close_names(pattern, [*names, *_folders(names)])
            raise ConfigError(
                f"train.init_skip: `{pattern}` fits no array of the network or the file",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"there are {', '.join(names[:8])}",
                where=[recipe.where(("train", "init_skip", place))],
            )
        found += fitting
    return tuple(dict.fromkeys(found))


def _folders(names: Sequence[str]) -> list[str]:
    """`fc/*` for all arrays of a layer."""
    return list(dict.fromkeys(f"{n.rpartition('/')[0]}/*" for n in names if "/" in n))


def _refuse(recipe: Recipe, path: Path, differences: tuple[Difference, ...], fitting: int) -> None:
    head = (
        f"train.init_from: {path}: {len(differences)} arrays do not fit the network, {fitting} do"
    )
    own = [d.name for d in differences if d.network is not None] or [d.name for d in differences]
    layers = _folders(own) if len(_folders(own)) <= 3 else ["LAYER/*"]
    advice = (
        f"for a new head, -o 'train.init_skip=[{', '.join(layers)}]' loads all others; --allow-partial "
        "(train.allow_partial) takes what fits; either way the rest keeps its initial values"
    )
    raise RunError(
        "\n".join([head, *_table(differences)]),
        hint=advice if fitting else _NOTHING_FITS,
        where=[recipe.where(_KEY)],
    )


def _table(differences: Sequence[Difference]) -> Iterator[str]:
    rows = [(d.what, d.name, _shape(d.network), _shape(d.file)) for d in differences[:_SHOWN]]
    rows.insert(0, ("", "array", "network", "file"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for what, name, network, file in rows:
        yield f"  {what:{max(widths[0], 10)}}  {name:{widths[1]}}  {network:{widths[2]}}  {file}"
    if len(differences) > _SHOWN:
        yield f"  ... and {len(differences) - _SHOWN} more"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "-" if shape is None else "x".join(map(str, shape)) or "one number"


def _check_finite(path: Path, values: Mapping[str, NDArray[np.generic]]) -> None:
    import numpy as np

    for name, value in values.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise RunError(f"train.init_from: {path}: {name} holds numbers that are not finite")
