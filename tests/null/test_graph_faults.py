"""Networks that cannot be: each fault names the layer, the shapes or names in question, and the
line of the recipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import run_passes
from paddlecli.errors import ConfigError
from paddlecli.models.build import telling

from .world import graph_of, recipe_of

HEAD = """
name: faulty
data:
  name: generated
  lengths: {s: [1, 3], r: [1, 3]}
  fields:
    - {name: x, shape: [4]}
    - {name: q, shape: [4], axes: [s]}
    - {name: r, shape: [4], axes: [r]}
    - {name: w, dtype: int64, classes: 5, axes: [s]}
    - {name: f}
    - {name: y, shape: [1], role: label}
"""
ONE = "optimizer: {name: sgd, learning_rate: 0.1}\n"
TWO = (
    "optimizer:\n  one: {name: sgd, learning_rate: 0.1}%s\n  two: {name: sgd, learning_rate: 0.1}\n"
)
INPUTS = """model:
  inputs:
    x: {shape: [4]}
    q: {shape: [4], ragged: s}
    r: {shape: [4], ragged: r}
    w: {dtype: int64, below: 5, ragged: s}
    y: {shape: [1], role: label}
"""
LOSS = "  loss: {square_error_cost: {}, from: [p, y]}\n"
CELL = """  blocks:
    cell:
      inputs: [a]
      memories:
        h: {shape: [2], next: g}
      layers:
        - {fc: {size: 2}, from: [a, h], name: g}
"""


def plain(layers: str) -> str:
    """One network with some layers."""
    return ONE + INPUTS + layers + LOSS


FAULTS = {
    "shapes": (plain("""  layers:
    - {fc: {size: 3}, from: x, name: a}
    - {fc: {size: 2}, from: x, name: b}
    - {add: {}, from: [a, b], name: p}  # HERE
"""), r"^\[add\] x f32\[N, 3\] and y f32\[N, 2\] do not broadcast", "p"),
    "loss": (ONE + INPUTS + """  layers: [{fc: {size: 3}, from: x, name: a}]
  loss: {square_error_cost: {}, from: [a, y]}  # HERE
""", r"^\[square_error_cost\] label is f32\[N, 1\], x is f32\[N, 3\]", "square_error_cost1"),
    "rank": (plain("  layers:\n    - {conv2d: {filters: 3, size: 3}, from: x, name: p}  # HERE\n"),
             r"^\[conv2d\] x must be \[N, channels, height, width\], it is f32\[N, 4\]", "p"),
    "channels": (plain("  layers:\n    - {batch_norm: {}, from: f, name: p}  # HERE\n").replace("    y: {", "    f: {}\n    y: {"), r"^\[batch_norm\] f is f32\[N\]: \[N, channels, \.\.\.\] is needed", "p"),
    "type": (plain("  layers:\n    - {fc: {size: 1}, from: w, name: p}  # HERE\n"), r"^\[matmul\] x is i64, must be f32", "p"),
    "flatten": (plain("  layers:\n    - {fc: {size: 1, flatten: 3}, from: x, name: p}  # HERE\n"),
                r"^\[fc\] x is f32\[N, 4\]: nothing is left behind its first 3 dimensions", "p"),
    "inside a block": (plain("""  blocks:
    pair:
      inputs: [a]
      layers:
        - {fc: {size: 3}, name: u}
        - {mul: {}, from: [a, u]}  # HERE
  layers: [{pair: {}, from: x, name: p}]
"""), r"^\[mul\] x f32\[N, 4\] and y f32\[N, 3\] do not broadcast", "pair/mul1"),
    "shared parameter": (plain("""  layers:
    - {embedding: {size: 5, dim: 4, table: shared}, from: w, name: e}
    - {embedding: {size: 6, dim: 4, table: shared}, from: w, name: p}  # HERE
"""), r"^parameter 'shared' is f32\[5, 4\] and is used here as f32\[6, 4\]", "p"),
    "two axes": (plain("  layers:\n    - {fc: {size: 1}, from: [q, r], name: p}  # HERE\n"),
                 r"^\[sum\] shapes differ: f32\[T\(s\), 1\], f32\[T\(r\), 1\]", "p"),
    "no axis": (plain("  layers:\n    - {sequence_pool: {}, from: x, name: p}  # HERE\n"),
                r"^\[sequence_pool\] x is f32\[N, 4\] and lies on no ragged axis", "p"),
    "unknown from": (plain("""  layers:
    - {fc: {size: 3}, from: x, name: hidden}
    - {fc: {size: 1}, from: hiden, name: p}  # HERE
