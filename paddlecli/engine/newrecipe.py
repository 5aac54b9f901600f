"""`recipe new`: a first recipe for a user's own data, with what was seen in them as comments.

The data's own reader says which fields come out; the network is written out for those, small enough
to train at once, so that a user sees every number that may be changed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paddlecli.config.copying import modeline
from paddlecli.config.yaml_text import scalar_of
from paddlecli.data.opening import describe
from paddlecli.data.own.look_facts import ColumnLook, Look, many
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z_./][\w ./-]*[\w./-]|[A-Za-z_]")
_STEPS = 2000  # about as many steps make a first training
_LONGEST = 60  # characters of a user's text in a comment
_COLUMNS = 30  # lines of a table of columns


def write(look: Look, target: Path, shown: str, given: str) -> str:
    """The text of a recipe.

    Args:
        look: what was found in the data.
        target: the file that the recipe will be; paths in it start from its folder.
        shown: how the command line calls that file.
        given: how the command line calls the data.

    Raises:
        DataError: the data's reader refuses them.
        UsageError: the data's path cannot be written in a recipe.
    """
    folder = target.absolute().parent
    source = _path(Path(look.data["train"]), folder)
    spec = describe(look.data["name"], {k: _plain(v) for k, v in look.data.items() if k != "name"})
    train = _training(spec, look)
    lines = [
        modeline(folder),
        f"# paddlecli train --config {shown}",
        f"# Expect {_baseline(look)}.",
        "#",
        *_comment(look, given, spec),
        "",
        f"description: {_flow(f'{look.task} of {look.target} in {Path(given).name}')}",
        "",
        "data:",
        *(f"  {k}: {_flow(source if k == 'train' else v)}" for k, v in look.data.items()),
        "",
        *_network(spec, look),
        "",
        f"metrics: {_flow(['accuracy'] if look.task == 'classification' else ['mae', 'r2'])}",
        "optimizer: {name: adam, learning_rate: 0.001}",
        f"train: {_flow(train)}",
        "checkpoint: {keep_best: 1, monitor: test.loss}",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


# -- comments -------------------------------------------------------------------------------------
def _baseline(look: Look) -> str:
    """What a network must beat to have learned anything."""
    if look.task == "regression":
        mean, error = (f"{v:.4g}" for v in look.spread)
        return f"a smaller error than that of always answering the mean, {mean}: {error} (root mean square)"
    name, count = look.classes[0]
    share = count / sum(n for _, n in look.classes)
    return f"a better accuracy than that of always answering {_safe(name)}: {share:.3f}"


def _comment(look: Look, given: str, spec: DatasetSpec) -> list[str]:
    lines = [f"# Written by `paddlecli recipe new` from {_safe(given)}: {look.what}."]
    lines += [f"#   {text}" for text in _columns(look.columns, look.target)]
    if look.classes:
        order = ", ".join(f"{_safe(n)} {c:,}" for n, c in look.classes[:8])
        more = f" and {len(look.classes) - 8:,} more" if len(look.classes) > 8 else ""
        lines.append(f"# {many(len(look.classes), 'class')}: {order}{more}.")
    sizes = ", ".join(
        f"{count:,} {name}" for name, count in spec.sizes.items() if count is not None
    )
    lines.append(f"# Rows: {sizes}.")
    # the reader knows the data by their whole path
    remarks = (r.replace(str(look.data["train"]), str(Path(given))) for r in spec.remarks)
    lines += [f"# {_safe(note, 200)}" for note in dict.fromkeys((*look.notes, *remarks))]
    return [*lines, *_advice(look)]


def _columns(columns: Sequence[ColumnLook], target: str) -> list[str]:
    shown = [c for c in columns if c.name == target] + [c for c in columns if c.name != target]
    shown = shown[:_COLUMNS]
    width = max((len(_safe(c.name)) for c in shown), default=0)
    lines = []
    for c in shown:
        kind = "target" if c.name == target else c.kind
        missing = f", {c.missing:,} missing" if c.missing else ""
        lines.append(f"{_safe(c.name):{width}}  {kind:8}  {_safe(c.about)}{missing}")
    rest = len(columns) - len(shown)
    return lines + ([f"and {many(rest, 'column')} more"] if rest else [])


def _advice(look: Look) -> list[str]:
    lines = [
        "#",
        "# To change: `train.epochs` and `optimizer.learning_rate` first, then the layers; settings that",
    ]
    lines.append("# are not here have defaults: `paddlecli recipe show` lists them.")
    if look.columns:
        lines.append(
            "# A column that is a category, a text or of no use goes to `categories`, `text` or `ignore`; the"
        )
        lines.append("# error then says which shape `x` has.")
    if look.data["name"] == "image_folder":
        lines.append("# Larger pictures: `data.size` and the shape of `image` together.")
    return lines


def _safe(text: str, longest: int = _LONGEST) -> str:
    """A user's text as it may stand in a comment: one line, printable, not too long."""
    clean = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return clean if len(clean) <= longest else f"{clean[: longest - 3]}..."


