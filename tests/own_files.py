"""Small files as users have them, for the shipped recipes of `own_data`: made where a test wants them."""

from __future__ import annotations

import random
from pathlib import Path


def write(folder: Path) -> None:
    """`flowers.csv`, `houses.csv`, `reviews.txt` and `pictures/`, easy to learn from."""
    chance = random.Random(1)
    _flowers(folder / "flowers.csv", chance)
    _houses(folder / "houses.csv", chance)
    _reviews(folder / "reviews.txt", chance)
    _pictures(folder / "pictures")


def _flowers(path: Path, chance: random.Random) -> None:
    rows = ["length,width,colour,kind"]
    for _ in range(150):
        kind = chance.randrange(3)
        colour = chance.choice(["white", "blue"] if kind < 2 else ["blue", "red"])
        rows.append(
            f"{chance.gauss(4 + kind, 0.4):.2f},{chance.gauss(2 * kind, 0.4):.2f},{colour},kind {kind}"
        )
    path.write_text("\n".join(rows) + "\n")


def _houses(path: Path, chance: random.Random) -> None:
    rows = ["rooms,area,town,price"]
    for _ in range(250):
        rooms = chance.randint(1, 6)
        area, town = rooms * 25 + chance.gauss(0, 10), chance.choice("AB")
        price = 1000 * area + 20000 * (town == "A") + chance.gauss(0, 3000)
        rows.append(f"{rooms},{area:.1f},{town},{price:.0f}")
    path.write_text("\n".join(rows) + "\n")


def _reviews(path: Path, chance: random.Random) -> None:
    lines = []
    for _ in range(150):
        kind = chance.choice(["good", "bad"])
        said = chance.choice(["lovely", "great"] if kind == "good" else ["awful", "dull"])
        words = [
            said,
            *chance.choices(["the", "film", "story", "it", "was"], k=chance.randint(2, 8)),
        ]
        chance.shuffle(words)
        lines.append(f"{kind}\t{' '.join(words)}")
    path.write_text("\n".join(lines) + "\n")


def _pictures(folder: Path) -> None:
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, level in (("dark", 60), ("light", 180)):
        (folder / name).mkdir(parents=True)
        for i in range(15):
            array = np.clip(rng.normal(level, 30, (20 + i, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(array).save(folder / name / f"{i}.png")
