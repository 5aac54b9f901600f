"""The schema stage: every kind of fault with its exact place, and what the message offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecli.errors import Fault

from .world import SMALL, fault, faults, load, place

NETWORK = """\
model:
  inputs:
    x: {shape: [4]}
    y: {shape: [1], role: label}
  layers:
    - fc: {size: 3}
    - fc: {size: 1}
      name: out
  loss: {square_error_cost: {}, from: [out, y]}
"""

# text below SMALL (lines 1 and 2), place, a part of the message, of `expected`, nearest names
SMALL_CASES = [
    ("trian: {}", "3:1", "unknown key `trian` in the recipe", "checkpoint, data", ("train",)),
    ("train: {epocs: 1}", "3:9", "unknown key `epocs` in `train`", "epochs", ("epochs",)),
    (
        "train: {epochs: '2'}",
        "3:17",
        '`epochs` must be a whole number, at least 1, got the text "2"',
        "a whole number, at least 1",
        (),
    ),
    ("train: {epochs: true}", "3:17", "got true", "a whole number, at least 1", ()),
    ("train: {epochs: 1.5}", "3:17", "got the number 1.5", "a whole number", ()),
    ("train: {epochs: 2.0}", "3:17", "got the number 2.0", "a whole number", ()),
    ("train: {epochs: 0}", "3:17", "`epochs` must be at least 1, got 0", "at least 1", ()),
    ("train: {epochs: .inf}", "3:17", "`.inf` is not a finite number", "a finite number", ()),
    ("train: {epochs:}", "3:16", "got nothing", "a whole number", ()),
    ("train: {epochs: [3]}", "3:17", "got a list", "a whole number", ()),
    ("train: {seed: 99999999999999999999}", "3:15", "has more than 64 bits", "64 bits", ()),
    (
        "train: {drop_last: no}",
        "3:20",
        '`drop_last` must be true or false, got the text "no"',
        "true or false",
        (),
    ),
    ("train: {drop_last: 1}", "3:20", "got the number 1", "true or false", ()),
    (
        "train: {shuffle: ful}",
        "3:18",
        '"ful" is not a value of `shuffle`',
        "`full` or `window` or `none`",
        ("full",),
    ),
    ("train: {shuffle: window}", "3:9", "`shuffle: window` needs a `shuffle_buffer`", "", ()),
    ("train: {shuffle_buffer: 9}", "3:9", "has a meaning with `shuffle: window` only", "", ()),
    ("train: {accumulate: 64}", "3:9", "more than the samples of a batch", "", ()),
    ("train: 3", "3:8", "`train` must be a mapping, got the number 3", "a mapping", ()),
    ("train: {loop: [step]}", "3:16", "there is no entry `step`", "defines no named entry", ()),
    ("description: 3", "3:14", "`description` must be text, got the number 3", "text", ()),
    ("name: a/b", "3:7", '"a/b" does not have the form of `name`', "letters, digits", ()),
    ("name: ''", "3:7", "does not have the form", "letters", ()),
    ("epochs: 3", "3:1", "unknown key `epochs` in the recipe", "one of", ()),
    (
        "metrics: [acuracy]",
        "3:11",
        "unknown metric `acuracy`",
        "a registered metric",
        ("accuracy",),
    ),
    ("metrics: accuracy", "3:10", "`metrics` must be a list", "a list", ()),
    (
        "metrics: [{accuracy: {n: 1}}]",
        "3:23",
        "unknown key `n` of the metric `accuracy`",
        "one of k",
        (),
    ),
    ("metrics: [{accuracy: {k: 0}}]", "3:26", "`k` must be at least 1, got 0", "at least 1", ()),
    (
        "metrics: [{accuracy: 5}]",
        "3:22",
        "the arguments of `accuracy` must be a mapping",
        "a mapping",
        (),
    ),
    (
        "metrics: [{accuracy: {}, auc: {}}]",
        "3:26",
        "unknown key `auc` beside the metric `accuracy`",
        "one of from, name",
        (),
    ),
    ("metrics: [{name: a}]", "3:11", "expected exactly one metric here, found none", "", ()),
    (
        "metrics: [3]",
        "3:11",
        "item 0 of `metrics` must be a mapping, got the number 3",
        "a mapping",
        (),
    ),
    ("checkpoint: {keep_best: 1}", "3:14", "`keep_best` needs a `monitor`", "", ()),
    (
        "checkpoint: {monitor: loss}",
        "3:23",
        '"loss" does not have the form of `monitor`',
        "a split and a metric",
        (),
    ),
    (
        "expect: {loss: [1, 2]}",
        "3:10",
        "`loss` is not a possible key here",
        "a split and a metric",
        (),
    ),
    ("expect: {test.loss: [1, 2, 3]}", "3:21", "expected two numbers", "", ()),
    ("expect: {test.loss: [2, 1]}", "3:21", "the lower bound is above the upper one", "", ()),
    ("expect: {test.loss: {}}", "3:21", "expected `min`, `max` or both", "", ()),
    (
        "expect: {test.loss: {mx: 1}}",
        "3:22",
        'unknown key `mx` in `expect."test.loss"`',
        "max, min",
        ("max",),
    ),
    (
        "data: {name: mnits}",
        "3:14",
        "unknown data set `mnits`",
        "a registered data set",
        ("mnist",),
    ),
    ("data: {name: 3}", "3:14", "`name` must be text, not empty, got the number 3", "text", ()),
    ("data: {}", "3:1", "the key `name` is missing in `data`", "text", ()),
    ("data: {name: table}", "3:1", "the key `path` is missing in `data`", "a path", ()),
    ("data: {name: table, path: ''}", "3:27", "a path must not be empty", "a path", ()),
    ("data: {name: table, path:}", "3:26", "`path` must be a path, got nothing", "a path", ()),
    (
        "data: {name: table, path: a, columns: [b, 3]}",
        "3:43",
        "item 1 of `columns` must be text",
        "text",
        (),
    ),
    (
        "train: {seed: 1}\ntrain: {seed: 2}",
        "4:1",
        "the key `train` comes twice, first in line 3",
        "each key once",
        (),
    ),
    (
        "train: {seed: 1, seed: 1}",
        "3:18",
        "the key `seed` comes twice, first in line 3",
        "each key once",
        (),
    ),
    ("<<: {seed: 1}", "3:1", "unknown key `<<`", "one of", ()),
]


@pytest.mark.parametrize(("text", "where", "message", "expected", "nearest"), SMALL_CASES)
def test_fault(
    text: str, where: str, message: str, expected: str, nearest: tuple[str, ...]
) -> None:
    found = fault(SMALL + text + "\n")
    assert place(found) == f"r.yaml:{where}", str(found)
    assert message in found.message, str(found)
    assert expected in found.expected, str(found)
    assert found.nearest[: len(nearest)] == nearest, str(found)
    assert found.where.text == (SMALL + text).splitlines()[found.where.line - 1]


OPTIMIZER_CASES = [
    ("{name: sgd, learning_rate: 0}", "2:39", "`learning_rate` must be above 0, got 0"),
    ("{name: sgd, learning_rate: '1e-3'}", "2:39", "`learning_rate` must be a number, above 0"),
    ("{name: sgd, learning_rate: true}", "2:39", "got true"),
    ("{name: sgd, learning_rate: .nan}", "2:39", "not a finite number"),
    ("{name: sgd, learning_rate: 1, mu: 0.9}", "2:42", "unknown key `mu` of the optimizer `sgd`"),
    ("{name: sgd}", "2:1", "the key `learning_rate` is missing in `optimizer`"),
    ("{name: sdg, learning_rate: 1}", "2:19", "unknown optimizer `sdg`"),
    ("{learning_rate: 1}", "2:1", "the key `name` is missing in `optimizer`"),
    ("{name: momentum, learning_rate: 1, mu: 1}", "2:51", "`mu` must be below 1, got 1"),
    ("{name: momentum, learning_rate: 1, nesterov: 1}", "2:57", "`nesterov` must be true or false"),
    ("{name: momentum, learning_rate: 1, nestrov: true}", "2:47", "unknown key `nestrov`"),
    (
        "{name: sgd, learning_rate: 1, clip: {norm: 1, value: 1}}",
        "2:48",
        "expected exactly one of value",
    ),
    ("{name: sgd, learning_rate: 1, clip: {norm: -1}}", "2:55", "`norm` must be above 0"),
    ("{name: sgd, learning_rate: 1, clip: 1}", "2:48", "`clip` must be a mapping"),
    ("{name: sgd, learning_rate: 1, regularizer: {l3: 1}}", "2:56", "unknown key `l3`"),
    (
        "{name: sgd, learning_rate: 1, regularizer: {l1: null}}",
        "2:55",
        "expected exactly one of l1, l2",
    ),
    ("{name: sgd, learning_rate: 1, schedule: cosine}", "2:52", "`schedule` must be a mapping"),
    (
        "{name: sgd, learning_rate: 1, schedule: {name: cosin, epochs: 1}}",
        "2:59",
        "unknown schedule `cosin`",
    ),
    (
        "{name: sgd, learning_rate: 1, schedule: {name: piecewise, values: [1]}}",
        "2:42",
        "the key `boundaries` is missing",
    ),
    (
        "{name: sgd, learning_rate: 1, schedule: {name: cosine, epochs: 1, warmup: {steps: 0}}}",
        "2:94",
        "`steps` must be at least 1",
    ),
    (
        "{a: {name: sgd, learning_rate: 0}, b: {name: adam, learning_rate: 1}}",
        "2:43",
        "must be above 0",
    ),
    (
        "{a: {name: sgd, learning_rate: 1}, b: {nme: adam, learning_rate: 1}}",
        "2:47",
        "the key `name` is missing in `optimizer.b`",
    ),
    ("{name: {}, learning_rate: 1}", "2:19", "`name` must be text"),
    ("[sgd]", "2:12", "`optimizer` must be a mapping, got a list"),
    ("{}", "2:1", "is missing"),
]


@pytest.mark.parametrize(("text", "where", "message"), OPTIMIZER_CASES)
def test_optimizer_fault(text: str, where: str, message: str) -> None:
    found = faults(f"model: {{name: linear}}\noptimizer: {text}\n")
    assert (f"r.yaml:{where}", True) in [(place(f), message in f.message) for f in found], show(
        found
    )


def show(found: list[Fault]) -> str:
    return "\n".join(map(str, found))


def test_misspelt_keys_of_a_call_find_its_own_keys_too() -> None:
    found = faults("model: {name: linear}\noptimizer: {name: sgd, lerning_rate: 1}\n")
    assert [(f.message, f.nearest) for f in found] == [
        ("unknown key `lerning_rate` of the optimizer `sgd`", ("learning_rate",))
    ]


MODEL_CASES = [
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1, init: {constant: {}, xavier: {}}}}]}",
        "1:56",
        "expected exactly one initializer here, found `constant`, `xavier`",
    ),
    ("model: {name: lienar}", "1:15", "unknown model `lienar`"),
    ("model: {name: linear, sise: 2}", "1:23", "unknown key `sise` of the model `linear`"),
    ("model: {name: linear, size: x}", "1:29", "`size` must be a whole number"),
    ("model: {name: linear, layers: []}", "1:23", "unknown key `layers` of the model `linear`"),
    ("model: {}", "1:1", "the key `name` is missing in `model`"),
    ("model: linear", "1:8", "`model` must be a mapping"),
    ("model: {inputs: {}, layers: [{fc: {size: 1}}]}", "1:17", "`inputs` must not be empty"),
    ("model: {inputs: {x: {}}}", "1:8", "a network needs `layers` or `entries`"),
    ("model: {layers: [{fc: {size: 1}}]}", "1:1", "the key `inputs` is missing in `model`"),
    (
        "model: {inputs: {x: {shape: [0]}}, layers: [{fc: {size: 1}}]}",
        "1:30",
        "item 0 of `shape` must be",
    ),
    (
        "model: {inputs: {x: {dtype: float}}, layers: [{fc: {size: 1}}]}",
        "1:29",
        "not a value of `dtype`",
    ),
    (
        "model: {inputs: {x: {ragged: 1}}, layers: [{fc: {size: 1}}]}",
        "1:30",
        "`ragged` must be text",
    ),
    ("model: {inputs: {x: {}}, layers: [{fc: {}}]}", "1:36", "the key `size` is missing"),
    ("model: {inputs: {x: {}}, layers: [fc]}", "1:35", "the key `size` is missing"),
    ("model: {inputs: {x: {}}, layers: [{fv: {size: 1}}]}", "1:36", "unknown layer `fv`"),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1, activ: relu}}]}",
        "1:50",
        "unknown key `activ`",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1}, repeat: 0}]}",
        "1:59",
        "`repeat` must be at least 1",
    ),
    ("model: {inputs: {x: {}}, layers: [{fc: {size: 1}, from: 3}]}", "1:57", "`from` must be text"),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1}, from: [x, 3]}]}",
        "1:61",
        "item 1 of `from`",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1}, name: ''}]}",
        "1:57",
        "does not have the form of `name`",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{conv2d: {filters: 1, size: [3, x]}}]}",
        "1:67",
        "item 1 of `size`",
    ),
    ("model: {inputs: {x: {}}, layers: [{conv2d: {filters: 1, size: []}}]}", "1:63", "`size`"),
    (
        "model: {inputs: {x: {}}, layers: [{conv2d: {filters: 1, size: big}}]}",
        "1:63",
        "`size` must be a whole number, at least 1, or a list",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1, init: xavir}}]}",
        "1:56",
        "unknown initializer `xavir`",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1, init: {constant: {value: x}}}}]}",
        "1:75",
        "`value` must be a number",
    ),
    (
        "model: {inputs: {x: {}}, layers: [{fc: {size: 1}}], loss: {mse: {}}}",
        "1:60",
        "unknown loss `mse`",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {b: {inputs: [i], layers: []}}, layers: [b]}",
        "1:60",
        "`layers` must not be empty",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {b: {inputs: [i], layers: [{fx: {}}]}}, layers: [b]}",
        "1:62",
        "unknown layer `fx`",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {b: {inputs: [i], layers: [{fc: {size: 1}}]}},"
        " layers: [{b: {a: 1}}]}",
        "1:95",
        "the block `b` has no argument `a`",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {cell: {inputs: [i], layers: [{fc: {size: 1}}]}},"
        " layers: [{cel: {}}]}",
        "1:94",
        "unknown layer `cel`",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {b: {inputs: [i], memories: {h: {shape: [1]}},"
        " layers: [{fc: {size: 1}}]}}, layers: [b]}",
        "1:63",
        "the key `next` is missing",
    ),
    (
        "model: {inputs: {x: {}}, blocks: {b: {inputs: [i], memories: {h:"
        " {shape: [1], next: n, start: []}}, layers: [{fc: {size: 1}}]}}, layers: [b]}",
        "1:95",
        "`start` must be a number",
    ),
    (
        "model: {inputs: {x: {}}, entries: {e: {update: {parameters: '*', optimizer: d}}}}",
        "1:77",
        "there is no optimizer `d`",
    ),
    ("model: {inputs: {x: {}}, entries: {e: {layers: [{fq: {}}]}}}", "1:50", "unknown layer `fq`"),
]


@pytest.mark.parametrize(("text", "where", "message"), MODEL_CASES)
def test_model_fault(text: str, where: str, message: str) -> None:
    found = fault(text + "\n")
    assert (place(found), message in found.message) == (f"r.yaml:{where}", True), str(found)


def test_an_empty_recipe_lacks_its_model() -> None:
    found = fault("# a comment\n\ndescription: nothing\n")
    assert (place(found), found.message) == (
        "r.yaml:3:1",
        "the key `model` is missing in the recipe",
    )


def test_all_faults_come_at_once_in_order() -> None:
    found = faults("""\
