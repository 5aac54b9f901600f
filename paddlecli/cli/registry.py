"""`paddlecli layer|loss|optimizer|schedule|metric|transform list|show`: what recipes may name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli.cli.options import Code, Json

if TYPE_CHECKING:
    from paddlecli.config.registry import Entry, Parameter

KINDS = {
    "layer": "layers",
    "loss": "losses",
    "optimizer": "optimizers",
    "schedule": "schedules",
    "metric": "metrics",
    "transform": "transforms",
}
"""Commands of this module, each a kind of registered name; in the plural."""
READS = ("layer", "loss", "metric")
FORMULAS = ("optimizer", "schedule")


def group(kind: str) -> typer.Typer:
    """The command of one kind with its subcommands `list` and `show`."""
    app = typer.Typer(
        help=f"List and show {KINDS[kind]}.",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.command("list", help=f"List the {KINDS[kind]} that recipes may name.")(list_command)
    what = f"Show a {kind}: what it does, its arguments, a piece of a recipe."
    app.command("show", help=what)(show_command)
    return app


def list_command(context: typer.Context, code: Code = None, as_json: Json = False) -> None:
    """List the names of the kind whose command this is."""
    from paddlecli.cli.output import print_json, table

    kind = _kind(context)
    found = listed(kind, code or ())
    if as_json:
        print_json({"schema": 1, "kind": kind, KINDS[kind]: found})
    elif found:
        typer.echo("\n".join(table((e["name"], e["summary"]) for e in found)))


def show_command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that `list` lists.")],
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Show one name of the kind whose command this is."""
    from paddlecli.cli.output import print_json

    found = described(_kind(context), name, code or ())
    if as_json:
        print_json({"schema": 1, **found})
    else:
        typer.echo("\n\n".join(blocks(found)))


def _kind(context: typer.Context) -> str:
    assert context.parent is not None
    return str(context.parent.command.name)


def listed(kind: str, code: Any = ()) -> list[dict[str, str]]:
    """Name and first sentence of everything of a kind, the user's own included."""
    from paddlecli.config.describe import summary
    from paddlecli.config.plugins import load_code
    from paddlecli.config.registry import KINDS as REGISTRIES

    load_code(code)
    registry = REGISTRIES[kind]
    return [{"name": n, "summary": summary(registry.get(n))} for n in registry.names()]


def described(kind: str, name: str, code: Any = ()) -> dict[str, Any]:
    """Everything about a registered name as plain data. Raises ConfigError for an unknown one."""
    from paddlecli.config import describe, examples
    from paddlecli.config.plugins import load_code, place_of
    from paddlecli.config.registry import KINDS as REGISTRIES

    load_code(code)
    entry = REGISTRIES[kind].get(name)
    text = describe.document(entry).replace("``", "`")
    found: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "module": place_of(entry.function),
        "summary": describe.summary(entry),
        "text": text,
        "arguments": [argument(entry, p) for p in entry.parameters.values()],
        "example": examples.example(kind, entry),
    }
    if kind in READS:
        found["reads"] = [
            {"name": n, "many": many, "shape": _shape(n, " ".join(text.split()))}
            for n, many in examples.tensors(entry)
        ]
    if kind in FORMULAS:
        found["formula"] = describe.formula(entry)
    return found


def argument(entry: Entry, parameter: Parameter) -> dict[str, Any]:
    """One argument as plain data: its type and range in words, its default, what it is for."""
    from paddlecli.config import describe, shape

    default = parameter.default
    return {
        "name": parameter.name,
        "type": shape.describe(shape.branches(parameter.annotation, None)),
        "required": parameter.required,
        "default": list(default) if isinstance(default, tuple) else default,
        "text": describe.argument_text(entry, parameter),
    }


def _shape(name: str, text: str) -> str:
    """Shape of a tensor as the docstring has it: behind its name, or for all tensors together;
    empty where it has none."""
    stem = re.escape(name.rstrip("sy"))
    own = re.search(
        rf"\b{stem}(?:y|s|ies|_i)?`?(?: i64)? (\[[^\]]*\](?: or \[[^\]]*\])*)", text, re.IGNORECASE
    )
    found = own or re.search(r"(\[[^\]]*\])(?= both)|(?<=both )(\[[^\]]*\])", text)
    return next(filter(None, found.groups()), "") if found else ""


def blocks(found: dict[str, Any]) -> list[str]:
    """The parts of what `show` prints."""

    from paddlecli.cli.output import table

    blocks = [
        f"{found['name']}  ({found['module']})",
        found["text"].partition("\nArgs:")[0].strip(),
    ]
    if found.get("reads"):
        rows = [
            (f"{r['name']} ..." if r["many"] else r["name"], r["shape"]) for r in found["reads"]
        ]
        blocks.append("\n".join(["reads", *(f"  {line}" for line in table(rows))]))
    if found["arguments"]:
        lines = (line for a in found["arguments"] for line in _lines(a, found["summary"]))
        blocks.append("\n".join(["arguments", *(f"  {line}" for line in lines)]))
    if found.get("formula", "") not in " ".join(found["text"].split()):
        blocks.append(f"formula  {found['formula']}")
    return [b for b in (*blocks, found["example"].rstrip()) if b]


def _lines(argument: dict[str, Any], summary: str) -> list[str]:
    """An argument: its type and default, and below what it is for, where the summary, which is shown, does not say it."""
    import json

    from paddlecli.config.dump import writable

    given = f"default {json.dumps(writable(argument['default']), ensure_ascii=False)}"
    head = (
        f"{argument['name']}: {argument['type']}; {'required' if argument['required'] else given}"
    )
    text = argument["text"]
    return [head, *([f"    {text}"] if text and not (summary and text.startswith(summary)) else [])]
