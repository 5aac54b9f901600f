"""Texts, origins and sizes of a plan: what its other tables refer to."""

from __future__ import annotations

from typing import Protocol

from paddlecli.compiler import records as r
from paddlecli.ops.spec import Axis, Dim, Symbol


class OriginLike(Protocol):
    """Where a node came from."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def path(self) -> str: ...


class SizeTables:
    """Interns texts, origins, symbols and axes; an index is given out once for each meaning."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._string_bytes = bytearray()
        self._symbols: dict[tuple[object, ...], int] = {}
        self._symbol_records: list[bytes] = []
        self._symbol_names: list[str] = []
        self._axes: dict[Axis, int] = {}
        self._ordered: list[bool] = []
        self._origins: dict[tuple[str, str, int, int], int] = {}
        self._text("")
        self.origin("", 0, 0, "")
        self.symbol("batch")

    def _text(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._string_bytes)
            self._string_bytes += text.replace("\0", "").encode(errors="surrogateescape") + b"\0"
        return self._strings[text]

    def origin(self, file: str, line: int, column: int, path: str) -> int:
        """Index of a place in a recipe or source; 0 is none."""
        return self._origins.setdefault((file, path, line, column), len(self._origins))

    def _origin_of(self, origin: OriginLike | None) -> int:
        return (
            0
            if origin is None
            else self.origin(origin.file, origin.line, origin.column, origin.path)
        )

    def symbols(self) -> list[str]:
        """Names of the symbols in the order of capacities."""
        return list(self._symbol_names)

    def axis_names(self) -> list[str]:
        """Names of the ragged axes, those that ops make included."""
        return [axis.name for axis in self._axes]

    def symbol(
        self, kind: str, a: int = 0, b: int = 0, ca: int = 0, cb: int = 0, name: str = "N"
    ) -> int:
        """Index of a symbol of :data:`records.SYMBOL_KINDS`; operands are indices of symbols or
        axes."""
        key = (kind, a, b, ca, cb)
        if key not in self._symbols:
            self._symbols[key] = len(self._symbol_records)
            self._symbol_names.append(name)
            kind_number = r.SYMBOL_KINDS.index(kind)
            self._symbol_records.append(r.SYMBOL.pack(kind_number, self._text(name), a, b, ca, cb))
        return self._symbols[key]

    def _symbol_of(self, symbol: Symbol) -> int:
        name = str(symbol)
        if symbol.kind == "batch":
            return self.symbol("batch")
        if symbol.kind in ("sum", "product"):
            assert symbol.a is not None and symbol.b is not None
            (ca, a), (cb, b) = self.dim(symbol.a), self.dim(symbol.b)
            if symbol.kind == "product":
                return self.symbol("product", a, b, ca * cb, 0, name)
            return self.symbol("sum", a, b, ca, cb, name)
        assert symbol.axis is not None
        if symbol.kind == "pairs":
            assert symbol.other is not None
            return self.symbol("pairs", self.axis(symbol.axis), self.axis(symbol.other), name=name)
        return self.symbol(symbol.kind, self.axis(symbol.axis), name=name)

    def dim(self, dim: Dim) -> tuple[int, int]:
        """A dimension as (coefficient, index of its symbol or -1)."""
        return dim.coefficient, -1 if dim.symbol is None else self._symbol_of(dim.symbol)

    def axis(self, axis: Axis, ordered: bool = False) -> int:
        """Index of a ragged axis; ``ordered`` when a scan or its step order is wanted."""
        if axis not in self._axes:
            if axis.parent is not None:
                self.axis(axis.parent)
            index = self._axes[axis] = len(self._axes)
            self._ordered.append(False)
            for kind, letter in (("sequences", "S"), ("total", "T"), ("longest", "L")):
                self.symbol(kind, index, name=f"{letter}({axis.name})")
        self._ordered[self._axes[axis]] |= ordered
        return self._axes[axis]
