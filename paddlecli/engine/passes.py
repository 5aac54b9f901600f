"""The switches of the compiler that a recipe and the device in use ask for."""

from __future__ import annotations

from dataclasses import replace

from paddlecli import settings
from paddlecli.compiler.pipeline import Passes
from paddlecli.config.recipe import Recipe

_CPU = ("cpu", "auto")


def passes_for(recipe: Recipe | None = None) -> Passes:
    """Those of a training, or without a recipe of a plan that only gives values."""
    kept = Passes()
    if recipe is not None:
        size = -(-recipe.train.batch_size // recipe.train.accumulate)
        kept = Passes(recompute=recipe.train.recompute, batch=size)
    return kept if settings.device() in _CPU else replace(kept, tiles=False)
