"""Recompute: values of the forward pass that are not kept for the gradients but computed a second time
in front of the node that reads them. Less memory for more work; after Chen et al. 2016, "Training deep
nets with sublinear memory cost".

The forward pass is cut into segments. What one segment gives another is kept, what it has inside is
freed and computed again from there; the last segment is kept whole, since its gradients come at once.
The pass runs on the nodes that will run, behind fusion and layout, so a second time is the same kernel
on the same bytes: random numbers are counted by layer path, what updates a state never runs twice.
Hence equal bits.
"""

from __future__ import annotations

import fnmatch
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paddlecli import ops
from paddlecli.compiler.memory import BATCH, MemoryPlan, nominal_bytes, nominal_peak, plan_memory
from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, storage_of

Recompute = str | Sequence[str]
"""``none``, ``auto``, or patterns of layer paths."""
SMALL = 16384
"""Bytes at the nominal sizes up to which a value is kept: statistics of a channel, losses."""
BUDGETS = 16
"""How many sizes of a segment `auto` tries, from half of all values down."""
STEP = 1.4
"""How much smaller each of them is than the one before."""
PLACES = 40
"""How many single places it then cuts, or leaves whole, to see whether that is better."""
NEAR = 1.01
"""More work is done for less memory only where it is less by this factor."""


@dataclass(frozen=True)
class Recomputed:
    """What became of an entry's forward values, small ones left out.

    Attributes:
        kept: those that stay until the gradients, or a second run, read them.
        again: those that gradients read and that are computed again.
        items: what runs a second time.
        segments: of how many segments.
        idle: patterns that save nothing: no gradient reads what their layers have inside.
    """

    kept: tuple[Tensor, ...] = ()
    again: tuple[Tensor, ...] = ()
    items: tuple[Item, ...] = ()
    segments: int = 0
    idle: tuple[str, ...] = ()


def recompute(
    entry: Entry,
    how: Recompute,
    batch: int = BATCH,
    planned: Callable[[Entry], MemoryPlan] = plan_memory,
) -> tuple[Entry, Recomputed]:
    """The entry with values computed again.

    Args:
        entry: with gradients; others stay as they are.
        how: ``auto`` takes the cuts whose plan needs least memory; with patterns each scope that
            one matches is a segment, the outermost that does, and so are layers that follow each
            other; all else is kept.
        batch: samples of a batch, for which plans are compared.
        planned: the memory plan that an entry will get.
    """
    forward = _Forward.of(entry, batch)
    if not entry.gradients or not forward.units:
        return entry, Recomputed()
    if how != "auto":
        done, report = _rewritten(entry, forward, _named(forward, how))
        return done, replace(report, idle=_idle(forward, how, report))
    search = _Search(entry, forward, planned)
    for cuts in _schedules(forward):
        search.look(cuts)
    for place in (*_narrow(forward), *search.cuts):
        search.look(tuple(sorted({*search.cuts} ^ {place})))
    return search.found


def notes(how: Recompute, found: Sequence[Recomputed]) -> list[str]:
    """What to say of training steps in which nothing, or a pattern, saves memory."""
    if not found:
        return []
    if how == "auto" and not any(r.again for r in found):
        return ["train.recompute: auto finds nothing whose second computation would save memory"]
    idle = [p for p in found[0].idle if all(p in r.idle for r in found)]
    why = "no gradient reads what its layers have inside, as where they are frozen"
    return [f"train.recompute: `{p}` saves nothing: {why}" for p in idle]


