"""What loops and routines do, in the units of a platform's paces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from math import log2, prod

from jaxte.bridge.price import operations
from jaxte.bridge.price.loops import Loop
from jaxte.bridge.price.operations import Operation
from jaxte.bridge.price.parts import read_by
from jaxte.lower.cost.paces import SIZES, Paces

Amounts = dict[str, float]
_STARTS = 2.0  # of loops, in the time that a routine takes to start
_NAMES = frozenset(Paces.__dataclass_fields__)
_KINDS = {
    name: kind
    for kind, names in (
        ("cheap", operations.CHEAP),
        ("division", operations.DIVISIONS),
        ("exponential", operations.EXPONENTIALS),
        ("power", operations.POWERS),
        ("branch", operations.JOINS | {"pad"}),
        ("gathered", {"gather"}),
        ("turned", {"transpose"}),
    )
    for name in names
}


_FUNCTIONS = ("cheap", "division", "exponential", "power", "complex")
_OF_COMPLEX = {"cheap": "complex", "division": "complex", "exponential": "power", "abs": "exponential"}
# by routines, which raising does not make faster
_DONE_WELL = frozenset(
    ["product", "product_row", "vector_row", "convolution", "sort", "fft", "scattered", "scattered_row"]
)


def total(amounts: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for own in amounts:
        for name, amount in own.items():
            found[name] = found.get(name, 0.0) + amount
    return found


def times(amounts: Amounts, number: float) -> Amounts:
    return {name: amount * number for name, amount in amounts.items()}


def seconds(amounts: Amounts, paces: Paces) -> float:
    """The time that all of it takes, each kind at its pace."""
    rates = asdict(paces)
    return sum(amount / rates[name] for name, amount in amounts.items())


def of_loop(loop: Loop) -> Amounts:
    """A loop: what each operation in it computes, what is read and written, and whether its elements are tested for where they come from."""
    tests = sum(
        loop.written[own] for own in loop.times if own.name in operations.BRANCHES and own is not loop.root
    )
    found: Amounts = {}
    for own, count in loop.times.items():
        if own is loop.root and loop.is_routine:
            found = total([found, _reduced(own)])
            continue
        name = _kind(own, tests > 1)
        if name:
            amount = _reduced_by(own, count) if own.name in operations.REDUCTIONS else count
            found[name] = found.get(name, 0.0) + amount
    read: dict[int, float] = {}
    moved = loop.root.made.item * loop.times[loop.root]
    for own, n, array in loop.reads():
        if own.name == operations.UPDATE and n == 0:
            in_place = _is_written_into(array.maker) and len(array.readers) == 1
            moved += 0 if in_place else 2 * array.bytes
        else:
            most = min(read_by(own, n, loop.times[own]), array.size)
            read[id(array)] = max(read.get(id(array), 0.0), array.item * most)
    if loop.root.name in operations.VIEWS and len(loop.times) == 1:
        return {}
    if loop.is_routine and not read:
        return {"start": 1.0}  # of repeated numbers, which is known
    return total([found, {"moved": moved + sum(read.values()), "start": 1.0}])


def _kind(own: Operation, tested: bool) -> str:
    if own.name in operations.REDUCTIONS:
        rank = len(own.inputs[0].shape)
        if own.name in operations.PLACES and not _stays_in_registers(own):
            return "place"
        return "row" if rank and rank - 1 in own.params.get("axes", ()) else "column"
    kind = _function(own)
    return "tested" if tested and kind == "cheap" else kind


def _stays_in_registers(own: Operation) -> bool:
    """Whether the places that are asked for are among so few elements side by side that XLA writes these out."""
    (axis,), shape = own.params["axes"], own.inputs[0].shape
    return axis == len(shape) - 1 and shape[axis] <= SIZES.places


def _function(own: Operation) -> str:
    """The kind of an operation that computes each element by itself; of complex numbers XLA computes a product without vectors, and an exponential by sines."""
    kind = _KINDS.get(own.name, "")
    if own.name in operations.PARTS or not any(a.is_complex for a in (*own.inputs, *own.outputs)):
        return kind
    return _OF_COMPLEX.get(own.name) or _OF_COMPLEX.get(kind, kind)


def _reduced(own: Operation) -> Amounts:
    """What the routine for reductions does: it takes runs of what is reduced side by side, or of what is kept, and badly a long one of all that is."""
    shape, axes = own.inputs[0].shape, own.params["axes"]
    rank = len(shape)
    along = rank - 1 in axes
    run, at = 1, rank
    while at and (at - 1 in axes) == along:
        at -= 1
        run *= shape[at]
    size = float(own.inputs[0].size)
    wide = not along and run > SIZES.wide and run == own.made.size
    return {"wide" if wide else "reduced": size, "run": size / max(1, run), "start": _STARTS}


def _reduced_by(own: Operation, count: float) -> float:
    return count * own.inputs[0].size / max(1, own.made.size)


def _is_written_into(maker: Operation | None) -> bool:
    return maker is not None and maker.name in (operations.UPDATE, "broadcast_in_dim", operations.APART)


def computed_once(own: Operation) -> Amounts:
    """What one operation does in any program, which computes each of its elements once."""
    if own.name in operations.FUSED:
        kind = "cheap" if own.name in operations.REDUCTIONS else _function(own)
        size = (own.inputs[0] if own.name in operations.REDUCTIONS else own.made).size
        return {kind: float(size)} if kind in _FUNCTIONS else {}
    return {name: amount for name, amount in of_routine(own).items() if name in _DONE_WELL}


def of_routine(own: Operation) -> Amounts:
    """What is no part of a loop."""
    name = next((n for n in _ROUTINES if own.name.startswith(n)), "")
    return total([moved_whole(own), _ROUTINES[name](own) if name else {"start": 1.0}])


def moved_whole(own: Operation) -> Amounts:
    """All that an operation reads and makes, in whole."""
    return {"moved": float(sum(array.bytes for array in (*own.inputs, *own.outputs)))}


def _product(own: Operation) -> Amounts:
    (left, right), (batch_left, batch_right) = own.params["dimension_numbers"]
    x, y = own.inputs[:2]
    inner, batch = (prod(x.shape[d] for d in dims) for dims in (left, batch_left))
    rows, columns = (max(1, a.size // max(1, inner * batch)) for a in (x, y))
    flops = 2.0 * batch * inner * rows * columns
    each = inner * rows * columns
    if batch > 1 and each <= SIZES.loop:
        work = {"small_product": flops}
    elif batch > 1 and inner < SIZES.inner and each < SIZES.product:
        work = {"called": float(batch)}
    else:
        of_vector = batch == 1 and min(rows, columns) == 1  # which a sum over windows may do in its place
        work = {"product": flops, "vector_row" if of_vector else "product_row": float(batch * rows)}
    laid_out = 0.0
    for array, over, shared in ((x, left, batch_left), (y, right, batch_right)):
        free = [d for d in range(len(array.shape)) if d not in over and d not in shared]
        orders = [*shared, *free, *over], [*shared, *over, *free]
        laid_out += array.size if all(order != sorted(order) for order in orders) else 0
    return total([work, {"turned": laid_out, "moved": 8 * laid_out, "start": 1.0}])


def _convolution(own: Operation) -> Amounts:
    spec = own.params["dimension_numbers"].rhs_spec
    kernel = own.inputs[1].shape
    features_out, features_in = (kernel[d] for d in spec[:2])
    if len(spec) == 3 and prod(kernel[d] for d in spec[2:]) == 1 and own.params["feature_group_count"] == 1:
        return _points(own)
    flops = 2.0 * own.made.size * prod(kernel[d] for d in spec[2:]) * features_in
    groups = own.params["feature_group_count"] * own.params["batch_group_count"]
    if groups > 1:
        kind = "group_convolution"
    elif len(spec) > 4:
        kind = "volume_convolution"
    else:
        few, many = sorted((features_in, features_out))
        spread = max(own.params["lhs_dilation"], default=1) > 1
        kind = "few_convolution" if few < SIZES.features or spread else "convolution"
        kind = "plane_convolution" if many < SIZES.features else kind
    return {kind: flops, "start": 3.0}


def _points(own: Operation) -> Amounts:
    """Single points along a line, of which XLA makes a product of matrices."""
    features = own.made.shape[own.params["dimension_numbers"].out_spec[1]]
    rows = own.made.size / max(1, features)
    features_in = own.inputs[1].size / max(1, features)
    return {"product": 2.0 * own.made.size * features_in, "product_row": rows, "start": 1.0}


def _windows(own: Operation) -> Amounts:
    return {"window": own.made.size * prod(own.params["window_dimensions"]), "start": 1.0}


def _winners(own: Operation) -> Amounts:
    each = prod(own.params["window_dimensions"]) / prod(own.params.get("window_strides", (1,)))
    return {"winner": own.inputs[0].size * each, "start": 1.0}


def _scattered(own: Operation) -> Amounts:
    positions, updates = own.inputs[1:3]
    rows = positions.size / max(1, positions.shape[-1] if positions.shape else 1)
    return {"scattered": float(updates.size), "scattered_row": max(1.0, rows), "start": 2.0}


def _cumulated(own: Operation) -> Amounts:
    levels = log2(max(2, own.inputs[0].shape[own.params["axis"]]))
    return {"scan": own.inputs[0].size * levels, "start": 2 * levels}


def _sorted(own: Operation) -> Amounts:
    return {
        "sort": own.inputs[0].size * log2(max(2, own.inputs[0].shape[own.params["dimension"]])),
        "start": 1.0,
    }


def _transformed(own: Operation) -> Amounts:
    size = max(own.inputs[0].size, own.made.size)
    return {"fft": size * log2(max(2, prod(own.params["fft_lengths"]))), "start": 1.0}


_ROUTINES: dict[str, Callable[[Operation], Amounts]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "reduce_window": _windows,
    "select_and_": _winners,
    "scatter": _scattered,
    "cum": _cumulated,
    "sort": _sorted,
    "fft": _transformed,
}
