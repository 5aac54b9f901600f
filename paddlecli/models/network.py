"""The builder that networks and layers write to: a graph builder that knows the data's fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from paddlecli.graph.builder import Builder, fault
from paddlecli.graph.ir import Graph, Tensor
from paddlecli.models.settings import Frozen
from paddlecli.models.targets import Targets
from paddlecli.ops.cast import code
from paddlecli.ops.spec import BATCH, Axis, Spec

DTYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}
"""Recipe and numpy names of element types, as the core has them."""


class Preprocess(Protocol):
    """What the plan does to a stored value: cast to ``dtype``, then ``value * scale + shift``; with
    ``channels`` each channel of a picture has its own two."""

    @property
    def dtype(self) -> str: ...
    @property
    def scale(self) -> float: ...
    @property
    def shift(self) -> float: ...
    @property
    def channels(self) -> tuple[tuple[float, float], ...]: ...


class Field(Protocol):
    """One column of a data set, as a network sees it; ``paddlecli.data.spec.FieldSpec`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> int | None: ...
    @property
    def preprocess(self) -> Preprocess | None: ...
    @property
    def usual(self) -> tuple[float, float] | None: ...
    @property
    def names(self) -> tuple[str, ...]: ...


class Fields(Protocol):
    """A data set as a network sees it; ``paddlecli.data.spec.DatasetSpec`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> Sequence[Field]: ...


class Network(Builder):
    """Writes one entry of a network over the fields of a data set.

    Attributes:
        prediction: scores that metrics read when a recipe names none (set by losses and by
            networks).
        target: labels that go with them.
        loss_name: name under which the loss is reported.
        metric_name: name under which the recipe reports the metric that is written, "" where it gives
            none.
        frozen: which layers stay as they are in training.
        targets: what training losses make of labels of classes.
        aside: tensors that metrics of the recipe may name beside fields and outputs.
    """

    def __init__(
        self, graph: Graph, name: str, training: bool, data: Fields,
        frozen: Frozen | None = None, targets: Targets | None = None,
    ) -> None:  # fmt: skip
        super().__init__(graph, name, training)
        self.data = data
        self.frozen, self.targets = frozen or Frozen(), targets or Targets()
        self.prediction: Tensor | None = None
        self.target: Tensor | None = None
        self.loss_name = "loss"
        self.metric_name = ""
        self.aside: dict[str, Tensor] = {}
        self._fields: dict[str, Tensor] = {}

    def called(self, name: str) -> str:
        """The name under which a metric is reported: the recipe's, or ``name`` where it gives none."""
        return self.metric_name or name

    def feature(self, name: str = "") -> Tensor:
        """The input of that name, cast and scaled as its field says; without a name the only one.

        Raises:
            ConfigError: there is no such field, or several and no name.
        """
        return self._field(self._pick("input", name))

    def label(self, name: str = "") -> Tensor:
        """The label of that name, or the only one."""
        return self._field(self._pick("label", name))

    def known(self, name: str) -> Tensor | None:
        """The field of that name, None where there is none."""
        found = [f for f in self.data.fields if f.name == name]
        return self._field(found[0]) if found else None

    @property
    def used(self) -> dict[str, Tensor]:
        """The fields that this entry reads, by name."""
        return dict(self._fields)

    def classes(self, tensor: Tensor) -> int | None:
        """How many ids the data set's field behind this tensor has, None where that is unknown."""
        field = self._behind(tensor)
        return None if field is None else field.classes

    def class_names(self, tensor: Tensor) -> tuple[str, ...]:
        """Names of the classes of the data set's field behind this tensor, empty where it has none."""
        field = self._behind(tensor)
        return () if field is None else tuple(field.names)

    def _behind(self, tensor: Tensor) -> Field | None:
        names = [name for name, known in self._fields.items() if known is tensor]
        return next((f for f in self.data.fields if f.name in names), None)

    def _pick(self, role: str, name: str) -> Field:
        fields = [f for f in self.data.fields if f.role == role and name in ("", f.name)]
        if len(fields) == 1:
            return fields[0]
        have = ", ".join(f"{f.name} ({f.role})" for f in self.data.fields)
        wanted = f"the {role} {name!r}" if name else f"exactly one {role}"
        raise fault(
            self.origin, f"this network needs {wanted}; the data set {self.data.name!r} has {have}"
        )

    def _field(self, field: Field) -> Tensor:
        if field.name not in self._fields:
            raw = self.input(field.name, field_spec(field, self.data.fields))
            self._fields[field.name] = self._preprocess(raw, field)
        return self._fields[field.name]

    def _preprocess(self, raw: Tensor, field: Field) -> Tensor:
        pre = field.preprocess
        if pre is None:
            return raw
        with self.scope(field.name):
            result: Tensor = self.apply(
                "cast", raw, scale=pre.scale, shift=pre.shift, dtype=code(DTYPES[pre.dtype])
            )
            if pre.channels:
                scales, shifts = zip(*pre.channels, strict=True)
                result = self.apply("mul", result, self.constant(scales), axis=1)
                result = self.apply("add", result, self.constant(shifts), axis=1)
        return result


def field_spec(field: Field, fields: Sequence[Field]) -> Spec:
    """Symbolic shape of a field: the batch first, or the rows of its innermost ragged axis.

    An axis is defined by the first field whose rows lie on it, an outer level without one by the
    first field below it.
    """
    axis: Axis | None = None
    for name in field.axes:
        on = [f.name for f in fields if f.axes and f.axes[-1] == name] or [
            f.name for f in fields if name in f.axes
        ]
        axis = Axis(name, input=on[0], parent=axis)
    lead = BATCH if axis is None else axis.total
    return Spec.of(lead, *field.shape, dtype=DTYPES[field.dtype], axis=axis)
