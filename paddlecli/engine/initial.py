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
from paddlecli.engine.fitting import (
    Misfit,
    beside,
    check_finite,
    compare,
    shape_text,
    shapes_of,
    table,
)
from paddlecli.errors import ConfigError, RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.graph.ir import Graph

_KEY = ("train", "init_from")
_LISTED = 12  # names in a line
_NOTHING_FITS = "not one array fits: is it the network that you mean? `paddlecli convert` takes over weights that other programs wrote"


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
    differences: tuple[Misfit, ...]
    skipped: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What run.json says of it."""
        kept = [d.name for d in self.differences if d.target is not None]
        left = [d.name for d in self.differences if d.source is not None]
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
        return recipe if not recipe.train.init_skip else _from_scratch(recipe)
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


def _from_scratch(recipe: Recipe) -> Recipe:
    """The recipe without what has a meaning with weights only."""
    train = recipe.train.model_copy(update={"init_skip": (), "allow_partial": False})
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
        RunError: they do not fit, with a table of the differences; with `train.allow_partial` only where nothing fits. Or
            nothing is left to load; or the file is damaged or holds numbers that are not finite.
    """
    if recipe.train.init_from is None:
        return None
    path = Path(recipe.train.init_from)
    if path.is_file():
        foreign.no_pickle(path)
    values, _ = modeldir.read_weights(path)
    wanted, found = shapes_of(graph), {name: value.shape for name, value in values.items()}
    skipped = _skipped(recipe, list(dict.fromkeys([*wanted, *found])))
    skips = set(skipped)
    fitting = {n: v for n, v in values.items() if wanted.get(n) == found[n] and n not in skips}
    odd = tuple(d for d in compare(wanted, found) if d.name not in skips)
    if odd and not (recipe.train.allow_partial and fitting):
        _refuse(recipe, path, odd, len(fitting))
    if not fitting:
        raise RunError(
            f"train.init_from: {path}: not one array is loaded: `init_skip` leaves out all that fit",
            hint="name fewer in train.init_skip; -o train.init_from=null trains from scratch",
            where=[recipe.where(("train", "init_skip"))],
        )
    check_finite(f"train.init_from: {path}", fitting)
    left = [beside(n, wanted, found) for n in skipped]
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


def _refuse(recipe: Recipe, path: Path, differences: tuple[Misfit, ...], fitting: int) -> None:
    head = (
        f"train.init_from: {path}: {len(differences)} arrays do not fit the network, {fitting} do"
    )
    own = [d.name for d in differences if d.target is not None] or [d.name for d in differences]
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


def _table(differences: Sequence[Misfit]) -> Iterator[str]:
    rows = [
        (d.what, d.name, shape_text(d.target_shape), shape_text(d.source_shape))
        for d in differences
    ]
    return table((" " * len("unexpected"), "array", "network", "file"), rows)
