"""What `paddlecli doctor` checks: this installation, this machine, the settings, and a short
training.

A check is a function that gives a `Finding`; an error of the tree that it raises is a fault with
the error's own cure and exit code. Nothing is left behind: folders are not made, the training's run
directory is temporary.
"""

from __future__ import annotations

import math
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import __version__, assets, settings
from paddlecli.engine.doctor_machine import Finding, cpuinfo, features, folder, memory, processor
from paddlecli.errors import PaddleCliError, ResourceError

if TYPE_CHECKING:
    from paddlecli.engine.report import Result

BUG = 1
CHANCE = math.log(4)
"""Loss of a network that has learned nothing of the four classes below."""
TRAINING = """
name: doctor
data:
  name: generated
  samples: 4096
  test_samples: 0
  fields:
    - {name: x, shape: [64]}
    - {name: y, shape: [1], dtype: int64, classes: 4, role: label}
model:
  inputs:
    x: {shape: [64]}
    y: {shape: [1], dtype: int64, below: 4, role: label}
  layers:
    - fc: {size: 256, activation: relu}
    - fc: {size: 4}
      name: logits
  loss: {softmax_with_cross_entropy: {}, from: [logits, y]}
optimizer: {name: adam, learning_rate: 0.003}
train: {epochs: 1000000, batch_size: 64, eval_every: 0, log_every: 1000000}
checkpoint: {every_epochs: 0}
"""
"""A small network that learns four thousand random labels by heart."""
OTHERS = (
    "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "NO_COLOR", "FORCE_COLOR", "CLICOLOR",
    "TERM", "COLUMNS", "SOURCE_DATE_EPOCH",
)  # fmt: skip
"""Variables that this program or a library in use obeys, beside its own."""


@dataclass(frozen=True)
class Check:
    """A check by its name, with what it found."""

    name: str
    finding: Finding

    def as_dict(self) -> dict[str, Any]:
        """The object that `doctor --json` lists."""
        found = self.finding
        return {"name": self.name, "status": found.status, "text": found.text, "cure": found.cure or None,
                "code": found.code, "values": dict(found.values)}  # fmt: skip


def examine(seconds: float = 2.0) -> Iterator[Check]:
    """All checks in order, each when it is done; `seconds` is how long the training takes (0:
    none)."""
    checks: dict[str, Callable[[], Finding]] = {
        "python": _python,
        "packages": _packages,
        "core": _core,
        "instruction set": _instruction_set,
        "cuda": _cuda,
        "processor": processor,
        "memory": memory,
        "cache directory": partial(folder, "cache_dir", settings.cache_dir),
        "runs directory": partial(folder, "runs_dir", settings.runs_dir),
        "settings": _settings,
        "environment": _environment,
        "recipes": _recipes,
        "plug-ins": _plugins,
    }
    if seconds > 0:
        checks["training"] = partial(_training, seconds)
    for name, check in checks.items():
        yield Check(name, _run(check))