model: {name: linaer, size: 1}
optimizer: {name: sgd, learning_rate: -1}
train: {epocs: 1, seed: x}
train: {}
metrics: [nothing]
""")
    assert [place(f) for f in found] == [
        "r.yaml:1:15",
        "r.yaml:2:39",
        "r.yaml:3:9",
        "r.yaml:3:25",
        "r.yaml:4:1",
        "r.yaml:5:11",
    ]


def test_a_fault_in_an_extended_file_points_there() -> None:
    Path("sub").mkdir()
    Path("sub/base.yaml").write_text("train:\n  epocs: 3\n")
    found = fault("extends: [sub/base.yaml]\n" + SMALL)
    assert (place(found), found.where.text) == ("sub/base.yaml:2:3", "  epocs: 3")


def test_unknown_names_say_what_exists_and_how_to_add_one() -> None:
    found = fault(SMALL + "metrics: [bleu]\n")
    assert found.hint == "known: accuracy; your own comes with --code FILE.py that registers `bleu`"


def test_a_key_of_another_section_is_told_so() -> None:
    assert fault(SMALL + "batch_size: 3\n").hint == "`batch_size` belongs to `train`"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("train: {drop_last: off}", "write true or false"),
        ("description: 12", 'quote it: "12"'),
        ("train: {epochs: '3'}", "write the number without quotes, blanks or `_`"),
        ("train: {epochs: 1_000}", "write the number without quotes, blanks or `_`"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert fault(SMALL + text + "\n").hint == hint


def test_the_printed_form() -> None:
    assert str(fault(SMALL + "predict: {tops: 3}\n")).splitlines() == [
        "r.yaml:3:11: unknown key `tops` in `predict`",
        "  3 | predict: {tops: 3}",
        "    |           ^",
        "  key: predict.tops",
        "  expected: one of labels, output, pictures, top",
        "  did you mean `top`?",
    ]


def test_the_written_network_loads() -> None:
    recipe = load(NETWORK)
    assert str(recipe.where(("model", "layers", 1, "fc"))) == "r.yaml:7:11"
