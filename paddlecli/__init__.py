"""paddlecli: neural networks described in YAML recipes, on its own small C and CUDA core.

    from paddlecli import evaluate, fit, load_recipe, predict

What is exported here is imported when it is used, so `import paddlecli` loads neither numpy nor the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlecli.config.recipe import Recipe
    from paddlecli.engine.api import check, evaluate, fit, load_recipe, predict
    from paddlecli.engine.evaluate import Evaluation
    from paddlecli.engine.predict import Prediction, Predictions
    from paddlecli.engine.report import Result

__version__ = "0.1.0"
__all__ = [
    "Evaluation", "Prediction", "Predictions", "Recipe", "Result", "__version__", "check", "evaluate", "fit", "load_recipe",
    "predict",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("check", "evaluate", "fit", "load_recipe", "predict"), "paddlecli.engine.api"),
    **dict.fromkeys(("Prediction", "Predictions"), "paddlecli.engine.predict"),
    "Evaluation": "paddlecli.engine.evaluate",
    "Recipe": "paddlecli.config.recipe",
    "Result": "paddlecli.engine.report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
