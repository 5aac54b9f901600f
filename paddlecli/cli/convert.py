"""`paddlecli convert`: weights that another program wrote, as those of a network here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paddlecli.cli.options import Code, Json, Override, Quiet, SetFile, changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddlecli.config.import_map import ImportMap
    from paddlecli.config.plugins import CodeFile
    from paddlecli.data.columns import Dataset
    from paddlecli.engine.convert import Converted
    from paddlecli.engine.foreign import Weights
    from paddlecli.graph.ir import Graph

_WHAT = "a network's name (`paddlecli model list`), a recipe or a run"


def command(
    weights: Annotated[
        Path, typer.Argument(metavar="WEIGHTS.safetensors", help="What the other program wrote.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="MODEL|RECIPE|RUN", help=f"The network: {_WHAT}.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", metavar="FOLDER|FILE.safetensors",
            help="A model folder that `predict` takes, or the weights alone.",
        ),
    ],
    rules: Annotated[
        str | None,
        typer.Option(
            "--map", metavar="FILE", help="How arrays are renamed; found by the network's name if left out."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="Names of the classes, one a line, in order."),
    ] = None,
    override: Override = None,
    set_file: SetFile = None,
    code: Code = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Rename and reshape another program's weights for a network of the same architecture.

    Every array of the file is used exactly once, and every one of the network is filled, or all that does not fit is listed.
    """
    from paddlecli.cli.output import print_json, tell
    from paddlecli.config.plugins import load_code
    from paddlecli.engine import convert, fitting, foreign

    loaded = load_code(code or ())
    read = foreign.read(weights)
    fitting.check_finite(read.path, read.arrays)
    name, chosen = _map(rules, to)
    overrides = changes(set_file, override)
    found, graph, data = _found(read, chosen, to, overrides, labels, loaded, _is_folder(output))
    place = convert.write(output, found, read, graph, data)
    report = convert.report(read, found, name, to, place)
    if as_json:
        print_json(report)
        return
    typer.echo(str(output))
    if not quiet:
        for line in convert.remarks(report):
            tell(line)


def _is_folder(output: Path) -> bool:
    from paddlecli.engine.convert import SUFFIX

    return output.suffix != SUFFIX


def _map(given: str | None, to: str) -> tuple[str, ImportMap]:
    """The map and how it is called."""
    from paddlecli.config import import_map
    from paddlecli.errors import UsageError

    if given is not None:
        return given, import_map.load(given)
    found = import_map.for_network(_network(to))
    if found is None:
        raise UsageError(
            f"no map ships for `{to}`",
            hint="write one and give it with --map; docs/pretrained.md tells how",
        )
    return found


def _network(to: str) -> str:
    """The name of the network that is meant; that of the recipe where it has none."""
    from paddlecli.cli import sources
    from paddlecli.config.registry import MODELS
    from paddlecli.config.schema_network import NamedModel

    if to in MODELS.names():
        return to
    model = sources.load(to).model
    return model.name if isinstance(model, NamedModel) else to


def _found(
    weights: Weights, rules: ImportMap, to: str, overrides: list[str], labels: Path | None,
    code: Sequence[CodeFile], folder: bool,
) -> tuple[Converted, Graph, Dataset | None]:  # fmt: skip
    """The arrays, the network, and the data set that says how its inputs are read."""
    from paddlecli.cli import sources
    from paddlecli.config.registry import MODELS
    from paddlecli.engine import convert, elsewhere, modeldir
    from paddlecli.engine.fitting import shapes_of
    from paddlecli.engine.prepare import data_of, fields_of
    from paddlecli.errors import UsageError
    from paddlecli.models.build import build

    if to in MODELS.names():
        return elsewhere.for_name(weights, rules, to, overrides, labels)
    if labels is not None:
        raise UsageError("--labels goes with a network's name", hint="the recipe's data have names")
    recipe = sources.load(to, overrides, code)
    data, run = data_of(recipe) if folder else None, sources.run_of(to)
    if run is not None and (run.model / modeldir.GRAPH).is_file():
        graph = modeldir.read_graph(run.model)
    else:
        graph = build(recipe, fields_of(recipe) if data is None else data.spec)
    return convert.convert(weights, rules, shapes_of(graph)), graph, data
