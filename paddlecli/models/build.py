"""A recipe as a graph: ``build(recipe, data) -> Graph`` with forward entries, ready for the compiler."""

from __future__ import annotations

from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import METRICS, MODELS
from paddlecli.config.schema import MetricCall, NamedModel, WrittenModel
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Entry, Graph, Origin, Tensor, Update
from paddlecli.graph.prune import prune
from paddlecli.models.network import Fields, Network
from paddlecli.models.written import Writer

TRAIN, EVALUATE, PREDICT = "train_step", "eval_step", "predict"
"""Names of the entries of an ordinary network. Only this file gives them; others read ``graph.roles``."""
DEFAULT_OPTIMIZER = "default"
"""Name of a recipe's only optimizer."""


def build(recipe: Recipe, data: Fields) -> Graph:
    """The forward graph of a recipe over the fields of a data set.

    Raises:
        ConfigError: layers do not fit each other or the data; names the layer, both shapes, the line.
    """
    graph = Graph(labels=tuple(f.name for f in data.fields if f.role == "label"))
    model = recipe.model
    if isinstance(model, WrittenModel) and model.entries:
        _entries(graph, model, recipe, data)
    else:
        _ordinary(graph, model, recipe, data)
    return graph


def _ordinary(graph: Graph, model: NamedModel | WrittenModel, recipe: Recipe, data: Fields) -> None:
    trained = recipe.optimizer is not None
    for name, training in ((TRAIN, True), (EVALUATE, False)):
        if training and not trained:
            continue
        net = Network(graph, name, training, data)
        _write(net, model, recipe)
        if net.entry.loss is not None:
            _metrics(net, recipe)
    evaluate = graph.entries[EVALUATE]
    graph.entries[PREDICT] = _predict(evaluate)
    graph.roles = {"train": [TRAIN] if trained else [], "predict": PREDICT}
    if evaluate.loss is None:
        del graph.entries[EVALUATE]
    else:
        graph.roles["evaluate"] = EVALUATE
    if trained:
        if graph.entries[TRAIN].loss is None:
            raise fault(_origin(recipe, "model"), "the network has no loss, so it cannot be trained: write `loss:` under `model:`")
        names = [n for n, t in graph.parameters.items() if t.info is None or t.info.trainable]
        graph.entries[TRAIN].updates.append(Update(_only(recipe), names, _origin(recipe, "optimizer")))
        graph.entries[TRAIN].outputs.clear()


def _origin(recipe: Recipe, *path: str | int) -> Origin:
    """The recipe line of a setting."""
    where = recipe.where(path)
    return Origin(where.file, where.line, where.column)


def _only(recipe: Recipe) -> str:
    """Name of the one optimizer; a recipe's single one is called ``default``."""
    found = [name or DEFAULT_OPTIMIZER for name in recipe.optimizers()]
    if len(found) != 1:
        names = ", ".join(found)
        text = f"there are {len(found)} optimizers ({names}), but the network has no entries that say which to use"
        raise fault(_origin(recipe, "optimizer"), text)
    return found[0]


def _predict(evaluate: Entry) -> Entry:
    """The evaluation's network without what needs labels: pruning leaves only what the outputs need."""
    items = [i for i in evaluate.items if not any(t.role == "metric" for t in i.outputs)]
    return prune(Entry(PREDICT, False, items, outputs=dict(evaluate.outputs)))


def _write(net: Network, model: NamedModel | WrittenModel, recipe: Recipe) -> None:
    if isinstance(model, NamedModel):
        with net.at(_origin(recipe, "model", "name")):
            MODELS.get(model.name).function(net, **MODELS.bind(model.name, model.arguments))
        return
    writer = Writer(net, model, recipe)
    names = writer.inputs()
    first = next(iter(names.values()), None)
    last = writer.layers(model.layers, names, ("model", "layers"), first)
    if model.loss is not None:
        writer.loss(model.loss, names, ("model", "loss"), last)
    writer.outputs(model.outputs, names, ("model", "outputs"), last)


def _entries(graph: Graph, model: WrittenModel, recipe: Recipe, data: Fields) -> None:
    """Every entry of the recipe is one entry of the plan."""
    writers = {}
    for name, entry in model.entries.items():
        net = Network(graph, name, entry.update is not None, data)
        writer = writers[name] = Writer(net, model, recipe)
        names = writer.inputs()
        last = writer.layers(model.layers, names, ("model", "layers"), next(iter(names.values()), None))
        last = writer.layers(entry.layers, names, ("model", "entries", name, "layers"), last)
        if entry.loss is not None:
            writer.loss(entry.loss, names, ("model", "entries", name, "loss"), last)
        writer.outputs(entry.outputs, names, ("model", "entries", name, "outputs"))
    for name, entry in model.entries.items():
        if entry.update is not None:
            writers[name].update(entry, ("model", "entries", name))
    updating = [n for n, e in model.entries.items() if e.update is not None]
    graph.roles = {"train": list(recipe.train.loop) or updating}
    _roles(graph, model)


def _roles(graph: Graph, model: WrittenModel) -> None:
    """An entry without an update evaluates when it has a loss; the first one with outputs predicts."""
    for name, entry in model.entries.items():
        if entry.update is None and entry.loss is not None:
            graph.roles.setdefault("evaluate", name)
        if entry.outputs and "predict" not in graph.roles:
            graph.entries["predict"] = _predict(graph.entries[name])
            graph.roles["predict"] = "predict"


def _metrics(net: Network, recipe: Recipe) -> None:
    for i, call in enumerate(recipe.metrics):
        with net.at(_origin(recipe, "metrics", i)):
            _metric(net, call)


def _metric(net: Network, call: MetricCall) -> None:
    definition = METRICS.get(call.call).function(**METRICS.bind(call.call, call.arguments))
    if net.prediction is None or net.target is None:
        raise fault(net.origin, f"metric {call.call!r} needs scores and labels: say `from: [scores, label]`")
    tensors: dict[str, Tensor | None] = {"scores": net.prediction, "label": net.target}
    net.metric(call.name or call.call, definition.op, tensors, definition.attrs)