def _run(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except PaddleCliError as error:
        return Finding(error.message, "fault", error.hint or "", error.exit_code)
    except OSError as error:
        code = ResourceError.exit_code
        return Finding(str(error), "fault", "check the file system and its permissions", code)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Finding(text, "fault", "report this as a bug in paddlecli", BUG)


# -- the installation ------------------------------------------------------------------------------
def _python() -> Finding:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    text = f"{platform.python_implementation()} {platform.python_version()}, {system}"
    return Finding(text, values={"executable": sys.executable, "paddlecli": __version__})


def _packages() -> Finding:
    needed, further = _requirements()
    versions = {name: _version(name) for name in (*needed, *further)}
    missing = [f"{name} ({rule})" for name, rule in needed.items() if versions[name] is None]
    old = [
        f"{name} {versions[name]} ({rule})"
        for name, rule in needed.items()
        if versions[name] is not None and not fits(str(versions[name]), rule)
    ]
    optional = ", ".join(f"{n} {versions[n]}" for n in further if versions[n]) or "none"
    values = {"versions": {k: v for k, v in versions.items() if v is not None}}
    cure = "pip install --upgrade paddlecli"
    if missing:
        text = f"missing: {', '.join(missing)}"
        return Finding(text, "fault", cure, ResourceError.exit_code, values)
    if old:
        return Finding(f"of another version: {', '.join(old)}", "warning", cure, values=values)
    return Finding(f"all {len(needed)} that are needed; optional: {optional}", values=values)


def _requirements() -> tuple[dict[str, str], dict[str, str]]:
    """Needed and optional packages with their version rules, from the installed metadata, or in a
    checkout from pyproject.toml."""
    try:
        lines = metadata.requires("paddlecli") or []
    except metadata.PackageNotFoundError:
        import tomllib

        project = tomllib.loads((assets.root() / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        lines = [*project["dependencies"],
                 *(f"{r}; extra == '{e}'" for e, rs in extras.items() for r in rs)]  # fmt: skip
    needed: dict[str, str] = {}
    further: dict[str, str] = {}
    for line in lines:
        text, _, marker = line.partition(";")
        name, rule = re.findall(r"^([\w.-]+)(?:\[.*\])?\s*\(?([^)]*)\)?$", text.strip())[0]
        if "extra" not in marker:
            needed[name] = rule.strip()
        elif not re.search(r"""['"]test['"]""", marker):
            further[name] = rule.strip()
    return needed, further


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str, rule: str) -> bool:
    """Whether a version obeys `>=1.2,<2`. Versions count by their leading numbers."""
    compare: dict[str, Callable[[list[int], list[int]], bool]] = {
        ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b, ">": lambda a, b: a > b, "<": lambda a, b: a < b,
    }  # fmt: skip
    have = _numbers(version)
    for sign, bound in re.findall(r"(>=|<=|==|!=|<|>)\s*([\w.]+)", rule):
        wanted = _numbers(bound)
        length = max(len(have), len(wanted))
        padded = [n + [0] * (length - len(n)) for n in (have, wanted)]
        if not compare[sign](*padded):
            return False
    return True


def _numbers(version: str) -> list[int]:
    leading = re.match(r"\d+(\.\d+)*", version)
    return [int(n) for n in leading[0].split(".")] if leading else []


def _core() -> Finding:
    from paddlecli.runtime import native

    info = native.info()
    differing = native.mismatches()
    values = {"folder": str(native.folder()), "build": info.build, "kernels": info.kernels,
              "compiler": _compiler(native.library_path("cpu"))}  # fmt: skip
    if differing:
        text = (
            f"{values['folder']}: {len(differing)} kernels are not this program's: {differing[0]}"
        )
        cure = "build the core again (pip install ., or ninja in the folder of PADDLECLI_CORE)"
        return Finding(text, "fault", cure, ResourceError.exit_code, values)
    text = f"{info.build}, {info.kernels} kernels, built with {values['compiler']}, in {values['folder']}"
    return Finding(text, values=values)


def _compiler(library: Path) -> str:
    """What the compiler wrote into the library."""
    found = re.search(
        rb"GCC: \([^)]*\) [\d.]+|(?:Apple )?clang version [\d.]+", library.read_bytes()
    )
    return found[0].decode() if found else "a compiler that left no name"


def _instruction_set() -> Finding:
    from paddlecli.runtime import native

    level, asked, known = native.info().level, settings.isa(), features()
    best = "avx512" if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= known else (
        "avx2" if {"avx2", "fma", "f16c"} <= known else "")  # fmt: skip
    model = cpuinfo("model name") or platform.processor() or platform.machine()
    values = {"level": level, "asked": asked, "features": sorted(known), "processor": model}
    text = f"{level} ({asked}) on {model}"
    if asked != "auto" and best and level != best:
        text = f"{level}, because PADDLECLI_ISA says so; {model} could {best}"
        return Finding(text, "warning", "unset PADDLECLI_ISA", values=values)
    if best and level == "baseline":
        text = f"{level}, but {model} could {best}"
        return Finding(
            text, "warning", "build the core for all levels (no PK_LEVELS)", values=values
        )
    return Finding(text, values=values)


def _cuda() -> Finding:
    from paddlecli.runtime import native
    from paddlecli.runtime.device import device

    card = any(Path("/dev").glob("nvidia[0-9]*"))
    wanted = settings.device().startswith("cuda")
    if not native.library_path("cuda").is_file():
        text = "this build has no CUDA backend"
        if wanted:
            device()  # says what to do
        if card:
            cure = "install the CUDA toolkit and build the core with PK_CUDA=ON"
            return Finding(f"{text}, but there is an NVIDIA card", "warning", cure)
        return Finding(f"{text}; the CPU is used")
    try:
        found = device(settings.device() if wanted else "cuda")
    except PaddleCliError as error:
        if wanted:
            raise
        return Finding(f"built, not usable here: {error.message}; the CPU is used")
    return Finding(f"{found}, {native.info('cuda').kernels} kernels")


# -- settings --------------------------------------------------------------------------------------
def _settings() -> Finding:
    given = {}
    for row in settings.TABLE:
        value, source = settings.lookup(row.name)
        if source != "default":
            given[row.name] = f"{value} ({source})"
    file = settings.user_file()
    where = f"{file}" if file.is_file() else f"no {file}"
    listed = ", ".join(f"{k} = {v}" for k, v in given.items()) or "all by default"
    return Finding(f"{listed}; {where}", values=given)


def _environment() -> Finding:
    from paddlecli.config.nodes import close_names

    known = [s.variable for s in settings.TABLE]
    values = {n: v for n in (*known, *OTHERS) if (v := settings.environment(n)) is not None}
    shown = {n: re.sub(r"//[^/@]*@", "//...@", v) for n, v in values.items()}
    strange = settings.unknown_variables()
    if strange:
        near = {n: close_names(n, known) for n in strange}
        told = [f"{n} (meant {near[n][0]}?)" if near[n] else n for n in strange]
        cure = f"unset them, or use one of {', '.join(known)}"
        return Finding(f"not obeyed: {', '.join(told)}", "warning", cure, values=shown)
    return Finding(", ".join(f"{n}={v}" for n, v in shown.items()) or "nothing set", values=shown)


def _recipes() -> Finding:
    names, cards = assets.recipe_names(), assets.names("datasets")
    text = f"{len(names)} recipes, {len(cards)} data set cards in {assets.root()}"
    return Finding(text, values={"recipes": len(names), "datasets": len(cards)})


def _plugins() -> Finding:
    from paddlecli.config.plugins import GROUP, load_code

    names = sorted(point.name for point in metadata.entry_points(group=GROUP))
    load_code()
    return Finding(", ".join(names) or "none", values={"names": names})


def _training(seconds: float) -> Finding:
    """The real road: a recipe's text, a run directory, a checkpoint."""
    result = _trained(seconds)
    if result.steps == 0:  # a slow or busy machine: the time went into the preparation
        result = _trained(5 * seconds)
    loss = result.metrics.get("train", {}).get("loss", math.nan)
    values: dict[str, Any] = {
        "samples_per_second": round(result.samples_per_second, 1),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "loss": None if math.isnan(loss) else loss,
    }
    text = f"{result.samples_per_second:,.0f} samples/s over {result.steps:,} steps"
    if math.isnan(loss):
        return Finding(f"{text}: too few for the loss to tell anything", values=values)
    text += f", loss {loss:.4f}"
    if loss >= CHANCE:
        text += f": nothing was learned, {CHANCE:.4f} is chance"
        cure = "install paddlecli again; if that does not help, report it"
        return Finding(text, "fault", cure, BUG, values)
    return Finding(text, values=values)


def _trained(seconds: float) -> Result:
    from paddlecli.engine import api

    with tempfile.TemporaryDirectory(prefix="paddlecli-doctor-") as place:
        recipe = Path(place) / "doctor.yaml"
        recipe.write_text(TRAINING, encoding="utf-8")
        return api.fit(recipe, run_dir=Path(place) / "run", max_seconds=seconds)
