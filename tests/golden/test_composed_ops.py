"""What other frameworks have as one op and recipes write with several (``composed.json`` says whose numbers)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from op_bench import OpBench, check_close

CASES = json.loads((Path(__file__).parent / "composed.json").read_text())


def test_cosine_embedding_loss() -> None:
    """1 - cos where the label is 1, what of cos is above the margin where it is -1: `cos_sim`, `scale`, `relu`, each with its own
    gradient."""
    case = CASES["cosine_embedding_loss"]
    label, margin = np.array(case["in"]["Label"], np.float32), case["attrs"]["margin"]
    near, far = ((label == sign).astype(np.float32) for sign in (1, -1))
    cosine = OpBench("cos_sim", {"x": case["in"]["X1"], "y": case["in"]["X2"]}, {})
    first = cosine.kernel.outputs[0].name
    above = OpBench("scale", {"x": cosine[first]}, {"a": 1.0, "b": -margin})
    kept = OpBench("relu", {"x": above["y"]}, {})
    away = OpBench("scale", {"x": cosine[first]}, {"a": -1.0, "b": 1.0})
    check_close(near * away["y"] + far * kept["y"], case["out"]["Out"])
    upstream = np.array(case["upstream"], np.float32)
    through = above.gradients(y=kept.gradients(y=far * upstream)["x"])["x"]
    total = through + away.gradients(y=near * upstream)["x"]
    found = cosine.gradients(**{first: total})
    check_close(found["x"], case["out"]["grad:X1"], what="X1")
    check_close(found["y"], case["out"]["grad:X2"], what="X2")
