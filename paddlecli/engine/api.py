"""The functions that Python programs and the command line call: `load_recipe`, `fit`, `evaluate`, `predict`, and `check`.

They take what a user writes (names, paths, durations in seconds), look it up, and hand it to the engine. The package exports
them at its top: `from paddlecli import fit`. What they return are dataclasses with `as_dict()` for JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import settings
from paddlecli.config import load
from paddlecli.config.plugins import CodeFile, load_code
from paddlecli.config.recipe import Recipe
from paddlecli.engine import rundir
from paddlecli.engine.display import Copied, Display, choose
from paddlecli.engine.report import Result
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import PaddleCliError, UsageError

if TYPE_CHECKING:
    from paddlecli.engine.dryrun import DryRun
    from paddlecli.engine.evaluate import Evaluation
    from paddlecli.engine.modeldir import Model
    from paddlecli.engine.options import Options
    from paddlecli.engine.predict import Predictions

Source = Recipe | str | Path
Run = RunDir | str | Path
Code = Sequence[str | Path]


def load_recipe(source: str | Path, overrides: Sequence[str] = (), *, code: Code = ()) -> Recipe:
    """Reads a recipe and checks all of it.

    Args:
        source: a shipped recipe's name, a file (`./my.yaml` or any Path), or `-` for stdin.
        overrides: `key=value` or `~key`, as given with `-o`.
        code: Python files that register layers, losses, data sets and so on, loaded before.

    Raises:
        ConfigError: with every fault of the first stage that has any.
    """
    load_code(code)
    return load.load_recipe(source, overrides)


def fit(
    recipe: Source | None = None,
    overrides: Sequence[str] = (),
    *,
    resume: bool | Run = False,
    run_dir: str | Path | None = None,
    force: bool = False,
    code: Code = (),
    threads: int | None = None,
    device: str | None = None,
    max_seconds: float | None = None,
    streamed: bool = False,
    profile: bool = False,
    display: Display | bool = False,
    log_file: str | Path | None = None,
    told: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Trains a recipe in a fresh run directory, or continues a run with the same bits as if it had never stopped.

    Args:
        recipe: a recipe, or what `load_recipe` takes. With `resume=True` it says of which recipe the last run is continued.
        overrides: settings that win over the recipe's, `key=value` or `~key`.
        resume: a run (directory, id, recipe's name, `last`), or True for the last one.
        run_dir: where to write; a fresh folder under the runs folder if None.
        force: move a used `run_dir` aside.
        code: Python files with code of your own; run.json says which.
        threads: of the core; results do not change.
        device: `cpu`, `cuda`, `cuda:1` or `auto`.
        max_seconds: save and stop after so long; the status is then `stopped`.
        streamed: gather batches outside the core; same result.
        profile: time every kernel, see `Result.profile`.
        display: what shows progress on stderr; True chooses by the terminal.
        log_file: a file that all that is said is added to.
        told: is given the result however the training ends, also when an error is raised behind it.

    Raises:
        UsageError: the arguments contradict each other.
        ConfigError, DataError: recipe or data are wrong; nothing was written.
        RunError: the run directory cannot be used.
        NumericalError: the loss became NaN or infinite; the run directory holds the last good checkpoint.
    """
    from paddlecli.engine import fit as engine
    from paddlecli.engine.options import Options

    shown = choose(not display, True) if isinstance(display, bool) else display
    with settings.flags(threads=threads, device=device), _logged(shown, log_file) as show:

        def tell(result: Result) -> None:
            if isinstance(show, Copied):
                show.write(result.text())
            told(result)

        options = Options(
            _folder(run_dir), force, streamed=streamed, max_seconds=max_seconds, profile=profile,
            code=load_code(code), told=tell,
        )  # fmt: skip
        if resume is False:
            return engine.fit(_recipe(recipe, overrides), options, show)
        run, more = _continued(recipe, overrides, resume, options)
        return engine.resume(run, more, options, show)


@contextmanager
def _logged(shown: Display, path: str | Path | None) -> Iterator[Display]:
    """The display, with all that it shows in a file too, and the error that ended it."""
    if path is None:
        yield shown
        return
    log = Copied(shown, Path(path))
    try:
        yield log
    except PaddleCliError as error:
        log.write(f"error: {error}")
        raise


def _folder(path: str | Path | None) -> Path | None:
    if path is None:
        return None
    if path == "":
        raise UsageError("--run-dir is empty", hint="leave it out for a fresh folder")
    return Path(path)


def _recipe(recipe: Source | None, overrides: Sequence[str]) -> Recipe:
    if recipe is None:
        raise UsageError(
            "a recipe is missing",
            hint="paddlecli train --config NAME; `paddlecli recipe list` shows the names",
        )
    if not isinstance(recipe, Recipe):
        return load.load_recipe(recipe, overrides)
    if overrides:
        raise UsageError("this recipe is loaded", hint="give the overrides to load_recipe")
    return recipe


def _continued(
    recipe: Source | None, overrides: Sequence[str], resume: bool | Run, options: Options
) -> tuple[RunDir, Sequence[str]]:
    """The run to continue, and the overrides for it."""
    from paddlecli.engine.fit import changes

    if options.run_dir is not None or options.force:
        raise UsageError(
            "--resume goes on in the run's own directory", hint="leave out --run-dir and --force"
        )
    if not isinstance(resume, bool):
        if recipe is not None:
            raise UsageError(
                "--resume RUN takes the run's own recipe",
                hint="leave out the recipe; or leave out RUN for the recipe's last run",
            )
        return _run(resume), overrides
    if recipe is None:
        return rundir.last(), overrides
    wanted = _recipe(recipe, overrides)
    run = rundir.last(wanted.name)
    return run, changes(run, wanted)


