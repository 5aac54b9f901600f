"""The recipe language: one pydantic model a section, every field described where it stands.

Sections are frozen and strict: an unknown key, a bool for a number, NaN or infinity are errors.
Names of networks, layers, losses, optimizers, schedules, metrics and data sets, and the arguments
given to them, are checked against the registries (`check.py`), not here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from paddlecli.config.nodes import kind_of
from paddlecli.config.schema_network import NameOrNames, Names, Regularizer
from paddlecli.config.sections import (
    Called,
    Named,
    OneOf,
    Section,
    complain,
    pick_names,
    pick_optimizer,
    pick_weights,
)
from paddlecli.config.types import Count, Fraction, Name, Natural, NonNegative, Positive
from paddlecli.config.words import Balanced

MetricName = Annotated[
    str,
    Field(
        pattern=r"^(train|valid|test)\.[A-Za-z0-9_@]+$",
        title="a split and a metric, such as `test.loss`",
    ),
]
CONDITION = (
    r"^(train|valid|test)\.[A-Za-z0-9_@]+ *(<=|>=|<|>) *[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
)
"""What `train.stop_when` holds: a split and a metric, a comparison, a number."""
Condition = Annotated[
    str,
    Field(
        pattern=CONDITION,
        title="a metric, <, <=, > or >= and a number, such as `test.accuracy >= 0.98`",
    ),
]
Mode = Literal["min", "max"]


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


ClassWeights = Annotated[
    Annotated[Balanced, Tag("<word>")]
    | Annotated[tuple[NonNegative, ...], Field(min_length=1, strict=False), Tag("<list>")]
    | Annotated[dict[Name, NonNegative], Field(min_length=1), Tag("<mapping>")],
    Discriminator(pick_weights),
]


Recompute = Annotated[
    Annotated[Literal["none", "auto"], Tag("<name>")]
    | Annotated[tuple[Name, ...], Field(min_length=1, strict=False), Tag("<list>")],
    Discriminator(pick_names),
]


class Ema(Section):
    """Averages of the weights over the steps, average = decay * average + (1 - decay) * weight: they
    are what is evaluated and saved; training itself goes on with the weights."""

    decay: Fraction = 0.999
    """How much of the average each step keeps."""
    warmup: bool = True
    """Keep less in the first steps, (1 + n) / (10 + n) in step n, until that is more than `decay`: the
    average then soon forgets the initial values."""


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
    recompute: Recompute = "none"
    """Values of the forward pass that are not kept for the gradients but computed a second time: `none`,
    those whose lack saves most memory (`auto`), or those inside of the scopes, and between the layers,
    whose paths match patterns such as `stage1/*`. The result is the same to the bit, a step takes
    longer."""
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
    init_skip: Names = ()
    """Patterns of the arrays that `init_from` does not load, such as `fc/*` for a new head: they keep
    their initial values, and all others must fit."""
    class_weights: ClassWeights | None = None
    """How much the samples of each class count in the training loss: a list in the order of the classes,
    a mapping by their names (1 for those left out), or `balanced`, which makes the classes of the train
    split count alike. The evaluation's loss is not weighted."""
    label_smoothing: Fraction = 0.0
    """Share of a label that is spread evenly over all classes, in the training loss."""
    ema: Ema | None = None
    """Averages of the weights, which are then evaluated and saved; none if left out."""
    loop: Names = ()
    """Entries that one iteration runs, in order; the one training step if left out."""

    @field_validator("recompute", mode="before")
    @classmethod
    def _recompute(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple) and value not in ("none", "auto"):
            expected = "`none`, `auto`, or a list of patterns of layer paths such as `[stage1/*]`"
            complain(f"`recompute` must be {expected}, got {kind_of(value)}", expected=expected)
        return value

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
        if "init_from" not in self.model_fields_set:  # null is from scratch after all
            if self.allow_partial:
                complain("`allow_partial` has a meaning with `init_from` only", "allow_partial")
            if self.init_skip:
                complain("`init_skip` has a meaning with `init_from` only", "init_skip")
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


class Pictures(Section):
    """An output [N, channels, height, width] that is pictures, grey or in colours."""

    low: float = 0.0
    """The value that is black."""
    high: float = 1.0
    """The value that is white, or the whole of a colour."""

    @model_validator(mode="after")
    def _agree(self) -> Pictures:
        if self.low == self.high:
            complain("`low` and `high` are the same number", "high")
        return self


class Predict(Section):
    """What `predict` reports."""

    output: Name | None = None
    """The output that is reported; the network's first if left out."""
    top: Count = 3
    """How many classes a record lists, the most probable first."""
    labels: Names | None = None
    """Names of the classes; those of the data set if left out."""
    pictures: Pictures | None = None
    """The output is pictures: which of its values are black and white. Class numbers [N, height, width]
    are pictures without it."""
