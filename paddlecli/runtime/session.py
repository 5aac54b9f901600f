"""Plans, params, tables and sessions of the core.

A plan is immutable and may be shared; params hold all that outlives a step and may be used by every plan with the same
ranges; a session holds what one step needs and runs on one thread at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.plan_info import PlanInfo, read_plan
from paddlecli.runtime import native
from paddlecli.runtime.columns import NUMPY, Columns, given
from paddlecli.runtime.device import Device, device
from paddlecli.runtime.errors import HALTED, INTERRUPTED, OK, TOO_SMALL
from paddlecli.runtime.request import Request

SMALLEST_GRAIN, PROFILE, POISON = 1, 2, 4
GROWTH = 1.5
_GIVEN = ("batch", "total", "longest", "pairs")


class Plan:
    """A compiled plan, checked whole by the core.

    Args:
        data: the bytes that the compiler made.
        backend: whose kernels run it, a key of ``native.BACKENDS``; params, tables and sessions of the plan follow it.

    Raises:
        CoreError: they are not a valid plan.
        ResourceError: it names a kernel that this backend does not have, or there is no such backend.
    """

    def __init__(self, data: bytes, backend: str = "cpu") -> None:
        self.bytes, self.backend = data, backend
        self.handle = native.create(
            "pk_plan_create",
            "pk_plan",
            "pk_plan_free",
            data,
            len(data),
            info=self._names_if_readable,
            backend=backend,
        )

    def _names_if_readable(self) -> PlanInfo | None:
        """Names for the message about a plan that was refused: damaged bytes may have none."""
        try:
            return self.info
        except (ValueError, IndexError, KeyError, struct.error):
            return None

    @cached_property
    def info(self) -> PlanInfo:
        """Names and sizes."""
        return read_plan(self.bytes)


class ArrayPlace(Protocol):
    """A named array inside a range: ``offset`` in bytes."""

    @property
    def range(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class Params:
    """Parameters, gradients, optimizer and other state of a plan; all zero at first."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.handle = native.create(
            "pk_params_create", "pk_params", "pk_params_free", plan.handle, backend=plan.backend
        )

    @property
    def version(self) -> int:
        """Raised by every write and every step that updates."""
        return int(native.lib(self.plan.backend).pk_params_version(self.handle))

    def read_bytes(self, range: int, offset: int, size: int) -> NDArray[np.uint8]:
        """A copy of ``size`` bytes of a range from ``offset`` on."""
        data = np.empty(size, np.uint8)
        native.call(
            "pk_params_read",
            self.handle,
            range,
            offset,
            native.pointer(data),
            size,
            backend=self.plan.backend,
        )
        return data

    def write_bytes(self, range: int, offset: int, data: NDArray[Any]) -> None:
        """Writes the bytes of an array into a range from ``offset`` on."""
        flat = np.ascontiguousarray(data)
        native.call(
            "pk_params_write",
            self.handle,
            range,
            offset,
            native.pointer(flat),
            flat.nbytes,
            backend=self.plan.backend,
        )

    def read(self, place: ArrayPlace) -> NDArray[Any]:
        """A copy of a placed array."""
        dtype = NUMPY[place.dtype]
        data = self.read_bytes(place.range, place.offset, prod(place.shape) * dtype.itemsize)
        return data.view(dtype).reshape(place.shape)

    def write(self, place: ArrayPlace, value: Any) -> None:
        """Writes an array to its place; numbers are converted to its type.

        Raises:
            ValueError: another shape.
        """
        array = np.asarray(value)
        if array.shape != place.shape:
            raise ValueError(f"an array of shape {array.shape} for a place of shape {place.shape}")
        self.write_bytes(place.range, place.offset, array.astype(NUMPY[place.dtype], copy=False))


class Table:
    """Columns that stay in memory and from which the core gathers batches.

    Args:
        plan: a table belongs to one plan.
        values: by input name; arrays are kept alive. Inputs of the plan that are not given cannot be bound from this table.
    """

    def __init__(self, plan: Plan, values: Mapping[str, Any]) -> None:
        info = plan.info
        inputs = [i for i in range(len(info.inputs)) if given(info, i, values)]
        self._plan = plan
        self._columns = Columns(info, inputs, values)
        numbers = np.array(inputs, np.int32)
        self.handle = native.create(
            "pk_table_create", "pk_table", "pk_table_free", plan.handle,
            native.pointer(self._columns.rows, "pk_column *"), len(inputs), native.pointer(numbers, "int32_t *"), info=lambda: info,
            backend=plan.backend,
        )  # fmt: skip

    @property
    def address(self) -> int:
        """The handle as a number, for the steps of a request."""
        return int(native.ffi().cast("uintptr_t", self.handle))


@dataclass(frozen=True)
class Outcome:
    """How a request ended: steps that ended, and ``done``, ``halted`` (after an entry's halt tensor) or ``interrupted``."""

    done: int
    status: str


@dataclass(frozen=True)
class ProfileRow:
    """Time of one node: calls, seconds, bytes of the tensors it was given."""

    node: int
    signature: str
    path: str
    calls: int
    seconds: float
    bytes: float


