"""`paddlecli model`: list, show, summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.runs import DIGITS, recipe, run
from paddlecli.cli.app import main
from paddlecli.cli.model import amount
from paddlecli.config.registry import MODELS


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Standard output of a command that must end with `code`."""
    assert main(["model", *arguments]) == code
    return capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    lines = call(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines] == MODELS.names()
    assert all(len(line.split(None, 1)) == 2 for line in lines)
    found = json.loads(call(capsys, "list", "--json"))
    assert [m["name"] for m in found["models"]] == MODELS.names()
    assert all(m["summary"] for m in found["models"])


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "show", "resnet_cifar10", "--json"))
    depth = next(a for a in found["arguments"] if a["name"] == "depth")
    assert (depth["type"], depth["default"], depth["required"]) == (
        "a whole number, at least 1",
        32,
        False,
    )
    assert "bench/cifar_resnet32" in found["recipes"]
    text = call(capsys, "show", "resnet_cifar10")
    assert "depth" in text and "32" in text and "recipes  " in text
    assert found["text"].split()[0] in text


def test_show_of_a_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "show", "resnet_cifar"]) == 3
    assert "did you mean `resnet_cifar10`" in capsys.readouterr().err


def test_summary_of_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "summary", "bench/mnist_lenet", "--json"))
    assert found["totals"]["parameters"] == 431_080
    assert [row["path"] for row in found["layers"]][:3] == ["conv2d1", "pool2d1", "conv2d2"]
    assert {"weights_bytes", "state_bytes", "plan_bytes"} <= found["totals"].keys()
    text = call(capsys, "summary", "bench/mnist_lenet")
    assert "431,080 (all trainable)" in text
    assert "multiply-add = 2" in text
    assert "4.59 M a sample forward" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line and line[0] != " "}
    assert rows["fc1"][:6] == ["fc1", "fc", "[N,", "500]", "400,500", "800"]


def test_batch_size_and_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    def totals(*more: str) -> dict[str, int]:
        return json.loads(call(capsys, "summary", "bench/mnist_mlp", "--json", *more))["totals"]

    one, two = totals("--batch-size", "10"), totals("-o", "train.batch_size=20")
    assert two["step_flops"] == 2 * one["step_flops"]
    assert two["flops"] == one["flops"]
    assert two["plan_bytes"] > one["plan_bytes"]


def test_summary_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(
        call(capsys, "summary", "--model", "resnet_cifar10", "-o", "model.depth=8", "--json")
    )
    assert found["name"] == "resnet_cifar10"
    assert found["totals"]["parameters"] == 78_154
    with_data = ["-o", "data.name=uci_housing", "--json"]
    found = json.loads(call(capsys, "summary", "--model", "linear", *with_data))
    assert found["totals"]["parameters"] == 14


def test_summary_of_a_network_for_photographs(capsys: pytest.CaptureFixture[str]) -> None:
    """No recipe trains it: it is shown on pictures of 224 pixels in 1,000 classes."""
    found = json.loads(call(capsys, "summary", "--model", "squeezenet1_1", "--json"))
    assert found["totals"]["parameters"] == 1_235_496
    assert found["totals"]["flops"] == pytest.approx(0.70e9, rel=0.01)


def test_faults_of_summary_by_name_count_the_user_s_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call(capsys, "list")
    assert main(["model", "summary", "--model", "linear", "-o", "train.epocs=1"]) == 3
    assert capsys.readouterr().err.startswith("-o:1:1: unknown key `epocs`")


def test_a_network_that_only_recipes_for_own_data_train(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "summary", "--model", "mlp"]) == 2
    assert "only recipes for data of your own train `mlp`" in capsys.readouterr().err
    with_data = ["-o", "data.name=mnist", "-o", "model.hidden=[7]", "--json"]
    assert json.loads(call(capsys, "summary", "--model", "mlp", *with_data))["name"] == "mlp"


def test_summary_needs_one_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "summary"]) == 2
    assert main(["model", "summary", "fit_a_line", "--model", "linear"]) == 2
    assert "paddlecli model list" in capsys.readouterr().err


def test_a_network_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from paddlecli.config.registry import MODELS\n"
        "from paddlecli.models import layers, losses\n"
        "@MODELS.register('mine')\n"
        "def mine(net, *, width: int = 3) -> None:\n"
        "    'Two layers.'\n"
        "    x = layers.fc(net, layers.fc(net, net.feature(), size=width), size=1)\n"
        "    net.output('y', x)\n"
        "    losses.square_error_cost(net, x, net.label())\n"
    )
    listed = run(tmp_path, "model", "list", "--code", "mine.py").stdout
    assert "Two layers." in listed
    done = run(tmp_path, "model", "summary", "--model", "mine", "--code", "mine.py", code=2)
    assert "no shipped recipe trains `mine`" in done.stderr
    done = run(
        tmp_path, "model", "summary", "--model", "mine", "--code", "mine.py", "-o", "data.name=uci_housing", "--json"
    )  # fmt: skip
    assert json.loads(done.stdout)["totals"]["parameters"] == 13 * 3 + 3 + 3 + 1


def test_summary_of_a_run_is_that_of_its_stored_network(tmp_path: Path) -> None:
    source = recipe(tmp_path, DIGITS)
    run(tmp_path, "train", source, "--quiet", "--epochs", "1")
    before = json.loads(run(tmp_path, "model", "summary", source, "--json").stdout)
    (tmp_path / "recipe.yaml").unlink()
    after = json.loads(run(tmp_path, "model", "summary", "last", "--json").stdout)
    assert after == before


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "-"),
        (7, "7"),
        (999, "999"),
        (1000, "1 k"),
        (999_600, "1 M"),
        (627_451_904, "627 M"),
        (10**19, "1e+04 P"),
    ],
)
def test_amounts(number: int, text: str) -> None:
    assert amount(number) == text


def test_amounts_of_bytes() -> None:
    assert amount(1536, "B") == "1.54 kB"
