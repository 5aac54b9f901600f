"""From a status of the core to an exception of the tree in ``paddlecli/errors.py``.

    status                              exception
    BAD_PLAN, BAD_CALL                  CoreError       (a bug in what Python gave; exit code 1)
    BAD_SHAPE                           ConfigError     (layers that do not fit; names the recipe's line)
    BAD_DATA                            DataError       (a label or id out of range; names the row)
    NO_KERNEL, NO_MEMORY, DEVICE_ERROR  ResourceError

TOO_SMALL, HALTED and INTERRUPTED are outcomes that ``Session.run`` handles, not errors.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlecli.compiler.plan_info import PlanInfo
from paddlecli.errors import ConfigError, DataError, PaddleCliError, ResourceError, Where

(
    OK,
    BAD_PLAN,
    NO_KERNEL,
    BAD_SHAPE,
    BAD_DATA,
    TOO_SMALL,
    NO_MEMORY,
    INTERRUPTED,
    BAD_CALL,
    HALTED,
    DEVICE_ERROR,
) = range(11)


class CoreError(PaddleCliError):
    """The core refused what it was given: a bug in this program."""

    kind = "core"


_CLASSES: dict[int, type[PaddleCliError]] = {
    BAD_SHAPE: ConfigError, BAD_DATA: DataError, NO_KERNEL: ResourceError, NO_MEMORY: ResourceError,
    DEVICE_ERROR: ResourceError,
}  # fmt: skip


_HINTS = {
    NO_MEMORY: "a smaller train.batch_size, train.accumulate or train.recompute (these give the same result), "
    "or smaller layers; "
    "`paddlecli model summary RECIPE` shows what each layer keeps",
}


@dataclass(frozen=True)
class CoreFault:
    """A filled ``pk_error``; -1 where a number does not apply."""

    status: int
    node: int
    tensor: int
    step: int
    row: int
    op: str
    message: str


def exception(fault: CoreFault, info: PlanInfo | None = None) -> PaddleCliError:
    """The exception for a fault: ``[op] message``, the tensor, the batch row, and the recipe's line where the plan knows it."""
    parts = [f"[{fault.op}] {fault.message}" if fault.op else fault.message]
    where: list[Where] = []
    if info is not None and 0 <= fault.tensor < len(info.tensors):
        parts.append(f"tensor {info.tensors[fault.tensor].name}")
    if fault.row >= 0:
        parts.append(f"row {fault.row} of the batch")
    if info is not None and 0 <= fault.node < len(info.nodes):
        file, line, column, path = info.nodes[fault.node].origin
        if path:
            parts.append(f"layer {path}")
        if file:
            where.append(Where(file, line, column, path))
    return _CLASSES.get(fault.status, CoreError)("; ".join(parts), _HINTS.get(fault.status), where)
