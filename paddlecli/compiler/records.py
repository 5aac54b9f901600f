"""Layout of a plan's byte string: the Python twin of ``core/include/pk_plan.h``
(``docs/plan-format.md`` says it in words).

Every record is little-endian and has no hidden padding; the numbers are those of the header's
enums.
"""

from __future__ import annotations

from struct import Struct

MAGIC = b"PKPLAN\r\n"
VERSION = 2

HEADER = Struct("<8sIIQQ")
SECTION = Struct("<IIQQ")

STRINGS, SYMBOLS, AXES, TENSORS, NODES, REFS, ATTRS, LISTS = range(1, 9)
ENTRIES, SLOTS, RANGES, INPUTS, ARGUMENTS, CONSTANTS, ORIGINS = range(9, 16)

SYMBOL = Struct("<IIiiqq")
AXIS = Struct("<IiiI")
TENSOR = Struct("<II4BiiiQfI" + 8 * "qiI")
NODE = Struct("<IIIHHIIIiQIIiiqII")
REF = Struct("<i")
ATTR_INT = Struct("<IIq")
ATTR_FLOAT = Struct("<IId")
LIST = Struct("<q")
ENTRY = Struct("<9Ii")
SLOT = Struct("<II")
RANGE = Struct("<IIIIQ")
INPUT = Struct("<Ii")
ARGUMENT = Struct("<Ii")
ORIGIN = Struct("<IIII")

RECORD_BYTES = {
    STRINGS: 1,
    SYMBOLS: SYMBOL.size,
    AXES: AXIS.size,
    TENSORS: TENSOR.size,
    NODES: NODE.size,
    REFS: REF.size,
    ATTRS: ATTR_INT.size,
    LISTS: LIST.size,
    ENTRIES: ENTRY.size,
    SLOTS: SLOT.size,
    RANGES: RANGE.size,
    INPUTS: INPUT.size,
    ARGUMENTS: ARGUMENT.size,
    CONSTANTS: 1,
    ORIGINS: ORIGIN.size,
}

SYMBOL_KINDS = ("batch", "sequences", "total", "longest", "sum", "product", "pairs", "step_rows")
LAYOUTS = ("plain", "nchw8c", "packed")
STORAGE = (
    "slot",
    "input",
    "argument",
    "range",
    "constant",
    "axis",
    "alias",
    "step",
    "previous",
    "prefix",
)
AXIS_PARTS = ("offsets", "order", "starts", "map", "map_reversed", "sequence")
AXIS_ORDERED = 1
NODE_KERNEL, NODE_SCAN, NODE_DECODE = range(3)
NODE_REVERSED, NODE_UPDATES = 1, 2
ATTR_KINDS = {"int": 0, "bool": 0, "float": 1, "list": 2}
RANGE_CLASSES = ("param", "grad", "optimizer", "state", "metric")
