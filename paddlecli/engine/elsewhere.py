"""A registered network of pictures that was trained elsewhere, without the data of that training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.config.import_map import ImportMap
from paddlecli.engine.convert import Converted, convert, match, other_classes
from paddlecli.engine.fitting import shapes_of
from paddlecli.engine.foreign import Weights
from paddlecli.errors import UsageError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset
    from paddlecli.graph.ir import Graph

_ANY = 2
"""Classes of the network that is laid beside the file first; how many it should have shows in what does
not fit."""


def network(name: str, data: Dataset, overrides: Sequence[str] = ()) -> Graph:
    """A registered network over the fields of a data set; `overrides` are those of recipes.

    Raises:
        ConfigError: the network does not take such data, or an override is wrong.
    """
    from paddlecli.config.compose import Preset
    from paddlecli.config.load import load_recipe
    from paddlecli.config.shipped import BASE
    from paddlecli.models.build import build

    alone = [Preset(o) for o in ("~data", "~model", f"model.name={name}", f"name={name}")]
    return build(load_recipe(BASE, [*alone, *overrides]), data.spec)


def for_name(
    weights: Weights, rules: ImportMap, name: str, overrides: Sequence[str], labels: Path | None
) -> tuple[Converted, Graph, Dataset]:
    """The arrays of a file for a registered network of pictures, with as many classes as the file has, that network, and what
    stands for its data.

    Args:
        labels: a file with the names of the classes, one a line.

    Raises:
        RunError: the weights do not fit.
        UsageError: the map says nothing of pictures, or there are too few or many names.
    """
    if not rules.transforms:
        raise UsageError(
            f"--to {name}: the map has no `transforms`, so the inputs of the network are not known",
            hint="give a recipe instead: --to RECIPE",
        )
    names = _numbers(_ANY) if labels is None else _lines(labels)
    data = pictures(rules.transforms, names)
    graph = network(name, data, overrides)
    width = _classes(graph)
    _, misfits = match(weights, rules, shapes_of(graph))
    classes = other_classes(misfits, width) or width
    if labels is not None and classes != len(names):
        raise UsageError(f"{labels}: {len(names)} names, the weights are for {classes} classes")
    if classes != len(names):
        data = pictures(rules.transforms, _numbers(classes))
        graph = network(name, data, overrides)
    return convert(weights, rules, shapes_of(graph)), graph, data


def _numbers(count: int) -> list[str]:
    return [str(i) for i in range(count)]


def _classes(graph: Graph) -> int:
    """Of the network's first output, whose last dimension they are."""
    outputs = graph.entries[graph.roles["predict"]].outputs
    return next(iter(outputs.values())).spec.shape[-1].coefficient


def _lines(path: Path) -> list[str]:
    try:
        found = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise UsageError(f"--labels {path}: {reason}") from None
    if not all(found) or len(set(found)) != len(found) or not found:
        raise UsageError(f"--labels {path}: an empty line, or a name twice")
    return found


def pictures(transforms: Sequence[Any], names: Sequence[str]) -> Dataset:
    """A data set without rows, for a network of pictures that was trained elsewhere.

    Args:
        transforms: what becomes of a picture once it is decoded.
        names: names of the classes in the order of their numbers.
    """
    import tempfile

    import numpy as np

    from paddlecli.data.columns import Dataset
    from paddlecli.data.formats.images import png
    from paddlecli.data.own.frame import Frame, Values, frame_of
    from paddlecli.data.own.reader import Common
    from paddlecli.data.readers.image_folder import ImageFolderReader

    class Blank(ImageFolderReader):
        """One black picture that stands in for those of the training."""

        def read(self, path: Path) -> Frame:
            columns = {"image": Values("cells", [str(path)]), "label": Values("cells", [names[0]])}
            return frame_of(columns, str(path))

    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "blank.png"
        picture.write_bytes(png(np.zeros((3, 8, 8), np.uint8)))
        steps = ({"decode": {"channels": 3}}, *transforms)
        made = Blank(Common(picture), steps, tuple(names)).open({})
    spec = replace(made.spec, name="pictures", sizes={})
    return Dataset(spec, {}, made.statistics, made.vocabularies, made.entities)
