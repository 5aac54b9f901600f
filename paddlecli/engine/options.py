"""How to train, apart from what the recipe says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paddlecli.config.plugins import CodeFile
from paddlecli.engine.report import Result


@dataclass(frozen=True)
class Options:
    """How to train, apart from what the recipe says. None of it changes a result.

    Attributes:
        run_dir: where to write; a fresh folder under the runs folder if None.
        force: move a used `run_dir` aside.
        threads: of the core; the setting if None.
        streamed: gather batches in a thread of Python instead of in the core.
        max_seconds: save and stop so long after `began`, by the clock of `time.monotonic`.
        profile: time each operation.
        code: files of user code that were loaded; run.json says which.
        told: is given the result however the training ends, also when an error is raised behind it.
    """

    run_dir: Path | None = None
    force: bool = False
    threads: int | None = None
    streamed: bool = False
    max_seconds: float | None = None
    began: float = field(default_factory=time.monotonic)
    profile: bool = False
    code: Sequence[CodeFile] = ()
    told: Callable[[Result], None] = lambda result: None