"""), r"^\[fc\] reads 'hiden', but nothing before it has that name$", ""),
    "unknown from of a loss": (ONE + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  loss: {square_error_cost: {}, from: [other, y]}  # HERE
""", r"^\[square_error_cost\] reads 'other', but nothing before it has that name$", ""),
    "unknown output": (plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n  outputs:\n    z: nothing  # HERE\n"),
                       r"^\[outputs\] reads 'nothing', but nothing before it has that name$", ""),
    "block inputs": (plain("""  blocks:
    pair: {inputs: [a, b], layers: [{fc: {size: 1}, from: [a, b]}]}
  layers:
    - {pair: {}, from: x, name: p}  # HERE
"""), r"^block 'pair' has the inputs \['a', 'b'\] and gets 1 tensors", ""),
    "unknown block": (plain("  layers:\n    - {scan: {block: cell}, from: q, name: p}  # HERE\n"),
                      r"^there is no block `cell`$", ""),
    "scan of dense rows": (plain(CELL + "  layers:\n    - {scan: {block: cell}, from: x, name: p}  # HERE\n"),
                           r"^\[scan\] all inputs must lie on one ragged axis; x: no axis", "p"),
    "scan of two axes": (plain(CELL.replace("[a]", "[a, b]") + "  layers:\n    - {scan: {block: cell}, from: [q, r], name: p}  # HERE\n"),
                         r"^\[scan\] all inputs must lie on one ragged axis; q: s, r: r", "p"),
    "shape of a memory": (plain(CELL.replace("size: 2", "size: 3") + "  layers:\n    - {scan: {block: cell}, from: q, name: p}  # HERE\n"),
                          r"^\[scan\] memory 'h' is f32\[n\(s\), 2\], its next value f32\[n\(s\), 3\]", "p"),
    "next of a memory": (plain(CELL.replace("next: g}", "next: gone}  # HERE") + "  layers: [{scan: {block: cell}, from: q, name: p}]\n"),
                         r"^\[memories\] reads 'gone', but nothing before it has that name", "p"),
    "start of a memory": (plain(CELL.replace("next: g}", "next: g, start: x}") + "  layers:\n    - {scan: {block: cell}, from: q, name: p}  # HERE\n"),
                          r"^\[scan\] memory 'h' is f32\[N, 2\], its start f32\[N, 4\]", "p"),
    "batch norm in a loop": (plain(CELL.replace("name: g}", "name: u}\n        - {batch_norm: {}, name: g}  # HERE")
                                   + "  layers: [{scan: {block: cell}, from: q, name: p}]\n"),
                             r"^\[batch_norm\] stands in a loop", "cell/g"),
    "loss of a network with entries": (TWO % "" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a: {loss: {square_error_cost: {}, from: [p, y]}, update: {parameters: "p/*", optimizer: one}}
  loss: {square_error_cost: {}, from: [p, y]}  # HERE
""", r"^this network has entries: put `loss` into those", ""),
    "two things of a block with one name": (plain("""  blocks:
    pair:
      {inputs: [a, a], layers: [{fc: {size: 1}}]}  # HERE
  layers: [{pair: {}, from: [x, x], name: p}]
"""), r"^block 'pair' has two things called 'a'", ""),
    "loop in a loop": (plain(CELL + """    outer:
      inputs: [a]
      memories: {h: {shape: [2], next: g}}
      layers:
        - {fc: {size: 2}, from: [a, h], name: g}
        - {scan: {block: cell}, from: a}  # HERE
  layers: [{scan: {block: outer}, from: q, name: p}]
"""), r"^\[scan\] a loop inside a loop is not possible", "outer/scan1"),
    "decode in training": (plain("""  blocks:
    step:
      inputs: [token]
      memories: {h: {shape: [4], next: g, start: x}}
      layers: [{embedding: {size: 5, dim: 2}, name: e}, {fc: {size: 4}, from: [e, h], name: g}, {fc: {size: 5}, name: z}]
  layers:
    - {fc: {size: 1}, from: x, name: p}
    - {decode: {block: step}, from: x, name: ids}  # HERE
"""), r"^\[decode\] belongs to prediction: it has no gradient", "ids"),
    "a sparse table used densely": (plain("""  layers:
    - {embedding: {size: 5, dim: 4, table: shared, sparse: true}, from: w, name: e}  # HERE
    - {embedding: {size: 5, dim: 4, table: shared}, from: w, name: f}
    - {sequence_pool: {}, from: e, name: g}
    - {sequence_pool: {}, from: f, name: h}
    - {fc: {size: 1}, from: [g, h], name: p}
"""), r"^\[embedding\] shared is a row-sparse table that is also used densely: say sparse: false here", "e"),
    "a sparse table in a scan": (plain("""  blocks:
    cell:
      inputs: [a]
      memories: {h: {shape: [2], next: g}}
      layers:
        - {embedding: {size: 5, dim: 2, sparse: true}, name: e}  # HERE
        - {fc: {size: 2}, from: [e, h], name: g}
  layers: [{scan: {block: cell}, from: w}, {sequence_pool: {}}, {fc: {size: 1}, name: p}]
"""), r"^\[embedding\] cell/e/w: a row-sparse gradient needs a parameter outside a scan", "cell/e"),
    "no loss": (ONE + "model:\n" + INPUTS.partition("\n")[2].replace("  inputs:", "  inputs:  # HERE", 1)
                + "  layers: [{fc: {size: 1}, from: x, name: p}]\n", r"^the network has no loss, so it cannot be trained", ""),
    "two optimizers, no entries": (TWO % "  # HERE" + INPUTS + "  layers: [{fc: {size: 1}, from: x, name: p}]\n" + LOSS,
                                   r"^there are 2 optimizers \(one, two\), but the network has no entries", ""),
    "two optimizers, one parameter": (TWO % "" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a: {loss: {square_error_cost: {}, from: [p, y]}, update: {parameters: "p/*", optimizer: one}}
    b:
      loss: {square_error_cost: {}, from: [p, y]}
      update: {parameters: "p/*", optimizer: two}  # HERE
""", r"^parameter 'p/w' is updated by 'one' and by 'two'", ""),
    "update without a loss": (TWO % "" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a:
      update: {parameters: "p/*", optimizer: one}  # HERE
""", r"^entry 'a' updates parameters but has no loss", ""),
    "update of nothing": (TWO % "" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a:
      loss: {square_error_cost: {}, from: [p, y]}
      update: {parameters: "q/*", optimizer: one}  # HERE
""", r"^no parameter matches q/\*; there are p/w, p/b", ""),
    "unknown entry": (TWO % "" + "train:\n  loop: [a, nothing]  # HERE\n" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a: {loss: {square_error_cost: {}, from: [p, y]}, update: {parameters: "p/*", optimizer: one}}
""", r"^there is no entry `nothing`", "train.loop.1"),
    "unknown field": (plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n").replace("    q:", "    zz: {shape: [4]}  # HERE\n    q:"),
                      r"^the data set 'generated' has no field 'zz'; it has x, q, r, w, f, y", ""),
    "shape of a field": (plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n").replace("x: {shape: [4]}", "x: {shape: [5]}  # HERE"),
                         r"^input 'x' is declared \[5\], the data set's field is \[4\]", ""),
    "type of a field": (plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n").replace("x: {shape: [4]}", "x: {shape: [4], dtype: int64, below: 9}  # HERE"),
                        r"^input 'x' is declared int64, the data set's field is f32", ""),
    "too many tensors": (plain("  layers:\n    - {embedding: {size: 5, dim: 2}, from: [w, x], name: p}  # HERE\n"),
                         r"^\[embedding\] reads 1 tensors \(x\), `from` gives 2", ""),
    "one tensor for a loss": (ONE + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  loss: {square_error_cost: {}, from: p}  # HERE
""", r"^\[square_error_cost\] reads 2 tensors \(prediction, label\), `from` gives 1", ""),
    "a block in itself": (plain("""  blocks:
    a: {inputs: [u], layers: [{b: {}}]}
    b:
      inputs: [u]
      layers:
        - {a: {}}  # HERE
  layers: [{a: {}, from: x, name: p}]
"""), r"^block 'a' is used inside itself: a, b, a", "b"),
    "metric's names": ("metrics:\n  - {accuracy: {}, from: [p, z]}  # HERE\n" + plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n"),
                       r"^\[accuracy\] reads 'z', but nothing before it has that name", ""),
    "one tensor for a metric": ("metrics:\n  - {accuracy: {}, from: p}  # HERE\n" + plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n"),
                                r"^\[accuracy\] reads 2 tensors \(scores, label\), `from` gives 1", ""),
    "metrics of entries that do not evaluate": (TWO % "" + "metrics:\n  - accuracy  # HERE\n" + INPUTS + """  layers: [{fc: {size: 1}, from: x, name: p}]
  entries:
    a: {loss: {square_error_cost: {}, from: [p, y]}, update: {parameters: "p/*", optimizer: one}}
""", r"^metrics need an entry that evaluates: one with a loss and without an update", ""),
    "metric": ("metrics:\n  - accuracy  # HERE\n" + plain("  layers: [{fc: {size: 1}, from: x, name: p}]\n"),
               r"^\[accuracy\] label is f32, must be i64", ""),
    "a parameter beyond all bounds": (plain("  layers:\n    - {fc: {size: 10000000000000}, from: x, name: p}  # HERE\n"),
                                      r"^p/w would be f32\[4, 10000000000000\]: more elements than can be held", "p"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_line(name: str, tmp_path: Path) -> None:
    text, message, layer = FAULTS[name]
    whole = HEAD + text
    (line,) = [i for i, row in enumerate(whole.split("\n"), 1) if "# HERE" in row]
    with pytest.raises(ConfigError) as caught:
        recipe = recipe_of(whole, tmp_path)
        with telling(recipe):
            run_passes(graph_of(recipe), optimizers(recipe))
    (found,) = caught.value.faults
    assert re.search(message, found.message), found.message
    assert (Path(found.where.file).name, found.where.line) == ("recipe.yaml", line)
    assert found.where.column > 0 and found.where.text == whole.split("\n")[line - 1]
    assert layer in found.message + found.where.key


CLASSES = """
name: faulty
data:
  name: generated
  fields: [{name: x, shape: [4]}, {name: y, dtype: int64, role: label, classes: 3}]
model:
  inputs:
    x: {shape: [4]}
    y: {dtype: int64, role: label, below: %d}
  layers: [{fc: {size: %d}, from: x, name: p}]
  loss: {softmax_with_cross_entropy: {%s}, from: [p, y]}
metrics: [%s]
"""


@pytest.mark.parametrize(
    ("values", "line", "message"),
    [
        ((2, 3, "", ""), 9, "input 'y' is declared below 2, the data set's field has 3 classes"),
        (
            (3, 2, "", ""),
            11,
            "[cross_entropy] the label has 3 classes, the scores f32[N, 2] have 2",
        ),
        ((3, 1, "ignore_index: 2", ""), 11, "[cross_entropy] the label has 3 classes"),
        ((3, 3, "", "auc"), 12, "[auc] scores are f32[N, 3]; one or two a row are needed"),
    ],
)
def test_labels_without_a_score(
    values: tuple[object, ...], line: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(ONE + CLASSES % values, tmp_path))
    (found,) = caught.value.faults
    assert found.message.startswith(message) and found.where.line == line + 1


def test_one_class_more_may_be_ignored(tmp_path: Path) -> None:
    graph_of(recipe_of(ONE + CLASSES % (3, 2, "ignore_index: 2", ""), tmp_path))


def test_a_fault_shows_its_line_and_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(ONE + CLASSES % (3, 2, "", ""), tmp_path))
    shown = str(caught.value)
    assert shown.count("the label has 3 classes") == 1
    assert "  loss: {softmax_with_cross_entropy: {}, from: [p, y]}\n" in shown