class _Search:
    """The best cuts so far, and the entry that they give."""

    def __init__(
        self, entry: Entry, forward: _Forward, planned: Callable[[Entry], MemoryPlan]
    ) -> None:
        self.entry, self.forward, self.planned = entry, forward, planned
        self.cuts: Cuts = ()
        self.found = entry, Recomputed()
        self.size, self.work = self._peak(entry), 0
        self.seen: set[Cuts] = {()}

    def look(self, cuts: Cuts) -> None:
        """Takes these cuts if their plan needs less memory, or hardly more and less work."""
        if cuts in self.seen:
            return
        self.seen.add(cuts)
        at = {id(u): bisect_right(cuts, u.at) for u in self.forward.units}
        segments = {u: s for u, s in at.items() if s < len(cuts)}
        entry, report = found = _rewritten(self.entry, self.forward, segments)
        size, work = self._peak(entry), sum(map(self.forward.bytes, report.again))
        if size < self.size / NEAR or (size <= self.size and work < self.work):
            self.cuts, self.found, self.size, self.work = cuts, found, size, work

    def _peak(self, entry: Entry) -> int:
        return nominal_peak(self.planned(entry), self.forward.batch)


# -- the forward pass ------------------------------------------------------------------------------
@dataclass(eq=False)
class _Unit:
    """Items that run a second time together: one, or all that add to a tensor; and their places."""

    items: list[Item]
    places: list[int]

    @property
    def at(self) -> int:
        """The place of the last one."""
        return self.places[-1]

    @property
    def reads(self) -> list[Tensor]:
        """What comes from elsewhere."""
        own = {id(s) for s in self.writes}
        return [s for i in self.items for s in _storages(i.inputs) if id(s) not in own]

    @property
    def writes(self) -> list[Tensor]:
        """The tensors whose bytes are written."""
        return list({id(s): s for i in self.items for s in _storages(i.outputs)}.values())

    @property
    def repeatable(self) -> bool:
        """Whether a second time gives the same and changes nothing."""
        nodes = [n for i in self.items for n in _nodes(i)]
        plain = all(n.guard is None and not n.kernel.updates for n in nodes)
        scans = all(isinstance(i, Node) or i.kind == "scan" for i in self.items)
        return plain and scans and all(s.role == "value" for s in self.writes)

    @property
    def scopes(self) -> list[str]:
        """The layers that they belong to, and the scopes around those."""
        origins = [o for i in self.items for o in (i.origin, *(n.origin for n in _nodes(i)))]
        return [s for o in origins for s in o.scopes]


def _nodes(item: Item) -> list[Node]:
    return item.body if isinstance(item, Loop) else [item]


def _storages(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    return (s for t in tensors for s in storage_of(t))


@dataclass(eq=False)
class _Forward:
    """The items up to the loss, who makes a value and who reads it.

    Attributes:
        border: the place of the first item behind the loss.
        makers: id of a value that may be computed again -> its unit. A gradient that a loss' kernel makes
            with the loss, and that items behind add to, would lose what they added.
        readers: id of a value -> places of the items up to the loss that read it to make another.
        wanted: values that items behind the loss read, in order.
    """

    border: int = 0
    batch: int = BATCH
    units: list[_Unit] = field(default_factory=list)
    makers: dict[int, _Unit] = field(default_factory=dict)
    readers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    wanted: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, entry: Entry, batch: int) -> _Forward:
        losses = set() if entry.loss is None else {id(s) for s in storage_of(entry.loss)}
        last = [i for i, item in enumerate(entry.items) if losses & _written(item)]
        made = cls(last[-1] + 1 if last else 0, batch)
        roots = {id(s) for s in _storages(entry.roots)}
        made.units = [u for u in _units(entry.items[: made.border]) if u.repeatable]
        fixed = roots.union(*map(_written, entry.items[made.border :]))
        for unit in made.units:
            big = [s for s in unit.writes if made.bytes(s) > SMALL and id(s) not in fixed]
            made.makers |= {id(s): unit for s in big}
        for at, item in enumerate(entry.items[: made.border]):
            if not any(n.kernel.updates for n in _nodes(item)):
                for s in _storages(item.inputs):
                    made.readers[id(s)].append(at)
        behind = (s for i in entry.items[made.border :] for s in _storages(i.inputs))
        made.wanted = list({id(s): s for s in behind if id(s) in made.makers}.values())
        return made

    def bytes(self, t: Tensor) -> int:
        """A tensor's size at the nominal batch."""
        return nominal_bytes(t.spec, self.batch)


