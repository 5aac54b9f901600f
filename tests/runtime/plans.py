"""Small plans written by hand, for the tests of the runtime and the corpus of the plan fuzzer."""

from __future__ import annotations

from collections.abc import Callable

from paddlecli import ops
from paddlecli.compiler.plan import PlanWriter
from paddlecli.ops.base import Kernel
from paddlecli.ops.spec import BATCH, Axis, Spec

FC = {"num_flatten_dims": 1, "activation": 0}


def kernel(name: str) -> Kernel:
    """``op.kernel`` by name."""
    op, _, part = name.partition(".")
    return next(k for k in ops.get(op).kernels if k.name == part)


class Recorded:
    """An origin."""

    def __init__(self, file: str, line: int, column: int, path: str) -> None:
        self.file, self.line, self.column, self.path = file, line, column, path


def dense() -> bytes:
    """predict: y = relu(x w + b), mean; train: also a gradient step of a plain sum; the batch is symbolic."""
    w = PlanWriter(seed=7)
    for name, size in (("w", 12), ("b", 3), ("dw", 12)):
        w.range(name, "grad" if name == "dw" else "param", "f32", 4 * size)
    x = w.input("x", Spec.of(BATCH, 4))
    rate = w.argument("rate")
    weight = w.tensor("w", Spec.of(4, 3), "range", 0)
    bias = w.tensor("b", Spec.of(3), "range", 1)
    flat = w.tensor("w.flat", Spec.of(12), "alias", weight)
    dw = w.tensor("dw", Spec.of(4, 3), "range", 2)
    flat_dw = w.tensor("dw.flat", Spec.of(12), "alias", dw)
    slots = [w.slot() for _ in range(2)]
    h = w.tensor("h", Spec.of(BATCH, 3), "slot", slots[0])
    y = w.tensor("y", Spec.of(BATCH, 3), "slot", slots[1])
    loss = w.tensor("loss", Spec.of(1), "slot", w.slot())
    origin = Recorded("net.yaml", 12, 3, "fc1")
    w.node(kernel("fc.forward"), [x, weight, bias], [h], FC, origin=origin)
    w.node(kernel("relu.forward"), [h], [y])
    w.node(kernel("mean.forward"), [y], [loss])
    w.entry("predict", 0, 3, inputs=["x"], fetches=[loss], outputs=[y])
    bounds = w.tensor(
        "bounds", Spec.of(1, 2, dtype="i64"), "constant", offset=w.constant(_i64(0, 12))
    )
    numbers = [
        w.tensor(n, Spec.of(1, dtype=d), "constant", offset=w.constant(data))
        for n, d, data in (
            ("rates", "f32", _f32(1)),
            ("l2", "f32", _f32(0)),
            ("l1", "f32", _f32(0)),
            ("clips", "i32", bytes(4)),
        )
    ]
    w.node(kernel("fc.forward"), [x, weight, bias], [h], FC, origin=origin)
    w.node(kernel("mean.forward"), [h], [loss])
    w.node(kernel("fc.backward_w"), [x, h], [dw])
    w.node(
        kernel("sgd.update"),
        [flat, flat_dw, rate, -1, bounds, *numbers],
        [flat],
        {"clip_value": 0.0},
        updates=True,
    )
    w.entry("train", 3, 4, inputs=["x"], fetches=[loss, rate])
    return w.finish()


def _i64(*values: int) -> bytes:
    return b"".join(v.to_bytes(8, "little", signed=True) for v in values)


def _f32(value: float) -> bytes:
    import struct

    return struct.pack("<f", value)


WORDS = Axis("words", "ids")


def ragged() -> bytes:
    """Embedding of ragged ids, summed over each sequence; every part of the axis is an output."""
    w = PlanWriter()
    table = w.tensor("table", Spec.of(10, 3), "range", w.range("table", "param", "f32", 120))
    ids = w.input("ids", Spec.of(WORDS.total, dtype="i64", axis=WORDS))
    w.axis(WORDS, ordered=True)
    e = w.tensor("e", Spec.of(WORDS.total, 3, axis=WORDS), "slot", w.slot())
    s = w.tensor("s", Spec.of(BATCH, 3), "slot", w.slot())
    w.node(kernel("embedding.forward"), [ids, table], [e], {"padding_idx": -1, "sparse": True})
    w.node(kernel("sequence_pool.forward"), [e], [s], {"mode": 0, "pad_value": 0.0})
    axis = w.axis(WORDS)
    shapes = {
        "offsets": BATCH + 1, "order": BATCH, "starts": WORDS.longest + 1, "map": WORDS.total, "map_reversed": WORDS.total,
        "sequence": WORDS.total,
    }  # fmt: skip
    parts = [w.tensor(p, Spec.of(d, dtype="i64"), "axis", axis, part=p) for p, d in shapes.items()]
    w.entry("run", 0, 2, inputs=["ids"], outputs=[s, *parts])
    return w.finish()


