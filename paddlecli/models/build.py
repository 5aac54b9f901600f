"""A recipe as a graph: ``build(recipe, data) -> Graph`` with forward entries, ready for the
compiler."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import contextmanager

from paddlecli.config.nodes import close_names
from paddlecli.config.plugins import place_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import METRICS, MODELS
from paddlecli.config.schema import MetricCall
from paddlecli.config.schema_network import Entry as EntrySection
from paddlecli.config.schema_network import NamedModel, WrittenModel
from paddlecli.errors import ConfigError, Fault
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Entry, Graph, Loop, Origin, ParameterInfo, Tensor, Update, flat
from paddlecli.graph.prune import prune
from paddlecli.models import outside, settings, targets
from paddlecli.models.frames import Frame, Names, Unread, count, located, named, tensors_read
from paddlecli.models.network import Fields, Network
from paddlecli.models.written import Writer

_LISTED = 8  # names in a line

TRAIN, EVALUATE, PREDICT = "train_step", "eval_step", "predict"
"""Names of the entries of an ordinary network. Only this file gives them; others read
``graph.roles``."""
DEFAULT_OPTIMIZER = "default"
"""Name of a recipe's only optimizer."""


def build(recipe: Recipe, data: Fields) -> Graph:
    """The forward graph of a recipe over the fields of a data set.

    Raises:
        ConfigError: layers do not fit each other or the data; names the layer, both shapes, the
            line. All faults that can be found at once.
    """
    graph = Graph(labels=tuple(f.name for f in data.fields if f.role == "label"))
    model = recipe.model
    found: list[Fault] = []
    try:
        if isinstance(model, WrittenModel) and model.entries:
            _entries(graph, model, recipe, data, found)
        else:
            _ordinary(graph, model, recipe, data, found)
    except ConfigError as error:
        raise _told(recipe, [*found, *error.faults], error) from None
    found += [] if found else _unmatched(graph, recipe)
    if found:
        raise _told(recipe, found)
    return graph


@contextmanager
def telling(recipe: Recipe) -> Iterator[None]:
    """Faults of a network that are found inside, when it is compiled, show the recipe's lines."""
    try:
        yield
    except ConfigError as error:
        raise _told(recipe, list(error.faults), error) from None


def _told(recipe: Recipe, faults: list[Fault], error: ConfigError | None = None) -> ConfigError:
    """The faults with the recipe's lines; what a block's uses and entries have in common once."""
    quoted = list(dict.fromkeys(f if f.where.text else recipe.quoted(f) for f in faults))
    if not quoted and error is not None:
        return error
    if len(quoted) > 1:
        return ConfigError.of(quoted, recipe.source)
    return ConfigError(quoted[0].message, error.hint if error else None, faults=quoted)


def _ordinary(
    graph: Graph,
    model: NamedModel | WrittenModel,
    recipe: Recipe,
    data: Fields,
    found: list[Fault],
) -> None:
    trained = recipe.optimizer is not None
    asks = _asks(recipe)
    phases = {_phase(epoch): epoch for epoch in settings.epochs(recipe)} if trained else {}
    for name in (*phases, EVALUATE):
        asks[0].epoch = phases.get(name, 1)
        net = Network(graph, name, name in phases, data, *asks)
        tensors = _write(net, model, recipe, found)
        if net.entry.loss is not None or found:
            _metrics(net, recipe, tensors, found)
    found += [] if found else _settle(graph, recipe, *asks)
    if found:
        return
    evaluate = graph.entries[EVALUATE]
    graph.entries[PREDICT] = _predict(evaluate)
    if any(isinstance(i, Loop) and i.kind == "decode" for i in evaluate.items):
        evaluate.outputs = outside.read(evaluate)  # no search that nobody looks at
    graph.roles = {"train": [TRAIN] if trained else [], "predict": PREDICT}
    if evaluate.loss is None:
        del graph.entries[EVALUATE]
    else:
        graph.roles["evaluate"] = EVALUATE
    for name, epoch in phases.items():
        _train(graph, recipe, name, epoch)
    if len(phases) > 1:
        graph.roles["phases"] = [[epoch, name] for name, epoch in phases.items()]
        if recipe.train.accumulate > 1:
            text = "train.accumulate works with one training step, `trainable_from` makes several"
            raise fault(_origin(recipe, "train", "accumulate"), text)


def _phase(epoch: int) -> str:
    """Name of the training step from an epoch on."""
    return TRAIN if epoch == 1 else f"{TRAIN}.from_{epoch}"