def _run(run: Run) -> RunDir:
    return run if isinstance(run, RunDir) else rundir.find(str(run))


def _model(run: Run, files: tuple[CodeFile, ...], top: int | None) -> Model:
    """The saved model of a run; `top` instead of the recipe's number of classes that are listed."""
    from paddlecli.engine.predict import model_of

    model = model_of(str(run.path if isinstance(run, RunDir) else run), files)
    return model if top is None else replace(model, report={**model.report, "top": top})


def _pairs(fields: Mapping[str, Any] | Sequence[str]) -> Sequence[str]:
    """Fields as the command line would have them."""
    return [f"{k}={_text(v)}" for k, v in fields.items()] if isinstance(fields, Mapping) else fields


def _text(value: Any) -> str:
    """A field's value as the command line would have it."""
    if isinstance(value, str):
        return value
    return json.dumps(value.tolist() if hasattr(value, "tolist") else value)


def check(
    recipe: Source,
    overrides: Sequence[str] = (),
    *,
    code: Code = (),
    threads: int | None = None,
    device: str | None = None,
) -> DryRun:
    """All that a training does before its first step, and nothing is written: what `train --dry-run` prints. Arguments as for
    `fit`.

    Raises:
        PaddleCliError: whatever `fit` would have met.
    """
    from paddlecli.engine.dryrun import check as dry_run

    load_code(code)
    with settings.flags(threads=threads, device=device):
        return dry_run(_recipe(recipe, overrides))


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    batch_size: int | None = None,
    least: Mapping[str, float] | None = None,
    most: Mapping[str, float] | None = None,
    code: Code = (),
    threads: int | None = None,
    device: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Evaluation:
    """The metrics of a run's saved parameters, the same numbers that training reported.

    Args:
        run: a run: its directory, id, recipe's name, or `last`.
        split: the one that training evaluates if None.
        batch_size: the recipe's if None; only `<loss>_batch_mean` depends on it.
        least: metrics and the least values that are demanded; `most` likewise. `Evaluation.missed` says what came of it, and
            `Evaluation.demand()` raises MetricError.
        code: Python files with code of your own.
        threads: of the core; results do not change.
        device: `cpu`, `cuda`, `cuda:1` or `auto`.
        say: is given lines that a user should see.

    Raises:
        RunError: no such run, or nothing was saved in it yet.
        DataError: the data are missing, or have no such split.
        UsageError: a metric is demanded that is not measured.
    """
    from paddlecli.engine.evaluate import evaluate as engine

    files = load_code(code)
    with settings.flags(threads=threads, device=device):
        return engine(
            _run(run), split, batch_size=batch_size, least=least, most=most, say=say, code=files
        )


def predict(
    run: Run,
    inputs: Sequence[str | Path] = (),
    *,
    fields: Mapping[str, Any] | Sequence[str] = (),
    texts: Sequence[str] = (),
    arrays: Mapping[str, Any] | None = None,
    batch_size: int | None = None,
    save_preprocessed: str | Path | None = None,
    lists: Sequence[str | Path] = (),
    recursive: bool = True,
    top: int | None = None,
    samples: int | None = None,
    seed: int = 0,
    pictures: str | Path | None = None,
    grid: str | Path | None = None,
    code: Code = (),
    threads: int | None = None,
    device: str | None = None,
) -> Predictions:
    """Answers of a saved model: iterate over the result, one `Prediction` for each input, in order.

    Args:
        run: a run: its directory, id, recipe's name, `last`; or a model folder that was moved elsewhere.
        inputs: files, folders, patterns, `-` for stdin.
        fields: values by name, together one input.
        texts: texts, each one input, for networks that take one.
        arrays: by input of the network, all rows in one array, as the data set stores them.
        batch_size: inputs that are run together; no answer depends on it.
        save_preprocessed: a folder that gets what the network sees of each input.
        lists: files with a path a line, `-` for stdin.
        recursive: look for files in the folders inside a folder too.
        top: classes that an answer lists, the most probable first; what the recipe says if None.
        samples: instead of inputs, how many samples a network makes up that reads none.
        seed: start of its random numbers.
        pictures: a folder that gets each output that is a picture, as PNG.
        grid: a PNG file that gets all of them.
        code: Python files with code of your own.
        threads: of the core; results do not change.
        device: `cpu`, `cuda`, `cuda:1` or `auto`.

    Raises:
        RunError: no such run, or nothing was saved in it yet.
        UsageError: nothing to predict, or it does not fit the model.
    """
    from paddlecli.engine import stored
    from paddlecli.engine.predict import Predictions, Predictor, album_of, records_of

    files = load_code(code)
    model = _model(run, files, top)
    with stored.asking(model.report, files):
        records = records_of(
            model, list(map(str, inputs)), _pairs(fields), texts, arrays, save_preprocessed,
            list(map(str, lists)), recursive, samples,
        )  # fmt: skip
    records = stored.asked(model.report, files, records)
    with settings.flags(threads=threads, device=device):
        predictor = Predictor(model, batch_size=batch_size, seed=seed)
    return Predictions(predictor, records, album_of(predictor, pictures, grid, samples or 0))
