"""The switches of the compiler that a recipe and the device in use ask for."""

from __future__ import annotations

from dataclasses import replace

from paddlecli.compiler.pipeline import Passes
from paddlecli.config.recipe import Recipe
from paddlecli.ops import conv2d_tiled
from paddlecli.runtime import native
from paddlecli.runtime.device import named


def passes_for(recipe: Recipe | None = None) -> Passes:
    """Those of a training, or without a recipe of a plan that only gives values.

    Raises:
        UsageError: the settings name no device.
    """
    kept = Passes()
    if recipe is not None:
        size = -(-recipe.train.batch_size // recipe.train.accumulate)
        kept = Passes(recompute=recipe.train.recompute, batch=size)
    return replace(kept, tiles=_has_tiles(named()[0]))


def _has_tiles(kind: str) -> bool:
    """Whether a kind of device has the kernels that the pass ``tiles`` names. A plan can be printed for one
    whose library is not here: then only the CPU has them."""
    if not native.installed(kind):
        return kind == "cpu"
    tiled = f"{conv2d_tiled.OP.kernels[0].full_name}("
    return any(s.startswith(tiled) for s in native.signatures(kind))
