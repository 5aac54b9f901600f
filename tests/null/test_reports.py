"""What ``paddlecli plan --stage`` prints."""

from __future__ import annotations

import re

import pytest

from paddlecli.compiler.memory import nominal_bytes
from paddlecli.compiler.pipeline import run_passes, stages
from paddlecli.compiler.report import show_memory, show_notes
from paddlecli.graph.show import show
from paddlecli.ops.spec import BATCH, Spec

from .conftest import Compiled, Load
from .world import SMALL

GRAPH = """\
input x: f32[N, 13]
input y: f32[N, 1]
parameter prediction/w: f32[13, 1]
parameter prediction/b: f32[1]
argument weight.loss: weight of loss

entry train_step (training):
  %prediction.z: f32[N, 1] = matmul.forward(%x, %prediction/w; transpose_x=False, transpose_y=False, num_flatten_dims=1)  # prediction
  %prediction.y: f32[N, 1] = bias.forward(%prediction.z, %prediction/b; axis=-1)  # prediction
  %square_error_cost1.loss: f32[N, 1] = square_error_cost.forward(%prediction.y, %y)  # square_error_cost1
  %square_error_cost1.y: f32[1] = weighted_mean.forward(%square_error_cost1.loss, %weight.loss)  # square_error_cost1
  %train_step/loss: i64[5] = mean_metric.forward(%square_error_cost1.loss, -, %train_step/loss)  # square_error_cost1
  -> loss = %square_error_cost1.y
"""
MEMORY = """\
ranges:
  0 default:parameters: param f32, 68 bytes
  1 default:gradients: grad f32, 68 bytes
  2 metrics: metric i64, 104 bytes
  3 states:i64: state i64, 8 bytes
"""
EVALUATION = """\
entry eval_step: 3 temporaries, 0 in place, 0 views
  at 0  nodes 0-4  f32[N, 1]  prediction.y
  at 256  nodes 1-3  f32[N, 1]  square_error_cost1.loss
  at 512  nodes 2-4  f32[1]  square_error_cost1.y
  at batch 64: 576 bytes, 576 without sharing
"""


def test_the_graph_of_a_small_network(load: Load) -> None:
    assert show(load("fit_a_line")[0]).startswith(GRAPH)


def test_the_memory_of_a_small_network(compiled: Compiled) -> None:
    text = show_memory(compiled("fit_a_line"))
    assert text.startswith(MEMORY)
    assert EVALUATION in text


def test_all_stages(load: Load) -> None:
    found = stages(*load("fit_a_line"))
    assert list(found) == ["graph", "gradients", "fused", "memory"]
    assert found["graph"].startswith(GRAPH)
    assert (
        "%d.prediction/w: f32[13, 1] = matmul.backward_y(%x, %d.square_error_cost1.dx"
        in found["gradients"]
    )
    assert "sgd.update" not in found["gradients"]
    update = r"%flat:default:parameters: f32\[17\] = sgd\.update\(%flat:default:parameters, %flat:default:gradients, .*\) if %u\.check_finite\.ok\n"
    assert re.search(update, found["fused"])
    assert "  -> finite = %u.check_finite.ok\n" in found["fused"]


def test_loops_and_views(load: Load, compiled: Compiled) -> None:
    text = stages(*load("scan"))["gradients"]
    forward, backward = "  scan over steps:\n", "  scan over steps reversed:\n"
    assert forward in text and backward in text
    assert re.search(
        r"\n    %cell/h_next\.z#1\[t\]: f32\[n\(steps\), 8\] = matmul\.forward\(%hidden\.h\.before\[t-1\], %cell/h_next/w1;",
        text,
    )
    assert re.search(r"\n    \+%d\.hidden\.h\.before\[t-1\]: f32\[n\(steps\), 8\] = ", text)
    assert "[:n]" in show(compiled("memories").graph)
    assert "  decode over at most 12 times:\n" not in text
    assert "  decode at most 12 times:\n" in show(load("decode")[0])
    memory = show_memory(compiled("scan"))
    assert "  scan over steps: 160 bytes a token kept\n" in memory
    assert "  scan over steps reversed: 128 bytes a token kept\n" in memory


@pytest.mark.parametrize("name", SMALL)
def test_every_node_has_one_line(name: str, load: Load) -> None:
    graph, _ = load(name)
    found = [row for row in show(graph).split("\n") if " = " in row and "(" in row]
    assert len(found) == sum(
        len(i.body) if hasattr(i, "body") else 1 for e in graph.entries.values() for i in e.items
    )
    layers = [
        row for row in found if "accuracy.forward(" not in row
    ]  # a metric of the recipe belongs to none
    assert all("  # " in row for row in layers)


def test_sharing_is_counted(compiled: Compiled) -> None:
    for name in SMALL:
        found = compiled(name)
        rows = re.findall(r"at batch 64: (\d+) bytes, (\d+) without sharing", show_memory(found))
        assert len(rows) == sum(bool(m.lives) for m in found.memory.values())
        assert all(int(a) <= int(b) for a, b in rows)


def test_nominal_sizes() -> None:
    assert nominal_bytes(Spec.of(BATCH, 3)) == 64 * 3 * 4
    assert nominal_bytes(Spec.of(BATCH * 2 + 5, dtype="u8")) == 133
    assert nominal_bytes(Spec.of(BATCH * BATCH, dtype="i64")) == 64 * 64 * 8


def test_notes_of_expensive_tables(load: Load) -> None:
    graph, specs = load("two_axes")
    assert show_notes(run_passes(graph, specs)) == ""
    from dataclasses import replace

    heavy = {k: replace(s, regularizer={"l2": 0.1}) for k, s in specs.items()}
    assert show_notes(run_passes(graph, heavy)) == (
        "note: bag/embedding1/w: every step walks the whole table, 0.0 MB with slots: its regulariser shrinks rows "
        "without a gradient\n"
    )
