"""Words that mean something in more than one room."""

from __future__ import annotations

from typing import Final, Literal

Balanced = Literal["balanced"]
BALANCED: Final[Balanced] = "balanced"
"""`train.class_weights`: numbers that make all classes of the train split count alike."""
MIXED: Final = "mixed_label"
"""The field with shares of classes, where pictures are mixed."""