def recurrent(reverse: bool = False, random: bool = False) -> bytes:
    """h_t = tanh(x_t + h_(t-1) u) over packed steps, from x in the order of the batch; ``random``: x_t goes through dropout."""
    w = PlanWriter(seed=3)
    u = w.tensor("u", Spec.of(2, 2), "range", w.range("u", "param", "f32", 16))
    axis = Axis("time", "x")
    x = w.input("x", Spec.of(axis.total, 2, axis=axis))
    index = w.tensor(
        "map",
        Spec.of(axis.total, dtype="i64"),
        "axis",
        w.axis(axis, ordered=True),
        part="map_reversed" if reverse else "map",
    )
    packed, h, out = (
        w.tensor(n, Spec.of(axis.total, 2), "slot", w.slot()) for n in ("packed", "h", "out")
    )
    work = w.tensor("work", Spec.of(axis.total, dtype="u8"), "slot", w.slot())
    start = w.tensor("start", Spec.of(BATCH, 2), "slot", w.slot())
    rows = axis.step_rows
    x_t = w.tensor("x_t", Spec.of(rows, 2), "step", packed)
    h_t = w.tensor("h_t", Spec.of(rows, 2), "step", h)
    before = w.tensor("before", Spec.of(rows, 2), "previous", h, part=start)
    part, total = (w.tensor(n, Spec.of(rows, 2), "slot", w.slot()) for n in ("part", "total"))
    w.node(kernel("fill.forward"), [], [start], {"value": 0.0})
    w.node(kernel("gather_rows.forward"), [x, index], [packed])
    w.scan(axis, 4)
    w.node(
        kernel("dropout.forward"),
        [x_t],
        [part],
        {"rate": 0.5 if random else 0.0, "upscale": False},
        stream=11,
    )
    w.node(kernel("fc.forward"), [before, u, -1], [total], FC)
    w.node(kernel("sum.forward"), [total, part], [total])
    w.node(kernel("tanh.forward"), [total], [h_t])
    w.node(kernel("scatter_rows.forward"), [h, index], [out, work])
    w.entry("run", 0, 8, inputs=["x"], outputs=[out])
    return w.finish()


def decode(limit: int = 5) -> bytes:
    """scores [N, 4] + t-fold bias, greedily: appends one id a repetition until every row met id 0."""
    w = PlanWriter()
    n, classes = BATCH, 4
    start = w.input("start", Spec.of(n, classes))
    grow = w.input("grow", Spec.of(1, classes))
    log = w.tensor("log", Spec.of(n * limit, dtype="i64"), "slot", w.slot())
    state = w.tensor("state", Spec.of(n * limit, classes), "slot", w.slot())
    now = w.tensor("now", Spec.of(n, classes), "step", state)
    before = w.tensor("before", Spec.of(n, classes), "previous", state, part=start)
    ids = w.tensor("ids", Spec.of(n, dtype="i64"), "step", log)
    finished = w.tensor("finished", Spec.of(n, dtype="i32"), "slot", w.slot())
    done = w.tensor("done", Spec.of(1, dtype="i32"), "slot", w.slot())
    grow_row = w.tensor("grow.row", Spec.of(classes), "alias", grow)
    w.node(kernel("fill.forward"), [], [finished], {"value": 0.0})
    w.node(kernel("fill.forward"), [], [log], {"value": -1.0})
    loop = w.decode(limit, done, 2)
    w.node(kernel("bias.forward"), [before, grow_row], [now], {"axis": 1})
    w.node(kernel("greedy_step.forward"), [now, finished], [ids, finished, done], {"end": 0})
    w.entry("run", 0, w.node_count(), inputs=["start", "grow"], fetches=[done], outputs=[log])
    assert loop == 2
    return w.finish()


PARAGRAPHS = Axis("sentences", "ids")
NESTED = Axis("words", "ids", PARAGRAPHS)


def nested() -> bytes:
    """Two levels: words in sentences in samples; sums by sentence, then by sample."""
    w = PlanWriter()
    ids = w.input("ids", Spec.of(NESTED.total, 1, axis=NESTED))
    extra = w.input("extra", Spec.of(BATCH, 2))
    by_sentence = w.tensor(
        "by_sentence", Spec.of(PARAGRAPHS.total, 1, axis=PARAGRAPHS), "slot", w.slot()
    )
    by_sample = w.tensor("by_sample", Spec.of(BATCH, 1), "slot", w.slot())
    doubled = w.tensor("doubled", Spec.of(BATCH, 2), "slot", w.slot())
    w.node(kernel("sequence_pool.forward"), [ids], [by_sentence], {"mode": 0, "pad_value": 0.0})
    w.node(
        kernel("sequence_pool.forward"), [by_sentence], [by_sample], {"mode": 0, "pad_value": 0.0}
    )
    w.node(kernel("sum.forward"), [extra, extra], [doubled])
    w.entry("run", 0, 3, inputs=["ids", "extra"], outputs=[by_sentence, by_sample, doubled])
    return w.finish()


CORPUS: dict[str, Callable[[], bytes]] = {
    "dense": dense, "ragged": ragged, "recurrent": recurrent, "decode": decode, "nested": nested,
}  # fmt: skip
