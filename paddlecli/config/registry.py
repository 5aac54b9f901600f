"""Names that recipes may use, and the functions behind them.

A registered function's **keyword-only parameters are the arguments a recipe may give**; their type
hints and defaults are the schema, so there is no second description to keep in step:

    @LAYERS.register("dropout")
    def dropout(net: Builder, x: Tensor, *, rate: Fraction = 0.5) -> Tensor: ...

Positional parameters belong to the caller. A registry imports the modules it knows, one after the
other, until one of them has the name that is looked up; packages further up register into it,
config imports none of them.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel

F = TypeVar("F", bound=Callable[..., Any])
Finder = Callable[[str], Callable[..., Any] | None]
Names = Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a registered function. `required` parameters have no default."""

    name: str
    annotation: Any
    default: Any
    required: bool


@dataclass(slots=True)
class Entry:
    """One registered name; the parameters and their validator are worked out once, when asked."""

    name: str
    function: Callable[..., Any]
    _parameters: dict[str, Parameter] | None = field(default=None, repr=False)
    _model: type[BaseModel] | None = field(default=None, repr=False)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The keyword-only parameters by name, in the order of the signature."""
        if self._parameters is None:
            self._parameters = _parameters_of(self.name, self.function)
        return self._parameters

    @property
    def model(self) -> type[BaseModel]:
        """A pydantic model with one field a parameter (fields `p0`, `p1`...; aliases the names)."""
        if self._model is None:
            try:
                self._model = _model_of(self.name, self.parameters)
            except ConfigError:
                raise
            except Exception as error:  # pydantic has no common class for hints it cannot read
                raise _unfit(self.name, self.function, str(error).partition("\n")[0]) from error
        return self._model

    @property
    def module(self) -> str:
        """The module that the function comes from."""
        return str(getattr(self.function, "__module__", ""))


class Registry:
    """The names of one kind: `Registry("layer", "paddlecli.models.layers")`."""

    def __init__(self, kind: str, *modules: str) -> None:
        self.kind = kind
        self.modules = modules
        self._entries: dict[str, Entry] = {}
        self._providers: list[tuple[Names, Finder]] = []
        self._waiting = list(modules)
        KINDS[kind] = self

    def register(self, name: str) -> Callable[[F], F]:
        """Decorator that enters a function (or a class) under `name`; a name is taken once."""

        def enter(function: F) -> F:
            self._enter(name, function)
            return function

        return enter

    def provider(self, names: Names) -> Callable[[Finder], Finder]:
        """Decorator for a function that gives the function of a name, None for one that is not its
        own; `names` lists its names. Nothing is made for a name that nobody looks up."""

        def enter(finder: Finder) -> Finder:
            self._providers.append((names, finder))
            return finder

        return enter

    def _enter(self, name: str, function: Callable[..., Any]) -> None:
        # modules that are waiting register without a look-up: that would import them in a circle
        package = str(getattr(function, "__module__", "")).partition(".")[0]
        ours = any(package == module.partition(".")[0] for module in self.modules)
        known = self._entries.get(name) if ours else self.find(name)
        if known is not None and known.function is not function:
            from paddlecli.config.plugins import place_of

            raise ConfigError(
                f"the {self.kind} `{name}` is registered twice: in {place_of(known.function)} and "
                f"in {place_of(function)}",
                hint="a registered name is taken; choose another",
            )
        self._entries[name] = Entry(name, function)

    def forget(self, module: str) -> None:
        """Drop what functions of a module are registered as."""
        for name in [n for n, e in self._entries.items() if e.module == module]:
            del self._entries[name]

    def names(self) -> list[str]:
        """All registered names, sorted."""
        while self._waiting:
            _import_all(self._waiting.pop(0))
        return sorted(self.provided() | self._entries.keys())

    def provided(self) -> set[str]:
        """The names of the providers so far; no module is imported for it."""
        return {name for names, _ in self._providers for name in names()}

    def find(self, name: str) -> Entry | None:
        """The entry of that name, None where there is none."""
        while name not in self._entries and not self._provided(name) and self._waiting:
            _import_all(self._waiting.pop(0))
        return self._entries.get(name)

    def _provided(self, name: str) -> bool:
        for _, finder in self._providers:
            function = finder(name)
            if function is not None:
                self._entries[name] = Entry(name, function)
                return True
        return False

    def get(self, name: str) -> Entry:
        """The entry of that name. Raises ConfigError with near names for an unknown one."""
        found = self.find(name)
        if found is None:
            from paddlecli.config.nodes import close_names

            near = close_names(name, self.names())
            meant = f"did you mean {' or '.join(f'`{n}`' for n in near)}? " if near else ""
            raise ConfigError(f"unknown {self.kind} `{name}`", hint=meant + self.hint(name))
        return found

    def hint(self, name: str) -> str:
        """Which names exist, which files of the user's were read, and how to add the name."""
        from paddlecli.config import plugins

        known = ", ".join(self.names())
        listed = f"known: {known}" if known else f"nothing provides any {self.kind} here"
        other = next((k for k, r in KINDS.items() if r is not self and name in r._entries), None)
        also = f"; `{name}` is a registered {other}" if other else ""
        return f"{listed}{also}; {plugins.hint(self.kind, name)}"

    def bind(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checked keyword arguments in their Python types (lists become tuples, and so on), with
        defaults filled in. Raises ConfigError; recipes were checked before, with positions."""
        import json

        from pydantic import ValidationError

        entry = self.get(name)
        try:
            checked = entry.model.model_validate_json(json.dumps(dict(arguments)))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            raise ConfigError(f"{self.kind} `{name}`: {key}: {first['msg']}") from None
        parameters = entry.parameters
        for key, value in arguments.items():
            for path, call in calls_within(parameters[key].annotation, value):
                call.bind(_below(value, path))
        return {p: getattr(checked, f"p{i}") for i, p in enumerate(parameters)}

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Only what is registered inside the `with` exists there; afterwards all is as before."""
        saved = self._entries, self._providers, self._waiting
        self._entries, self._providers, self._waiting = {}, [], []
        try:
            yield
        finally:
            self._entries, self._providers, self._waiting = saved


def _import_all(name: str) -> None:
    """Import a module, and all modules of a package; one that is not installed is passed over."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return
        raise
    for found in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if not found.name.startswith("_"):
            importlib.import_module(f"{name}.{found.name}")


def _parameters_of(name: str, function: Callable[..., Any]) -> dict[str, Parameter]:
    target = function.__init__ if inspect.isclass(function) else function
    given = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    hints = _hints(name, target, [p.name for p in given])
    found: dict[str, Parameter] = {}
    for parameter in given:
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        found[parameter.name] = Parameter(parameter.name, hints[parameter.name], default, required)
    return found


def _hints(name: str, target: Callable[..., Any], wanted: Iterable[str]) -> dict[str, Any]:
    """Type hints of some parameters; those of others may name what is imported for type checkers
    only."""
    inner = inspect.unwrap(getattr(target, "__func__", target))
    written = getattr(inner, "__annotations__", {})
    for key in wanted:
        if key not in written:
            raise _unfit(name, target, f"the keyword parameter `{key}` has no type hint")
    holder = types.SimpleNamespace(__annotations__={k: written[k] for k in wanted})
    try:
        return typing.get_type_hints(holder, getattr(inner, "__globals__", {}), include_extras=True)
    except Exception as error:
        text = f"a type hint cannot be read: {type(error).__name__}: {error}"
        raise _unfit(name, target, text) from error


def _unfit(name: str, function: Callable[..., Any], text: str) -> ConfigError:
    from paddlecli.config.plugins import place_of

    return ConfigError(f"{place_of(function)}: `{name}` cannot be called from a recipe: {text}")


def _model_of(name: str, parameters: Mapping[str, Parameter]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for index, parameter in enumerate(parameters.values()):
        default = ... if parameter.required else parameter.default
        fields[f"p{index}"] = (parameter.annotation, Field(default, alias=parameter.name))
    config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
    )
    model: type[BaseModel] = create_model(f"{name} arguments", __config__=config, **fields)
    return model


@dataclass(frozen=True, slots=True)
class Call:
    """Metadata for a parameter that is itself a registered name or a one-key mapping:
    `init: Annotated[str | dict[str, Any], Call("initializer")]`."""

    kind: str

    def parts(self, value: Any) -> tuple[str, Any] | None:
        """Name and arguments in a value of that form; None for another form."""
        if isinstance(value, str):
            return value, {}
        if isinstance(value, dict) and len(value) == 1:
            name, arguments = next(iter(value.items()))
            return str(name), {} if arguments is None else arguments
        return None

    def bind(self, value: Any) -> None:
        """Check a value. Raises ConfigError where it names nothing or its arguments do not fit."""
        parts = self.parts(value)
        if parts is None or not isinstance(parts[1], dict):
            raise ConfigError(f"expected one {self.kind}: a name, or a mapping with one key")
        KINDS[self.kind].bind(*parts)


def call_in(annotation: Any) -> Call | None:
    """The `Call` in the metadata of a type, also of an optional one."""
    branches = typing.get_args(annotation) if _is_union(annotation) else ()
    for part in (annotation, *branches):
        for item in getattr(part, "__metadata__", ()):
            if isinstance(item, Call):
                return item
    return None


def calls_within(annotation: Any, value: Any) -> Iterator[tuple[tuple[str | int, ...], Call]]:
    """The parts of a plain value that are calls, with their paths below it: the value itself, or
    what lies in its lists, mappings and sections."""
    call = call_in(annotation)
    if call is not None:
        if value is not None:
            yield (), call
        return
    for key, child, inside in _children(annotation, value):
        yield from (((key, *path), found) for path, found in calls_within(inside, child))


def _children(annotation: Any, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Key, value and type of what lies directly in a list or a mapping."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        yield from _children(inside[0], value)
    elif _is_union(annotation):
        for branch in inside:
            yield from _children(branch, value)
    elif origin in (list, tuple) and isinstance(value, list | tuple):
        yield from ((i, child, inside[0]) for i, child in enumerate(value))
    elif isinstance(value, dict) and origin is dict:
        yield from ((key, child, inside[1]) for key, child in value.items())
    elif isinstance(value, dict) and hasattr(annotation, "model_fields"):
        for name, known in annotation.model_fields.items():
            if name in value:
                yield name, value[name], _typed(known)


def _typed(known: Any) -> Any:
    """A section's field as its type with the metadata that pydantic keeps apart."""
    return (
        typing.Annotated[known.annotation, *known.metadata] if known.metadata else known.annotation
    )


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _below(value: Any, path: Iterable[str | int]) -> Any:
    for part in path:
        value = value[part]
    return value


KINDS: dict[str, Registry] = {}
MODELS = Registry("model", "paddlecli.models", "paddlecli.models.backbones")
LAYERS = Registry("layer", "paddlecli.models.layers", "paddlecli.models")
LOSSES = Registry("loss", "paddlecli.models.losses", "paddlecli.models")
INITIALIZERS = Registry("initializer", "paddlecli.models.initializers", "paddlecli.models.layers")
OPTIMIZERS = Registry("optimizer", "paddlecli.compiler.optimizer")
SCHEDULES = Registry("schedule", "paddlecli.engine.schedule")
METRICS = Registry(
    "metric",
    "paddlecli.engine.metrics",
    "paddlecli.engine.bleu",
    "paddlecli.engine.picture_metrics",
)
DATASETS = Registry("data set", "paddlecli.data.cards", "paddlecli.data.readers")
READERS = Registry("reader", "paddlecli.data.readers")
TRANSFORMS = Registry("transform", "paddlecli.data.transforms")
CALLBACKS = Registry("callback", "paddlecli.engine.callbacks", "paddlecli.engine.drawing")
