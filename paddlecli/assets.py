"""Where the shipped YAML lies: recipes, the fragments for `extends`, data set cards.

Installed, they are in `paddlecli/_assets`; in a checkout (or an editable install) in the folder
above the package, if that folder holds this project's pyproject.toml. The working directory is
never searched. This module reads no YAML and imports nothing that is slow.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from paddlecli.errors import ResourceError

Kind = Literal["configs", "recipes", "datasets"]
DEFAULT_RECIPE = "default"
IMPORT_MAPS = "import"
"""Below `configs/`: what other programs' weights are called here, no fragments of recipes."""
SCHEMA = "recipe.schema.json"
"""The recipe language for editors, beside the shipped recipes."""


@cache
def root() -> Path:
    """The folder that holds `configs/`, `recipes/` and `datasets/`.

    Raises ResourceError when the installation lacks them.
    """
    package = Path(__file__).resolve().parent
    installed = package / "_assets"
    if installed.is_dir():
        return installed
    if _is_checkout(package.parent):
        return package.parent
    raise ResourceError(
        f"the recipes that ship with paddlecli are missing: neither {installed} nor a checkout",
        hint="install paddlecli again",
    )


def _is_checkout(folder: Path) -> bool:
    project = folder / "pyproject.toml"
    if not project.is_file():
        return False
    with project.open("rb") as file:
        return bool(tomllib.load(file).get("project", {}).get("name") == "paddlecli")


def directory(kind: Kind) -> Path:
    """The folder of one kind of shipped file."""
    return root() / kind


def names(kind: Kind) -> list[str]:
    """Names of all shipped files of a kind, as users write them, sorted."""
    folder = directory(kind)
    found = (p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.yaml"))
    return sorted(found)


def fragment_names() -> list[str]:
    """Names of the shipped fragments for `extends`."""
    return [n for n in names("configs") if not n.startswith(f"{IMPORT_MAPS}/")]


def recipe_names() -> list[str]:
    """Names of the shipped recipes; a chapter with a default appears under its own name too."""
    suffix = f"/{DEFAULT_RECIPE}"
    return sorted(n.removesuffix(suffix) for n in names("recipes"))


def find(kind: Kind, name: str) -> Path | None:
    """The shipped file of that name; a folder's name means its `default.yaml`."""
    if not name or any(part in ("", ".", "..") for part in name.split("/")):
        return None
    folder = directory(kind)
    for path in (folder / f"{name}.yaml", folder / name / f"{DEFAULT_RECIPE}.yaml"):
        if path.is_file():
            return path
    return None


def is_path(text: str) -> bool:
    """Whether a user's text means a file rather than the name of something shipped.

    Files start with a separator or a dot (`./x`, `../x`, `/x`, `~/x`), carry a drive or a
    backslash, or have an extension.
    """
    if text.startswith(("/", "./", "../", "~")) or "\\" in text or text in (".", ".."):
        return True
    if len(text) > 1 and text[1] == ":":
        return True
    return bool(Path(text).suffix)
