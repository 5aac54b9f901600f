"""Fusion: neighbouring nodes that one kernel computes.

A fused op carries its decomposition as its executable meaning; a test compares both. Each pattern
names the conditions under which it holds; what was next to each other but could not be fused is
noted with the condition that failed (``plan --stage fused`` prints it).

======================================  ==============================================
product, bias, relu | tanh | sigmoid    ``fc.forward``
convolution, bias, the same             ``conv2d.forward``, ``sequence_conv.forward``
sequence convolution, the same, a pool  ``sequence_conv_pool.forward``
batch norm, addition, relu              ``batch_norm`` with ``z`` and ``activation``
convolution, norm of given statistics   ``conv2d.forward`` with ``scale`` and ``z``
sum of products, bias                   products that add to one tensor, the last with bias
weight and bias gradient of one product ``fc.backward_wb``
masks and sums of gradients             :mod:`paddlecli.compiler.fuse_gradients`
loss and its gradient                   :mod:`paddlecli.compiler.fuse_losses`
======================================  ==============================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from paddlecli import ops
from paddlecli.compiler.fuse_gradients import fuse_gradients
from paddlecli.compiler.fuse_losses import fuse_losses
from paddlecli.graph.ir import Entry, Item, Loop, Node, Origin, Tensor, flat, storage_of
from paddlecli.ops.base import Attr

ACTIVATIONS = ("none", "relu", "tanh", "sigmoid")
"""What a product's or convolution's attribute ``activation`` counts: those whose gradient needs
only the result."""


Chain = tuple[list[Node], list[Node]]
"""The nodes that do the work of some parts, to stand at the place of the last part; the parts."""


@dataclass
class _Readers:
    """Who reads and writes each tensor's bytes, over the whole entry."""

    readers: dict[int, list[Node]]
    writers: dict[int, list[Node]]
    roots: set[int]

    @classmethod
    def of(cls, entry: Entry) -> _Readers:
        readers: dict[int, list[Node]] = defaultdict(list)
        writers: dict[int, list[Node]] = defaultdict(list)
        for node in flat(entry.items):
            for t in node.inputs:
                for s in storage_of(t):
                    readers[id(s)].append(node)
            for t in node.outputs:
                for s in storage_of(t):
                    writers[id(s)].append(node)
        return cls(readers, writers, {id(s) for t in entry.roots for s in storage_of(t)})

    def only(self, tensor: Tensor) -> Node | None:
        """The only reader of a tensor that nothing else needs, None when there are others."""
        if tensor.persistent or any(id(s) in self.roots for s in storage_of(tensor)):
            return None
        base = storage_of(tensor)[0]
        found = self.readers.get(id(base), [])
        return found[0] if len(found) == 1 and len(self.writers.get(id(base), [])) == 1 else None


def fuse(entry: Entry, notes: list[str]) -> Entry:
    """The entry with fused nodes. ``notes`` gets a line for each near miss."""
    view = _Readers.of(entry)
    items: list[Item] = []
    nodes: list[Node] = []
    for item in entry.items:
        if isinstance(item, Loop):
            items += [*_fuse(nodes, view, notes), replace(item, body=_fuse(item.body, view, notes))]
            nodes = []
        else:
            nodes.append(item)
    fused = Entry(**{**vars(entry), "items": [*items, *_fuse(nodes, view, notes)]})
    return fuse_losses(fuse_gradients(fused))


def _fuse(nodes: Sequence[Node], view: _Readers, notes: list[str]) -> list[Node]:
    """One stretch of nodes without loops between them."""
    here = {id(n) for n in nodes}
    done: dict[int, list[Node]] = {}
    gone: set[int] = set()
    for node in nodes:
        if id(node) in gone or id(node) in done:
            continue
        chain = _product_chain(node, view, here, notes) or _norm_chain(node, view, here)
        if chain is not None:
            merged, parts = chain
            done[id(parts[-1])] = merged
            gone.update(id(p) for p in parts[:-1])
            here.difference_update(id(p) for p in parts)
    result = [m for n in nodes if id(n) not in gone for m in done.get(id(n), [n])]
    return _weight_and_bias(_sums_of_products(result, view))


# -- forward chains --------------------------------------------------------------------------------
def _next(node: Node, view: _Readers, here: set[int]) -> Node | None:
    reader = view.only(node.outputs[0])
    return reader if reader is not None and id(reader) in here and not node.accumulate else None


CONVOLUTIONS = {"conv2d": 1, "sequence_conv": -1}
"""Ops that take a bias and an activation, and the axis that their bias lies on."""


def _is_product(node: Node) -> bool:
    if node.kernel.op in CONVOLUTIONS and node.kernel.name == "forward":
        return node.args.get("b") is None and not node.attrs["activation"]
    return node.kernel.full_name == "matmul.forward" and bool(node.attrs["num_flatten_dims"])


