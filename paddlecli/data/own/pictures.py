"""Fields of pictures: from the paths in a frame to a stream, and what the field becomes."""

from __future__ import annotations

from typing import Protocol

from paddlecli.data.own.fields import Field
from paddlecli.data.own.frame import Faults, Frame, cells_of
from paddlecli.data.own.streams import PictureStream, recipe_of
from paddlecli.data.transforms.pictures import Decode
from paddlecli.errors import ConfigError


class Settings(Protocol):
    """How pictures are held and made."""

    @property
    def memory(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def seed(self) -> int: ...


def is_pictures(field: Field) -> bool:
    """Whether the field's transforms begin with `decode`."""
    return any(isinstance(s, Decode) for c in field.chains for s in c.steps)


def stream_of(
    field: Field, frame: Frame, faults: Faults, learn: bool, settings: Settings
) -> PictureStream | None:
    """The pictures of a field; None for a field of something else.

    Raises:
        ConfigError: the transforms do not go with pictures, or the sizes differ from the train
            split's.
        DataError: a file is missing or damaged.
    """
    if not is_pictures(field):
        return None
    chain = field.chains[0]
    if len(field.chains) != 1 or len(chain.columns) != 1 or not isinstance(chain.steps[0], Decode):
        raise ConfigError(
            f"field {field.name}: pictures come from one column, `decode` is the first transform"
        )
    files = cells_of(frame.column(chain.columns[0]), chain.name, faults)
    sources = [frame.files[i] for i in frame.file_of]
    stream = PictureStream(
        recipe_of(chain, files, sources), faults.about(field.name), seed=settings.seed,
        limit=settings.memory, workers=settings.workers,
    )  # fmt: skip
    field.pictures(stream.shape, stream.dtype, learn)
    return stream
