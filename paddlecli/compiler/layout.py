"""Layouts: checks that every node reads tensors in the layout that its kernel takes.

Every kernel takes and gives ``plain`` tensors, so the pass changes nothing and refuses another layout.
"""

from __future__ import annotations

from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Entry, flat

REORDER = "reorder"
"""The op that would bring a tensor into another layout."""


def layout(entry: Entry) -> Entry:
    """The entry, unchanged: every tensor is in the layout that its readers take.

    Raises:
        ConfigError: a tensor has a layout that no kernel of its readers takes.
    """
    for node in flat(entry.items):
        for t in node.inputs:
            if t.spec.layout != "plain":
                raise fault(
                    node.origin,
                    f"[{node.kernel.op}] takes plain tensors, {t.name} is {t.spec.layout}",
                )
    return entry
