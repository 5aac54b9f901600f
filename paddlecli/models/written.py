"""Networks written in recipes: layer lists, groups, blocks and entries, on the same layer functions
as registered networks.

A layer with a fault gives an unknown tensor; what reads one is passed over, all else is still
checked, so that one look finds every fault that can be told honestly.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

from paddlecli.config.blocks import LOOPS, filled
from paddlecli.config.plugins import place_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.config.schema_network import Block, Entry, Input, LayerCall, LossCall, WrittenModel
from paddlecli.errors import ConfigError, Fault, UserCodeError
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Origin, Tensor, Update
from paddlecli.models.frames import (
    UNKNOWN,
    Frame,
    Names,
    Path,
    TooLarge,
    Unread,
    count,
    given_by,
    located,
    look_up,
    named,
    tensors_read,
)
from paddlecli.models.network import DTYPES, Network
from paddlecli.models.recurrence import Memory, decode, scan

MOST_LAYERS = 10_000
"""Of one entry, repeated ones counted as often as they are repeated."""
Found = TypeVar("Found")


class Writer:
    """Writes the layers of one recipe into one entry's network; adds what is wrong to ``faults``."""

    def __init__(
        self, net: Network, model: WrittenModel, recipe: Recipe, faults: list[Fault]
    ) -> None:
        self.net, self.model, self.recipe, self.faults = net, model, recipe, faults
        self.count = 0

    def origin(self, path: Path) -> Origin:
        """The recipe line of a setting."""
        where = self.recipe.where(path)
        return Origin(where.file, where.line, where.column)

    def attempt(self, frame: Frame, write: Callable[[], Found]) -> Found | None:
        """What ``write`` gives; None where it meets a fault, which is kept, or what one left."""
        try:
            return write()
        except Unread:
            return None
        except (TooLarge, UserCodeError):
            raise
        except ConfigError as error:
            self.faults.extend(located(error, self.net.origin, frame.uses))
            return None

    # -- inputs ------------------------------------------------------------------------------------
    def inputs(self) -> Frame:
        """The model's inputs by name, checked against the data set's fields."""
        frame = Frame({})
        for name, declared in self.model.inputs.items():
            with self.net.at(self.origin(("model", "inputs", name))):
                found = self.attempt(frame, partial(self._input, name, declared))
                frame.names[name] = UNKNOWN if found is None else found
        return frame

    def _input(self, name: str, declared: Input) -> Tensor:
        tensor = self.net.known(name)
        if tensor is None:
            have = ", ".join(f.name for f in self.net.data.fields)
            text = f"the data set {self.net.data.name!r} has no field {name!r}; it has {have}"
            raise fault(self.net.origin, text)
        self._declared(name, declared, tensor)
        return tensor

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
            text = f"{says} below {declared.below}, the data set's field has {classes} classes"
            raise fault(self.net.origin, text)
        if dtype != DTYPES[declared.dtype]:
            text = f"{says} {declared.dtype}, the data set's field is {dtype}"
            raise fault(self.net.origin, text)

    # -- layer lists -------------------------------------------------------------------------------
    def layers(
        self, calls: Sequence[LayerCall], frame: Frame, path: Path, last: Tensor | None
    ) -> Tensor | None:
        """Writes a list of layers; returns the last one's output. Named outputs join the frame."""
        for i, call in enumerate(calls):
            with self.net.at(self.origin((*path, i))):
                last = self._repeated(call, frame, (*path, i), last)
        return last

    def _repeated(self, call: LayerCall, frame: Frame, path: Path, last: Tensor | None) -> Tensor:
        """A layer as often as it says; the one after reads the one before."""
        turns = self.attempt(frame, partial(self._turns, call, frame))
        for turn in range(turns or 0):
            label = call.name or ""
            if label and call.repeat is not None:
                label = f"{label}{turn + 1}"
            source = call.source if turn == 0 else None
            write = partial(self._layer, call, frame, path, source, label, last)
            found: Names = self.attempt(frame, write) or {"": UNKNOWN}
            last = next(iter(found.values()))
            if label:
                frame.names[label] = last
                frame.lines[label] = self.net.origin
                frame.names.update({f"{label}.{k}": t for k, t in found.items() if k})
        if last is None or not turns:
            last = UNKNOWN
        if call.name:
            frame.names[call.name] = last
            frame.lines.setdefault(call.name, self.net.origin)
        return last

    def _turns(self, call: LayerCall, frame: Frame) -> int:
        turns = filled(call.repeat, frame.given)
        if turns is not None and (type(turns) is not int or turns < 1):
            text = f"`repeat` must be a whole number, at least 1, got {turns!r}"
            raise fault(self.net.origin, text)
        if (turns or 1) > MOST_LAYERS:
            raise self._too_large()
        if call.name in frame.names:
            line = frame.lines.get(call.name or "")
            other = f"the layer at {line.file}:{line.line}" if line else "an input"
            raise fault(self.net.origin, f"{call.name!r} is the name of {other} already")
        return turns or 1

    def _layer(
        self, call: LayerCall, frame: Frame, path: Path,
        source: str | Sequence[str] | None, label: str, last: Tensor | None,
    ) -> Names:  # fmt: skip
        """One layer; its outputs, the main one first."""
        self.count += 1
        if self.count > MOST_LAYERS:
            raise self._too_large()
        args = self._sources(source, frame, last, call.call or "layers")
        if call.layers is not None:
            return {"": self._group(call, frame, path, args, label)}
        if call.call in self.model.blocks:
            return self._block_use(call, frame, args, label)
        if call.call in LOOPS:
            return self._loop(call, frame, args, label)
        if call.share is not None:
            raise fault(self.net.origin, f"`share` belongs to blocks, {call.call!r} is a layer")
        return self._registered(call, frame, args, label)

    def _too_large(self) -> TooLarge:
        text = f"the network has more than {MOST_LAYERS:,} layers"
        return TooLarge(text, faults=fault(self.net.origin, text).faults)

    def _sources(
        self, source: str | Sequence[str] | None, frame: Frame, last: Tensor | None, reader: str
    ) -> list[Tensor]:
        if source is not None:
            return named(self.net, source, frame.names, reader)
        if last is UNKNOWN:
            raise Unread
        return [] if last is None else [last]

    def _registered(self, call: LayerCall, frame: Frame, args: list[Tensor], label: str) -> Names:
        bound = LAYERS.bind(call.call, filled(call.arguments, frame.given))
        function, renamed = LAYERS.get(call.call).function, call.parameters or {}
        args = args if call.source is not None or tensors_read(function)[1] else []
        count(self.net, call.call, function, args)
        with self.net.naming(label), self.net.renaming(renamed) as asked:
            result = function(self.net, *args, **bound)
        for name in renamed:
            if name not in asked:
                have = ", ".join(asked) or "none"
                text = f"[{call.call}] has no parameter {name!r}; it has {have}"
                raise fault(self.net.origin, text)
        return given_by(self.net, call.call, function, result)

    def _group(
        self, call: LayerCall, frame: Frame, path: Path, args: list[Tensor], label: str
    ) -> Tensor:
        assert call.layers is not None
        if call.share is not None or call.parameters:
            raise fault(self.net.origin, "a group of layers has no `share` and no `parameters`")
        if len(args) > 1:
            text = f"a group of layers reads one tensor, `from` gives {len(args)}; write a block"
            raise fault(self.net.origin, text)
        inner = [c.name for c in call.layers if c.name]
        if inner and call.repeat is not None and not label:
            text = f"layer {inner[0]!r} of a repeated group would be there twice"
            raise fault(self.net.origin, f"{text}: give the group a `name`")
        first = args[0] if args else None
        with self._scope("group", label) if label else nullcontext():
            last = self.layers(call.layers, frame.below(), (*path, "layers"), first)
        if last is None or last is UNKNOWN:
            raise Unread
        return last

    @contextmanager
    def _scope(self, kind: str, label: str) -> Iterator[None]:
        with self.net.naming(label), self.net.layer(kind):
            yield

    # -- blocks ------------------------------------------------------------------------------------
    def _block_use(
        self, call: LayerCall, frame: Frame, args: Sequence[Tensor], label: str
    ) -> Names:
        block = self.model.blocks[call.call]
        if call.parameters:
            raise fault(self.net.origin, "`parameters` belongs to layers, not to blocks")
        if block.memories or block.statics:
            what = "memories" if block.memories else "statics"
            text = f"block {call.call!r} has {what}: it is a step for `scan` or `decode`"
            raise fault(self.net.origin, text)
        given = self._given(call.call, call.arguments, frame)
        shared = block.share if call.share is None else call.share
        inner = self._enter(call.call, given, args, frame)
        with self.net.shared(call.call) if shared else self._scope(call.call, label):
            found = self._block(call.call, inner, args)
        return found if block.outputs else {"": found["output"]}

    def _given(self, name: str, arguments: Mapping[str, Any], frame: Frame) -> dict[str, Any]:
        """The arguments of a use, with the block's defaults."""
        told = filled(dict(arguments), frame.given)
        given = {**self.model.blocks[name].arguments, **told}
        missing = [k for k, v in given.items() if v is None]
        if missing:
            raise fault(self.net.origin, f"block {name!r} needs {', '.join(missing)}")
        return given

    def _enter(
        self, name: str, given: Mapping[str, Any], args: Sequence[Tensor], frame: Frame
    ) -> Frame:
        """What the layers of a block see."""
        block: Block = self.model.blocks[name]
        if len(args) != len(block.inputs):
            text = (
                f"block {name!r} has the inputs {list(block.inputs)} and gets {len(args)} tensors"
            )
            raise fault(self.net.origin, text)
        taken = [*block.inputs, *block.memories, *block.statics]
        twice = [n for i, n in enumerate(taken) if n in taken[:i]]
        if twice:
            text = f"block {name!r} has two things called {twice[0]!r}"
            raise fault(self.origin(("model", "blocks", name)), text)
        inside = (*frame.inside, name)
        if name in frame.inside:
            text = f"block {name!r} is used inside itself: {', '.join(inside)}"
            raise fault(self.net.origin, text)
        names = dict(zip(block.inputs, args, strict=True))
        return Frame(names, {}, given, (self.net.origin, *frame.uses), inside)

    def _block(self, name: str, inner: Frame, args: Sequence[Tensor]) -> Names:
        """Writes a block's layers in the present scope; gives its outputs."""
        block, path = self.model.blocks[name], ("model", "blocks", name)
        last = self.layers(block.layers, inner, (*path, "layers"), args[0] if args else None)
        if not block.outputs:
            if last is None or last is UNKNOWN:
                raise Unread
            return {"output": last}
        found: dict[str, Tensor | None] = {}
        for key, source in block.outputs.items():
            with self.net.at(self.origin((*path, "outputs", key))):
                found[key] = self.attempt(inner, partial(self._named, source, inner))
        known = {k: t for k, t in found.items() if t is not None}
        if len(known) < len(found):
            raise Unread
        return known

    def _named(self, name: str, frame: Frame, reader: str = "outputs") -> Tensor:
        return look_up(self.net, name, frame.names, reader)

    # -- loops -------------------------------------------------------------------------------------
    def _loop(self, call: LayerCall, frame: Frame, args: list[Tensor], label: str) -> Names:
        options = LAYERS.bind(call.call, filled(call.arguments, frame.given))
        used = options.pop("block")
        name, told = (used, {}) if isinstance(used, str) else next(iter(used.items()))
        if name not in self.model.blocks:
            have = ", ".join(sorted(self.model.blocks)) or "none"
            text = f"[{call.call}] no block is called {name!r}; there are {have}"
            raise fault(self.net.origin, text)
        block, given = self.model.blocks[name], self._given(name, told or {}, frame)
        if call.parameters:
            raise fault(self.net.origin, "`parameters` belongs to layers, not to blocks")
        shared = block.share if call.share is None else call.share
        memories = {
            k: Memory(self._row(k, m.shape, given), DTYPES[m.dtype], self._start(m.start, frame))
            for k, m in block.memories.items()
        }
        statics = {s: look_up(self.net, s, frame.names, name) for s in block.statics}

        def step(
            xs: Sequence[Tensor], held: Mapping[str, Tensor], fixed: Mapping[str, Tensor]
        ) -> tuple[Names, Names]:
            inner = self._enter(name, given, xs, frame)
            inner.names.update({**held, **fixed})
            with self.net.shared(name) if shared else nullcontext():
                outputs = self._block(name, inner, xs)
            return outputs, self._following(name, block, inner)

        with self._scope(call.call, label):
            if call.call == "scan":
                return scan(self.net, args, step, memories, statics, **options)
            scores = next(iter(block.outputs or {"output": ""}))
            found = decode(self.net, step, memories, statics, scores=scores, **options)
            return found.named

    def _row(self, name: str, shape: Sequence[Any], given: Mapping[str, Any]) -> tuple[int, ...]:
        sizes = filled(shape, given)
        if any(type(s) is not int or s < 1 for s in sizes):
            text = f"memory {name!r} has the shape {sizes}: whole numbers, at least 1, are needed"
            raise fault(self.net.origin, text)
        return tuple(sizes)

    def _start(self, start: str | float, frame: Frame) -> Tensor | float:
        if isinstance(start, str):
            return look_up(self.net, start, frame.names, "memories")
        return start

    def _following(self, name: str, block: Block, inner: Frame) -> Names:
        """The memories' values in the step after."""
        found: Names = {}
        for key, memory in block.memories.items():
            path = ("model", "blocks", name, "memories", key, "next")
            with self.net.at(self.origin(path)):
                value = self.attempt(inner, partial(self._named, memory.next, inner, "memories"))
                if value is not None:
                    found[key] = value
        if len(found) < len(block.memories):
            raise Unread
        return found

    # -- loss, outputs, updates --------------------------------------------------------------------
    def loss(self, call: LossCall, frame: Frame, path: Path, last: Tensor | None) -> None:
        """Writes the loss of an entry."""
        with self.net.at(self.origin(path)):
            self.attempt(frame, partial(self._loss, call, frame, last))

    def _loss(self, call: LossCall, frame: Frame, last: Tensor | None) -> None:
        args = self._sources(call.source, frame, last, call.call)
        bound, function = LOSSES.bind(call.call, call.arguments), LOSSES.get(call.call).function
        count(self.net, call.call, function, args)
        self.net.loss_name = call.name or self.net.loss_name
        function(self.net, *args, **bound)
        if self.net.entry.loss is None:
            text = f"[{call.call}] gives the network no loss: it must end in `losses.finish`"
            raise fault(self.net.origin, f"{text}; it is written in {place_of(function)}")

    def outputs(
        self, outputs: Mapping[str, str], frame: Frame, path: Path, last: Tensor | None = None
    ) -> None:
        """Names what the entry gives back: ``outputs``, or else ``last``."""
        for name, source in outputs.items():
            with self.net.at(self.origin((*path, name))):
                found = self.attempt(frame, partial(self._named, source, frame))
                if found is not None:
                    self.net.output(name, found)
        if not outputs and last is not None and last is not UNKNOWN:
            self.net.output("output", last)

    def update(self, entry: Entry, path: Path) -> None:
        """Which parameters the entry's optimizer changes."""
        assert entry.update is not None
        wanted = entry.update.parameters
        patterns = [wanted] if isinstance(wanted, str) else list(wanted)
        every = self.net.graph.parameters
        known = [n for n, t in every.items() if t.info is None or t.info.trainable]
        found = [n for n in known if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
        origin = self.origin((*path, "update"))
        if not found:
            text = f"no parameter matches {', '.join(patterns)}; there are {', '.join(known)}"
            frozen = [n for n in every if n not in known]
            more = f", and frozen ones: {', '.join(frozen)}" if frozen else ""
            raise fault(origin, text + more)
        self.net.entry.updates.append(Update(entry.update.optimizer, found, origin))


def _on(ragged: object) -> str:
    return " on a ragged axis" if ragged else ""
