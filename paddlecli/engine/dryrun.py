"""`train --dry-run`: everything that happens before step 1, and nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlecli.config.recipe import Recipe
from paddlecli.engine import balance, initial, measures
from paddlecli.engine.due import Due
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import data_of, fields_of, loader_of, prepare
from paddlecli.engine.report import plural


@dataclass(frozen=True)
class DryRun:
    """What a training would be.

    Attributes:
        plan_bytes: of the compiled program; `state_bytes` of parameters, gradients and the optimizer's memory.
    """

    recipe: str
    parameters: int
    samples: dict[str, int]
    steps_per_epoch: int
    steps: int
    plan_bytes: int
    state_bytes: int
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The object that `train --dry-run --json` prints."""
        return {"schema": 1, "status": "dry run", **vars(self), "notes": list(self.notes)}

    def text(self) -> str:
        """The same for people."""
        samples = ", ".join(f"{count:,} {name}" for name, count in self.samples.items())
        lines = [
            f"{self.recipe}: {plural(self.parameters, 'parameter')}; samples: {samples}",
            f"{plural(self.steps, 'step')}, {self.steps_per_epoch:,} an epoch; "
            f"plan of {self.plan_bytes:,} bytes, state of {self.state_bytes:,} bytes",
            *(f"note: {note}" for note in self.notes),
            "nothing was trained or written",
        ]
        return "\n".join(lines)


def check(recipe: Recipe) -> DryRun:
    """Builds network, plan and session and opens the data.

    Raises:
        ConfigError, DataError, PaddleCliError: whatever `train` would have met before step 1.
    """
    recipe = balance.resolved(initial.resolved(recipe))
    prepared = prepare(recipe, fields_of(recipe))
    start = initial.start_of(recipe, prepared.graph)
    data = data_of(recipe)
    machine = Machine(prepared.artifact)
    measures.watch_of(prepared, data.splits)
    batches = len(loader_of(recipe, data))
    said = (prepared.learning(), balance.text(recipe, data))
    notes = (*filter(None, said), *data.spec.remarks, *prepared.artifact.notes)
    return DryRun(
        recipe.name,
        prepared.parameters,
        {name: len(split) for name, split in data.splits.items()},
        batches,
        Due(recipe, batches).steps,
        len(prepared.artifact.plan),
        machine.state_bytes,
        notes if start is None else (start.text(), *notes),
    )
