"""Where a recipe calls something registered: the name, its arguments, and their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from paddlecli.config.blocks import LOOPS, Given, defaults, filled_node, step_of
from paddlecli.config.nodes import Node, Origin, Path
from paddlecli.config.registry import KINDS, LAYERS
from paddlecli.config.schema import CallbackCall, Data, MetricCall, Optimizer
from paddlecli.config.schema import Schedule as ScheduleSection
from paddlecli.config.schema_network import InitializerCall, LayerCall, LossCall, NamedModel
from paddlecli.config.sections import Called, Named, pick_model, pick_optimizer


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a registered name.

    path: of the mapping that holds the arguments. place, name_path: where the name stands.
    local: what the recipe defines itself (blocks). own: the section's keys that stand beside the
    arguments; where there are any, the arguments' defaults are written out. free: arguments that
    only a use of the block around tells. stray: keys beside the call that mean nothing, and where
    they stand. beside: the keys that mean something there.
    """

    kind: str
    name: str
    path: Path
    arguments: Node
    place: Origin
    name_path: Path
    local: Mapping[str, Node] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    free: frozenset[str] = frozenset()
    stray: Mapping[str, Origin] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


def calls_of(root: Node) -> Iterator[Call]:
    """All calls of a recipe, in the order of its sections."""
    model = root.child("model")
    if model is not None and pick_model(model.plain()) == "<written>":
        yield from _written(model)
    else:
        yield from _named(NamedModel, root, ("model",))
    yield from _settings(model)
    yield from _named(Data, root, ("data",))
    for path in _optimizers(root):
        yield from _named(Optimizer, root, path)
        yield from _named(ScheduleSection, root, (*path, "schedule"))
    metrics = root.child("metrics")
    for index, node in enumerate(metrics.items if metrics is not None else []):
        yield from _called(MetricCall, node, ("metrics", index))
    callbacks = root.child("callbacks")
    for index, node in enumerate(callbacks.items if callbacks is not None else []):
        yield from _called(CallbackCall, node, ("callbacks", index))


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


def _settings(model: Node | None) -> Iterator[Call]:
    """The first values that patterns give parameters."""
    patterns = model.child("parameters") if model is not None else None
    for pattern, below in (patterns.mapping if patterns is not None else {}).items():
        node = below.child("initializer")
        if node is not None:
            path = ("model", "parameters", pattern, "initializer")
            yield from _called(InitializerCall, node, path)


def _called(
    section: type[Called], node: Node, path: Path, local: Mapping[str, Node] | None = None
) -> Iterator[Call]:
    local = local or {}
    if isinstance(node.value, str):
        empty = Node({}, node.origin, node.key, node.base)
        yield Call(section.kind, node.value, path, empty, node.origin, path, local)
        return
    own = {f.alias or n for n, f in section.model_fields.items()}
    given = {k: v for k, v in node.mapping.items() if k not in own}
    names = list(given)
    if len(names) > 1:  # a misspelt key beside the call is no second call
        names = [n for n in names if n in local or KINDS[section.kind].find(n) is not None]
    if len(names) != 1:
        return
    name, arguments = names[0], given[names[0]]
    if arguments.value is None:
        arguments = Node({}, arguments.origin, arguments.key, arguments.base)
    below = (*path, name)
    place = arguments.key or arguments.origin
    stray = {k: n.key or n.origin for k, n in given.items() if k != name}
    beside = tuple(sorted(own))
    yield Call(
        section.kind, name, below, arguments, place, below, local, stray=stray, beside=beside
    )


def _written(model: Node) -> Iterator[Call]:
    blocks = model.child("blocks")
    found = blocks.mapping if blocks is not None else {}
    local = {k: v for k, v in found.items() if LAYERS.find(k) is None}  # told by argument_faults
    walk = _Walk(local)
    yield from walk.body(model, ("model",))
    for name, block in local.items():
        yield from walk.block(name, defaults(block))
    entries = model.child("entries")
    for name, below in (entries.mapping if entries is not None else {}).items():
        yield from walk.body(below, ("model", "entries", name))


class _Walk:
    """Layers in order; those of a block once for what is known without any use, and once more for
    each use that gives it something."""

    def __init__(self, local: Mapping[str, Node]) -> None:
        self.local = local
        self.seen: set[tuple[object, ...]] = set()

    def body(self, node: Node, path: Path) -> Iterator[Call]:
        """Layers and loss of the network or of an entry."""
        yield from self.layers(node.child("layers"), (*path, "layers"), {}, ())
        loss = node.child("loss")
        if loss is not None:
            yield from _called(LossCall, loss, (*path, "loss"))

    def block(self, name: str, given: Given, inside: tuple[str, ...] = ()) -> Iterator[Call]:
        """A block's layers with its arguments put in."""
        key = (name, *((k, v and (v.origin, str(v.plain()))) for k, v in sorted(given.items())))
        if name in inside or key in self.seen:
            return
        self.seen.add(key)
        path = ("model", "blocks", name, "layers")
        yield from self.layers(self.local[name].child("layers"), path, given, (*inside, name))

    def layers(
        self, node: Node | None, path: Path, given: Given, inside: tuple[str, ...]
    ) -> Iterator[Call]:
        """A list of layers; `inside` names the blocks that it stands in."""
        for index, layer in enumerate(node.items if node is not None else []):
            below = (*path, index)
            yield from self.layers(layer.child("layers"), (*below, "layers"), given, inside)
            for call in _called(LayerCall, layer, below, self.local):
                found = _filled(call, given) if inside else call
                yield found
                yield from self._within(found, inside)

    def _within(self, call: Call, inside: tuple[str, ...]) -> Iterator[Call]:
        """The block that a call uses."""
        used: tuple[str, Node] | None = (call.name, call.arguments)
        if call.name in LOOPS:
            used = step_of(call.arguments)
        if used is None or used[0] not in self.local or not isinstance(used[1].value, dict):
            return
        known = defaults(self.local[used[0]])
        told = {**known, **{k: v for k, v in used[1].mapping.items() if k in known}}
        open_names = {k: None for k in call.free if k in known}
        yield from self.block(used[0], {**told, **open_names}, inside)


def _filled(call: Call, given: Given) -> Call:
    """A call in a block with the block's arguments put in, as far as they are known."""
    if not isinstance(call.arguments.value, dict):
        return call
    found = {k: filled_node(v, given) for k, v in call.arguments.mapping.items()}
    known = {k: v for k, v in found.items() if v is not None}
    free = frozenset(found.keys() - known.keys())
    return replace(call, arguments=replace(call.arguments, value=dict(known)), free=free)
