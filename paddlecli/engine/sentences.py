"""Answers of networks that write sentences: what a decode found, as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paddlecli.graph.ir import Entry, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TRACES = ("decode_trace", "beam_trace")
_NONE = -1e8
"""Below it a beam found nothing: there were not as many different sentences."""


@dataclass(frozen=True)
class Sentences:
    """Which outputs of an entry hold sentences.

    Attributes:
        ids: name of the output [N, L] or [N, beam, L].
        length: name of the output that counts their words; one as long as L has not ended.
        score: name of the output of their scores, None without beams.
        words: by id.
    """

    ids: str
    length: str
    score: str | None
    words: Sequence[str]

    @classmethod
    def of(cls, entry: Entry, output: str, words: Sequence[str]) -> Sentences | None:
        """How `output` of the entry is read; None where it holds no sentences of known words."""
        names = {id(t): name for name, t in entry.outputs.items()}
        for node in flat(entry.items):
            found = [names.get(id(t)) for t in node.outputs]
            if node.kernel.op in _TRACES and found[0] == output and words and found[1] is not None:
                return cls(output, found[1], found[2] if len(found) > 2 else None, words)
        return None

    def answers(self, outputs: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
        """One for each sample: the best sentence, and all of them with their scores."""
        ids, length = outputs[self.ids], outputs[self.length]
        if self.score is None:
            return [self._sentence(i, n) for i, n in zip(ids, length, strict=True)]
        return [self._best(*row) for row in zip(ids, length, outputs[self.score], strict=True)]

    def _best(self, ids: NDArray[Any], length: NDArray[Any], score: NDArray[Any]) -> dict[str, Any]:
        rows = zip(ids, length, score.tolist(), strict=True)
        found = [{**self._sentence(i, n), "score": s} for i, n, s in rows if s > _NONE]
        return {**found[0], "sentences": found}

    def _sentence(self, ids: NDArray[Any], length: Any) -> dict[str, Any]:
        text = " ".join(self.words[i] for i in ids[: int(length)].tolist())
        return {"text": text, "ended": int(length) < len(ids)}
