"""Share of a step's time that a training waits for its rows, by recipe: at most 5 % is asked.

    python tests/bench/bench_data_wait.py [--threads N] [--seconds S] [RECIPE ...]

Trains each recipe for a moment in a folder that is removed again and reads `timing.jsonl`. Recipes whose
data are not on this machine are passed over, and said so.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from paddlecli.engine.api import fit
from paddlecli.errors import DataError

RECIPES = (
    "fit_a_line", "recognize_digits/softmax", "recognize_digits/mlp", "recognize_digits/conv",
    "word2vec/ngram", "recommender_system/towers", "understand_sentiment/conv",
    "label_semantic_roles/db_lstm", "machine_translation/attention_small",
)  # fmt: skip
MOST = 0.05


def wait_of(recipe: str, threads: int, seconds: float) -> float:
    """The mean of the epochs that ended; of the part of one where none did."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        some = ["train.eval_every=0", "checkpoint.every_epochs=0"]
        fit(recipe, some, run_dir=run, threads=threads, max_seconds=seconds)
        lines = [json.loads(line) for line in (run / "timing.jsonl").read_text().splitlines()]
    shares = [line["data_wait"] for line in lines if line["event"] == "epoch"]
    shares = shares or [lines[-1]["data_wait"]]
    return float(sum(shares) / len(shares))


def main() -> int:
    """Prints one line a recipe; exit code 1 if one waits longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    late = False
    for recipe in given.recipes:
        try:
            share = wait_of(recipe, given.threads, given.seconds)
        except DataError as error:
            print(f"{recipe:40}passed over: {error.message}")
            continue
        late |= share > MOST
        print(f"{recipe:40}{share:8.2%}", flush=True)
    return int(late)


if __name__ == "__main__":
    raise SystemExit(main())
