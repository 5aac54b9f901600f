"""A recipe's text moved to another place: comments and layout stay, relative paths still lead to the
same files, and the header names the copy."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath

import yaml

from paddlecli import assets
from paddlecli.config import shape
from paddlecli.config.load import find_recipe, load_recipe
from paddlecli.config.nodes import node_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.yaml_text import Source, decode, read
from paddlecli.errors import ConfigError, Fault

_MODELINE = re.compile(r"^(#\s*yaml-language-server:\s*\$schema=)(\S+)", re.MULTILINE)

_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")


def modeline(folder: FilePath) -> str:
    """The first line of a recipe in `folder`, which tells editors the language."""
    return f"# yaml-language-server: $schema={_relative(assets.directory('recipes') / assets.SCHEMA, folder)}"


def copy_of(name: str, target: FilePath, shown: str, overrides: Sequence[str] = ()) -> str:
    """The text of a recipe as it may stand in the file `target`.

    name: a shipped recipe or a path. shown: how the command line calls the target.
    Raises ConfigError where there is no such recipe, or it is faulty: its paths cannot be told then.
    """
    path = find_recipe(name, FilePath.cwd())
    if isinstance(path, Fault):
        raise ConfigError.of([path], name)
    recipe = load_recipe(name, overrides)
    source = Source(str(path))
    decode(read(path), source)
    text = source.text
    folder = target.absolute().parent
    edits = (
        {}
        if path.parent.resolve() == folder.resolve()
        else dict(_moved(source, path, folder, recipe))
    )
    for (start, end), value in sorted(edits.items(), reverse=True):
        text = text[:start] + value + text[end:]
    return _header(text, name, shown, folder)


def _moved(
    source: Source, path: FilePath, folder: FilePath, recipe: Recipe
) -> Iterator[tuple[tuple[int, int], str]]:
    """Span and new text of every scalar of the file that is a relative path."""
    root = yaml.compose(source.text, Loader=yaml.BaseLoader)
    tree = node_of(recipe.as_dict())
    for key, node in _scalars(root, ()):
        if key[0] == "extends":
            moves = assets.is_path(node.value)
        else:
            types = shape.types_at(Recipe, key, tree)
            moves = any(shape.holds_path(t) for t in types) and node.value not in ("", "-")
        if not moves or FilePath(node.value).expanduser().is_absolute() or "${" in node.value:
            continue
        there = path.parent.resolve() / node.value
        if assets.root().resolve() in there.parents and not there.exists():
            continue  # a shipped recipe speaks of files that its user has
        new = _relative(there, folder)
        new = new if assets.is_path(new) else f"./{new}"
        plain = _PLAIN.fullmatch(new) is not None
        text = new if plain else json.dumps(new, ensure_ascii=False)
        yield (node.start_mark.index, node.end_mark.index), text


def _scalars(
    node: yaml.Node | None, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], yaml.ScalarNode]]:
    if isinstance(node, yaml.MappingNode):
        for key, below in node.value:
            yield from _scalars(below, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, below in enumerate(node.value):
            yield from _scalars(below, (*path, index))
    elif isinstance(node, yaml.ScalarNode):
        yield path, node


def _relative(path: FilePath, folder: FilePath) -> str:
    """A file as a recipe in `folder` writes it: relative where it lies near, else absolute."""
    inside = assets.root().resolve()
    near = inside in folder.resolve().parents or inside not in path.resolve().parents
    try:
        return FilePath(os.path.relpath(path, folder.resolve())).as_posix() if near else str(path)
    except ValueError:  # another drive
        return str(path)


def _header(text: str, name: str, shown: str, folder: FilePath) -> str:
    """The modeline leads to the schema; commands in the comment above the recipe name the copy."""
    text = _MODELINE.sub(lambda m: modeline(folder), text, count=1)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            break
        if "paddlecli " in line:
            lines[number] = " ".join(
                shlex.quote(shown) if word == name else word for word in line.split(" ")
            )
    return "\n".join(lines)