def test_a_registered_network_names_the_line_of_its_name(tmp_path: Path) -> None:
    recipe = recipe_of(HEAD + ONE + "model:\n  name: digits_conv  # HERE\n", tmp_path)
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe)
    (found,) = caught.value.faults
    assert found.message.startswith(
        "this network needs exactly one input; the data set 'generated' has x (input), q (input)"
    )
    assert found.where.line == (HEAD + ONE).count("\n") + 2


def test_a_name_that_nothing_has_comes_with_those_that_exist(tmp_path: Path) -> None:
    layers = "  layers:\n    - {fc: {size: 1}, from: x, name: hidden}\n    - {tanh: {}, from: hiden, name: p}\n"
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(HEAD + plain(layers), tmp_path))
    (found,) = caught.value.faults
    assert (found.nearest, found.expected) == (("hidden",), "one of hidden, q, r, w, x, y")
    assert found.where.key == "model.layers.1"


MANY = (
    HEAD
    + ONE
    + """model:
  inputs:
    x: {shape: [4]}
    q: {shape: [5], ragged: s}  # HERE
    y: {shape: [1], role: label}
  blocks:
    pair:
      inputs: [a]
      share: false
      arguments: {size: }
      layers:
        - {fc: {size: $size}, name: u}
        - {add: {}, from: [u, a]}  # HERE
        - {conv2d: {filters: 1, size: 1}, from: u}  # HERE
    cell:
      inputs: [a]
      memories: {h: {shape: [2], next: g}}
      layers:
        - {fc: {size: 2}, from: [a, h], name: g}
        - {mul: {}, from: [g, none]}  # HERE
  layers:
    - {pair: {size: 3}, from: x, name: bad}
    - {fc: {size: 3}, from: bad, name: after}
    - {tanh: {}, from: [x, bad.output]}
    - {scan: {block: cell}, from: q, name: unseen}
    - {fc: {size: 1}, from: x, name: p}
    - {reshape: {shape: [3]}, from: p, name: r}  # HERE
    - {tanh: {}, from: [p, p], name: t}  # HERE
    - {split: {parts: 2}, from: r}
    - {sequence_pool: {}, from: unseen.g}
  loss: {square_error_cost: {}, from: [t, y]}
  outputs: {p: p, after: after, z: zz}  # HERE
metrics:
  - accuracy
  - {accuracy: {}, from: [p, gone]}  # HERE
"""
)


