"""The recipe language: one pydantic model a section, every field described where it stands.

Sections are frozen and strict: an unknown key, a bool for a number, NaN or infinity are errors.
Names of networks, layers, losses, optimizers, schedules, metrics and data sets, and the arguments
given to them, are checked against the registries (`check.py`), not here.
"""

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
    pick_optimizer,
    pick_ragged,
    pick_start,
)
from paddlecli.config.types import Count, Name, Natural, NonNegative, Positive

Dtype = Literal["float32", "int64", "int32", "uint8", "bool"]
Names = tuple[Name, ...]
MetricName = Annotated[
    str,
    Field(
        pattern=r"^(train|valid|test)\.[A-Za-z0-9_@]+$",
        title="a split and a metric, such as `test.loss`",
    ),
]
CONDITION = r"^(train|valid|test)\.[A-Za-z0-9_@]+ *(<=|>=|<|>) *[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
"""What `train.stop_when` holds: a split and a metric, a comparison, a number."""
Condition = Annotated[
    str,
    Field(
        pattern=CONDITION,
        title="a metric, <, <=, > or >= and a number, such as `test.accuracy >= 0.98`",
    ),
]
Mode = Literal["min", "max"]
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

    @model_validator(mode="after")
    def _one_call(self) -> LayerCall:
        if self.layers is None:
            super()._one_call()
        elif self.model_extra:
            complain(f"a group of `layers` cannot be `{next(iter(self.model_extra))}` too")
        return self


class LossCall(Called):
    """The loss: `{square_error_cost: {}}` with `from: [prediction, label]`."""

    kind: ClassVar[str] = "loss"

    name: Name | None = None
    """Name under which the loss is reported."""
    source: NameOrNames | None = Field(None, alias="from")
    """Tensors that the loss reads, in the order of its signature."""


class MetricCall(Called):
    """A metric: `accuracy`, or `{accuracy: {k: 5}}`."""

    kind: ClassVar[str] = "metric"

    name: Name | None = None
    """Name under which the metric is reported; the metric's own if left out."""
    source: NameOrNames | None = Field(None, alias="from")
    """Tensors that the metric reads; the network's prediction and label if left out."""


class CallbackCall(Called):
    """A callback: `stop_file`, or `{stop_file: {every: 50}}`."""

    kind: ClassVar[str] = "callback"


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


class Data(Named):
    """A data set, and beside its name the arguments of its reader."""

    kind: ClassVar[str] = "data set"


class Warmup(Section):
    """A linear rise at the start, before the schedule begins at its own step 0."""

    steps: Count
    """How many steps it takes."""
    start: NonNegative = 0.0
    """The rate at the first step."""


class Schedule(Named):
    """How the learning rate changes, and beside the name the schedule's arguments."""

    kind: ClassVar[str] = "schedule"

    warmup: Warmup | None = None
    """A linear rise before it."""


class Clip(OneOf):
    """Limits the gradient before regularisation."""

    value: Positive | None = None
    """Every element is cut to [-value, value]."""
    norm: Positive | None = None
    """Each parameter's gradient is scaled down to this norm."""
    global_norm: Positive | None = None
    """All gradients together are scaled down to this norm."""


class Optimizer(Named):
    """An update rule, and beside its name the rule's own arguments."""

    kind: ClassVar[str] = "optimizer"

    learning_rate: Positive
    """The rate, or what the schedule starts from."""
    schedule: Schedule | None = None
    """How the rate changes; constant if left out."""
    regularizer: Regularizer | None = None
    """Weight decay, for all parameters that do not set their own."""
    clip: Clip | None = None
    """Gradient clipping."""


Optimizers = Annotated[dict[Name, Optimizer], Field(min_length=1)]
AnyOptimizer = Annotated[
    Annotated[Optimizer, Tag("<one>")] | Annotated[Optimizers, Tag("<several>")],
    Discriminator(pick_optimizer),
]


