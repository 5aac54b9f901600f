"""Broken recipes: the files of each, and what is given on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from .world import SMALL


class Broken(NamedTuple):
    """`text` is the recipe `r.yaml`; `files` lie beside it."""

    text: str | bytes
    options: tuple[str, ...] = ()
    files: Mapping[str, str | bytes] = MappingProxyType({})
    set_files: tuple[str, ...] = ()


def small(more: str, *options: str) -> Broken:
    """A sound recipe of two lines, and some more below."""
    return Broken(SMALL + more + "\n", options)


def network(layers: str, rest: str = "") -> Broken:
    """A written network with some layers."""
    return Broken(f"""\
model:
  inputs:
    x: {{shape: [4]}}
    y: {{shape: [1], role: label}}
  layers:
{layers}
  loss: {{square_error_cost: {{}}, from: [out, y]}}
{rest}""")


def optimizer(text: str) -> Broken:
    """A sound network with some optimizer."""
    return Broken(f"model: {{name: linear}}\noptimizer:\n{text}\n")


CASES: dict[str, Broken] = {
    # the text
    "tab": small("train:\n\tepochs: 3"),
    "tabs in two sections": small("train:\n\tepochs: 3\npredict:\n\ttop: 3\n\toutput: x"),
    "unclosed mapping": Broken("model: {name: linear\noptimizer: {name: sgd, learning_rate: 0.1}\n"),
    "unclosed quote": small("description: \"begun\ntrain: {epochs: 3}"),
    "colon in text": small("description: ratio: 1:2"),
    "four sections": small(
        'description: "begun\ntrain:\n\tepochs: 3\npredict: {top: 3\nname: a: b\ncheckpoint: !x {}'
    ),
    "wrong indentation": small("train:\n  epochs: 3\n seed: 4"),
    "a key without colon": small("train\n  epochs: 3\n"),
    "tag": small("train: !!python/object/apply:os.system [ls]"),
    "two tags": Broken("model: !a {name: !b linear}\n"),
    "unknown alias": small("train: *settings"),
    "alias of itself": small("train: &a [*a]"),
    "exploding aliases": Broken(
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{n}: &{n} [{', '.join([f'*{p}'] * 9)}]\n" for p, n in zip("abcde", "bcdef", strict=True)
        )
    ),
    "second document": small("---\nmodel: {}"),
    "deep nesting": small("train: " + "[" * 70 + "]" * 70),
    "list as key": small("? [a, b]\n: 3"),
    "control character": small("description: \x07bell"),
    "not UTF-8": Broken(SMALL.encode() + b"description: caf\xe9\n"),
    "UTF-16": Broken(SMALL.encode("utf-16")),
    "empty": Broken(b""),
    "only a comment": Broken("# to do\n"),
    "a list": Broken("- model\n- train\n"),
    "too large": Broken("#" * (1 << 20) + "\n"),
    "a long line": small("predict: {labels: [" + "name, " * 60 + "name], tops: 3}"),
    "quotes missing around a reference": small("train: {epochs: ${train.seed}}"),
    "carriage returns and a BOM": Broken(
        b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode() + b"train:\r\n  epocs: 3\r\n"
    ),
    # keys
    "misspelt section": small("trian: {epochs: 3}"),
    "misspelt key": small("predict: {tops: 3}"),
    "key of another section": small("batch_size: 3"),
    "key of another tool": small("predict: {topk: 3}\ncheckpoint: {max_to_keep: 3}"),
    "key that is a flag": small("device: cuda"),
    "key written otherwise": optimizer("  {name: sgd, learning_rate: 1, weight_decay: 0.1}"),
    "key twice": small("predict:\n  top: 3\n  output: p\n  top: 4"),
    "section twice": small("predict: {top: 3}\npredict: {top: 4}"),
    "merge key": small("<<: {predict: {top: 3}}"),
    "section missing": Broken("description: nothing\n"),
    "misspelt key that is needed": optimizer("  {name: sgd, lerning_rate: 1}"),
    # types and ranges
    "text for a number": small("predict: {top: '3'}"),
    "bool for a number": small("predict: {top: true}"),
    "fraction for a whole number": small("predict: {top: 1.5}"),
    "word for a bool": small("train: {drop_last: no}"),
    "number for text": small("description: 12"),
    "nothing for a number": small("predict: {top: }"),
    "scalar for a section": small("predict: 3"),
    "text for a list": small("metrics: accuracy"),
    "below the range": small("predict: {top: 0}"),
    "above the range": optimizer("  {name: momentum, learning_rate: 1, mu: 1}"),
    "infinity": optimizer("  {name: sgd, learning_rate: .inf}"),
    "beyond 64 bits": small("train: {seed: 18446744073709551616}"),
    "misspelt word": small("train: {shuffle: ful}"),
    "form of a metric": small("checkpoint: {monitor: loss}"),
    "form of a name": small("name: a/b"),
    "item of a list": network("    - {conv2d: {filters: 1, size: [3, x]}, name: out}"),
    "list too long": small("expect: {test.loss: [1, 2, 3]}"),
    "empty path": small("data: {name: table, path: ''}"),
    "no path": small("data: {name: table, path: null}"),
    # what contradicts itself
    "window without buffer": small("train: {shuffle: window}"),
    "best without monitor": small("checkpoint: {keep_best: 1}"),
    "bounds upside down": small("expect: {test.loss: [2, 1]}"),
    "two ways to clip": optimizer("  {name: sgd, learning_rate: 1, clip: {norm: 1, value: 1}}"),
    # names
    "unknown network": Broken("model: {name: lienar}\n"),
    "unknown layer": network("    - {fd: {size: 1}, name: out}"),
    "layer of another tool": network("    - {dense: {units: 1}, name: out}"),
    "two layers in one": network("    - {fc: {size: 1}, conv2d: {}, name: out}"),
    "key beside a layer": network("    - {fc: {sise: 1}, nmae: out, input: x, repeat: 0}"),
    "key beside a metric": small("metrics: [{accuracy: {}, form: [p, y]}]"),
    "argument of a layer": network("    - {fc: {sise: 1}, name: out}"),
    "initializer": network("    - {fc: {size: 1, init: {constnt: {value: 1}}}, name: out}"),
    "argument of an initializer": network("    - {fc: {size: 1, init: {constant: {val: 1}}}, name: out}"),
    "unknown loss": Broken("model: {inputs: {x: {}}, layers: [{fc: {size: 1}}], loss: {mse: {}}}\n"),
    "unknown optimizer": optimizer("  {name: sdg, learning_rate: 1}"),
    "unknown schedule": optimizer("  {name: sgd, learning_rate: 1, schedule: {name: cosin}}"),
    "unknown metric": small("metrics: [acuracy, {accuracy: {kk: 1}}]"),
    "unknown data set": small("data: {name: mnits}"),
    "unknown entry": small("train: {loop: [step]}"),
    # composition
    "extends no list": Broken("extends: base.yaml\n" + SMALL),
    "extends nothing": Broken("extends: [./bse.yaml, optimizer/adm]\n" + SMALL, files={"base.yaml": ""}),
    "extends in a circle": Broken(
        "extends: [a.yaml]\n" + SMALL,
        files={"a.yaml": "extends: [b.yaml]\n", "b.yaml": "extends: [r.yaml]\n"},
    ),
    "faults in three files": Broken(
        "extends: [a.yaml, b.yaml]\npredict: {topp: 3}\n" + SMALL,
        files={"a.yaml": "train: {epocs: 1}\n", "b.yaml": "predict:\n  top: 0\n"},
    ),
    "a file that others extend twice": Broken(
        "extends: [a.yaml, b.yaml]\n" + SMALL,
        files={
            "a.yaml": "extends: [c.yaml]\n", "b.yaml": "extends: [c.yaml]\n",
            "c.yaml": "predict: {top: 1, top: 2}\n",
        },
    ),
    "reference to nothing": small("description: ${predict.tob}"),
    "reference to itself": small("train: {seed: '${train.epochs}', epochs: '${train.seed}'}"),
    "reference to a section": small("description: x ${optimizer}"),
    "unclosed reference": small("description: ${name"),
    "reference of the wrong type": small("predict: {top: '${name}'}"),
    "environment": small("description: ${env:PK_NO_SUCH_VARIABLE}"),
    "copy of a fault": small("expect: {test.a: {mn: 1}, test.b: '${expect.\"test.a\"}'}"),
    # the command line
    "option: misspelt key": small("", "predict.tops=3"),
    "option: wrong type": small("", "predict.top=many"),
    "option: out of range": small("", "predict.top=0"),
    "option: inside a value": small("", "predict={top: 3, tops: 4}"),
    "option: no equals sign": small("", "predict.top"),
    "option: no path": small("", "predict..top=3"),
    "option: two equals signs": small("", "predict.top==3"),
    "option: broken YAML": small("", "predict={top: 3"),
    "option: quotes": small("", 'optimizer.name="sgd"'),
    "option: below a value": small("predict: {top: 3}", "predict.top.x=3"),
    "option: place in a list": small("metrics: [accuracy]", "metrics.3=accuracy"),
    "option: delete nothing": small("predict: {top: 3}", "~predict.tob"),
    "option: extends": small("", "extends=[a.yaml]"),
    "option: bytes": small("", "description=\udcff"),
    "options and files together": Broken(
        "extends: [a.yaml]\npredict: {topp: 3}\n" + SMALL,
        ("predict.tops=3", "optimizer.learning_rate=-1"),
        {"a.yaml": "train: {epocs: 1}\n"},
    ),
    "set-file: no file": Broken(SMALL, set_files=("description=nothing.txt",)),
    "set-file: no equals sign": Broken(SMALL, set_files=("description",)),
    "set-file: inside": Broken(
        SMALL, (), {"net.yaml": "name: linear\nsise: 3\n"}, ("model=net.yaml",)
    ),
    "set-file: broken YAML": Broken(SMALL, (), {"net.yaml": "name: [\n"}, ("model=net.yaml",)),
    "set-file: bytes": Broken(SMALL, (), {"d.txt": b"caf\xe9"}, ("description=d.txt",)),
}  # fmt: skip