def _asks(recipe: Recipe) -> tuple[settings.Frozen, targets.Targets]:
    """What the recipe asks of layers and losses while they are written."""
    train = recipe.train
    where = _origin(recipe, "train", "class_weights")
    asked = targets.Targets(train.label_smoothing, train.class_weights, where)
    return settings.Frozen(recipe.model.parameters), asked


def _settle(
    graph: Graph, recipe: Recipe, frozen: settings.Frozen, asked: targets.Targets
) -> list[Fault]:
    """Changes the parameters as the recipe says; faults where it asks for what no layer could do."""
    found = settings.apply(graph, recipe, frozen.norms)
    if asked.wanted and not asked.used and any(e.training for e in graph.entries.values()):
        key = "class_weights" if asked.weights is not None else "label_smoothing"
        text = f"train.{key}: no loss of this network takes classes"
        found += fault(_origin(recipe, "train", key), text, targets.LOSSES).faults
    return found


def _unmatched(graph: Graph, recipe: Recipe) -> Iterator[Fault]:
    """A fault for each pattern of ``train.recompute`` that matches no layer of a training step."""
    patterns = () if isinstance(recipe.train.recompute, str) else recipe.train.recompute
    nodes = [n for e in graph.entries.values() if e.updates for n in flat(e.items)]
    scopes = dict.fromkeys(s for n in nodes for s in n.origin.scopes)
    for pattern in patterns:
        if not fnmatch.filter(scopes, pattern):
            where = _origin(recipe, "train", "recompute")
            text = f"train.recompute: no layer of the training step matches `{pattern}`"
            listed = ", ".join(list(scopes)[:_LISTED]) + (", ..." if len(scopes) > _LISTED else "")
            near = close_names(pattern, list(scopes))
            yield from fault(where, text, f"a pattern of {listed}", near).faults


def _train(graph: Graph, recipe: Recipe, name: str, epoch: int) -> None:
    """The training step from an epoch on updates every parameter that is not frozen then."""
    entry = graph.entries[name]
    if entry.loss is None:
        raise fault(
            _origin(recipe, "model"),
            "the network has no loss, so it cannot be trained: write `loss:` under `model:`",
        )
    info = {n: t.info or ParameterInfo({}) for n, t in graph.parameters.items()}
    names = [n for n, i in info.items() if i.trainable and i.since <= epoch]
    if not names:
        when = f" in epoch {epoch}" if any(i.trainable for i in info.values()) else ""
        text = f"every parameter is frozen{when}, there is nothing to train"
        raise fault(_origin(recipe, "model", "parameters"), text)
    entry.updates.append(Update(_only(recipe), names, _origin(recipe, "optimizer")))
    entry.outputs.clear()


def _origin(recipe: Recipe, *path: str | int) -> Origin:
    """The recipe line of a setting."""
    where = recipe.where(path)
    return Origin(where.file, where.line, where.column)


def _only(recipe: Recipe) -> str:
    """Name of the one optimizer; a recipe's single one is called ``default``."""
    found = [name or DEFAULT_OPTIMIZER for name in recipe.optimizers()]
    if len(found) != 1:
        text = f"there are {len(found)} optimizers ({', '.join(found)})"
        why = "but the network has no entries that say which to use"
        raise fault(_origin(recipe, "optimizer"), f"{text}, {why}")
    return found[0]


def _predict(evaluate: Entry, name: str = PREDICT) -> Entry:
    """The evaluation's network without what needs labels: pruning leaves only what the outputs
    need."""
    items = [i for i in evaluate.items if not any(t.role == "metric" for t in i.outputs)]
    return prune(Entry(name, False, items, outputs=outside.outputs(evaluate)))


def _write(
    net: Network, model: NamedModel | WrittenModel, recipe: Recipe, found: list[Fault]
) -> Frame:
    """Writes the network; returns the tensors that a metric may name."""
    if isinstance(model, NamedModel):
        with net.at(_origin(recipe, "model", "name")):
            MODELS.get(model.name).function(net, **MODELS.bind(model.name, model.arguments))
        return Frame({**net.used, **net.aside, **net.entry.outputs})
    writer = Writer(net, model, recipe, found)
    frame = writer.inputs()
    last = writer.layers(model.layers, frame, ("model", "layers"), _first(frame))
    if model.loss is not None:
        writer.loss(model.loss, frame, ("model", "loss"), last)
    writer.outputs(model.outputs, frame, ("model", "outputs"), last)
    return frame


def _first(frame: Frame) -> Tensor | None:
    """What the first layer reads: the first input."""
    return next(iter(frame.names.values()), None)