def _product_chain(
    node: Node, view: _Readers, here: set[int], notes: list[str]
) -> Chain | None:  # fmt: skip
    """product -> bias -> activation, the last two optional; a convolution's bias may be followed by a
    batch norm of given statistics and an addition."""
    if not _is_product(node) or node.guard is not None:
        return None
    axis = CONVOLUTIONS.get(node.kernel.op, -1)
    parts, bias, activation = [node], None, 0
    following = _next(node, view, here)
    if (
        following is not None
        and _is_bias(following, axis)
        and following.args["x"] is node.outputs[0]
    ):
        bias = following.args["b"]
        parts.append(following)
        following = _next(following, view, here)
    if node.kernel.op == "conv2d" and _is_given_norm(following, parts[-1].outputs[0]):
        assert following is not None
        return _normed(node, [*parts, following], bias, view, here)
    if (
        following is not None
        and following.kernel.name == "forward"
        and following.kernel.op in ACTIVATIONS[1:]
    ):
        activation = ACTIVATIONS.index(following.kernel.op)
        parts.append(following)
        following = _next(following, view, here)
    elif following is not None and following.kernel.op in ("gelu", "swish", "leaky_relu", "elu"):
        note = f"{node.origin.path}: {following.kernel.op} stays apart from {node.kernel.op}"
        note += ": its gradient needs the value before it"
        notes += [note] if note not in notes else []
    if node.kernel.op == "sequence_conv" and following is not None and _is_pool(following):
        parts.append(following)
        return [_pooled(node, parts, bias, activation)], parts
    if len(parts) == 1:
        return None
    return [_merged(node, parts, bias, activation)], parts


def _is_pool(node: Node) -> bool:
    """Not of the first or last row alone: there all others would be convolved for nothing."""
    return (
        node.kernel.full_name == "sequence_pool.forward"
        and node.attrs["mode"] in range(4)
        and node.guard is None
    )


def _pooled(node: Node, parts: list[Node], bias: Tensor | None, activation: int) -> Node:
    last = parts[-1]
    attrs: dict[str, Attr] = {**node.attrs, **last.attrs, "activation": activation}
    args = {"x": node.args["x"], "w": node.args["w"], "b": bias}
    kernel = ops.get("sequence_conv_pool").forward
    return Node(kernel, args, {"y": last.outputs[0]}, attrs, _origin(parts), _flags(last, "y"))


def _is_given_norm(node: Node | None, x: Tensor) -> bool:
    return (
        node is not None
        and node.kernel.full_name == "batch_norm.inference"
        and node.args["x"] is x
        and node.args.get("z") is None
        and node.guard is None
    )


def _normed(
    node: Node, parts: list[Node], bias: Tensor | None, view: _Readers, here: set[int]
) -> Chain:
    """convolution [-> bias] -> batch norm of given statistics [-> add] [-> relu]: its scale and shift
    come from a small kernel, and the convolution ends with them."""
    norm = parts[-1]
    parts, z, relu = _tail(norm, view, here, parts)
    channels = norm.args["w"].spec
    scale, shift = (Tensor(f"{norm.outputs[0].name}.{n}", channels) for n in ("scale", "shift"))
    given = {p: norm.args[p] for p in ("w", "b", "mean", "variance")} | {"bias": bias}
    kernel = ops.get("batch_norm").fold  # type: ignore[attr-defined]
    epsilon: dict[str, Attr] = {"epsilon": norm.attrs["epsilon"]}
    fold = Node(kernel, given, {"scale": scale, "shift": shift}, epsilon, norm.origin)
    merged = replace(
        node,
        args={**node.args, "b": shift, "scale": scale, "z": z},
        results={**node.results, "y": parts[-1].outputs[0]},
        attrs={**node.attrs, "activation": ACTIVATIONS.index("relu") if relu else 0},
        origin=_origin(parts),
        accumulate=_flags(parts[-1], "y"),
    )
    return [fold, merged], parts


def _tail(
    norm: Node, view: _Readers, here: set[int], parts: list[Node]
) -> tuple[list[Node], Tensor | None, bool]:
    """What follows a batch norm: the parts with an addition and a relu behind them, what is added,
    whether there is a relu."""
    z, relu, parts = None, bool(norm.attrs["activation"]), list(parts)
    following = None if relu else _next(norm, view, here)
    other = _beside(following, norm.outputs[0])
    if following is not None and other is not None:
        z = other
        parts.append(following)
        following = _next(following, view, here)
    if following is not None and following.kernel.full_name == "relu.forward":
        relu = True
        parts.append(following)
    return parts, z, relu


def _is_bias(node: Node, axis: int) -> bool:
    return (
        node.kernel.full_name == "bias.forward"
        and node.attrs["axis"] == axis
        and node.guard is None
    )


