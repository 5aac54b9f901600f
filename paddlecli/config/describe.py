"""What a registered function and its arguments are for, in words, from its docstring.

An argument's text is found in four places, the first that has any wins: a `description` in its
type; `name: text` in the docstring; sentences of the docstring that hold the name between
backticks; what the name means wherever it is used. What a section's field is for stands below it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import ModuleType

from pydantic import BaseModel

from paddlecli.config.registry import READERS, Entry, Parameter

COMMON = {
    "activation": "Function that the layer ends with.",
    "alpha": "Factor below 0.",
    "approximate": "Take the faster approximation.",
    "axis": "Dimension it works along; -1 is the last.",
    "bias": "Whether a bias is added.",
    "bias_init": "First values of the bias.",
    "block": "Name of the block that is repeated.",
    "by": "Whether a tick is a step or an epoch.",
    "candidate_activation": "Function of the candidate.",
    "cell_activation": "Function of the cell, before it leaves.",
    "ceil_mode": "Round the size of the result up instead of down.",
    "classes": "How many classes there are.",
    "cooldown": "Evaluations that pass after a change before it counts again.",
    "decay_rate": "How strongly the rate falls.",
    "decay_steps": "Ticks in which it falls by that much.",
    "dilation": "Distance of the window's elements, one number or height and width.",
    "dim": "Width of a row.",
    "epsilon": "Small number that keeps a division finite.",
    "form": "Whether scores are logits or probabilities; the loss or the layer before tells if left out.",
    "fan_in": "Inputs of an element; worked out from the shape if left out.",
    "fan_out": "Outputs of an element; worked out from the shape if left out.",
    "d_model": "Width of the model.",
    "filters": "How many filters, the channels of the result.",
    "gamma": "Factor of each fall.",
    "gate_activation": "Function of the gates.",
    "groups": "Parts that the channels are cut into, each with filters of its own.",
    "hidden": "Width of the hidden layers.",
    "hidden_act": "Function that the hidden layers end with.",
    "ignore_index": "Rows with this label do not count.",
    "init": "First values of the parameters.",
    "max_length": "Steps after which it ends in any case.",
    "min_rate": "The rate does not fall below it.",
    "mode": "Which form it takes.",
    "momentum": "Share of the past that is kept.",
    "padding": "Zeros around the picture, one number or height and width.",
    "peepholes": "The gates also see the cell, through weights of their own.",
    "power": "Exponent.",
    "reverse": "Go through each sequence from its end to its start.",
    "seed": "Start of the random numbers.",
    "size": "Size of the result, or of the window.",
    "soft_label": "Labels are probabilities instead of class ids.",
    "std": "Standard deviation.",
    "stride": "Step of the window, one number or height and width.",
    "threshold": "Where the two parts of the function meet.",
    "weight_init": "First values of the weights; the layer's own if left out.",
}
"""Arguments whose name says the same wherever it stands."""
_SENTENCE_END = re.compile(r"(?<=[^\s.][.!?])\s+(?=[A-Z`])")
_SECTIONS = re.compile(r"\s(Raises|Returns):.*")


def text_of(entry: Entry) -> str:
    """The docstring of what a name stands for, in one line; empty where there is none."""
    card = getattr(entry.function, "card", None)
    if card is not None:
        return str(card.description)
    return _SECTIONS.sub("", _flat(document(entry)))


def document(entry: Entry) -> str:
    """The docstring of what a name stands for, as it is laid out; an optimizer's says in its module
    what it does, and in its method `arguments` what these are."""
    # not what a class inherits: that says what all of its kind are
    inherits = isinstance(entry.function, type) and entry.function.__doc__ is None
    own = "" if inherits else inspect.getdoc(entry.function) or ""
    written = getattr(entry.function, "__self__", None)
    module = inspect.getmodule(type(written)) if written is not None else None
    above = inspect.getdoc(module) if module is not None else None
    return f"{above}\n\n{own}" if above else own


def formula(entry: Entry) -> str:
    """The second paragraph of a docstring, or what follows the colon of a first that is alone: the
    formula of an optimizer or a schedule."""
    first, *further = (inspect.cleandoc(p) for p in document(entry).split("\n\n"))
    if getattr(entry.function, "__self__", None) is not None:
        further = further[:-1]  # the last paragraph is of the arguments
    return _flat(further[0] if further else first.partition(": ")[2])


def _flat(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def summary(entry: Entry) -> str:
    """The first sentence of the docstring."""
    return next(iter(_SENTENCE_END.split(text_of(entry))), "")


def argument_text(entry: Entry, parameter: Parameter) -> str:
    """What is said about one argument; empty where nothing is."""
    for item in getattr(parameter.annotation, "__metadata__", ()):
        if getattr(item, "description", None):
            return str(item.description)
    text, own = _about_arguments(entry), re.escape(parameter.name)
    names = "|".join(map(re.escape, entry.parameters))
    listed = re.search(
        rf"(?<![\w`])(?:{names}, )*{own}(?:, (?:{names}))*: (.*?)(?=(?<=\.)\s(?:{names})[,:] |$)",
        text.partition("Args:")[2] or text,
    )
    if listed is not None:
        return _sentence(listed[1])
    told = [s for s in _SENTENCE_END.split(text) if re.search(rf"`{own}\b[^`]*`", s)]
    return _sentence(" ".join(told)) if told else COMMON.get(parameter.name, "")


def _about_arguments(entry: Entry) -> str:
    """The text that tells of the arguments: a data set's are those of its reader."""
    card = getattr(entry.function, "card", None)
    reader = READERS.find(card.reader) if card is not None else None
    return text_of(reader if reader is not None else entry)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(",;")
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


@cache
def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """What is said of each field of a section: the text below it, of the class or of one it inherits from.

    pydantic would read these when it makes the classes, but that is a tenth of the time that a command takes to start.
    """
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        module = inspect.getmodule(base)
        if issubclass(base, BaseModel) and base is not BaseModel and module is not None:
            found |= _texts_in(module).get(base.__name__, {})
    return found


@cache
def _texts_in(module: ModuleType) -> dict[str, dict[str, str]]:
    """By class, the texts below its attributes."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except OSError:  # installed without sources
        return {}
    return {c.name: dict(_texts_below(c)) for c in tree.body if isinstance(c, ast.ClassDef)}


def _texts_below(made: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(made.body):
        text = below.value if isinstance(below, ast.Expr) else None
        if (
            isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Constant) and isinstance(text.value, str)
        ):  # fmt: skip
            yield field.target.id, inspect.cleandoc(text.value)
