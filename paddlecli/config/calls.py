"""Where a recipe calls something registered: the name, its arguments, and their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paddlecli.config.nodes import Node, Origin, Path
from paddlecli.config.schema import Data, LayerCall, LossCall, MetricCall, NamedModel, Optimizer
from paddlecli.config.schema import Schedule as ScheduleSection
from paddlecli.config.sections import Called, Named, pick_model, pick_optimizer


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a registered name.

    path: of the mapping that holds the arguments. place, name_path: where the name stands.
    local: names that the recipe defines itself (blocks). own: the section's keys that stand beside
    the arguments; where there are any, the arguments' defaults are written out.
    """

    kind: str
    name: str
    path: Path
    arguments: Node
    place: Origin
    name_path: Path
    local: frozenset[str] = frozenset()
    own: tuple[str, ...] = ()


def calls_of(root: Node) -> Iterator[Call]:
    """All calls of a recipe, in the order of its sections."""
    model = root.child("model")
    if model is not None and pick_model(model.plain()) == "<written>":
        yield from _written(model)
    else:
        yield from _named(NamedModel, root, ("model",))
    yield from _named(Data, root, ("data",))
    for path in _optimizers(root):
        yield from _named(Optimizer, root, path)
        yield from _named(ScheduleSection, root, (*path, "schedule"))
    metrics = root.child("metrics")
    for index, node in enumerate(metrics.items if metrics is not None else []):
        yield from _called(MetricCall, node, ("metrics", index))


def _optimizers(root: Node) -> Iterator[Path]:
    node = root.child("optimizer")
    if node is None:
        return
    if pick_optimizer(node.plain()) == "<one>":
        yield ("optimizer",)
    else:
        yield from (("optimizer", name) for name in node.mapping)


def _named(section: type[Named], root: Node, path: Path) -> Iterator[Call]:
    node = root.at(path)
    name = node.child("name") if node is not None else None
    if node is None or name is None or not isinstance(name.value, str) or not name.value:
        return
    own = tuple(f.alias or n for n, f in section.model_fields.items())
    given = {k: v for k, v in node.mapping.items() if k not in own}
    arguments = Node(dict(given), node.origin, node.key, node.base)
    yield Call(section.kind, name.value, path, arguments, name.origin, (*path, "name"), own=own)


def _called(
    section: type[Called], node: Node, path: Path, local: frozenset[str] = frozenset()
) -> Iterator[Call]:
    if isinstance(node.value, str):
        empty = Node({}, node.origin, node.key, node.base)
        yield Call(section.kind, node.value, path, empty, node.origin, path, local)
        return
    own = {f.alias or n for n, f in section.model_fields.items()}
    given = {k: v for k, v in node.mapping.items() if k not in own}
    if len(given) != 1:
        return
    name, arguments = next(iter(given.items()))
    if arguments.value is None:
        arguments = Node({}, arguments.origin, arguments.key, arguments.base)
    below = (*path, name)
    place = arguments.key or arguments.origin
    yield Call(section.kind, name, below, arguments, place, below, local)


def _written(model: Node) -> Iterator[Call]:
    blocks = model.child("blocks")
    local = frozenset(blocks.mapping) if blocks is not None else frozenset()
    yield from _body(model, ("model",), local)
    for group in ("blocks", "entries"):
        node = model.child(group)
        for name, below in (node.mapping if node is not None else {}).items():
            yield from _body(below, ("model", group, name), local)


def _body(node: Node, path: Path, local: frozenset[str]) -> Iterator[Call]:
    layers = node.child("layers")
    for index, layer in enumerate(layers.items if layers is not None else []):
        yield from _called(LayerCall, layer, (*path, "layers", index), local)
    loss = node.child("loss")
    if loss is not None:
        yield from _called(LossCall, loss, (*path, "loss"))