def _written(item: Item) -> set[int]:
    return {id(s) for s in _storages(item.outputs)}


def _units(items: Sequence[Item]) -> list[_Unit]:
    """The items, those that write the same tensor together, by the place of the last."""
    unit_of: dict[int, _Unit] = {}
    found: dict[int, _Unit] = {}
    for at, item in enumerate(items):
        written = _written(item)
        joined = list({id(u): u for w in written if (u := unit_of.get(w)) is not None}.values())
        earlier = sorted(p for u in joined for p in u.places)
        unit = _Unit([*(items[p] for p in earlier), item], [*earlier, at])
        for old in joined:
            del found[id(old)]
        found[id(unit)] = unit
        unit_of |= {id(s): unit for s in unit.writes}
    return list(found.values())


# -- segments --------------------------------------------------------------------------------------
Segments = Mapping[int, object]
"""Id of a unit -> the segment that it is computed again with; a unit that is missing is kept."""
Cuts = tuple[int, ...]
"""Places of the items that segments begin with, the first one left out."""


def _named(forward: _Forward, patterns: Sequence[str]) -> Segments:
    """Each scope that a pattern matches is a segment, and so are layers that match and follow each
    other."""
    around = {s.rpartition("/")[0] for u in forward.units for s in u.scopes}
    found: dict[int, object] = {}
    last, number = "", 0
    for unit in forward.units:
        hits = (s for s in unit.scopes if any(fnmatch.fnmatchcase(s, p) for p in patterns))
        scope = next(hits, "")
        own = scope if scope in around or not scope else "a layer"
        number += own != last
        last = own
        if scope:
            found[id(unit)] = number
    return found


def _idle(forward: _Forward, patterns: Sequence[str], report: Recomputed) -> tuple[str, ...]:
    """The patterns whose layers compute nothing a second time."""
    units = {id(u): u for u in (forward.makers[id(t)] for t in report.again)}.values()
    scopes = {s for u in units for s in u.scopes}
    return tuple(p for p in dict.fromkeys(patterns) if not fnmatch.filter(scopes, p))


def _schedules(forward: _Forward) -> Iterator[Cuts]:
    """Cuts into segments of so many bytes, for ever smaller ones."""
    gains = [0] * forward.border
    for value in forward.wanted:
        gains[forward.makers[id(value)].at] += forward.bytes(value)
    crossing, budget = _crossing(forward), float(sum(gains))
    for _ in range(BUDGETS):
        budget /= STEP
        yield _cuts(gains, crossing, budget)


def _narrow(forward: _Forward) -> list[int]:
    """Places where less crosses than beside them, the narrowest if there are many."""
    size = _crossing(forward)
    places = range(1, forward.border)
    found = [p for p in places if size[p] <= min(size[p - 1], size[p + 1]) and size[p]]
    return sorted(sorted(found, key=lambda p: size[p])[:PLACES])


def _crossing(forward: _Forward) -> list[int]:
    """Bytes of the values that items before a place make for items at it or behind it."""
    change = [0] * (forward.border + 1)
    for key, unit in forward.makers.items():
        readers = forward.readers.get(key, [])
        if readers and max(readers) > unit.at:
            size = next(forward.bytes(s) for s in unit.writes if id(s) == key)
            change[unit.at + 1] += size
            change[max(readers) + 1] -= size
    total, found = 0, []
    for step in change:
        total += step
        found.append(total)
    return found


def _cuts(gains: Sequence[int], crossing: Sequence[int], budget: float) -> Cuts:
    """Places to cut at: where least crosses, between half a budget and a whole one."""
    cuts: list[int] = []
    inside, best, behind = 0.0, 0, 0.0
    for at, gain in enumerate(gains):
        if inside >= budget / 2 and (not best or crossing[at] <= crossing[best]):
            best, behind = at, 0.0
        inside += gain
        behind += gain
        if inside > budget and best:
            cuts.append(best)
            inside, best = behind, 0
    return tuple(cuts)


