"""The recipe language: networks, named or written in the recipe. See `schema.py` for the rest."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from paddlecli.config.sections import (
    Called,
    Named,
    OneOf,
    Section,
    complain,
    pick_argument,
    pick_model,
    pick_names,
    pick_ragged,
    pick_start,
)
from paddlecli.config.types import Count, Name, NonNegative

Dtype = Literal["float32", "int64", "int32", "uint8", "bool"]
Names = tuple[Name, ...]
_ListOfNames = Annotated[Names, Field(strict=False), Tag("<list>")]
NameOrNames = Annotated[Annotated[Name, Tag("<name>")] | _ListOfNames, Discriminator(pick_names)]
Ragged = Annotated[
    Annotated[Name, Tag("<name>")] | Annotated[bool, Tag("<yes or no>")],
    Discriminator(pick_ragged),
]


ArgumentName = Annotated[
    str, Field(pattern=r"^\$[A-Za-z_]\w*$", title="an argument of the block, such as `$size`")
]
CountOrArgument = Annotated[
    Annotated[Count, Tag("<number>")] | Annotated[ArgumentName, Tag("<argument>")],
    Discriminator(pick_argument),
]
LayerName = Annotated[
    str, Field(pattern=r"^[A-Za-z_][\w-]*$", title="a letter, then letters, digits, `_` and `-`")
]


class Input(Section):
    """One input of the network: a column of the data."""

    shape: tuple[Count, ...] = ()
    """Shape of one sample (or of one token on a ragged axis), without the batch."""
    dtype: Dtype = "float32"
    """Type the values are stored in."""
    ragged: Ragged = False
    """Name of the ragged axis this input lies on, or true for an axis of its own."""
    role: Literal["feature", "label"] = "feature"
    """Labels are not needed to predict."""
    below: Count | None = None
    """Integer inputs: every value is at least 0 and below this number."""


class InitializerCall(Called):
    """First values: a registered initializer's name, or `{normal: {std: 0.01}}`."""

    kind: ClassVar[str] = "initializer"


class LayerCall(Called):
    """One layer: `{fc: {size: 200}}`, a block by its name, or a group of layers: `{layers: [...],
    repeat: 3}`."""

    kind: ClassVar[str] = "layer"

    name: LayerName | None = None
    """Name of the layer's output and of its place in parameter names; made up if left out."""
    source: NameOrNames | None = Field(None, alias="from")
    """Tensor, or list of tensors, that the layer reads; the layer before it if left out."""
    repeat: CountOrArgument | None = None
    """How many of this layer follow each other, each with parameters of its own: `name` is then
    `name1`, `name2` and so on."""
    share: bool | None = None
    """Of a block: whether this use has the parameters that all uses share, or its own; what the
    block says if left out."""
    parameters: dict[Name, Name] | None = None
    """Other full names for the layer's parameters, `{w: words}`: layers that give one the same name
    share it."""
    layers: Annotated[tuple[LayerCall, ...], Field(min_length=1, strict=False)] | None = None
    """A group: layers in place of one layer, to repeat them or to put them under one name."""

    def one_call(self) -> None:
        """A group calls nothing, every other layer exactly one name."""
        if self.layers is None:
            super().one_call()
        elif self.model_extra:
            complain(f"a group of `layers` cannot be `{next(iter(self.model_extra))}` too")


class LossCall(Called):
    """The loss: `{square_error_cost: {}}` with `from: [prediction, label]`."""

    kind: ClassVar[str] = "loss"

    name: Name | None = None
    """Name under which the loss is reported."""
    source: NameOrNames | None = Field(None, alias="from")
    """Tensors that the loss reads, in the order of its signature."""


class Memory(Section):
    """What a block remembers from one step to the next."""

    shape: tuple[CountOrArgument, ...]
    """Shape of one row."""
    dtype: Dtype = "float32"
    """Type of the values."""
    next: Name
    """The block's tensor that is the memory's value in the step after."""
    start: Annotated[
        Annotated[Name, Tag("<name>")] | Annotated[float, Tag("<number>")],
        Discriminator(pick_start),
    ] = 0.0
    """First value: a number, or a tensor outside the block with one row a sequence."""


