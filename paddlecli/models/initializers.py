"""First values of parameters.

They follow from (seed, parameter name) alone, so the order of parameters does not matter. The
numbers come from the raw words of the Philox generator, a function of key and counter whose output
numpy keeps fixed, and are turned into uniform and normal values here. Formulas: the original's
(Xavier: Glorot and Bengio 2010; MSRA: He et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paddlecli.config.registry import INITIALIZERS
from paddlecli.config.types import Natural, NonNegative, Positive
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:  # the registry reads the hints of what it holds, and numpy is not to be imported for that
    Array = Any

Shape = tuple[int, ...]
Distribution = Literal["uniform", "normal"]
_PIECE = 1 << 16  # numbers drawn at a time: a large table is not held in double precision


class Stream:
    """Random numbers of one parameter."""

    def __init__(self, seed: int, name: str) -> None:
        from numpy.random import Philox

        key = int.from_bytes(blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest(), "little")
        self._key = key
        self._words: Callable[[int], Array] = Philox(key=key).random_raw

    def uniform(self, count: int) -> Array:
        """Float64 in (0, 1), 53 bits each."""
        return _fractions(self._words(count))

    def normal(self, count: int) -> Array:
        """Standard normal float64, two from a pair of uniform ones (Box and Muller 1958)."""
        import numpy as np

        half = -(-count // 2)
        u = self.uniform(2 * half)
        radius, angle = np.sqrt(-2.0 * np.log(u[:half])), 2.0 * np.pi * u[half:]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]

    def normal_pieces(self, count: int) -> Iterator[tuple[int, Array]]:
        """What `normal` gives of a new stream, with the place of each piece: less is held at a time."""
        import numpy as np
        from numpy.random import Philox

        half = -(-count // 2)
        behind = Philox(key=self._key)
        behind.advance(half // 4)  # a counter makes four words
        behind.random_raw(half % 4)
        for first in range(0, half, _PIECE):
            size = min(_PIECE, half - first)
            radius = np.sqrt(-2.0 * np.log(self.uniform(size)))
            angle = 2.0 * np.pi * _fractions(behind.random_raw(size))
            yield first, radius * np.cos(angle)
            yield half + first, (radius * np.sin(angle))[: count - half - first]

    def truncated(self, count: int) -> Array:
        """Standard normal values, those beyond +-2 left out."""
        import numpy as np

        kept = np.empty(0)
        while len(kept) < count:
            z = self.normal(max(64, 2 * (count - len(kept))))
            kept = np.concatenate([kept, z[np.abs(z) < 2.0]])
        return kept[:count]


def _fractions(words: Array) -> Array:
    return ((words >> 11) + 0.5) * 2.0**-53


def initialise(spec: str | Mapping[str, Any], shape: Sequence[int], seed: int, name: str) -> Array:
    """First values of a parameter.

    Args:
        spec: a registered name, ``{name: xavier, distribution: normal}``, or ``{xavier:
            {distribution: normal}}``.
        shape: the parameter's.
        seed: the run's.
        name: the parameter's path, ``fc1/w``.

    Returns:
        float32 array of that shape.

    Raises:
        ConfigError: no initialiser has that name, its arguments do not fit, or it cannot make that
            shape.
    """
    import numpy as np

    kind, arguments = _call(spec)
    bound = INITIALIZERS.bind(kind, arguments)
    try:
        values = INITIALIZERS.get(kind).function(tuple(shape), Stream(seed, name), **bound)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}", error.hint) from None
    if np.shape(values) != tuple(shape):
        raise ConfigError(
            f"initialiser `{kind}` gives shape {list(np.shape(values))}, {name} has {list(shape)}"
        )
    return np.ascontiguousarray(values, np.float32)


def is_zero(spec: str | Mapping[str, Any]) -> bool:
    """Whether the initialiser makes zeros of every shape."""
    kind, arguments = _call(spec)
    return kind == "constant" and not arguments.get("value", 0.0)


def _call(spec: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, str):
        return spec, {}
    if "name" in spec:
        return str(spec["name"]), {k: v for k, v in spec.items() if k != "name"}
    if len(spec) != 1:
        raise ConfigError(
            f"an initialiser is a name or one name with arguments, not {sorted(spec)}"
        )
    kind, arguments = next(iter(spec.items()))
    return kind, dict(arguments or {})


def fans(shape: Shape) -> tuple[int, int]:
    """Inputs and outputs of one unit: rows and columns of a matrix; a filter [out, in/groups, k...]
    has in/groups*k... and out*k...; of a vector both are its length."""
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    if len(shape) == 2:
        return shape[0], shape[1]
    field = prod(shape[2:])
    return shape[1] * field, shape[0] * field


@INITIALIZERS.register("constant")
def constant(shape: Shape, stream: Stream, *, value: float = 0.0) -> Array:
    """One value everywhere."""
    import numpy as np

    return np.full(shape, value, np.float32)


@INITIALIZERS.register("uniform")
def uniform(shape: Shape, stream: Stream, *, low: float = -1.0, high: float = 1.0) -> Array:
    """Evenly from low to high."""
    import numpy as np

    if low > high:
        raise ConfigError(f"initialiser `uniform`: low {low} is above high {high}")
    values = np.empty(prod(shape), np.float32)
    for first in range(0, values.size, _PIECE):
        piece = values[first : first + _PIECE]
        piece[:] = low + (high - low) * stream.uniform(piece.size)
    return values.reshape(shape)


@INITIALIZERS.register("normal")
def normal(shape: Shape, stream: Stream, *, mean: float = 0.0, std: NonNegative = 1.0) -> Array:
    """Normal with that mean and standard deviation."""
    import numpy as np

    values = np.empty(prod(shape), np.float32)
    for first, piece in stream.normal_pieces(values.size):
        values[first : first + len(piece)] = mean + std * piece
    return values.reshape(shape)


@INITIALIZERS.register("truncated_normal")
def truncated_normal(
    shape: Shape, stream: Stream, *, mean: float = 0.0, std: NonNegative = 1.0
) -> Array:
    """Normal, drawn again where it lies more than two standard deviations off."""
    return (mean + std * stream.truncated(prod(shape))).reshape(shape)


@INITIALIZERS.register("xavier")
def xavier(
    shape: Shape,
    stream: Stream,
    *,
    distribution: Distribution = "uniform",
    fan_in: Positive | None = None,
    fan_out: Positive | None = None,
) -> Array:
    """Variance 2/(in + out): uniform within sqrt(6/(in + out)), or normal. The fans are the shape's
    unless given."""
    inputs, outputs = fans(shape)
    total = (fan_in or inputs) + (fan_out or outputs)
    return _scaled(shape, stream, distribution, 2.0 / total if total else 0.0)


@INITIALIZERS.register("msra")
def msra(
    shape: Shape,
    stream: Stream,
    *,
    distribution: Distribution = "uniform",
    fan_in: Positive | None = None,
    fan: Literal["in", "out"] = "in",
) -> Array:
    """Variance 2/in: uniform within sqrt(6/in), or normal. For layers before a relu.

    ``fan_in`` is used in place of what the shape says. ``fan``: whether a unit's inputs count, which
    keeps the size of values from layer to layer, or its outputs, which keeps that of gradients.
    """
    number = fan_in or fans(shape)[fan == "out"]
    return _scaled(shape, stream, distribution, 2.0 / number if number else 0.0)


def _scaled(shape: Shape, stream: Stream, distribution: Distribution, variance: float) -> Array:
    if distribution == "normal":
        return normal(shape, stream, std=sqrt(variance))
    bound = sqrt(3.0 * variance)
    return uniform(shape, stream, low=-bound, high=bound)


@INITIALIZERS.register("bilinear")
def bilinear(shape: Shape, stream: Stream) -> Array:
    """Weights of a transposed convolution that enlarges bilinearly; shape [channels, channels per
    group, k, k]."""
    import numpy as np

    if len(shape) != 4 or shape[2] != shape[3]:
        raise ConfigError(
            f"initialiser `bilinear` needs a shape [channels, channels, k, k], not {list(shape)}"
        )
    factor = -(-shape[3] // 2)
    center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
    line = 1.0 - np.abs(np.arange(shape[3]) / factor - center)
    return np.broadcast_to(np.outer(line, line), shape)


@INITIALIZERS.register("assign")
def assign(shape: Shape, stream: Stream, *, values: list[Any]) -> Array:
    """The values as given, nested like the shape or in one list."""
    import numpy as np

    found = np.asarray(values, np.float64)
    if found.size != prod(shape):
        raise ConfigError(f"initialiser `assign`: {found.size} values for shape {list(shape)}")
    return found.reshape(shape)


@INITIALIZERS.register("file")
def from_file(shape: Shape, stream: Stream, *, path: Path, header: Natural = 0) -> Array:
    """The float32 numbers of a file, little-endian, row by row, such as word vectors that were trained
    elsewhere.

    ``header``: bytes before the first number.
    """
    import numpy as np

    place = path.expanduser()
    try:
        data = place.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) != header + 4 * prod(shape):
        raise ConfigError(
            f"{path}: {len(data)} bytes; a header of {header} and {list(shape)} numbers take "
            f"{header + 4 * prod(shape)}"
        )
    found = np.frombuffer(data, "<f4", offset=header).reshape(shape)
    if not np.isfinite(found).all():
        raise ConfigError(f"{path}: holds numbers that are not finite")
    return found