# -- the nodes -------------------------------------------------------------------------------------
def _rewritten(entry: Entry, forward: _Forward, segments: Segments) -> tuple[Entry, Recomputed]:
    """The entry with the second runs in place, and what they are."""
    kept = _kept(forward, segments)
    again = _Again(forward, kept)
    items: list[Item] = list(entry.items[: forward.border])
    second: list[Item] = []
    for item in entry.items[forward.border :]:
        found = list(again.ahead_of(item))
        second += found
        items += [*found, again.on_new(item)]
    behind = _storages([t for i in items[forward.border :] for t in i.inputs])
    report = Recomputed(
        tuple({id(s): s for s in behind if id(s) in forward.makers}.values()),
        tuple(t for t in forward.wanted if id(t) not in kept),
        tuple(second),
        len({segments[u] for u in again.done}),
    )
    return Entry(**{**vars(entry), "items": items}), report


def _kept(forward: _Forward, segments: Segments) -> set[int]:
    """Values of no segment, and those that a segment makes for what is outside of it."""
    at = {p: segments.get(id(u)) for u in forward.units for p in u.places}
    found = set()
    for key, unit in forward.makers.items():
        own = segments.get(id(unit))
        if own is None or any(at.get(p) != own for p in forward.readers.get(key, [])):
            found.add(key)
    return found


class _Again:
    """Writes items a second time, on tensors of their own."""

    def __init__(self, forward: _Forward, kept: set[int]) -> None:
        self.makers = {k: u for k, u in forward.makers.items() if k not in kept}
        self.new: dict[int, Tensor] = {}
        self.done: set[int] = set()

    def ahead_of(self, item: Item) -> Iterator[Item]:
        """What an item needs that has not been computed again yet, in the forward pass' order."""
        needed: dict[int, _Unit] = {}
        waiting = list(_storages(item.inputs))
        while waiting:
            unit = self.makers.get(id(waiting.pop()))
            if unit is not None and id(unit) not in needed and id(unit) not in self.done:
                needed[id(unit)] = unit
                waiting += unit.reads
        for unit in sorted(needed.values(), key=lambda u: u.at):
            self.done.add(id(unit))
            items = [self._once_more(i) for i in unit.items]
            written = {id(s): s for i in items for s in _storages(i.outputs)}
            own = {k: replace(s, name=f"again.{s.name}") for k, s in written.items()}
            yield from (_mapped(i, {**self.new, **own}) for i in items)
            self.new |= {k: t for k, t in own.items() if k in self.makers}

    def _once_more(self, item: Item) -> Item:
        """With the op's kernel for a second run, where what that reads of the first one's results is still
        there."""
        kernel = None if isinstance(item, Loop) else ops.get(item.kernel.op).again
        if kernel is None or isinstance(item, Loop) or item.kernel.name != "forward":
            return item
        known = {**item.results, **item.args}
        args = {p.name: known.get(p.name) for p in kernel.inputs}
        found = [item.results[p] for p, t in args.items() if t is item.results.get(p) is not None]
        if item.accumulate or any(id(t) in self.makers for t in found):
            return item
        results = {p.name: item.results[p.name] for p in kernel.outputs}
        return replace(item, kernel=kernel, args=args, results=results)

    def on_new(self, item: Item) -> Item:
        """The item on the values as they were computed last."""
        touched = any(id(s) in self.new for s in _storages(item.inputs))
        return _mapped(item, self.new) if touched else item


def _mapped(item: Item, new: Mapping[int, Tensor]) -> Item:
    """The item on other tensors; views look at these."""
    views: dict[int, Tensor] = {}

    def of(t: Tensor) -> Tensor:
        if not t.is_view:
            return new.get(id(t), t)
        if id(t) not in views:
            base, init = (None if s is None else new.get(id(s), s) for s in (t.base, t.init))
            views[id(t)] = replace(t, base=base, init=init)
        return views[id(t)]

    if isinstance(item, Node):
        return item.map(of)
    flag = None if item.flag is None else of(item.flag)
    return replace(item, body=[n.map(of) for n in item.body], flag=flag)
