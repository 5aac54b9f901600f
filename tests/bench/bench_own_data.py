"""Throughput of the readers of users' own files and of pictures that are made batch by batch.

    python tests/bench/bench_own_data.py [tables|texts|pictures|orders|photographs]

Files are made in a temporary folder. Times are processor seconds, which other programs on the machine
do not change, of all threads together; `MB/s` is of the file.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from paddlecli.config.load import load_recipe
from paddlecli.data.columns import Dataset
from paddlecli.data.loader import Loader
from paddlecli.data.opening import open_dataset
from paddlecli.engine.bench import bench

ROWS = 100_000
PICTURES = 600
PHOTOGRAPHS = 48
SIZES = ((500, 375), (4000, 3000))
NETWORKS = ("resnet18", "mobilenet_v1")
WORDS = [f"w{i}" for i in range(5000)]


def main() -> None:
    """Prints one line a measurement."""
    print(f"{'what':34} {'rows':>9} {'cpu':>8} {'rows/s':>11} {'MB/s':>8}")
    measures = {f.__name__: f for f in (tables, texts, pictures, orders, photographs)}
    for name in sys.argv[1:] or measures:
        with tempfile.TemporaryDirectory() as folder:
            measures[name](Path(folder))


def told(what: str, rows: int, make: Callable[[], Any], size: int = 0) -> Any:
    """Runs, and prints what it took."""
    began = time.process_time()
    made = make()
    took = time.process_time() - began
    speed = f"{size / took / 1e6:8.1f}" if size else " " * 8
    print(f"{what:34} {rows:9,} {took:7.2f}s {rows / took:11,.0f} {speed}")
    return made


def read(name: str, path: Path, **arguments: Any) -> Dataset:
    """A file through its reader."""
    size = path.stat().st_size if path.is_file() else 0
    rows = ROWS if path.is_file() else PICTURES
    return told(
        f"{name} {arguments.pop('what', '')}", rows,
        lambda: open_dataset(name, {"train": str(path), **arguments}), size,
    )  # fmt: skip


def tables(folder: Path) -> None:
    """Twenty numbers and a class a row."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(ROWS, 20))
    lines = [",".join(f"{v:.4f}" for v in row) + f",k{i % 7}" for i, row in enumerate(numbers)]
    names = [*(f"c{i}" for i in range(20)), "y"]
    path = folder / "t.csv"
    path.write_text(",".join(names) + "\n" + "\n".join(lines) + "\n")
    read("csv", path, label="y", task="classification")
    rows = (
        dict(zip(names, [*map(float, r[:-1]), r[-1]], strict=True))
        for r in (x.split(",") for x in lines)
    )
    path = folder / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    read("jsonl", path, label="y", task="classification")


def texts(folder: Path) -> None:
    """Thirty words a line."""
    chance = random.Random(0)
    path = folder / "t.txt"
    path.write_text(
        "".join(f"k{i % 3}\t{' '.join(chance.choices(WORDS, k=30))}\n" for i in range(ROWS))
    )
    read("text_lines", path)


def pictures(folder: Path) -> None:
    """Photographs of 160 x 120, read once, and made anew with crops and flips."""
    rng = np.random.default_rng(0)
    for i in range(PICTURES):
        place = folder / "pictures" / f"k{i % 3}" / f"{i}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(small).resize((160, 120), Image.Resampling.BICUBIC).save(place, quality=90)
    some = [{"random_crop": {"size": [64, 64]}}, "flip", "normalise"]
    read("image_folder", folder / "pictures", size=[72, 72], what="decoded and held")
    held = read(
        "image_folder", folder / "pictures", size=[72, 72], transforms=some, what="with random ones"
    )
    files = read(
        "image_folder",
        folder / "pictures",
        size=[72, 72],
        transforms=some,
        memory_mb=0,
        what="from files",
    )
    rows = np.arange(PICTURES)
    told("crop and flip, held", PICTURES, lambda: held["train"].take(rows, 0))
    told("decode, crop and flip, from files", PICTURES, lambda: files["train"].take(rows, 0))


def photographs(folder: Path) -> None:
    """Crops of 224 pixels from photographs, and the training steps on one thread that they have to keep ahead of."""
    rng = np.random.default_rng(0)
    some = [{"random_resized_crop": {"size": [224]}}, "flip", "normalise"]
    rows = np.arange(PHOTOGRAPHS)
    for width, height in SIZES:
        place = folder / f"{width}"
        for i in range(PHOTOGRAPHS):
            path = place / f"k{i % 3}" / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            small = rng.integers(0, 255, (height // 10, width // 10, 3), dtype=np.uint8)
            whole = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
            whole.save(path, quality=90)
        for reduce_to in (None, 256):
            arguments = {"train": str(place), "transforms": some, "memory_mb": 0}
            arguments |= {} if reduce_to is None else {"reduce_to": reduce_to}
            split = open_dataset("image_folder", arguments)["train"]
            how = f"{width} x {height}" + ("" if reduce_to is None else f", reduce_to {reduce_to}")
            told(f"crops of {how}", PHOTOGRAPHS, lambda split=split: split.take(rows, 0))  # type: ignore[misc]
    for name in NETWORKS:
        timing = bench(load_recipe("own_data/finetune_pictures", [
            "data={name: synthetic/images, size: [224, 224], classes: 10, samples: 16}",
            f"model={{name: {name}}}", "~train.init_from", "~train.init_skip", "~train.class_weights",
            "train.batch_size=8",
        ]), steps=2, threads=1)  # fmt: skip
        print(f"{'training step of ' + name:34} {8:9} {timing.ms_per_step_least / 1e3:7.2f}s "
              f"{8e3 / timing.ms_per_step_least:11,.0f}")  # fmt: skip


def orders(folder: Path) -> None:
    """The order of an epoch."""
    data = open_dataset("synthetic/sequences", {"samples": 100_000, "test_samples": 0})["train"]
    plain = Loader(data, 64, shuffle="full")
    told("order of an epoch, all mixed", len(data), lambda: plain.orders(0, 1))
    window = Loader(data, 64, shuffle="window", buffer=500)
    told("order of an epoch, window of 500", len(data), lambda: window.orders(0, 1))
    bucket = Loader(data, 64, shuffle="full", bucket=50)
    told("order of an epoch, bucket of 50", len(data), lambda: bucket.orders(0, 1))
    order = bucket.order(0)
    told(
        "batches gathered in Python",
        len(data),
        lambda: [data.take(order[i : i + 64]) for i in range(0, len(order), 64)],
    )


if __name__ == "__main__":
    main()