class Session:
    """Memory and threads to run a plan.

    Args:
        plan: what it runs.
        params: of this plan or one with equal ranges; None for a plan without ranges.
        where: device and threads; the settings' by default.
        profile: measure every node.
        poison: fill slots with NaN before each step and check every float output.
        smallest_grain: cut all parallel work as finely as possible (tests).
    """

    def __init__(
        self, plan: Plan, params: Params | None = None, where: Device | None = None, *, profile: bool = False,
        poison: bool = False, smallest_grain: bool = False,
    ) -> None:  # fmt: skip
        self.plan, self.params = plan, params
        self.device = where or device()
        flags = SMALLEST_GRAIN * smallest_grain | PROFILE * profile | POISON * poison
        handle = native.ffi().NULL if params is None else params.handle
        self.handle = native.create(
            "pk_session_create", "pk_session", "pk_session_free", plan.handle, handle, self.device.threads, flags,
            backend=plan.backend,
        )  # fmt: skip
        self._lib = native.lib(plan.backend)
        self._error = native.ffi().new("pk_error *")
        self._done = native.ffi().new("int32_t *")
        self._room = np.zeros(len(plan.info.symbols), np.int64)

    @property
    def bytes(self) -> int:
        """Bytes reserved for inputs and slots."""
        return int(self._lib.pk_session_bytes(self.handle))

    def reserve(self, sizes: Mapping[str, int]) -> None:
        """Makes room for batches up to ``sizes``, by symbol name (``N``, ``T(axis)``, ``L(axis)``); others keep their room.

        Raises:
            KeyError: an unknown symbol.
            ResourceError: no memory.
        """
        names = {s.name: i for i, s in enumerate(self.plan.info.symbols)}
        values = np.zeros(len(names), np.int64)
        for name, size in sizes.items():
            values[names[name]] = size
        self._reserve(values)

    def _reserve(self, values: NDArray[np.int64]) -> None:
        room = np.maximum(self._room, values)
        self._room = np.zeros_like(room)  # what the core is left with where there is no memory
        native.call(
            "pk_session_reserve", self.handle, native.pointer(values, "int64_t *"), values.size, info=lambda: self.plan.info,
            backend=self.plan.backend,
        )  # fmt: skip
        self._room = room

    def _make_room(self, request: Request, step: int) -> None:
        """After PK_TOO_SMALL: larger outputs, or room for the batch; what had room before and needs more gets
        1.5 times that, so that sizes that creep up do not end in this again and again."""
        if request.grow_outputs(step):
            return
        symbols = self.plan.info.symbols
        needed = np.zeros(len(symbols), np.int64)
        native.call(
            "pk_session_needed",
            self.handle,
            native.pointer(needed, "int64_t *"),
            needed.size,
            backend=self.plan.backend,
        )
        given = np.array([s.kind in _GIVEN for s in symbols])
        more = given & (needed > self._room)
        grown = np.where(self._room > 0, np.ceil(needed * GROWTH), needed)
        self._reserve(np.where(more, grown, 0).astype(np.int64))

    def run(self, request: Request) -> Outcome:
        """Runs the steps of a request in order, without the GIL.

        A batch that does not fit gets more room and is repeated.

        Raises:
            ConfigError, DataError, ResourceError, CoreError: a step failed; steps before it have ended.
        """
        lib, done = self._lib, 0
        steps = native.pointer(request.steps, "char *")
        tries, last = 0, -1
        while done < len(request):
            at = native.ffi().cast("pk_step *", steps + done * native.STEP_BYTES)
            status = lib.pk_session_run(
                self.handle, at, len(request) - done, self._done, self._error
            )
            done += self._done[0]
            if status in (OK, HALTED, INTERRUPTED):
                return Outcome(done, {OK: "done", HALTED: "halted"}.get(status, "interrupted"))
            tries = tries + 1 if done == last else 1
            last = done
            if status != TOO_SMALL or tries > 4:
                raise native.failure(self._error, self.plan.info)
            self._make_room(request, done)
        return Outcome(done, "done")

    def interrupt(self, urgent: bool = False) -> None:
        """Stops the running request between steps, or between nodes when ``urgent``; from any thread."""
        self._lib.pk_interrupt(self.handle, int(urgent))

    def repeats(self, node: int) -> int:
        """How often a scan or decode ran its body in the last step."""
        return int(self._lib.pk_session_repeats(self.handle, node))

    def profile(self) -> list[ProfileRow]:
        """Time by node since the session was made; empty without ``profile``."""
        count = self._lib.pk_session_profile(self.handle, native.ffi().NULL, 0)
        rows = native.ffi().new("pk_profile_row[]", max(count, 1))
        self._lib.pk_session_profile(self.handle, rows, count)
        nodes = self.plan.info.nodes
        return [
            ProfileRow(r.node, nodes[r.node].signature, nodes[r.node].origin[3], r.calls, r.seconds, r.bytes)
            for r in rows[0:count] if r.calls
        ]  # fmt: skip
