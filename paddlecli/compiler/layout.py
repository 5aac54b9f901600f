"""Layouts: puts ``reorder`` nodes where a kernel takes another layout than its producer gives.

Every kernel of today takes and gives ``plain`` tensors, so the pass checks that this holds; blocked
convolution kernels will state theirs.
"""

from __future__ import annotations

from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Entry, flat

REORDER = "reorder"
"""The op that would bring a tensor into another layout."""


def layout(entry: Entry) -> Entry:
    """The entry with every tensor in a layout that its readers take.

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