def _merged(node: Node, parts: list[Node], bias: Tensor | None, activation: int) -> Node:
    last = parts[-1]
    result = {"y": last.outputs[0]}
    origin = _origin(parts)
    if node.kernel.op in CONVOLUTIONS:
        attrs: dict[str, Attr] = {**node.attrs, "activation": activation}
        return replace(
            node,
            args={**node.args, "b": bias},
            results={**node.results, **result},
            attrs=attrs,
            origin=origin,
            accumulate=_flags(last, "y"),
        )
    attrs = {"num_flatten_dims": node.attrs["num_flatten_dims"], "activation": activation}
    args = {"x": node.args["x"], "w": node.args["y"], "b": bias}
    return Node(ops.get("fc").forward, args, result, attrs, origin, _flags(last, "y"))


def _origin(parts: Sequence[Node]) -> Origin:
    return parts[0].origin.joined(*(p.origin for p in parts[1:]))


def _flags(node: Node, port: str) -> frozenset[str]:
    return frozenset([port]) if node.accumulate else frozenset()


def _sums_of_products(nodes: list[Node], view: _Readers) -> list[Node]:
    """The products of a sum write where it would: the first assigns, the others add. In a scan most
    sums have one product before the loop, and stay."""
    makers = {id(n.outputs[0]): n for n in nodes if n.kernel.full_name == "matmul.forward"}
    here = {id(n) for n in nodes}
    replaced: dict[int, Node | None] = {}
    for node in nodes:
        parts = [makers.get(id(t)) for t in node.inputs]
        if node.kernel.full_name != "sum.forward" or node.accumulate or node.guard is not None:
            continue
        if node.outputs[0].is_view:
            continue
        products = [p for p in parts if p is not None and _joins(p, node, view)]
        if len(products) < len(parts) or len({id(p) for p in products}) < len(parts):
            continue
        products.sort(key=nodes.index)
        bias = _next(node, view, here)
        if bias is not None and not (_is_bias(bias, -1) and bias.args["x"] is node.outputs[0]):
            bias = None
        ends = [node] if bias is None else [node, bias]
        target = ends[-1].outputs[0]
        for product in products:
            adds = frozenset() if product is products[0] else frozenset(product.results)
            replaced[id(product)] = replace(product, results={"z": target}, accumulate=adds)
        if bias is not None:
            merged = _merged(products[-1], [products[-1], *ends], bias.args["b"], 0)
            replaced[id(products[-1])] = replace(merged, accumulate=frozenset({"y"}))
        replaced |= {id(n): None for n in ends}
    found = [replaced.get(id(n), n) for n in nodes]
    return [n for n in found if n is not None]


def _joins(product: Node, node: Node, view: _Readers) -> bool:
    """Whether nothing but the sum has to do with what the product gives."""
    plain = bool(product.attrs["num_flatten_dims"]) and not product.accumulate
    return plain and product.guard is None and view.only(product.outputs[0]) is node


def _norm_chain(node: Node, view: _Readers, here: set[int]) -> Chain | None:
    """batch norm -> add -> relu, the last two optional."""
    if node.kernel.full_name not in ("batch_norm.forward", "batch_norm.inference"):
        return None
    if node.attrs["activation"] or node.args.get("z") is not None or node.guard is not None:
        return None
    parts, z, relu = _tail(node, view, here, [node])
    if len(parts) == 1:
        return None
    merged = replace(
        node,
        args={**node.args, "z": z},
        results={**node.results, "y": parts[-1].outputs[0]},
        attrs={**node.attrs, "activation": int(relu)},
        origin=_origin(parts),
        accumulate=_flags(parts[-1], "y"),
    )
    return [merged], parts


def _beside(node: Node | None, x: Tensor) -> Tensor | None:
    """What an addition adds to x, where both have one shape."""
    if node is None or node.kernel.full_name != "add.forward" or node.guard is not None:
        return None
    summands = list(node.args.values())
    other: Tensor = summands[1] if summands[0] is x else summands[0]
    same = other is not x and other.spec.shape == x.spec.shape
    return other if same else None


# -- gradients -------------------------------------------------------------------------------------
def _weight_and_bias(nodes: list[Node]) -> list[Node]:
    """dw and db of one product in one pass over dz, at the place of the later of the two."""
    biases = {
        id(n.args["dy"]): n
        for n in nodes
        if n.kernel.full_name == "bias.backward" and n.attrs["axis"] == -1
    }
    replaced: dict[int, Node | None] = {}
    for node in nodes:
        if node.kernel.full_name != "matmul.backward_y" or not node.attrs["num_flatten_dims"]:
            continue
        partner = biases.pop(id(node.args["dz"]), None)
        if partner is None or partner.guard is not node.guard:
            continue
        first, last = sorted((node, partner), key=nodes.index)
        accumulate = {"dw"} if node.accumulate else set()
        accumulate |= {"db"} if partner.accumulate else set()
        replaced[id(first)] = None
        replaced[id(last)] = Node(
            ops.get("fc").backward_wb,  # type: ignore[attr-defined]
            {"x": node.args["x"], "dy": node.args["dz"]},
            {"dw": node.outputs[0], "db": partner.outputs[0]},
            {},
            _origin([node, partner]),
            frozenset(accumulate),
            node.guard,
        )
    found = [replaced.get(id(n), n) for n in nodes]
    return [n for n in found if n is not None]