class Train(Section):
    """The loop."""

    epochs: Count = 1
    """Passes over the training data."""
    max_steps: Count | None = None
    """Stop after this many steps, whatever `epochs` says."""
    batch_size: Count = 32
    """Samples of one step."""
    drop_last: bool = False
    """Leave out the short last batch."""
    seed: Natural = 0
    """Start of all random numbers: initial values, order, dropout."""
    shuffle: Literal["full", "window", "none"] = "full"
    """Order of the training samples: all mixed, mixed within a buffer, or as they are stored."""
    shuffle_buffer: Count | None = None
    """Samples in the buffer of `shuffle: window`: it is filled, mixed, emptied and filled again."""
    bucket: Count | None = None
    """For sequences: among the samples of so many batches, those of like length share a batch, and the
    batches are mixed; a step then takes less time and less memory."""
    limit_batches: Count | None = None
    """Use only so many training batches an epoch."""
    accumulate: Count = 1
    """Cut each batch into so many parts that are run one after the other; the result is the same,
    the memory smaller."""
    eval_every: Natural = 1
    """Evaluate after every so many epochs; 0 means only at the end."""
    eval_split: Literal["test", "valid", "train"] = "test"
    """The split that is evaluated."""
    log_every: Count = 100
    """Log the training loss every so many steps."""
    stop_when: Condition | None = None
    """Stop after the evaluation that finds this: `test.accuracy >= 0.98`."""
    overfit: Count | None = None
    """Train on the first so many batches again and again, in their order, and evaluate on the same
    samples: a network that cannot learn them is wrong."""
    init_from: Name | None = None
    """Start from the weights of a run (its folder, id or recipe, or `last`) or of a .safetensors
    file instead of the initial values."""
    allow_partial: bool = False
    """Let `init_from` take the arrays that fit, and leave the initial values of all others."""
    loop: Names = ()
    """Entries that one iteration runs, in order; the one training step if left out."""

    @model_validator(mode="after")
    def _agree(self) -> Train:
        if self.shuffle == "window" and self.shuffle_buffer is None:
            complain("`shuffle: window` needs a `shuffle_buffer`", "shuffle")
        if self.shuffle != "window" and self.shuffle_buffer is not None:
            complain(
                "`shuffle_buffer` has a meaning with `shuffle: window` only: remove it "
                "(-o ~train.shuffle_buffer)",
                "shuffle_buffer",
            )
        if self.accumulate > self.batch_size:
            complain("`accumulate` is more than the samples of a batch", "accumulate")
        if self.overfit is not None and self.limit_batches is not None:
            complain("`overfit` and `limit_batches` both say how many batches there are", "overfit")
        if self.allow_partial and self.init_from is None:
            complain("`allow_partial` has a meaning with `init_from` only", "allow_partial")
        return self


class Checkpoint(Section):
    """When the run is saved, and what is kept."""

    every_epochs: Natural = 1
    """Save after every so many epochs; 0 means only at the end."""
    every_steps: Count | None = None
    """Save after every so many steps too."""
    keep_last: Count = 2
    """How many of the newest checkpoints are kept."""
    keep_best: Natural = 0
    """How many of the best are kept, by `monitor`."""
    monitor: MetricName | None = None
    """What best means: `test.loss`, `valid.accuracy`; that of `early_stopping` if left out."""
    mode: Mode | None = None
    """Whether a small or a large value of `monitor` is good; known for losses and usual metrics."""

    @model_validator(mode="after")
    def _agree(self) -> Checkpoint:
        if self.keep_best and self.monitor is None:
            complain("`keep_best` needs a `monitor`", "keep_best")
        return self


class EarlyStopping(Section):
    """End the training when a metric no longer gets better."""

    monitor: MetricName
    """What is watched: `test.loss`, `valid.accuracy`."""
    mode: Mode | None = None
    """Whether a small or a large value is good; known for losses and usual metrics."""
    patience: Count = 3
    """Stop after so many measurements in a row that were no better than the best before them."""
    min_delta: NonNegative = 0.0
    """A value must be better by more than this to count as better."""


class Bounds(Section):
    """The range that a result is expected in: `[low, high]`, or `{min: ..., max: ...}`."""

    shorthand: ClassVar[Any] = tuple[float, float]

    min: float | None = None
    """Smallest expected value."""
    max: float | None = None
    """Largest expected value."""

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, list):
            if len(value) != 2:
                complain("expected two numbers, `[low, high]`")
            return {"min": value[0], "max": value[1]}
        return value

    @model_validator(mode="after")
    def _agree(self) -> Bounds:
        if self.min is None and self.max is None:
            complain("expected `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            complain("the lower bound is above the upper one")
        return self

    def holds(self, value: float) -> bool:
        """Whether `value` lies inside; NaN does not."""
        low = float("-inf") if self.min is None else self.min
        high = float("inf") if self.max is None else self.max
        return low <= value <= high


class Predict(Section):
    """What `predict` reports."""

    output: Name | None = None
    """The output that is reported; the network's first if left out."""
    top: Count = 3
    """How many classes a record lists, the most probable first."""
    labels: Names | None = None
    """Names of the classes; those of the data set if left out."""
