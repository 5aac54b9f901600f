"""The writer's bytes, and what the core says to bytes that are wrong. Every case changes one thing in a valid plan."""

from __future__ import annotations

import struct
from collections.abc import Callable

import plans
import pytest

from paddlecli.compiler import records as r
from paddlecli.compiler.plan import PlanWriter
from paddlecli.compiler.plan_info import read_plan
from paddlecli.errors import PaddleCliError, ResourceError
from paddlecli.ops.base import Kernel
from paddlecli.ops.spec import BATCH, Axis, Spec
from paddlecli.runtime.errors import CoreError
from paddlecli.runtime.session import Plan


def test_the_reader_gives_back_what_the_writer_got() -> None:
    info = read_plan(plans.dense())
    assert [s.name for s in info.symbols] == ["N"]
    assert [(e.name, e.nodes) for e in info.entries] == [("predict", 3), ("train", 4)]
    assert info.inputs == (("x", 0),) and info.arguments == ("rate",)
    assert info.nodes[0].origin == ("net.yaml", 12, 3, "fc1")
    assert info.nodes[1].signature == "relu.forward(x: f32) -> (y: f32)"
    assert [(x.name, x.klass, x.bytes) for x in info.ranges] == [
        ("w", "param", 48),
        ("b", "param", 12),
        ("dw", "grad", 48),
    ]
    assert info.tensors[0].shape([7]) == (7, 4)
    nested = read_plan(plans.nested())
    assert [(a.name, a.parent) for a in nested.axes] == [("sentences", -1), ("words", 0)]
    assert nested.levels(1) == (0, 1)


def test_equal_texts_constants_lists_and_origins_are_written_once() -> None:
    w = PlanWriter()
    assert w.constant(b"abc") == w.constant(b"abc") == 0
    assert w.constant(b"d") == 64
    assert w.origin("f", 1, 2, "p") == w.origin("f", 1, 2, "p") == 1
    axis = Axis("t", "x")
    assert w.axis(axis) == w.axis(axis, ordered=True) == 0
    assert w.dim(axis.total + BATCH) == w.dim(BATCH + axis.total)


def test_attributes_must_be_those_of_the_kernel() -> None:
    w = PlanWriter()
    kernel = plans.kernel("scale.forward")
    with pytest.raises(ValueError, match="attribute b is missing"):
        w.node(kernel, [], [], {"a": 1.0})
    with pytest.raises(ValueError, match="unknown attribute c"):
        w.node(kernel, [], [], {"a": 1.0, "b": 0.0, "c": 1})


