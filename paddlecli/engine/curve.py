"""A small curve of text, for terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = len(BLOCKS) - 1
_WIDE = 100.0  # values that differ by more than this factor are drawn by their logarithm


def curve(points: Sequence[tuple[float, float]], width: int = 60, height: int = 5) -> list[str]:
    """Lines of a filled curve over evenly spread columns, with its range at the left and below.

    Args:
        points: (x, y) by rising x; what is not finite is left out. Several in one column give their mean.
        width: columns at most; `height` lines.

    Returns:
        No line where there are less than two points.
    """
    good = [(x, y) for x, y in points if math.isfinite(y)]
    if len(good) < 2:
        return []
    columns = _columns(good, width)
    least, most = min(columns), max(columns)
    logarithmic = least > 0 and most / least > _WIDE
    heights = [
        max(1, round(height * _EIGHTHS * _share(value, least, most, logarithmic)))
        for value in columns
    ]
    labels = {0: f"{most:.4g}", height - 1: f"{least:.4g}"}
    edge = max(map(len, labels.values()))
    lines = []
    for row in range(height):
        below = (height - 1 - row) * _EIGHTHS
        drawn = "".join(BLOCKS[min(max(h - below, 0), _EIGHTHS)] for h in heights)
        lines.append(f"{labels.get(row, ''):>{edge}} {drawn}".rstrip())
    first, last = f"{good[0][0]:,.0f}", f"{good[-1][0]:,.0f}"
    note = "  (logarithmic)" if logarithmic else ""
    lines.append(f"{'':{edge}} {first:<{max(len(columns) - len(last), 0)}}{last}{note}")
    return lines


def _columns(points: Sequence[tuple[float, float]], width: int) -> list[float]:
    """Means of the points that fall into each column; a column without any repeats the one before."""
    first, last = points[0][0], points[-1][0]
    count = min(width, max(len(points), 2))
    sums: list[list[float]] = [[] for _ in range(count)]
    for x, y in points:
        place = (x - first) / (last - first) if last > first else 0.0
        sums[min(int(place * count), count - 1)].append(y)
    found: list[float] = []
    for values in sums:
        found.append(sum(values) / len(values) if values else found[-1])
    return found


def _share(value: float, least: float, most: float, logarithmic: bool) -> float:
    """Where a value lies between the least and the most, from 0 to 1."""
    if most == least:
        return 0.5
    if logarithmic:
        return math.log(value / least) / math.log(most / least)
    return (value - least) / (most - least)