class Block(Section):
    """Layers defined once. Used by its name like a layer, or as the step of `scan` and `decode`."""

    inputs: Names
    """Names that the layers know the inputs by."""
    arguments: dict[LayerName, Any] = Field(default_factory=dict)
    """What each use may set, with its default; one without a value must be given. The layers say
    `$name`."""
    share: bool = True
    """Whether all uses have the same parameters; if not, each use has its own, under its name."""
    statics: Names = ()
    """Tensors from outside that are the same in every step, one row a sequence."""
    memories: dict[Name, Memory] = Field(default_factory=dict)
    """What is carried from step to step, by name."""
    layers: Annotated[tuple[LayerCall, ...], Field(min_length=1)]
    """The layers, in order."""
    outputs: dict[Name, Name] = Field(default_factory=dict)
    """Tensors that leave the block, by the name they get; the last layer's output if left out."""


class Update(Section):
    """Which parameters an entry changes, and by which optimizer."""

    parameters: NameOrNames
    """Pattern, or list of patterns, of parameter paths: `generator/*`."""
    optimizer: Name
    """Name of the optimizer in the section `optimizer`."""


class Entry(Section):
    """One thing that a network with several objectives can do in a step."""

    layers: tuple[LayerCall, ...] = ()
    """Layers of this entry; it also sees the tensors of `model.layers`."""
    loss: LossCall | None = None
    """What is minimised."""
    outputs: dict[Name, Name] = Field(default_factory=dict)
    """Tensors that the entry gives back, by name."""
    update: Update | None = None
    """What is changed; nothing if left out."""


class Regularizer(OneOf):
    """Weight decay added to the gradient, after clipping."""

    l1: NonNegative | None = None
    """Adds this times the sign of the parameter."""
    l2: NonNegative | None = None
    """Adds this times the parameter."""


class ParameterSettings(Section):
    """What is special about some parameters; what is left out stays as it is."""

    initializer: InitializerCall | None = None
    """First values."""
    learning_rate_factor: NonNegative | None = None
    """The optimizer's rate times this."""
    regularizer: Regularizer | None = None
    """Weight decay in place of the optimizer's; `{l2: 0}` is none."""
    clip: bool | None = None
    """Whether the optimizer's clipping concerns them."""
    trainable: bool | None = None
    """False freezes them: no gradient, no update."""
    trainable_from: Count | None = None
    """Epoch from which they are trained, the first is 1: until then they are frozen."""
    batch_norm: Literal["keep", "update"] | None = None
    """What training does to batch norms that are frozen: `keep`, the default, normalises by their running
    statistics and leaves those as they are; `update` normalises by the batch and moves them."""

    @model_validator(mode="after")
    def _agree(self) -> ParameterSettings:
        if self.trainable is not None and self.trainable_from is not None:
            complain("`trainable` and `trainable_from` both say when they are trained", "trainable")
        return self


class NamedModel(Named):
    """A registered network and its arguments."""

    kind: ClassVar[str] = "model"

    parameters: dict[Name, ParameterSettings] = Field(default_factory=dict)
    """Settings of parameters by patterns of their names, `"*/b"`; of several that match, the last
    one that says something wins."""


class WrittenModel(Section):
    """A network written in the recipe."""

    inputs: Annotated[dict[Name, Input], Field(min_length=1)]
    """The inputs by name."""
    blocks: dict[Name, Block] = Field(default_factory=dict)
    """Blocks by name."""
    layers: tuple[LayerCall, ...] = ()
    """The layers, each reading the one before it unless it says `from`."""
    loss: LossCall | None = None
    """What training minimises."""
    outputs: dict[Name, Name] = Field(default_factory=dict)
    """Tensors that predict gives back, by name; the last layer's output if left out."""
    entries: dict[Name, Entry] = Field(default_factory=dict)
    """For several networks or optimizers: what a step can do, by name; see `train.loop`."""
    parameters: dict[Name, ParameterSettings] = Field(default_factory=dict)
    """Settings of parameters by patterns of their names, `"*/b"`; of several that match, the last
    one that says something wins."""

    @model_validator(mode="after")
    def _something(self) -> WrittenModel:
        if not self.layers and not self.entries:
            complain("a network needs `layers` or `entries`")
        return self


Model = Annotated[
    Annotated[NamedModel, Tag("<named>")] | Annotated[WrittenModel, Tag("<written>")],
    Discriminator(pick_model),
]