def _entries(
    graph: Graph, model: WrittenModel, recipe: Recipe, data: Fields, found: list[Fault]
) -> None:
    """Every entry of the recipe is one entry of the plan."""
    for key, given in (("loss", model.loss), ("outputs", model.outputs)):
        if given:
            text = f"this network has entries: put `{key}` into those that it belongs to"
            found.extend(fault(_origin(recipe, "model", key), text).faults)
    writers = {}
    asks = _asks(recipe)
    if len(settings.epochs(recipe)) > 1:
        text = "`trainable_from` does not go with entries: `train.loop` says what they run"
        found.extend(fault(_origin(recipe, "model", "parameters"), text).faults)
    for name, entry in model.entries.items():
        net = Network(graph, name, entry.update is not None, data, *asks)
        writers[name] = _entry(net, name, model, recipe, found)
    if recipe.metrics and not any(_evaluates(e) for e in model.entries.values()):
        text = "metrics need an entry that evaluates: one with a loss and without an update"
        found.extend(fault(_origin(recipe, "metrics"), text).faults)
    found += [] if found else _settle(graph, recipe, *asks)
    if found:
        return
    for name, entry in model.entries.items():
        if entry.update is not None:
            writers[name].update(entry, ("model", "entries", name))
    updating = [n for n, e in model.entries.items() if e.update is not None]
    graph.roles = {"train": list(recipe.train.loop) or updating}
    evaluating = [n for n, e in model.entries.items() if _evaluates(e)]
    if evaluating:
        graph.roles["evaluate"] = evaluating[0]
    _predictor(graph, model, recipe, data)


def _entry(
    net: Network, name: str, model: WrittenModel, recipe: Recipe, found: list[Fault]
) -> Writer:
    """Writes an entry of the recipe."""
    entry = model.entries[name]
    writer = Writer(net, model, recipe, found)
    frame = writer.inputs()
    last = writer.layers(model.layers, frame, ("model", "layers"), _first(frame))
    last = writer.layers(entry.layers, frame, ("model", "entries", name, "layers"), last)
    if entry.loss is not None:
        writer.loss(entry.loss, frame, ("model", "entries", name, "loss"), last)
    writer.outputs(entry.outputs, frame, ("model", "entries", name, "outputs"))
    if _evaluates(entry):
        _metrics(net, recipe, frame, found)
    return writer


def _evaluates(entry: EntrySection) -> bool:
    return entry.update is None and entry.loss is not None


def _predictor(graph: Graph, model: WrittenModel, recipe: Recipe, data: Fields) -> None:
    """The first entry with outputs predicts, one without an update before those that train; of
    these the form that layers take outside of training, without what only the loss needs."""
    giving = [n for n, e in model.entries.items() if e.outputs]
    if not giving:
        return
    chosen = next((n for n in giving if model.entries[n].update is None), giving[0])
    entry = model.entries[chosen]
    if entry.update is None and entry.loss is None:
        graph.roles["predict"] = chosen
        return
    name = PREDICT if PREDICT not in model.entries else f"{chosen}.{PREDICT}"
    if entry.update is not None:
        _entry(Network(graph, name, False, data), chosen, model, recipe, [])
    graph.entries[name] = _predict(
        graph.entries[name if entry.update is not None else chosen], name
    )
    graph.roles["predict"] = name


def _metrics(net: Network, recipe: Recipe, frame: Frame, found: list[Fault]) -> None:
    for i, call in enumerate(recipe.metrics):
        if call.source is None and found:
            continue  # what it reads by default may be what is wrong
        with net.at(_origin(recipe, "metrics", i)):
            try:
                _metric(net, call, frame.names)
            except Unread:
                continue
            except ConfigError as error:
                found.extend(located(error, net.origin, ()))


def _metric(net: Network, call: MetricCall, names: Names) -> None:
    """Writes a metric; without a `from` it reads the prediction and the label that the loss told."""
    function = METRICS.get(call.call).function
    reader = outside.reader_of(function)
    if reader is not function and net.training:
        return  # they look at evaluations only, and may read what only those compute
    if call.source is not None:
        given = named(net, call.source, names, call.call)
    else:
        given = [t for t in (net.prediction, net.target) if t is not None]
        least, most, listed = tensors_read(reader)
        if len(given) != 2 or not least <= 2 <= most:
            raise fault(net.origin, f"[{call.call}] reads {listed}: say `from: [{listed}]`")
    count(net, call.call, reader, given)
    if reader is not function:
        outside.record(net, call.name or call.call, given)
        return
    net.metric_name = call.name or ""
    before = len(net.entry.metrics)
    function(net, *given, **METRICS.bind(call.call, call.arguments))
    if len(net.entry.metrics) == before:
        text = f"[{call.call}] reports nothing: it must call `net.metric`"
        raise fault(net.origin, f"{text}; it is written in {place_of(function)}")
