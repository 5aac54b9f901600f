"""Groups and blocks: which parameters they have, what they are called, how arguments reach them."""

from __future__ import annotations

from pathlib import Path

import pytest
from null.world import graph_of, recipe_of

from paddlecli.config.load import load_recipe
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph, flat

HEAD = """
data:
  name: generated
  lengths: {s: [1, 3]}
  fields:
    - {name: x, shape: [4]}
    - {name: q, shape: [4], axes: [s]}
    - {name: y, shape: [1], role: label}
optimizer: {name: sgd, learning_rate: 0.1}
model:
  inputs: {x: {shape: [4]}, q: {shape: [4], ragged: s}, y: {shape: [1], role: label}}
  loss: {square_error_cost: {}, from: [p, y]}
"""


def written(body: str, folder: Path) -> Graph:
    return graph_of(recipe_of(HEAD + body, folder))


def weights(graph: Graph) -> dict[str, list[int]]:
    return {
        n: [d.coefficient for d in t.spec.shape]
        for n, t in graph.parameters.items()
        if not n.endswith("/b")
    }


PAIR = """
  blocks:
    pair:
      inputs: [a]
      SHARE
      arguments: {size: , act: relu}
      layers:
        - {fc: {size: $size, activation: $act}}
        - {fc: {size: 4}}
"""
SHARED, OWN = PAIR.replace("SHARE", "share: true"), PAIR.replace("SHARE", "share: false")


def test_a_block_shares_its_parameters_unless_told_otherwise(tmp_path: Path) -> None:
    layers = "  layers: [{pair: {size: 3}, from: x}, {pair: {size: 3}}, {fc: {size: 1}, name: p}]"
    shared = {"pair/fc1/w": [4, 3], "pair/fc2/w": [3, 4], "p/w": [4, 1]}
    assert weights(written(SHARED + layers, tmp_path)) == shared
    assert weights(written(PAIR.replace("      SHARE\n", "") + layers, tmp_path)) == shared
    own = {
        "pair1/fc1/w": [4, 3],
        "pair1/fc2/w": [3, 4],
        "pair2/fc1/w": [4, 3],
        "pair2/fc2/w": [3, 4],
        "p/w": [4, 1],
    }
    assert weights(written(OWN + layers, tmp_path)) == own


def test_a_use_says_otherwise(tmp_path: Path) -> None:
    layers = """  layers:
    - {pair: {size: 3}, from: x}
    - {pair: {size: 5, act: tanh}, share: false, name: mine}
    - {pair: {size: 3}, share: true}
    - {fc: {size: 1}, name: p}
"""
    graph = written(SHARED + layers, tmp_path)
    assert list(weights(graph)) == ["pair/fc1/w", "pair/fc2/w", "mine/fc1/w", "mine/fc2/w", "p/w"]
    assert weights(graph)["mine/fc1/w"] == [4, 5]
    ops = [
        n.kernel.op
        for n in flat(graph.entries["train_step"].items)
        if n.kernel.op in ("relu", "tanh")
    ]
    assert ops == ["relu", "tanh", "relu"]


def test_repeats_have_numbers(tmp_path: Path) -> None:
    """With a name and without, of layers, of blocks, of groups; a name alone means the last one."""
    layers = """  layers:
    - {fc: {size: 4}, from: x, repeat: 2}
    - {fc: {size: 4}, name: deep, repeat: 2}
    - {pair: {size: 2}, repeat: 2}
    - {pair: {size: 2}, name: b, repeat: 2}
    - {layers: [{fc: {size: 4}, name: u}, {fc: {size: 4}}], name: g, repeat: 2}
    - {layers: [{fc: {size: 4}}], repeat: 2}
    - {sum: {}, from: [deep, deep1, b1, b, g1, g]}
    - {fc: {size: 1}, name: p}
"""
    graph = written(OWN + layers, tmp_path)
    assert list(weights(graph)) == [
        "fc1/w", "fc2/w", "deep1/w", "deep2/w", "pair1/fc1/w", "pair1/fc2/w", "pair2/fc1/w", "pair2/fc2/w",
        "b1/fc1/w", "b1/fc2/w", "b2/fc1/w", "b2/fc2/w", "g1/u/w", "g1/fc1/w", "g2/u/w", "g2/fc1/w", "fc3/w", "fc4/w", "p/w",
    ]  # fmt: skip
    (node,) = [
        n for n in flat(graph.entries["train_step"].items) if n.kernel.full_name == "sum.forward"
    ]
    found = [t.name.partition(".")[0] for t in node.inputs]
    assert found == ["deep2", "deep1", "b1/fc2", "b2/fc2", "g1/fc1", "g2/fc1"]


def test_arguments_go_through_blocks_and_set_repeats_and_lists(tmp_path: Path) -> None:
    layers = """
  blocks:
    inner:
      inputs: [a]
      share: false
      arguments: {sizes: , times: 1}
      layers:
        - {reshape: {shape: $sizes}}
        - {flatten: {}}
        - {fc: {size: 4}, repeat: $times}
    outer:
      inputs: [a]
      share: false
      arguments: {high: 2, n: }
      layers:
        - {inner: {sizes: [$high, 2], times: $n}}
        - {inner: {sizes: [4, 1]}}
  layers:
    - {outer: {n: 3}, from: x}
    - {fc: {size: 1}, name: p}
"""
    graph = written(layers, tmp_path)
    assert list(weights(graph)) == [
        "outer1/inner1/fc1/w", "outer1/inner1/fc2/w", "outer1/inner1/fc3/w", "outer1/inner2/fc1/w", "p/w"
    ]  # fmt: skip
    reshaped = [
        n.attrs["dims"] for n in flat(graph.entries["train_step"].items) if n.kernel.op == "reshape"
    ]
    assert reshaped == [(0, 2, 2), (0, -1), (0, 4, 1), (0, -1)]


