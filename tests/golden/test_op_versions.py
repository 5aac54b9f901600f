"""A signature that changes raises its op's version: `op_versions.json` holds, by op, the version and a hash of the signatures that
stored networks have.

A stored network names its ops and their versions, so an op that changed without a new version would be run as what it was. After
the version was raised: PADDLECLI_RENEW=1 pytest tests/golden/test_op_versions.py. A new op need not be written there (an op is
three files and no edit elsewhere); the next renewal takes it in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from paddlecli import ops

GOLDEN = Path(__file__).with_name("op_versions.json")
STORED = ("forward", "inference", "update_running")
"""Kernels that networks are built of. The others come in when a plan is compiled, and no file has them."""
RENEW = bool(os.environ.get("PADDLECLI_RENEW"))
KNOWN: dict[str, list[int | str]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def now(name: str) -> tuple[int, str]:
    """Version and hash of an op."""
    op = ops.get(name)
    text = "\n".join(sorted(k.signature for k in op.kernels if k.name in STORED))
    return op.version, hashlib.sha256(text.encode()).hexdigest()[:16]


def fault(name: str, known: tuple[int, str], found: tuple[int, str]) -> str:
    """What is wrong with an op, and what to do; empty where nothing is."""
    if found == known:
        return ""
    if found[0] < known[0]:
        return f"{name}: its version fell from {known[0]} to {found[0]}"
    if found[0] == known[0]:
        return (
            f"{name}: its signatures changed under version {known[0]}: raise `version` in paddlecli/ops/{name}.py, "
            f"then renew tests/golden/{GOLDEN.name} (see the head of {Path(__file__).name})"
        )
    return f"{name}: has version {found[0]} now: PADDLECLI_RENEW=1 pytest tests/golden/{Path(__file__).name}"


def recorded(name: str) -> tuple[int, str]:
    version, signatures = KNOWN[name]
    return int(version), str(signatures)


def test_changed_signatures_have_a_new_version() -> None:
    lost = sorted(set(KNOWN) - set(ops.names()))
    assert not lost, f"stored networks use ops that are gone: {', '.join(lost)}"
    found = {name: now(name) for name in ops.names()}
    faults = [fault(n, recorded(n), found[n]) for n in KNOWN]
    if RENEW:
        faults = [f for n, f in zip(KNOWN, faults, strict=True) if found[n][0] <= recorded(n)[0]]
    assert not [f for f in faults if f], "\n".join(filter(None, faults))
    if RENEW:
        lines = (f"{json.dumps(n)}: {json.dumps(list(found[n]))}" for n in sorted(found))
        GOLDEN.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")


def test_networks_are_built_of_these_kernels() -> None:
    folder = Path(ops.__file__).parents[1] / "models"
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.py")))
    assert {"forward", *re.findall(r"\bop\.(inference|\w*backward\w*|update\w*)\b", text)} == set(
        STORED
    )


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((2, "a"), ""),
        ((2, "b"), "raise `version` in paddlecli/ops/relu.py"),
        ((3, "b"), "PADDLECLI_RENEW=1"),
        ((3, "a"), "PADDLECLI_RENEW=1"),
        ((1, "a"), "fell from 2 to 1"),
    ],
)
def test_what_is_told(found: tuple[int, str], told: str) -> None:
    said = fault("relu", (2, "a"), found)
    assert (told in said) if told else said == ""
