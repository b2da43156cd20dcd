"""What loops and routines do, in the units of a platform's paces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from math import log2, prod

from jaxte.bridge.price import kinds
from jaxte.bridge.price.loops import Loop, read_by
from jaxte.bridge.price.operations import Operation
from jaxte.lower.cost.paces import Paces

Amounts = dict[str, float]
_SMALL_PRODUCT = 4096  # multiplications of a matrix product, up to which one of many takes a loop of its own
_FEW_FEATURES = 4
_NAMES = frozenset(Paces.__dataclass_fields__)


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
        loop.written[own] for own in loop.times if own.name in kinds.BRANCHES and own is not loop.root
    )
    found: Amounts = {}
    for own, count in loop.times.items():
        name = _kind(own, tests > 1)
        if name:
            found[name] = found.get(name, 0.0) + _elements(own, count)
    read: dict[int, float] = {}
    copied = 0.0
    for own, n, array in loop.reads():
        if own.name == kinds.UPDATE and n == 0:
            copied += 0 if _is_written_into(array.maker) and len(array.readers) == 1 else 2 * array.bytes
        else:
            read[id(array)] = max(
                read.get(id(array), 0.0), array.item * min(read_by(own, n, loop.times[own]), array.size)
            )
    if loop.root.name in kinds.VIEWS and len(loop.times) == 1:
        return {}
    moved = sum(read.values()) + copied + loop.root.made.item * loop.times[loop.root]
    return total([found, {"moved": moved, "start": 1.0}])


def _kind(own: Operation, tested: bool) -> str:
    name = own.name
    if name in kinds.CHEAP:
        return "tested" if tested else "cheap"
    if name in kinds.REDUCTIONS:
        rank = len(own.inputs[0].shape)
        return "row" if rank and rank - 1 in own.params.get("axes", ()) else "column"
    named = (
        (kinds.DIVISIONS, "division"),
        (kinds.EXPONENTIALS, "exponential"),
        (kinds.POWERS, "power"),
        (kinds.JOINS | {"pad"}, "branch"),
        (frozenset(["gather"]), "gathered"),
        (frozenset(["transpose"]), "turned"),
    )
    return next((kind for names, kind in named if name in names), "")


def _elements(own: Operation, count: float) -> float:
    return count * own.inputs[0].size / max(1, own.made.size) if own.name in kinds.REDUCTIONS else count


def _is_written_into(maker: Operation | None) -> bool:
    return maker is not None and maker.name in (kinds.UPDATE, "broadcast_in_dim", kinds.APART)


def of_routine(own: Operation) -> Amounts:
    """What is no part of a loop."""
    name = next((n for n in _ROUTINES if own.name.startswith(n)), "")
    moved = float(sum(a.bytes for a in (*own.inputs, *own.outputs)))
    return _ROUTINES[name](own, moved) if name else {"moved": moved, "start": 1.0}


def _product(own: Operation, moved: float) -> Amounts:
    (left, right), (batch_left, batch_right) = own.params["dimension_numbers"]
    x, y = own.inputs[:2]
    inner, batch = (prod(x.shape[d] for d in dims) for dims in (left, batch_left))
    rows, columns = (max(1, a.size // max(1, inner * batch)) for a in (x, y))
    flops = 2.0 * batch * inner * rows * columns
    small = batch > 1 and inner * rows * columns <= _SMALL_PRODUCT
    laid_out = 0.0
    for array, over, shared in ((x, left, batch_left), (y, right, batch_right)):
        free = [d for d in range(len(array.shape)) if d not in over and d not in shared]
        orders = [*shared, *free, *over], [*shared, *over, *free]
        laid_out += array.size if all(order != sorted(order) for order in orders) else 0
    work = {"small_product" if small else "product": flops, "moved": moved, "start": 1.0}
    return total([work, {"turned": laid_out, "moved": 8 * laid_out}])


def _convolution(own: Operation, moved: float) -> Amounts:
    spec = own.params["dimension_numbers"].rhs_spec
    kernel = own.inputs[1].shape
    features_out, features_in = (kernel[d] for d in spec[:2])
    flops = 2.0 * own.made.size * prod(kernel[d] for d in spec[2:]) * features_in
    groups = own.params["feature_group_count"] * own.params["batch_group_count"]
    if groups > 1:
        kind = "group_convolution"
    elif len(spec) > 4:
        kind = "volume_convolution"
    else:
        few = min(features_in, features_out) < _FEW_FEATURES
        kind = "few_convolution" if few or max(own.params["lhs_dilation"], default=1) > 1 else "convolution"
    return {kind: flops, "moved": moved, "start": 3.0}


def _windows(own: Operation, moved: float) -> Amounts:
    return {"window": own.made.size * prod(own.params["window_dimensions"]), "moved": moved, "start": 1.0}


def _winners(own: Operation, moved: float) -> Amounts:
    each = prod(own.params["window_dimensions"]) / prod(own.params.get("window_strides", (1,)))
    return {"winner": own.inputs[0].size * each, "moved": moved, "start": 1.0}


def _scattered(own: Operation, moved: float) -> Amounts:
    array, positions, updates = own.inputs[:3]
    rows = positions.size / max(1, positions.shape[-1] if positions.shape else 1)
    return {
        "scattered": float(updates.size),
        "scattered_row": max(1.0, rows),
        "moved": 2.0 * array.bytes,
        "start": 2.0,
    }


def _cumulated(own: Operation, moved: float) -> Amounts:
    levels = log2(max(2, own.inputs[0].shape[own.params["axis"]]))
    return {"scan": own.inputs[0].size * levels, "moved": moved, "start": 2 * levels}


def _sorted(own: Operation, moved: float) -> Amounts:
    return {
        "sort": own.inputs[0].size * log2(max(2, own.inputs[0].shape[own.params["dimension"]])),
        "start": 1.0,
    }


def _transformed(own: Operation, moved: float) -> Amounts:
    size = max(own.inputs[0].size, own.made.size)
    return {"fft": size * log2(max(2, prod(own.params["fft_lengths"]))), "start": 1.0}


_ROUTINES: dict[str, Callable[[Operation, float], Amounts]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "reduce_window": _windows,
    "select_and_": _winners,
    "scatter": _scattered,
    "cum": _cumulated,
    "sort": _sorted,
    "fft": _transformed,
}
