"""Types with ranges, for the schema and for the keyword signatures of registered functions.

The ranges are `annotated_types` metadata, so importing this module does not import pydantic.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt, Le, Len, Lt

Count = Annotated[int, Ge(1)]
"""A whole number, at least 1."""
Natural = Annotated[int, Ge(0)]
"""A whole number, at least 0."""
Positive = Annotated[float, Gt(0)]
"""A number above 0."""
NonNegative = Annotated[float, Ge(0)]
"""A number, at least 0."""
Fraction = Annotated[float, Ge(0), Lt(1)]
"""A number in [0, 1): drop rates, momentum, decay rates."""
Share = Annotated[float, Ge(0), Le(1)]
"""A number in [0, 1]."""
Name = Annotated[str, Len(1)]
"""Text that is not empty."""
Pair = Annotated[tuple[int, ...], Len(1, 2)]
"""One or two whole numbers, for height and width."""