# -- the network ----------------------------------------------------------------------------------
def _network(spec: DatasetSpec, look: Look) -> list[str]:
    label = spec.labels()[0]
    lines = ["model:", "  inputs:"]
    lines += [f"    {_flow(f.name)}: {_flow(_declared(f))}" for f in spec.fields]
    lines.append("  layers:")
    layers = _layers(spec, look, label)
    lines += [f"    - {_flow(layer)}" for layer in layers]
    if look.task == "classification":
        loss: dict[str, Any] = {"softmax_with_cross_entropy": {}, "from": ["logits", label.name]}
        output = "probability"
    else:
        loss, output = {"square_error_cost": {}, "from": ["prediction", label.name]}, "prediction"
    return [*lines, f"  loss: {_flow(loss)}", f"  outputs: {_flow({output: output})}"]


def _declared(field: FieldSpec) -> dict[str, Any]:
    found: dict[str, Any] = {"shape": list(field.shape)} if field.shape else {}
    if field.plan_dtype() != "float32":
        found["dtype"] = field.plan_dtype()
    if field.axes:
        found["ragged"] = field.axes[-1]
    if field.classes is not None:
        found["below"] = field.classes
    if field.role == "label":
        found["role"] = "label"
    return found


def _layers(spec: DatasetSpec, look: Look, label: FieldSpec) -> list[dict[str, Any]]:
    """Each input to one row of numbers, these side by side, two hidden layers, the answer."""
    layers: list[dict[str, Any]] = []
    rows: list[str] = []
    for number, field in enumerate(spec.inputs(), 1):
        if field.axes:
            name = f"words{number}"
            table = {"size": field.classes, "dim": 32}
            layers += [
                {"embedding": table, "from": field.name},
                {"sequence_pool": {"kind": "average"}, "name": name},
            ]
            rows.append(name)
        elif len(field.shape) == 3:
            layers += _convolutions(field)
            rows.append("picture")
        else:
            rows.append(field.name)
    if len(rows) > 1:
        layers.append({"concat": {}, "from": rows})
    hidden: dict[str, Any] = {"fc": {"size": 64, "activation": "relu"}}
    layers.append({**hidden, "from": rows[0]} if len(rows) == 1 else hidden)
    if len(spec.inputs()[0].shape) == 3:
        layers.append({"dropout": {"rate": 0.5}})
    elif not spec.inputs()[0].axes:
        layers.append(hidden)
    if look.task == "classification":
        return [*layers, {"fc": {"size": label.classes}, "name": "logits"},
                {"softmax": {}, "name": "probability"}]  # fmt: skip
    mean, deviation = (float(f"{v:.4g}") for v in look.spread)
    # the network learns a number around 0; the last layer puts it into the target's own units
    return [*layers, {"fc": {"size": label.shape[0] if label.shape else 1}},
            {"scale": {"a": deviation, "b": mean}, "name": "prediction"}]  # fmt: skip


def _convolutions(field: FieldSpec) -> list[dict[str, Any]]:
    """Convolutions and pooling until the picture is small."""
    layers: list[dict[str, Any]] = []
    side, filters = min(field.shape[1:]), 16
    while side >= 8 and filters <= 64:
        conv: dict[str, Any] = {
            "conv2d": {"filters": filters, "size": 3, "padding": 1, "activation": "relu"}
        }
        layers += [conv if layers else {**conv, "from": field.name}, {"pool2d": {"size": 2}}]
        side, filters = side // 2, filters * 2
    layers[-1]["name"] = "picture"
    return layers


def _training(spec: DatasetSpec, look: Look) -> dict[str, Any]:
    rows = spec.sizes.get("train") or look.rows
    batch = 32 if rows >= 320 else 8
    epochs = min(max(round(_STEPS * batch / rows), 5), 100)
    return {
        "epochs": min(epochs, 10) if look.data["name"] == "image_folder" else epochs,
        "batch_size": batch,
    }


# -- YAML -----------------------------------------------------------------------------------------
def _path(path: Path, folder: Path) -> str:
    """The data as a recipe in `folder` writes it."""
    try:
        found = Path(os.path.relpath(path, folder)).as_posix()
        found.encode()
    except ValueError:  # also: bytes that are no text
        raise UsageError(
            f"{path}: a recipe cannot hold this path",
            hint="recipes are UTF-8: give the file another name",
        ) from None
    return found


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and isinstance(scalar_of(value), str)
        return value if plain else json.dumps(value, ensure_ascii=False).replace("${", "$${")
    return json.dumps(value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
