"""A recipe as a graph: ``build(recipe, data) -> Graph`` with forward entries, ready for the
compiler."""

from __future__ import annotations

from dataclasses import replace

from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import METRICS, MODELS
from paddlecli.config.schema import Entry as EntrySection
from paddlecli.config.schema import MetricCall, NamedModel, WrittenModel
from paddlecli.errors import ConfigError
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Entry, Graph, Origin, Update
from paddlecli.graph.prune import prune
from paddlecli.models.network import Fields, Network
from paddlecli.models.written import Names, Writer, named

TRAIN, EVALUATE, PREDICT = "train_step", "eval_step", "predict"
"""Names of the entries of an ordinary network. Only this file gives them; others read
``graph.roles``."""
DEFAULT_OPTIMIZER = "default"
"""Name of a recipe's only optimizer."""


def build(recipe: Recipe, data: Fields) -> Graph:
    """The forward graph of a recipe over the fields of a data set.

    Raises:
        ConfigError: layers do not fit each other or the data; names the layer, both shapes, the
            line.
    """
    graph = Graph(labels=tuple(f.name for f in data.fields if f.role == "label"))
    model = recipe.model
    try:
        if isinstance(model, WrittenModel) and model.entries:
            _entries(graph, model, recipe, data)
        else:
            _ordinary(graph, model, recipe, data)
    except ConfigError as error:
        quoted = [replace(f, where=recipe.quoted(f.where)) for f in error.faults]
        raise ConfigError(error.message, error.hint, faults=quoted) from None
    return graph


def _ordinary(graph: Graph, model: NamedModel | WrittenModel, recipe: Recipe, data: Fields) -> None:
    trained = recipe.optimizer is not None
    for name, training in ((TRAIN, True), (EVALUATE, False)):
        if training and not trained:
            continue
        net = Network(graph, name, training, data)
        tensors = _write(net, model, recipe)
        if net.entry.loss is not None:
            _metrics(net, recipe, tensors)
    evaluate = graph.entries[EVALUATE]
    graph.entries[PREDICT] = _predict(evaluate)
    graph.roles = {"train": [TRAIN] if trained else [], "predict": PREDICT}
    if evaluate.loss is None:
        del graph.entries[EVALUATE]
    else:
        graph.roles["evaluate"] = EVALUATE
    if trained:
        if graph.entries[TRAIN].loss is None:
            raise fault(
                _origin(recipe, "model"),
                "the network has no loss, so it cannot be trained: write `loss:` under `model:`",
            )
        names = [n for n, t in graph.parameters.items() if t.info is None or t.info.trainable]
        graph.entries[TRAIN].updates.append(
            Update(_only(recipe), names, _origin(recipe, "optimizer"))
        )
        graph.entries[TRAIN].outputs.clear()


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
    return prune(Entry(name, False, items, outputs=dict(evaluate.outputs)))


def _write(net: Network, model: NamedModel | WrittenModel, recipe: Recipe) -> Names:
    """Writes the network; returns the tensors that a metric may name."""
    if isinstance(model, NamedModel):
        with net.at(_origin(recipe, "model", "name")):
            MODELS.get(model.name).function(net, **MODELS.bind(model.name, model.arguments))
        return {**net.used, **net.entry.outputs}
    writer = Writer(net, model, recipe)
    names = writer.inputs()
    first = next(iter(names.values()), None)
    last = writer.layers(model.layers, names, ("model", "layers"), first)
    if model.loss is not None:
        writer.loss(model.loss, names, ("model", "loss"), last)
    writer.outputs(model.outputs, names, ("model", "outputs"), last)
    return names


def _entries(graph: Graph, model: WrittenModel, recipe: Recipe, data: Fields) -> None:
    """Every entry of the recipe is one entry of the plan."""
    writers = {}
    for name, entry in model.entries.items():
        writers[name] = _entry(
            Network(graph, name, entry.update is not None, data), name, model, recipe
        )
    if recipe.metrics and not any(_evaluates(e) for e in model.entries.values()):
        text = "metrics need an entry that evaluates: one with a loss and without an update"
        raise fault(_origin(recipe, "metrics"), text)
    for name, entry in model.entries.items():
        if entry.update is not None:
            writers[name].update(entry, ("model", "entries", name))
    updating = [n for n, e in model.entries.items() if e.update is not None]
    graph.roles = {"train": list(recipe.train.loop) or updating}
    evaluating = [n for n, e in model.entries.items() if _evaluates(e)]
    if evaluating:
        graph.roles["evaluate"] = evaluating[0]
    _predictor(graph, model, recipe, data)


def _entry(net: Network, name: str, model: WrittenModel, recipe: Recipe) -> Writer:
    """Writes an entry of the recipe."""
    entry = model.entries[name]
    writer = Writer(net, model, recipe)
    names = writer.inputs()
    last = writer.layers(model.layers, names, ("model", "layers"), next(iter(names.values()), None))
    last = writer.layers(entry.layers, names, ("model", "entries", name, "layers"), last)
    if entry.loss is not None:
        writer.loss(entry.loss, names, ("model", "entries", name, "loss"), last)
    writer.outputs(entry.outputs, names, ("model", "entries", name, "outputs"))
    if _evaluates(entry):
        _metrics(net, recipe, names)
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
        _entry(Network(graph, name, False, data), chosen, model, recipe)
    graph.entries[name] = _predict(
        graph.entries[name if entry.update is not None else chosen], name
    )
    graph.roles["predict"] = name


def _metrics(net: Network, recipe: Recipe, names: Names) -> None:
    for i, call in enumerate(recipe.metrics):
        with net.at(_origin(recipe, "metrics", i)):
            _metric(net, call, names)


def _metric(net: Network, call: MetricCall, names: Names) -> None:
    definition = METRICS.get(call.call).function(**METRICS.bind(call.call, call.arguments))
    given = (
        [net.prediction, net.target]
        if call.source is None
        else named(net, call.source, names, call.call)
    )
    found = [t for t in given if t is not None]
    if len(found) != 2:
        raise fault(
            net.origin, f"[{call.call}] reads scores and labels: say `from: [scores, label]`"
        )
    net.metric(
        call.name or call.call,
        definition.op,
        {"scores": found[0], "label": found[1]},
        definition.attrs,
    )
