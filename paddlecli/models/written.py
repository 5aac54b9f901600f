"""Networks written in recipes: layer lists, blocks and entries, on the same layer functions as
registered networks."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.config.schema import Block, Entry, Input, LayerCall, LossCall, WrittenModel
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Origin, Tensor, Update
from paddlecli.models.network import DTYPES, Network
from paddlecli.models.recurrence import Memory, decode, scan

Names = dict[str, Tensor]
Path = tuple[str | int, ...]


class Writer:
    """Writes the layers of one recipe into one entry's network."""

    def __init__(self, net: Network, model: WrittenModel, recipe: Recipe) -> None:
        self.net, self.model, self.recipe = net, model, recipe
        self.inside: list[str] = []

    def inputs(self) -> Names:
        """The model's inputs by name, checked against the data set's fields."""
        found: Names = {}
        for name, declared in self.model.inputs.items():
            with self.net.at(self.origin(("model", "inputs", name))):
                tensor = self.net.known(name)
                if tensor is None:
                    have = ", ".join(f.name for f in self.net.data.fields)
                    raise fault(
                        self.net.origin,
                        f"the data set {self.net.data.name!r} has no field {name!r}; it has {have}",
                    )
                self._declared(name, declared, tensor)
                found[name] = tensor
        return found

    def _declared(self, name: str, declared: Input, tensor: Tensor) -> None:
        """What the recipe says of an input must be what the data set's field is."""
        row, axis, dtype = tensor.spec.shape[1:], tensor.spec.axis, tensor.spec.dtype
        known = tuple(d.coefficient for d in row)
        says = f"input {name!r} is declared"
        if known != declared.shape or bool(declared.ragged) != (axis is not None):
            wanted = f"{list(declared.shape)}{_on(declared.ragged)}"
            is_ = f"{list(known)}{_on(axis)}"
            raise fault(self.net.origin, f"{says} {wanted}, the data set's field is {is_}")
        classes = self.net.classes(tensor)
        if declared.below is not None and classes is not None and declared.below < classes:
            raise fault(
                self.net.origin,
                f"{says} below {declared.below}, the data set's field has {classes} classes",
            )
        if dtype != DTYPES[declared.dtype]:
            raise fault(
                self.net.origin, f"{says} {declared.dtype}, the data set's field is {dtype}"
            )

    def origin(self, path: Path) -> Origin:
        """The recipe line of a setting."""
        where = self.recipe.where(path)
        return Origin(where.file, where.line, where.column)

    # -- layer lists -------------------------------------------------------------------------------
    def layers(
        self, calls: Sequence[LayerCall], names: Names, path: Path, last: Tensor | None
    ) -> Tensor | None:
        """Writes a list of layers; returns the last one's output. Named outputs join ``names``."""
        for i, call in enumerate(calls):
            with self.net.at(self.origin((*path, i))):
                for k in range(call.repeat or 1):
                    last = self._layer(call, names, last, (*path, i), k)
        return last

    def _layer(
        self, call: LayerCall, names: Names, last: Tensor | None, path: Path, turn: int
    ) -> Tensor | None:
        args = self._sources(call.source if turn == 0 else None, names, last, call.call)
        name = call.name or ""
        if turn and name:
            name = f"{name}{turn + 1}"
        if call.call in self.model.blocks:
            result = self._block_use(call.call, args)
        elif call.call in ("scan", "decode"):
            result = self._loop(call, args, names, name)
        else:
            bound, function = LAYERS.bind(call.call, call.arguments), LAYERS.get(call.call).function
            _count(self.net, call.call, function, args)
            with self.net.naming(name):
                result = function(self.net, *args, **bound)
        if call.name:
            names[call.name] = result
        return result

    def _sources(self, source: Any, names: Names, last: Tensor | None, layer: str) -> list[Tensor]:
        if source is None:
            return [] if last is None else [last]
        return named(self.net, source, names, layer)

    # -- blocks ------------------------------------------------------------------------------------
    def _block_use(self, name: str, args: Sequence[Tensor]) -> Tensor:
        outputs = self._block(name, args, {}, {})
        return next(iter(outputs.values()))

    def _block(
        self,
        name: str,
        args: Sequence[Tensor],
        memories: Mapping[str, Tensor],
        statics: Mapping[str, Tensor],
    ) -> Names:
        """Writes a block's layers in the scope of its name: all uses share its parameters."""
        block: Block = self.model.blocks[name]
        if len(args) != len(block.inputs):
            raise fault(
                self.net.origin,
                f"block {name!r} has the inputs {list(block.inputs)} and gets {len(args)} tensors",
            )
        if name in self.inside:
            raise fault(
                self.net.origin,
                f"block {name!r} is used inside itself: {', '.join([*self.inside, name])}",
            )
        names: Names = {**dict(zip(block.inputs, args, strict=True)), **memories, **statics}
        self.inside.append(name)
        with self.net.shared(name):
            last = self.layers(
                block.layers, names, ("model", "blocks", name, "layers"), args[0] if args else None
            )
        self.inside.pop()
        assert last is not None
        self.block_names = names
        return {k: self._named(v, names) for k, v in block.outputs.items()} or {"output": last}

    def _named(self, name: str, names: Names) -> Tensor:
        if name not in names:
            raise fault(
                self.net.origin,
                f"no tensor is called {name!r}; there are {', '.join(sorted(names))}",
            )
        return names[name]

    def _loop(self, call: LayerCall, args: list[Tensor], names: Names, name: str) -> Tensor:
        options = LAYERS.bind(call.call, call.arguments)
        block = self.model.blocks.get(options["block"])
        if block is None:
            raise fault(
                self.net.origin,
                f"[{call.call}] no block is called {options['block']!r}; there are "
                f"{', '.join(sorted(self.model.blocks)) or 'none'}",
            )
        memories = {
            k: Memory(m.shape, DTYPES[m.dtype], self._start(m.start, names))
            for k, m in block.memories.items()
        }
        statics = {s: self._named(s, names) for s in block.statics}
        following = {k: m.next for k, m in block.memories.items()}

        def step(
            xs: Sequence[Tensor], held: Mapping[str, Tensor], fixed: Mapping[str, Tensor]
        ) -> tuple[Names, Names]:
            outputs = self._block(options["block"], xs, held, fixed)
            return outputs, {k: self._next(options["block"], k, v) for k, v in following.items()}

        with self.net.naming(name), self.net.layer(call.call):
            if call.call == "scan":
                found = scan(self.net, args, step, memories, statics, reverse=options["reverse"])
                for k, v in found.items():
                    names.setdefault(f"{name or call.call}.{k}", v)
                return next(iter(found.values()))
            scores = next(iter(block.outputs or {"output": ""}))
            ids, length = decode(
                self.net,
                step,
                memories,
                statics,
                scores=scores,
                start=options["start"],
                end=options["end"],
                max_length=options["max_length"],
            )
            names[f"{name or call.call}.length"] = length
            return ids

    def _next(self, block: str, memory: str, name: str) -> Tensor:
        with self.net.at(self.origin(("model", "blocks", block, "memories", memory, "next"))):
            return self._named(name, self.block_names)

    def _start(self, start: str | float, names: Names) -> Tensor | float:
        return self._named(start, names) if isinstance(start, str) else start

    # -- loss, outputs -----------------------------------------------------------------------------
    def loss(self, call: LossCall, names: Names, path: Path, last: Tensor | None) -> None:
        """Writes the loss of an entry."""
        with self.net.at(self.origin(path)):
            args = self._sources(call.source, names, last, call.call)
            bound, function = LOSSES.bind(call.call, call.arguments), LOSSES.get(call.call).function
            _count(self.net, call.call, function, args)
            self.net.loss_name = call.name or self.net.loss_name
            function(self.net, *args, **bound)

    def outputs(
        self, outputs: Mapping[str, str], names: Names, path: Path, last: Tensor | None = None
    ) -> None:
        """Names what the entry gives back: ``outputs``, or else ``last``."""
        for name, source in outputs.items():
            with self.net.at(self.origin((*path, name))):
                self.net.output(name, self._named(source, names))
        if not outputs and last is not None:
            self.net.output("output", last)

    def update(self, entry: Entry, path: Path) -> None:
        """Which parameters the entry's optimizer changes."""
        assert entry.update is not None
        wanted = entry.update.parameters
        patterns = [wanted] if isinstance(wanted, str) else list(wanted)
        known = [
            n for n, t in self.net.graph.parameters.items() if t.info is None or t.info.trainable
        ]
        found = [n for n in known if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
        if not found:
            text = f"no parameter matches {', '.join(patterns)}; there are {', '.join(known)}"
            raise fault(self.origin((*path, "update")), text)
        self.net.entry.updates.append(
            Update(entry.update.optimizer, found, self.origin((*path, "update")))
        )


def named(net: Network, source: str | Sequence[str], names: Names, reader: str) -> list[Tensor]:
    """Tensors by name, for a layer, a loss or a metric ``reader``."""
    wanted = [source] if isinstance(source, str) else list(source)
    for name in wanted:
        if name not in names:
            from paddlecli.config.nodes import close_names

            near = close_names(name, set(names))
            more = (
                f"; did you mean {' or '.join(near)}?"
                if near
                else f"; there are {', '.join(sorted(names))}"
            )
            raise fault(
                net.origin, f"[{reader}] reads {name!r}, but nothing before it has that name{more}"
            )
    return [names[n] for n in wanted]


def _count(net: Network, name: str, function: Callable[..., Any], args: Sequence[Tensor]) -> None:
    """A layer or loss gets as many tensors as it has parameters for them."""
    found = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return
    takes = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(args) != len(takes):
        raise fault(
            net.origin,
            f"[{name}] reads {len(takes)} tensors ({', '.join(takes)}), `from` gives {len(args)}",
        )


def _on(ragged: object) -> str:
    return " on a ragged axis" if ragged else ""
