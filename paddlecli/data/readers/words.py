"""How the book's corpora cut a text into words: the readers cut by it, and so does `predict`."""

from __future__ import annotations

import re
import string

_PUNCTUATION = string.punctuation.encode()
_TREEBANK = re.compile(
    r"""<\w+>                                   # marks of the corpus
    | [a-z](?:\.[a-z])+\.?                      # u.s.
    | \b(?:mr|mrs|ms|dr|jr|sr|st|inc|corp|co|ltd|gov|sen|rep|gen|prof|vs)\.
    | \d+(?:[.,]\d+)*(?![\w-])                  # numbers
    | n't\b | '(?:s|re|ve|ll|d|m)\b             # what is apart from its word
    | \w+?(?=n't\b)
    | \w+(?:[-/.&]\w+)*
    | [^\w\s]""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_KEPT = ("$", "&", "#")
"""The marks that Mikolov's text has."""


def ascii_words(text: bytes, punctuation: bool = True) -> list[bytes]:
    """Words between ASCII white space, ASCII letters small; `punctuation` keeps ASCII's marks."""
    return text.translate(None, b"" if punctuation else _PUNCTUATION).lower().split()


def treebank(text: str) -> list[str]:
    """Words, marks and clitics apart, as in the Penn Treebank: `it 's`, `do n't`."""
    return _TREEBANK.findall(text)


def plain_treebank(text: str) -> list[str]:
    """`treebank` as Mikolov's text has it: small letters, numbers as N, marks left out."""
    found = []
    for word in treebank(text):
        if _NUMBER.fullmatch(word) or word == "N":
            found.append("N")
        elif word in _KEPT or any(c.isalnum() for c in word):
            found.append(word.lower())
    return found
