"""Recipe text that uses a registered name: what its arguments need, ready to be pasted."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args, get_origin

from paddlecli.config import shape
from paddlecli.config.registry import Call, Entry, call_in

_BY_NAME: dict[str, Any] = {
    "boundaries": [1000],
    "block": "step",
    "classes": 10,
    "d_model": 512,
    "decay_rate": 0.5,
    "dim": 64,
    "dtype": "float32",
    "end": 1,
    "filters": 32,
    "milestones": [30, 60],
    "of": ["mae", "rmse"],
    "size": 10,
    "step_size": 30,
    "types": 3,
    "values": [0.01, 0.001],
    "warmup_steps": 4000,
}
"""Values that fit what an argument of that name is, wherever it stands."""
_CALLED = {"initializer": "xavier", "metric": "accuracy", "transform": "lower", "layer": "relu"}
_OF_SEVERAL = ("concat", "sum")
"""Layers of any number of tensors that one makes no sense for."""


def example(kind: str, entry: Entry) -> str:
    """YAML with a call of a registered name: the arguments that have no default, with values that
    are allowed, and the tensors where there are several."""
    needed = {p.name: _value(p.name, p.annotation) for p in entry.parameters.values() if p.required}
    return "\n".join(_LAYOUTS[kind](entry, needed)) + "\n"


def tensors(entry: Entry) -> list[tuple[str, bool]]:
    """Names of the tensors that a layer, a loss or a metric must be given, and whether each stands
    for any number of them."""
    # a metric that is a class reads what its method `add` takes
    reader = getattr(entry.function, "add", entry.function)
    found = list(inspect.signature(reader).parameters.values())[1:]
    return [
        (p.name, p.kind is p.VAR_POSITIONAL)
        for p in found
        if p.kind is p.VAR_POSITIONAL
        or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty)
    ]


def _from(entry: Entry) -> list[str]:
    """A `from` for all tensors, two for any number."""
    read = [[f"{n}1", f"{n}2"] if many else [n] for n, many in tensors(entry)]
    return [f"    from: [{', '.join(n for names in read for n in names)}]"]


def _layer(entry: Entry, needed: dict[str, Any]) -> list[str]:
    read = tensors(entry)
    several = len(read) > 1 or entry.name in _OF_SEVERAL
    return ["layers:", f"  - {_call(entry.name, needed)}", *(_from(entry) if several else [])]


def _loss(entry: Entry, needed: dict[str, Any]) -> list[str]:
    return ["loss:", f"  {_call(entry.name, needed)}", _from(entry)[0][2:]]


def _optimizer(entry: Entry, needed: dict[str, Any]) -> list[str]:
    return ["optimizer:", *_named(entry.name, {"learning_rate": 0.01, **needed}, "  ")]


def _schedule(entry: Entry, needed: dict[str, Any]) -> list[str]:
    plain = ["optimizer:", "  name: sgd", "  learning_rate: 0.01", "  schedule:"]
    return [*plain, *_named(entry.name, needed, "    ")]


def _metric(entry: Entry, needed: dict[str, Any]) -> list[str]:
    # a class reads outputs; a function of two tensors gets the prediction and the label of the loss
    usual = inspect.isclass(entry.function) or len(tensors(entry)) == 2
    call = _call(entry.name, needed) if needed or not usual else entry.name
    return ["metrics:", f"  - {call}", *([] if usual else _from(entry))]


def _transform(entry: Entry, needed: dict[str, Any]) -> list[str]:
    return ["transforms:", f"  - {_call(entry.name, needed) if needed else entry.name}"]


def _model(entry: Entry, needed: dict[str, Any]) -> list[str]:
    return ["model:", *_named(entry.name, needed, "  ")]


def _data(entry: Entry, needed: dict[str, Any]) -> list[str]:
    given = {k: "FILE" if k == "train" else v for k, v in needed.items()}
    return ["data:", *_named(entry.name, given, "  ")]


_LAYOUTS = {
    "data set": _data,
    "layer": _layer,
    "model": _model,
    "loss": _loss,
    "optimizer": _optimizer,
    "schedule": _schedule,
    "metric": _metric,
    "transform": _transform,
}


def _call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}: {_flow(arguments)}"


def _named(name: str, arguments: dict[str, Any], blank: str) -> list[str]:
    return [f"{blank}name: {name}", *(f"{blank}{k}: {_flow(v)}" for k, v in arguments.items())]


def _flow(value: Any) -> str:
    """A value in YAML's one-line form."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _value(name: str, annotation: Any) -> Any:
    """A value that the argument allows."""
    found = _BY_NAME.get(name)
    branches = shape.branches(annotation, None)
    if found is not None and any(_fits(found, b) for b in branches):
        return found
    called = call_in(annotation)
    return _of_call(called) if called is not None else _of_type(branches[0])


def _of_call(called: Call) -> str:
    return _CALLED.get(called.kind, "NAME")


def _fits(value: Any, annotation: Any) -> bool:
    target = shape.bare(annotation)
    if get_origin(target) is Literal:
        return value in get_args(target)
    if get_origin(target) in (list, tuple):
        return isinstance(value, list)
    return isinstance(value, target if isinstance(target, type) else object)


def _of_type(annotation: Any) -> Any:
    target = shape.bare(annotation)
    origin, inside = get_origin(target), get_args(target)
    if origin is Literal:
        return inside[0]
    if origin in (list, tuple):
        count = len(inside) if origin is tuple and Ellipsis not in inside else 1
        return [_value("", inside[i if len(inside) > i else 0]) for i in range(count)]
    if origin is dict:
        return {}
    if target is bool:
        return True
    if target in (int, float):
        return _number(annotation, target)
    return "NAME"


def _number(annotation: Any, kind: type) -> float:
    """A number within the bounds."""
    limits = {a: getattr(m, a) for m in shape.metadata(annotation)
              for a in ("ge", "gt", "le", "lt") if getattr(m, a, None) is not None}  # fmt: skip
    if kind is int:
        return int(limits.get("ge", limits.get("gt", 0) + 1))
    top = limits.get("le", limits.get("lt"))
    return 0.5 if top is not None and top <= 1 else float(limits.get("ge", 1.0) or 1.0)