def test_a_shared_block_in_blocks_of_their_own_is_one(tmp_path: Path) -> None:
    body = """
  blocks:
    common: {inputs: [a], layers: [{fc: {size: 4}}]}
    outer: {inputs: [a], share: false, layers: [common, {fc: {size: 4}}]}
  layers: [{outer: {}, from: x, repeat: 2}, {fc: {size: 1}, name: p}]
"""
    assert list(weights(written(body, tmp_path))) == [
        "common/fc1/w",
        "outer1/fc1/w",
        "outer2/fc1/w",
        "p/w",
    ]


def test_several_outputs_have_names(tmp_path: Path) -> None:
    body = """
  blocks:
    two:
      inputs: [a, b]
      layers: [{fc: {size: 4}, from: a, name: u}, {fc: {size: 4}, from: [b, u], name: v}]
      outputs: {first: u, second: v}
  layers:
    - {two: {}, from: [x, x], name: t}
    - {split: {parts: 2}, from: t.second, name: h}
    - {fc: {size: 1}, from: [t, t.first, h, h.1], name: p}
"""
    graph = written(body, tmp_path)
    products = [n for n in flat(graph.entries["train_step"].items) if n.kernel.op == "matmul"]
    read = [n.inputs[0].name for n in products[-4:]]
    assert read == [read[0], read[0], "h.ys", "h.ys#1"] and read[0].startswith("two/u")


def test_parameters_by_name_are_shared(tmp_path: Path) -> None:
    body = """
  layers:
    - {fc: {size: 4}, from: x, name: a, parameters: {w: words}}
    - {fc: {size: 4}, name: b, parameters: {w: words, b: bias}}
    - {parameter: {shape: [4, 4]}, name: table, parameters: {value: words}}
    - {matmul: {transpose_y: true}, from: [b, table]}
    - {fc: {size: 1}, name: p}
"""
    graph = written(body, tmp_path)
    assert list(graph.parameters) == ["words", "a/b", "bias", "p/w", "p/b"]


def test_nothing_is_shared_unseen(tmp_path: Path) -> None:
    """A name given twice, a made-up name given later, a group whose layers have names."""
    for layers, line, message in (
        ("[{fc: {size: 4}, from: x, name: a}, {fc: {size: 4}, name: a}]", 13, "'a' is the name of the layer at"),
        ("[{fc: {size: 4}, from: x, name: y}]", 13, "'y' is the name of an input already"),
        ("[{fc: {size: 4}, from: x}, {fc: {size: 4}, name: fc1}]", 13, "two layers are called 'fc1'"),
        ("[{layers: [{fc: {size: 4}, name: a}], from: x, repeat: 2}]", 13, "give the group a `name`"),
        ("[{fc: {size: 4}, from: x, name: a, repeat: 2}, {fc: {size: 4}, name: a2}]", 13, "'a2' is the name of the layer"),
    ):  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            written(f"  layers: {layers}\n", tmp_path)
        found = [f for f in caught.value.faults if "reads" not in f.message]
        assert len(found) == 1 and message in found[0].message, str(caught.value)
        assert found[0].where.line == line


def test_made_up_names_leave_out_given_ones(tmp_path: Path) -> None:
    layers = (
        "  layers: [{fc: {size: 4}, from: x, name: fc1}, {fc: {size: 4}}, {fc: {size: 1}, name: p}]"
    )
    assert list(weights(written(layers, tmp_path))) == ["fc1/w", "fc2/w", "p/w"]


def test_a_network_that_nobody_can_mean_ends_at_once(tmp_path: Path) -> None:
    body = """
  blocks:
    a: {inputs: [v], layers: [tanh, tanh, tanh, tanh, tanh, tanh, tanh, tanh, tanh, tanh]}
    b: {inputs: [v], layers: [a, a, a, a, a, a, a, a, a, a]}
    c: {inputs: [v], layers: [b, b, b, b, b, b, b, b, b, b]}
    d: {inputs: [v], layers: [c, c, c, c, c, c, c, c, c, c]}
  layers: [{d: {}, from: x}, {fc: {size: 1}, name: p}]
"""
    with pytest.raises(ConfigError, match="more than 10,000 layers"):
        written(body, tmp_path)
    with pytest.raises(ConfigError, match="more than 10,000 layers"):
        written(
            "  layers: [{tanh: {}, from: x, repeat: 1000000000}, {fc: {size: 1}, name: p}]",
            tmp_path,
        )


def test_a_saved_recipe_builds_the_same_network(tmp_path: Path) -> None:
    layers = "  layers: [{pair: {size: 3}, from: x, repeat: 2, name: u}, {fc: {size: 1}, name: p}]"
    recipe = recipe_of(HEAD + OWN + layers, tmp_path)
    (tmp_path / "saved.yaml").write_text(recipe.to_yaml())
    again = load_recipe(tmp_path / "saved.yaml")
    assert again == recipe
    assert list(graph_of(again).parameters) == list(graph_of(recipe).parameters)


def test_nodes_of_a_block_come_from_its_lines(tmp_path: Path) -> None:
    layers = "  layers: [{pair: {size: 3}, from: x, name: u}, {fc: {size: 1}, name: p}]"
    graph = written(OWN + layers, tmp_path)
    lines = (HEAD + OWN).split("\n")
    for node in flat(graph.entries["train_step"].items):
        if node.origin.path.startswith("u/"):
            assert "fc" in lines[node.origin.line - 1]
