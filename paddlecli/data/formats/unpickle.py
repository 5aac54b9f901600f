"""Reads CIFAR's files, which are Python pickles, without running anything.

Only the operations that put together numbers, bytes, text, lists, tuples, dictionaries and numpy
arrays exist here. A pickle that names any other function or class is refused where the name stands;
nothing is ever imported or called because a file says so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.errors import DataError

_MOST_DIMENSIONS = 8
_MOST_DEPTH = 20
_MOST_ITEMS = 10_000_000
_KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"): "new array",
    ("numpy._core.multiarray", "_reconstruct"): "new array",
    ("numpy", "ndarray"): "array type",
    ("numpy", "dtype"): "new dtype",
    ("_codecs", "encode"): "encode",
}


@dataclass
class _Known:
    """One of the five names that array pickles use."""

    what: str


class _Dtype:
    """A plain number type; its state says the byte order."""

    def __init__(self, code: str) -> None:
        self.dtype = _plain_dtype(code)

    def build(self, state: Any) -> None:
        """Takes the byte order."""
        if not isinstance(state, tuple) or len(state) < 8 or state[3] is not None:
            raise ValueError("a number type with fields")
        order = _text(state[1])
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class _Array:
    """An array that gets its shape, type and bytes later."""

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        """Takes shape, type, order and bytes."""
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
            raise ValueError("an array of objects")
        if len(shape) > _MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"an array of shape {shape!r}")
        if len(raw) != int(np.prod(shape, dtype=object)) * dtype.dtype.itemsize:
            raise ValueError(f"an array of shape {shape!r} in {len(raw)} bytes")
        order = "F" if fortran else "C"
        self.value = np.frombuffer(raw, dtype.dtype).reshape(shape, order=order)  # type: ignore[call-overload]


def loads(data: bytes, source: str) -> Any:
    """The value in a pickle; arrays are read-only views of its bytes.

    Raises:
        DataError: damaged, cut off, or it asks for something that is not allowed here.
    """
    machine = _Machine(data)
    try:
        return machine.run()
    except _Refused as error:
        raise DataError(
            f"{source}: byte {machine.place}: the pickle names {error}; only numbers, texts, lists, "
            f"dictionaries and arrays are read"
        ) from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise DataError(
            f"{source}: byte {machine.place}: damaged or cut-off pickle: {error or 'wrong operand'}"
        ) from None


class _Refused(Exception):
    """The name that a pickle asked for."""


_MARK = object()


class _Machine:
    """A stack machine with the few operations that are allowed."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.place = data, 0, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Runs to the stop mark."""
        while True:
            self.place = self.at
            code = self.take(1)
            if code == b".":
                if len(self.stack) != 1:
                    raise ValueError("values are left over")
                return _Finisher().finish(self.stack.pop())
            operation = _OPERATIONS.get(code)
            if operation is None:
                raise _Refused(f"the operation {code!r}")
            operation(self)

    # -- operands --
    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("the file ends in the middle of a value")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str) -> int:
        """The next number of a `struct` form."""
        return int(struct.unpack("<" + form, self.take(struct.calcsize(form)))[0])

    def line(self) -> str:
        """The text up to the next line end."""
        end = self.data.index(b"\n", self.at)
        text = self.take(end - self.at)
        self.take(1)
        return text.decode("ascii")

    # -- the stack --
    def pop_mark(self) -> list[Any]:
        """Everything above the last mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                items = self.stack[i + 1 :]
                del self.stack[i:]
                return items
        raise ValueError("no mark")

    def pop(self, count: int) -> list[Any]:
        """The last `count` values."""
        if count > len(self.stack):
            raise ValueError("not enough values")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        if any(item is _MARK for item in items):
            raise ValueError("a mark in the middle of a value")
        return items

    def push(self, value: Any) -> None:
        """One more value."""
        self.stack.append(value)

    def named(self, module: Any, name: Any) -> None:
        """Pushes one of the names that are known."""
        found = _KNOWN.get((module, name))
        if found is None:
            raise _Refused(f"{module}.{name}")
        self.push(_Known(found))

    def call(self) -> None:
        """Makes an empty array or a number type; nothing else can be called."""
        function, arguments = self.pop(2)
        what = function.what if isinstance(function, _Known) else ""
        if what == "new array" and isinstance(arguments, tuple):
            self.push(_Array())
        elif what == "new dtype":
            self.push(_Dtype(_text(arguments[0])))
        elif what == "encode":
            text, coding = arguments
            if coding not in ("latin1", "latin-1"):
                raise _Refused(f"the encoding {coding!r}")
            self.push(text.encode("latin-1"))
        else:
            raise _Refused("a call")

    def build(self) -> None:
        """Gives an array or a number type its state."""
        target, state = self.pop(2)
        if not isinstance(target, (_Array, _Dtype)):
            raise _Refused("an object with a state of its own")
        target.build(state)
        self.push(target)

    def append(self, items: list[Any]) -> None:
        """Appends to the list on top."""
        if type(self.stack[-1]) is not list:
            raise ValueError("append to what is no list")
        self.stack[-1].extend(items)

    def set_items(self, items: list[Any]) -> None:
        """Sets entries of the dictionary on top."""
        if type(self.stack[-1]) is not dict or len(items) % 2:
            raise ValueError("entries of what is no dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (bytes, str, int)):
                raise ValueError("a key that is neither text nor number")
            self.stack[-1][key] = value

    def big_number(self, size: int) -> None:
        """A whole number of any length."""
        self.push(int.from_bytes(self.take(size), "little", signed=True))


def _plain_dtype(code: str) -> np.dtype[Any]:
    if len(code) != 2 or code[0] not in "uif" or code[1] not in "1248":
        raise ValueError(f"arrays of {code!r}")
    return np.dtype(code)


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


class _Finisher:
    """Turns arrays in the making into arrays, wherever they are. Containers that hold themselves, or
    that hold each other so often that they would grow out of bounds, are refused."""

    def __init__(self) -> None:
        self.left = _MOST_ITEMS

    def finish(self, value: Any, depth: int = 0) -> Any:
        """The value without anything in the making."""
        if depth > _MOST_DEPTH:
            raise ValueError("containers within containers")
        if isinstance(value, _Array):
            if value.value is None:
                raise ValueError("an array without content")
            return value.value
        if isinstance(value, (_Known, _Dtype)) or value is _MARK:
            raise ValueError("a type as a value")
        if type(value) is dict:
            self._count(len(value))
            return {k: self.finish(v, depth + 1) for k, v in value.items()}
        if type(value) in (list, tuple):
            self._count(len(value))
            if all(type(v) in _SIMPLE for v in value):
                return value
            return type(value)(self.finish(v, depth + 1) for v in value)
        return value

    def _count(self, items: int) -> None:
        self.left -= items
        if self.left < 0:
            raise ValueError("more values than any data set has")


_SIMPLE = (int, float, bool, bytes, str, type(None))


def _memo_put(index: Callable[[_Machine], int]) -> Callable[[_Machine], None]:
    def put(m: _Machine) -> None:
        m.memo[index(m)] = m.stack[-1]

    return put


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda m: m.push(value)


def _tuple(count: int) -> Callable[[_Machine], None]:
    return lambda m: m.push(tuple(m.pop(count)))


def _sized(form: str, text: bool = False) -> Callable[[_Machine], None]:
    def push(m: _Machine) -> None:
        raw = m.take(m.number(form))
        m.push(raw.decode("utf-8") if text else raw)

    return push


def _whole(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.number(form))


def _skip(count: int) -> Callable[[_Machine], None]:
    def skip(m: _Machine) -> None:
        m.take(count)

    return skip


def _float(m: _Machine) -> None:
    m.push(struct.unpack(">d", m.take(8))[0])


_OPERATIONS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _skip(1), b"\x95": _skip(8),  # protocol, frame
    b"(": _constant(_MARK),
    b"N": _constant(None), b"\x88": _constant(True), b"\x89": _constant(False),
    b"K": _whole("B"), b"M": _whole("H"), b"J": _whole("i"), b"G": _float,
    b"\x8a": lambda m: m.big_number(m.number("B")),
    b"U": _sized("B"), b"T": _sized("i"), b"C": _sized("B"), b"B": _sized("I"),
    b"\x8e": _sized("Q"),
    b"X": _sized("I", text=True), b"\x8c": _sized("B", text=True),
    b"]": lambda m: m.push([]), b"}": lambda m: m.push({}),
    b")": _constant(()), b"\x85": _tuple(1), b"\x86": _tuple(2), b"\x87": _tuple(3),
    b"t": lambda m: m.push(tuple(m.pop_mark())),
    b"l": lambda m: m.push(m.pop_mark()),
    b"a": lambda m: m.append(m.pop(1)), b"e": lambda m: m.append(m.pop_mark()),
    b"s": lambda m: m.set_items(m.pop(2)), b"u": lambda m: m.set_items(m.pop_mark()),
    b"q": _memo_put(lambda m: m.number("B")), b"r": _memo_put(lambda m: m.number("I")),
    b"\x94": _memo_put(lambda m: len(m.memo)),
    b"h": lambda m: m.push(m.memo[m.number("B")]), b"j": lambda m: m.push(m.memo[m.number("I")]),
    b"c": lambda m: m.named(m.line(), m.line()), b"\x93": lambda m: m.named(*m.pop(2)),
    b"R": _Machine.call, b"b": _Machine.build,
}  # fmt: skip
