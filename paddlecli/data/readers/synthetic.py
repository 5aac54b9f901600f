"""Generated data sets of the usual shapes, with something to learn in them (`synthetic/...`): for smoke
runs and benchmarks. No file is read; a row is a function of (seed, split, row number)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count, Natural, NonNegative, Pair
from paddlecli.data.cards import Card
from paddlecli.data.readers.base import Reader
from paddlecli.data.readers.generated import ANNOUNCED
from paddlecli.data.spec import DatasetSpec, FieldSpec, Preprocess
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Column, Dataset, Rows

    Columns = Mapping[str, Column]
    Ids = NDArray[np.int64]

_STREAM = crc32(b"synthetic")


class Numbers:
    """Random numbers of one split.

    Args:
        seed: of the data set.
        split: its name; the rule that is to be learned has the name `rule` in all splits.
    """

    def __init__(self, seed: int, split: str) -> None:
        self.key = (_STREAM, seed, crc32(split.encode()))

    def _words(self, what: str, count: int) -> NDArray[np.uint64]:
        from paddlecli.data.loader import random_words

        return random_words(count, *self.key, crc32(what.encode()))

    def ids(self, what: str, count: int, below: int) -> Ids:
        """Whole numbers in [0, below)."""
        import numpy as np

        return np.asarray(self._words(what, count) % np.uint64(below), np.int64)

    def normal(self, what: str, *shape: int) -> NDArray[np.float64]:
        """Standard normal numbers; Box and Muller 1958."""
        import numpy as np

        count = int(np.prod(shape))
        words = (self._words(what, 2 * count) >> np.uint64(11)).astype(np.float64)
        uniform = (words + 0.5) * 2.0**-53
        radius = np.sqrt(-2.0 * np.log(uniform[:count]))
        return np.asarray(radius * np.cos(2.0 * np.pi * uniform[count:])).reshape(shape)

    def offsets(self, what: str, rows: int, low: int, high: int) -> Rows:
        """Edges of sequences of `low` to `high` items."""
        import numpy as np

        return np.append(0, np.cumsum(low + self.ids(what, rows, high - low + 1)))


class SyntheticReader(Reader):
    """Base of the generated sets.

    Args:
        card: of the set.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(self, card: Card, samples: int, test_samples: int, seed: int) -> None:
        super().__init__(card)
        self.samples, self.test_samples, self.seed = samples, test_samples, seed

    @abstractmethod
    def fields(self) -> tuple[FieldSpec, ...]:
        """The columns."""

    @abstractmethod
    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """Rows of one split; `rule` draws what is to be learned, which all splits share."""

    def standard(self) -> bool:
        """See `Reader.standard`: nothing in the card depends on the settings."""
        return True

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`."""
        sizes: dict[str, int | None] = {"train": self.samples}
        if self.test_samples:
            sizes["test"] = self.test_samples
        return DatasetSpec(
            self.card.name,
            self.card.title,
            self.fields(),
            sizes,
            generated=True,
            remarks=(ANNOUNCED,),
        )

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.columns import Dataset, Split

        spec = self.describe()
        rule = Numbers(self.seed, "rule")
        splits = {
            name: Split(name, self.make(rows or 0, Numbers(self.seed, name), rule))
            for name, rows in spec.sizes.items()
        }
        return Dataset(spec, splits)


@READERS.register("synthetic_regression")
class Regression(SyntheticReader):
    """Numbers x and y = a x + b with noise: the field `x` [features] and the label `y` [1].

    Args:
        features: numbers of a row.
        noise: standard deviation of what is added to y, which has itself one of about 1.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, features: Count = 8, noise: NonNegative = 0.1,
        samples: Count = 1024, test_samples: Natural = 256, seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, samples, test_samples, seed)
        self.features, self.noise = features, noise

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        return (
            FieldSpec("x", "input", (self.features,), "float32"),
            FieldSpec("y", "label", (1,), "float32"),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import Column

        x = draw.normal("x", rows, self.features)
        y = x @ rule.normal("a", self.features, 1) / np.sqrt(self.features) + rule.normal("b", 1)
        y += self.noise * draw.normal("noise", rows, 1)
        return {"x": Column(x.astype(np.float32)), "y": Column(y.astype(np.float32))}


@READERS.register("synthetic_classification")
class Classification(SyntheticReader):
    """Clouds of points, one a class: the field `x` [features] and the label `y`.

    Args:
        features: numbers of a row.
        classes: how many clouds.
        spread: standard deviation of a cloud; their middles are about 1 from each other in every feature.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, features: Count = 8, classes: Count = 3, spread: NonNegative = 0.5,
        samples: Count = 1024, test_samples: Natural = 256, seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, samples, test_samples, seed)
        self.features, self.classes, self.spread = features, classes, spread

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        return (
            FieldSpec("x", "input", (self.features,), "float32"),
            FieldSpec("y", "label", (), "int64", classes=self.classes),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import Column

        y = draw.ids("y", rows, self.classes)
        x = rule.normal("middles", self.classes, self.features)[y]
        x = x + self.spread * draw.normal("x", rows, self.features)
        return {"x": Column(x.astype(np.float32)), "y": Column(y)}


@READERS.register("synthetic_images")
class Images(SyntheticReader):
    """Pictures of bytes: stripes whose direction is the class, under noise. The fields `image` [channels,
    height, width], which the network sees divided by 255, and `label`.

    Args:
        size: height and width.
        channels: 1 or 3.
        classes: how many directions.
        noise: standard deviation of the noise, where the stripes go from 0 to 1.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, size: Pair = (32, 32), channels: Count = 3, classes: Count = 10,
        noise: NonNegative = 0.2, samples: Count = 1024, test_samples: Natural = 256, seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, samples, test_samples, seed)
        self.size, self.channels = (size[0], size[-1]), channels
        self.classes, self.noise = classes, noise

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        shown = Preprocess("float32", 1.0 / 255.0)
        shape = (self.channels, *self.size)
        return (
            FieldSpec("image", "input", shape, "uint8", preprocess=shown),
            FieldSpec("label", "label", (), "int64", classes=self.classes),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import Column

        y = draw.ids("label", rows, self.classes)
        down, across = np.indices(self.size, np.float64)
        out = np.empty((rows, self.channels, *self.size), np.uint8)
        for row, (label, phase) in enumerate(zip(y, draw.normal("phase", rows), strict=True)):
            angle = np.pi * label / self.classes
            waves = np.sin(0.8 * (down * np.sin(angle) + across * np.cos(angle)) + 3.0 * phase)
            noise = self.noise * Numbers(row, f"noise {draw.key}").normal("noise", *out.shape[1:])
            out[row] = np.clip(255.0 * (0.5 + 0.5 * waves + noise), 0, 255)
        return {"image": Column(out), "label": Column(y)}


class _Ragged(SyntheticReader):
    """Base of the sets of sequences."""

    def __init__(
        self, card: Card, vocabulary: int, lengths: tuple[int, int], rest: tuple[int, int, int]
    ) -> None:
        super().__init__(card, *rest)
        self.vocabulary, self.lengths = vocabulary, lengths
        if not 0 < lengths[0] <= lengths[1]:
            raise ConfigError(
                f"{card.name}: lengths {lengths[0]} to {lengths[1]} is no range above 0"
            )


@READERS.register("synthetic_sequences")
class Sequences(_Ragged):
    """Sequences of ids and their class: an id belongs to the class that is its rest by the number of
    classes; most ids of a sequence are of its class. The ragged field `text` and the label `label`.

    Args:
        vocabulary: how many ids there are.
        classes: how many classes.
        lengths: shortest and longest sequence.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, vocabulary: Count = 1000, classes: Count = 2,
        lengths: tuple[Count, Count] = (5, 50), samples: Count = 1024, test_samples: Natural = 256,
        seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, vocabulary, lengths, (samples, test_samples, seed))
        self.classes = classes
        if vocabulary < 2 * classes:
            raise ConfigError(f"{card.name}: {vocabulary} ids are too few for {classes} classes")

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        return (
            FieldSpec("text", "input", (), "int64", ("text",), self.vocabulary),
            FieldSpec("label", "label", (), "int64", classes=self.classes),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import Column

        y = draw.ids("label", rows, self.classes)
        offsets = draw.offsets("lengths", rows, *self.lengths)
        total = int(offsets[-1])
        free = draw.ids("ids", total, self.vocabulary)
        own = draw.ids("own", total, self.vocabulary // self.classes) * self.classes
        own += np.repeat(y, np.diff(offsets))
        ids = np.where(draw.ids("which", total, 2) == 0, own, free)
        return {"text": Column(ids, (offsets,)), "label": Column(y)}


@READERS.register("synthetic_pairs")
class Pairs(_Ragged):
    """Pairs of sequences, the second one the first one backwards under other ids. Ragged fields as those
    of `text_pairs`: `source` between the marks 0 and 1, `target` behind 0, the label `next` before 1.

    Args:
        vocabulary: how many ids each side has; 0 to 2 are marks.
        lengths: shortest and longest sequence, marks left out.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, vocabulary: Count = 50, lengths: tuple[Count, Count] = (3, 10),
        samples: Count = 1024, test_samples: Natural = 256, seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, vocabulary, lengths, (samples, test_samples, seed))
        if vocabulary < 4:
            raise ConfigError(f"{card.name}: {vocabulary} ids leave none beside the three marks")

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        return (
            FieldSpec("source", "input", (), "int64", ("source",), self.vocabulary),
            FieldSpec("target", "input", (), "int64", ("target",), self.vocabulary),
            FieldSpec("next", "label", (), "int64", ("target",), self.vocabulary),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        import numpy as np

        from paddlecli.data.columns import pack

        offsets = draw.offsets("lengths", rows, *self.lengths)
        words = draw.ids("ids", int(offsets[-1]), self.vocabulary - 3)
        other = np.argsort(rule.normal("other", self.vocabulary - 3), kind="stable")
        first = np.split(3 + words, offsets[1:-1])
        second = [3 + other[row[::-1] - 3] for row in first]
        return {
            "source": pack([np.concatenate(([0], row, [1])) for row in first], "int64"),
            "target": pack([np.append(0, row) for row in second], "int64"),
            "next": pack([np.append(row, 1) for row in second], "int64"),
        }


@READERS.register("synthetic_tags")
class Tags(_Ragged):
    """Sequences of ids and a tag for each, which follows from the id and the tag before it. The ragged
    fields `word` and, as the label, `tag`, on the axis `word`.

    Args:
        vocabulary: how many ids there are.
        tags: how many tags.
        lengths: shortest and longest sequence.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        seed: start of all values.
    """

    def __init__(
        self, card: Card, *, vocabulary: Count = 200, tags: Count = 5,
        lengths: tuple[Count, Count] = (5, 30), samples: Count = 1024, test_samples: Natural = 256,
        seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, vocabulary, lengths, (samples, test_samples, seed))
        self.tags = tags

    def fields(self) -> tuple[FieldSpec, ...]:
        """See `SyntheticReader.fields`."""
        return (
            FieldSpec("word", "input", (), "int64", ("word",), self.vocabulary),
            FieldSpec("tag", "label", (), "int64", ("word",), self.tags),
        )

    def make(self, rows: int, draw: Numbers, rule: Numbers) -> Columns:
        """See `SyntheticReader.make`."""
        from paddlecli.data.columns import Column

        offsets = draw.offsets("lengths", rows, *self.lengths)
        words = draw.ids("ids", int(offsets[-1]), self.vocabulary)
        of_word = rule.ids("tags", self.vocabulary, self.tags)
        moves = rule.ids("moves", self.vocabulary, 2)
        tags: Any = of_word[words]
        starts = set(offsets[:-1].tolist())
        for place in range(len(words)):
            if place not in starts and moves[words[place]]:
                tags[place] = (tags[place] + tags[place - 1]) % self.tags
        return {"word": Column(words, (offsets,)), "tag": Column(tags, (offsets,))}