@pytest.mark.parametrize("name", sorted(plans.CORPUS))
def test_truncated_plans_are_refused(name: str) -> None:
    data = plans.CORPUS[name]()
    Plan(data)
    for size in {0, 1, 8, 31, 32, 100, len(data) // 2, len(data) - 1}:
        with pytest.raises(CoreError):
            Plan(data[:size])
    with pytest.raises(CoreError, match="says it has"):
        Plan(data + b"\0")


def section(data: bytes, kind: int) -> tuple[int, int, int]:
    """(offset, record bytes, records)"""
    count = r.HEADER.unpack_from(data)[2]
    for i in range(count):
        found, record, offset, records = r.SECTION.unpack_from(
            data, r.HEADER.size + i * r.SECTION.size
        )
        if found == kind:
            return offset, record, records
    raise AssertionError(kind)


def changed(
    data: bytes, kind: int, row: int, field: int, layout: struct.Struct, value: int
) -> bytes:
    """The plan with one field of one record changed."""
    offset, record, records = section(data, kind)
    at = offset + (row % records) * record
    values = list(layout.unpack_from(data, at))
    values[field] = value
    return data[:at] + layout.pack(*values) + data[at + record :]


def tensor(name: str, field: int, value: int, maker: Callable[[], bytes]) -> bytes:
    data = maker()
    row = next(i for i, t in enumerate(read_plan(data).tensors) if t.name == name)
    return changed(data, r.TENSORS, row, field, r.TENSOR, value)


def node(row: int, field: int, value: int, maker: Callable[[], bytes] = plans.dense) -> bytes:
    return changed(maker(), r.NODES, row, field, r.NODE, value)


def entry(field: int, value: int, maker: Callable[[], bytes] = plans.dense) -> bytes:
    return changed(maker(), r.ENTRIES, 0, field, r.ENTRY, value)


def header(field: int, value: int | bytes) -> bytes:
    data = plans.dense()
    values = list(r.HEADER.unpack_from(data))
    values[field] = value
    return r.HEADER.pack(*values) + data[r.HEADER.size :]


def table(row: int, field: int, value: int) -> bytes:
    data = plans.dense()
    at = r.HEADER.size + row * r.SECTION.size
    values = list(r.SECTION.unpack_from(data, at))
    values[field] = value
    return data[:at] + r.SECTION.pack(*values) + data[at + r.SECTION.size :]


NAME, ORIGIN, DTYPE, LAYOUT, STORAGE, NDIM, AXIS, PLACE, PART, OFFSET = range(10)
DIM = 12
CASES: dict[str, tuple[bytes, str]] = {
    "magic": (header(0, b"PKPLAN\n\n"), "not a plan"),
    "old version": (header(1, 1), "version 1, this core reads 2: compile it anew"),
    "new version": (header(1, 3), "version 3, this core reads 2"),
    "sections": (header(2, 99), "99 sections"),
    "unknown section": (table(0, 0, 77), "unknown section"),
    "section twice": (table(8, 0, r.INPUTS), "twice"),
    "record size": (table(0, 1, 31), "another size"),
    "misaligned": (table(0, 2, 33), "not aligned"),
    "outside": (table(0, 3, 10**6), "outside the plan"),
    "overflow": (table(0, 3, 2**63), "outside the plan"),
    "element type": (tensor("h", DTYPE, 10, plans.dense), "bad type"),
    "dimensions": (tensor("h", NDIM, 9, plans.dense), "bad type"),
    "coefficient": (tensor("h", DIM, -1, plans.dense), "bad dimension"),
    "symbol": (tensor("h", DIM + 1, 5, plans.dense), "bad dimension"),
    "too large": (tensor("w", DIM, 2**40, plans.dense), "too large|outside its range"),
    "slot": (tensor("h", PLACE, 3, plans.dense), "no such place"),
    "storage": (tensor("h", STORAGE, 10, plans.dense), "no such place"),
    "type alignment": (tensor("w", OFFSET, 2, plans.dense), "not aligned to its type"),
    "range end": (tensor("w", OFFSET, 4, plans.dense), "outside its range"),
    "alias of itself": (tensor("w.flat", PLACE, 3 + 1, plans.dense), "no such place|not the one|view of"),
    "alias end": (tensor("w.flat", DIM, 13, plans.dense), "outside its tensor"),
    "constant end": (tensor("bounds", OFFSET, 2**20, plans.dense), "behind its constants"),
    "ragged rows": (tensor("e", DIM, 2, plans.ragged), "not those of its axis"),
    "axis part": (tensor("map", PART, 6, plans.ragged), "no part of an axis"),
    "step of another": (tensor("x_t", PLACE, 0, plans.recurrent), "not packed|rows of"),
    "first value": (tensor("before", PART, 99, plans.recurrent), "no first value"),
    "decode rows": (tensor("now", DIM, 2, plans.decode), "repetition|step of a loop"),
    "refs": (node(0, 2, 10**6), "outside the references"),
    "inputs": (node(0, 3, 1), "the kernel takes 3 and 1"),
    "accumulate": (node(0, 7, 2), "does not have"),
    "attributes": (node(0, 6, 1), "1 attributes given"),
    "guard": (node(0, 8, 0), "a guard or flag"),
    "kind": (node(0, 0, 3), "not run by this core"),
    "body": (node(0, 11, 1), "no body"),
    "update": (node(6, 15, 0), "without saying that it updates"),
    "scan axis": (node(2, 12, 4, plans.recurrent), "ordered axis"),
    "scan body": (node(2, 11, 40, plans.recurrent), "ends outside its entry"),
    "cut body": (node(2, 11, 2, plans.recurrent), "a loop that it is not in"),
    "limit": (node(2, 14, 0, plans.decode), "1 to 2"),
    "another limit": (node(2, 14, 4, plans.decode), "a loop that it is not in"),
    "entry nodes": (entry(2, 99), "outside the plan"),
    "entry inputs": (entry(4, 0), "does not bind"),
    "fetch": (changed(plans.dense(), r.ENTRIES, 0, 5, r.ENTRY, 0), "a tensor of one number"),
    "halt": (entry(9, 0), "a guard or flag"),
    "axis parent": (changed(plans.nested(), r.AXES, 0, 1, r.AXIS, 1), "bad parent"),
    "axis input": (changed(plans.nested(), r.AXES, 0, 2, r.AXIS, 1), "the input that defines it"),
    "symbol kind": (changed(plans.nested(), r.SYMBOLS, 1, 0, r.SYMBOL, 8), "unknown kind"),
    "symbol twice": (changed(plans.nested(), r.SYMBOLS, 1, 0, r.SYMBOL, 2), "repeats symbol|lacks symbols"),
    "input tensor": (changed(plans.dense(), r.INPUTS, 0, 1, r.INPUT, 1), "has no tensor"),
    "range class": (changed(plans.dense(), r.RANGES, 0, 1, r.RANGE, 9), "is not one"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_fault_is_found_and_named(case: str) -> None:
    data, text = CASES[case]
    with pytest.raises(PaddleCliError, match=text):
        Plan(data)


def with_kernel(signature: str) -> bytes:
    w = PlanWriter()
    x = w.input("x", Spec.of(BATCH))
    y = w.tensor("y", Spec.of(BATCH), "slot", w.slot())
    w.node(Kernel(signature), [x], [y])
    w.entry("run", 0, 1, inputs=["x"])
    return w.finish()


def test_kernels_are_compared_by_their_whole_signature() -> None:
    Plan(with_kernel("relu.forward(x: f32) -> (y: f32)"))
    with pytest.raises(
        ResourceError,
        match=r"wants relu.forward\(x: f32\) -> \(z: f32\), this core has relu.forward\(x: f32\)",
    ):
        Plan(with_kernel("relu.forward(x: f32) -> (z: f32)"))
    with pytest.raises(ResourceError, match="no kernel nothing"):
        Plan(with_kernel("nothing.forward(x: f32) -> (y: f32)"))


def test_inputs_and_constants_are_not_written() -> None:
    for storage in ("input", "constant"):
        w = PlanWriter()
        x = w.input("x", Spec.of(4))
        y = (
            x
            if storage == "input"
            else w.tensor("y", Spec.of(4), "constant", offset=w.constant(bytes(16)))
        )
        w.node(plans.kernel("relu.forward"), [x], [y])
        w.entry("run", 0, 1, inputs=["x"])
        with pytest.raises(CoreError, match="writes to an input"):
            Plan(w.finish())


def test_element_types_must_be_the_kernels() -> None:
    w = PlanWriter()
    x = w.input("x", Spec.of(4, dtype="f64"))
    y = w.tensor("y", Spec.of(4), "slot", w.slot())
    w.node(plans.kernel("relu.forward"), [x], [y])
    w.entry("run", 0, 1, inputs=["x"])
    with pytest.raises(CoreError, match="input 0 is f64, the kernel takes f32; tensor x"):
        Plan(w.finish())


def test_loops_do_not_nest() -> None:
    w = PlanWriter()
    axis = Axis("t", "x")
    w.input("x", Spec.of(axis.total, axis=axis))
    y = w.tensor("y", Spec.of(4), "slot", w.slot())
    w.scan(axis, 2)
    w.scan(axis, 1)
    w.node(plans.kernel("fill.forward"), [], [y], {"value": 0.0})
    w.entry("run", 0, 3, inputs=["x"])
    with pytest.raises(CoreError, match="a loop inside a loop"):
        Plan(w.finish())
