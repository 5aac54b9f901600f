"""Rules of the house that hold for every file: which way imports run, what stays private, what no file may do."""

from __future__ import annotations

import ast
import glob
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "paddlecli"
ROOMS = ("config", "ops", "graph", "models", "compiler", "runtime", "data", "engine", "cli")
"""In this order: a room imports from rooms before it. `graph` and `models` may import from each other."""
RANK = {room: 2 if room == "models" else i for i, room in enumerate(ROOMS)}
FOUNDATION = ("errors", "settings", "assets")
"""Modules at the top that every room may import, and that import no room."""
FORBIDDEN = ("torch", "paddle", "pickle", "shelve", "marshal", "joblib", "dill")


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of every import of a file, those inside functions too."""
    folder = path.relative_to(TOP).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from ((node.lineno, module, alias.name) for alias in node.names)


def room_of(module: str, name: str) -> str:
    """`config` for paddlecli.config.load; for what stands at the top of the package its own name."""
    parts = [*module.split("."), name]
    return parts[1] if parts[0] == "paddlecli" and len(parts) > 1 else ""


FILES = sorted(
    p for p in PACKAGE.rglob("*.py") if "_assets" not in p.parts and "_core" not in p.parts
)


def test_imports_run_one_way() -> None:
    faults = []
    for path in FILES:
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for line, module, name in imports(path):
            room = room_of(module, name)
            if room in ("", own, *FOUNDATION) or own in ("__main__", "__init__"):
                continue
            if own in FOUNDATION or (room in RANK and RANK[room] > RANK[own]):
                faults.append(f"{path.relative_to(TOP)}:{line}: {own} imports {module} {name}")
    assert len(FILES) > 100 and not faults


def test_private_names_stay_in_their_room() -> None:
    """In `ops` an underscore at the front of a file only says that it is no op."""
    faults = []
    for path in FILES:
        own = path.relative_to(PACKAGE).parts[0]
        for line, module, name in imports(path):
            room = room_of(module, name)
            parts = [name] if room == "ops" else [*module.split("."), name]
            if room not in ("", own) and any(re.match("_[^_]", part) for part in parts):
                faults.append(f"{path.relative_to(TOP)}:{line}: {module} {name}")
    assert not faults


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_other_framework_and_nothing_that_runs_code_when_it_is_read(path: Path) -> None:
    assert not [f"{line}: {m}" for line, m, _ in imports(path) if m.partition(".")[0] in FORBIDDEN]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["recipe", "list"], ["dataset", "list"]], ids=" ".join
)
def test_what_only_lists_loads_neither_numpy_nor_the_core(arguments: list[str]) -> None:
    watched = ("numpy", "cffi", "_cffi_backend", "paddlecli.runtime")
    code = (
        "import sys; from paddlecli.cli.app import main; code = main(sys.argv[1:]); "
        f"print([m for m in {watched!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n") and done.stdout


# -- the core ------------------------------------------------------------------------------------------------------------------------
CORE = sorted(
    p for p in (TOP / "core").rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh", ".cpp")
)
ENDS_OR_PRINTS = re.compile(
    r"\b(abort|exit|_exit|_Exit|quick_exit|assert|printf|fprintf|vprintf|puts|putchar|perror|system|getenv)\s*\("
)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(TOP)))
def test_the_core_neither_ends_the_process_nor_prints(path: Path) -> None:
    """Every failure is a status; the environment is read by Python alone."""
    assert not ENDS_OR_PRINTS.findall(COMMENT.sub("", path.read_text()))


def test_the_core_is_compiled_with_honest_flags() -> None:
    text = re.sub(r"#[^\n]*", "", (TOP / "core/CMakeLists.txt").read_text())
    for flag in ("-ffast-math", "-Ofast", "-march=native", "-mtune=native", "-fopenmp"):
        assert flag not in text
    assert "-fno-math-errno" in text and "-fno-trapping-math" in text
    assert not [p.name for p in CORE if "#pragma omp" in p.read_text()]


INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
MADE = {"pk_build.h", "pk_tables.h", "pk_cuda_tables.h"}
"""Headers that CMake writes from what it hashes."""
COMPILED = {
    "core": ("ops/*.c", "cpu/*.c", "src/*.c"),
    "core/cuda": ("ops/*.cu", "src/*.c", "cpu/memory.c", "cuda/backend.cu", "cuda/emulate/*.cpp"),
}


def hashed_into_the_build(folder: Path) -> set[Path]:
    """The files that a CMakeLists.txt names in `hashed`, through the globs it makes."""
    text = (folder / "CMakeLists.txt").read_text().replace("${core}", str(TOP / "core"))
    text = text.replace("${CMAKE_CURRENT_SOURCE_DIR}", str(folder))
    (hashed,) = re.findall(r"^set\(hashed ([^)]*)\)", text, re.MULTILINE)
    patterns = [name for name in hashed.split() if not name.startswith("$")]
    for variable in re.findall(r"\$\{(\w+)\}", hashed):
        globs = re.findall(rf"file\(GLOB {variable} CONFIGURE_DEPENDS ([^)]*)\)", text)
        patterns += [pattern for names in globs for pattern in names.split()]
    return {Path(os.path.normpath(f)) for p in patterns for f in glob.glob(str(folder / p))}


@pytest.mark.parametrize("folder", COMPILED)
def test_a_build_is_named_by_every_header_it_is_made_of(folder: str) -> None:
    """run.json says which core a run had: no header may change without that name changing."""
    by_name = defaultdict(list)
    for path in CORE:
        by_name[path.name].append(path)
    todo = [path for pattern in COMPILED[folder] for path in (TOP / "core").glob(pattern)]
    seen = set(todo)
    while todo:
        for name in INCLUDE.findall(todo.pop().read_text()):
            found = by_name[Path(name).name]
            assert found or name in MADE, name
            todo += set(found) - seen
            seen.update(found)
    headers = {path for path in seen if path.suffix in (".h", ".cuh")}
    left_out = headers - hashed_into_the_build(TOP / folder)
    assert len(headers) > 20 and not sorted(p.relative_to(TOP) for p in left_out)
