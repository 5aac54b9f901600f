"""`train --dry-run`: everything that happens before step 1, and nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlecli.config.recipe import Recipe
from paddlecli.data.loader import Loader
from paddlecli.engine import measures
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import data_of, fields_of, prepare
from paddlecli.engine.report import plural


@dataclass(frozen=True)
class DryRun:
    """What a training would be."""

    recipe: str
    parameters: int
    samples: dict[str, int]
    steps_per_epoch: int
    steps: int
    plan_bytes: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The object that `train --dry-run --json` prints."""
        return {"schema": 1, "status": "dry run", **vars(self), "notes": list(self.notes)}

    def text(self) -> str:
        """The same for people."""
        samples = ", ".join(f"{count:,} {name}" for name, count in self.samples.items())
        lines = [
            f"{self.recipe}: {plural(self.parameters, 'parameter')}; samples: {samples}",
            f"{plural(self.steps, 'step')}, {self.steps_per_epoch:,} an epoch; plan of {self.plan_bytes:,} bytes",
            *(f"note: {note}" for note in self.notes),
            "nothing was trained or written",
        ]
        return "\n".join(lines)


def check(recipe: Recipe) -> DryRun:
    """Builds network, plan and session and opens the data.

    Raises:
        ConfigError, DataError, PaddleCliError: whatever `train` would have met before step 1.
    """
    prepared = prepare(recipe, fields_of(recipe))
    data = data_of(recipe)
    measures.check(prepared, data, Machine(prepared.artifact))
    train = recipe.train
    loader = Loader(
        data["train"], train.batch_size, drop_last=train.drop_last, limit=train.limit_batches
    )
    total = train.epochs * len(loader)
    return DryRun(
        recipe.name,
        prepared.parameters,
        {name: len(split) for name, split in data.splits.items()},
        len(loader),
        min(total, train.max_steps or total),
        len(prepared.artifact.plan),
        prepared.artifact.notes,
    )
