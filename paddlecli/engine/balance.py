"""Class weights that follow from the data: `train.class_weights: balanced`."""

from __future__ import annotations

import numpy as np

from paddlecli.config.recipe import Recipe
from paddlecli.config.words import BALANCED
from paddlecli.data.columns import Dataset
from paddlecli.data.spec import FieldSpec
from paddlecli.engine.prepare import data_of
from paddlecli.errors import ConfigError

_KEY = ("train", "class_weights")
_SHOWN = 12


def resolved(recipe: Recipe) -> Recipe:
    """The recipe with the numbers that `train.class_weights: balanced` stands for, so that a saved recipe means the same for
    ever: n / (k * n_c) for class c of k classes, where n_c of the n labels of the train split are c. Their mean over the
    labels is 1; a class that the split does not have gets 1.

    Raises:
        ConfigError: the data have no label of classes, or several.
        DataError: the data cannot be opened.
    """
    if recipe.train.class_weights != BALANCED:
        return recipe
    data = data_of(recipe)
    counts = class_counts(recipe, data)
    share = counts.sum() / counts.size
    weights = np.where(counts > 0, share / np.maximum(counts, 1), 1.0)
    train = recipe.train.model_copy(update={"class_weights": tuple(weights.tolist())})
    return recipe.model_copy(update={"train": train})


def class_counts(recipe: Recipe, data: Dataset) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many labels of the train split are of each class, int64 [classes].

    Raises:
        ConfigError: the data have no label of classes, or several.
    """
    label = _label(recipe, data)
    values = data["train"].columns[label.name].values.reshape(-1)
    classes = label.classes or 0
    known = values[(values >= 0) & (values < classes)]  # others are left out of the loss
    return np.bincount(known, minlength=classes).astype(np.int64)


def _label(recipe: Recipe, data: Dataset) -> FieldSpec:
    found = [f for f in data.spec.labels() if f.classes is not None]
    if len(found) == 1:
        return found[0]
    have = ", ".join(f.name for f in found) or "none"
    raise ConfigError(
        f"train.class_weights: balanced needs one label of classes; {data.spec.name} has {have}",
        hint="give a list of numbers in the order of the classes",
        where=[recipe.where(_KEY)],
    )


def text(recipe: Recipe, data: Dataset) -> str:
    """What is said of the weights when training starts: each class with its number; empty without any."""
    weights = recipe.train.class_weights
    if weights is None or isinstance(weights, str):
        return ""
    if not isinstance(weights, tuple):
        named = ", ".join(f"{k} {v:.4g}" for k, v in weights.items())
        return f"class weights: {named}; 1 for any other class"
    labels = [f for f in data.spec.labels() if f.classes == len(weights)]
    names = labels[0].names if len(labels) == 1 else ()
    if len(names) != len(weights):
        names = tuple(map(str, range(len(weights))))
    counts = class_counts(recipe, data) if len(labels) == 1 else None
    said = [
        f"{name} {weight:.4g}" + ("" if counts is None else f" ({counts[i]:,})")
        for i, (name, weight) in enumerate(zip(names, weights, strict=True))
    ]
    more = f", and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return f"class weights (train labels): {', '.join(said[:_SHOWN])}{more}"