def test_all_faults_at_once_and_none_that_only_follows(tmp_path: Path) -> None:
    """What reads what a layer with a fault would have given is passed over; all else is checked."""
    lines = [i for i, row in enumerate(MANY.split("\n"), 1) if "# HERE" in row]
    cell = next(i for i in lines if "g, none" in MANY.split("\n")[i - 1])
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(MANY, tmp_path))
    found = [f.where.line for f in caught.value.faults]
    assert found == [i for i in lines if i != cell]
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(MANY.replace("q: {shape: [5]", "q: {shape: [4]"), tmp_path))
    assert [f.where.line for f in caught.value.faults] == lines[1:]


def test_a_fault_in_a_block_shows_the_uses_that_lead_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(MANY, tmp_path))
    fault = next(f for f in caught.value.faults if "[add]" in f.message)
    (use,) = fault.uses
    row = next(i for i, row in enumerate(MANY.split("\n"), 1) if "pair: {size: 3}" in row)
    assert use.line == row and use.text == MANY.split("\n")[row - 1]
    assert f"recipe.yaml:{row}:7: - {{pair: {{size: 3}}, from: x, name: bad}}" in str(fault)
    assert "bad/add1" in fault.message and fault.as_dict()["uses"][0]["line"] == row


def test_two_uses_of_a_block_are_two_faults(tmp_path: Path) -> None:
    text = MANY.replace("    - {fc: {size: 3}, from: bad, name: after}\n",
                        "    - {pair: {size: 2}, from: x, name: after}\n")  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(text, tmp_path))
    found = [f for f in caught.value.faults if "[add]" in f.message]
    assert ["N, 3" in found[0].message, "N, 2" in found[1].message] == [True, True]
    assert {f.where.line for f in found} == {found[0].where.line}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{fc: {size: 1}, share: true}", "`share` belongs to blocks"),
        ("{pair: {size: 4}, parameters: {w: v}}", "`parameters` belongs to layers"),
        ("{cell: {}, from: x}", "block 'cell' has memories: it is a step for `scan` or `decode`"),
        ("{layers: [tanh], share: false}", "a group of layers has no `share`"),
        ("{layers: [tanh], from: [x, x]}", "a group of layers reads one tensor"),
        ("{fc: {size: 1}, parameters: {v: w}}", "[fc] has no parameter 'v'; it has w, b"),
        ("{scan: {block: cell}, from: q, parameters: {w: v}}", "`parameters` belongs to layers"),
        ("{split: {parts: 3}}", "[split] 4 of x f32[N, 4] do not divide into 3 parts"),
        ("{split: {}}", "[split] either `parts` or `sizes` must be given"),
        ("{split: {parts: 2, axis: 0}}", "axis 0 is no fixed dimension"),
        ("{slice: {start: 3, end: 9}}", "[slice] from 3 to 9 of 4 along axis 1"),
        ("{reduce_sum: {axis: 0}}", "`axis` [0] must name dimensions behind the batch"),
        ("{transpose: {perm: [0]}}", "[transpose]"),
        ("{parameter: {shape: [3]}, from: x}", "`from` gives 1"),
    ],
)
def test_what_does_not_go_together(body: str, message: str, tmp_path: Path) -> None:
    text = MANY.replace("# HERE", "").replace("q: {shape: [5]", "q: {shape: [4]")
    head, _, tail = text.partition("  layers:\n    - {pair: {size: 3}, from: x, name: bad}\n")
    text = f"{head}  layers:\n    - {body}\n    - {{fc: {{size: 1}}, from: x, name: p}}\n"
    text += "  loss: {square_error_cost: {}, from: [p, y]}\n"
    text = text.replace("          - {conv2d", "          # {conv2d").replace("[g, none]", "[g, g]")
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(text, tmp_path))
    (found,) = [
        f
        for f in caught.value.faults
        if "broadcast" not in f.message and "[conv2d]" not in f.message
    ]
    assert message in found.message
    assert tail
