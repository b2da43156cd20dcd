"""How large the tensors of a graph and the intermediates of a body are, and what it costs to compute one again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxte.algebra.product import product_of, split_outer
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, conjuncts
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FAR_FEWER, FEW, MEMORY_WORTH, MOST_LARGER, MOST_TERMS, NARROW
from jaxte.lang.walk import free_axes, postorder, reads_of, reductions
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import general_work
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.cost.steps import is_chosen, is_in_long_rows
from jaxte.lower.cost.work import Work, bytes_of, expensive_calls, points
from jaxte.lower.forms.band.recognise import band_work, recognise_band
from jaxte.lower.forms.band.spec import BandSpec
from jaxte.lower.forms.data.recognise import recognise_scatter
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

TILES = "tiles"
KERNEL = "kernel"  # tiles, each of them a block of a Pallas kernel
IN_STEPS = "steps"  # a loop over all of a result for each position that is reduced
GENERAL = "general"


def work_of(tensor: Compute) -> Work:
    """The work of all of ``tensor``: that of a band, where it is one, else that of the general path."""
    reduces = reductions(tensor.body)
    total = Work(
        stream=2 * dtypes.width(tensor.dtype) * points(tensor.axes),
        transcendental=expensive_calls([tensor.body]) * points(tensor.axes) if not reduces else 0,
        kernel=1,
    )
    for node in reduces:
        band = recognise_band(tensor.axes, node)
        total = total + (band_work(band) if isinstance(band, BandSpec) else general_work(tensor.axes, node))
    return total


def inner_bytes(body: Expr, few: int = 1, columns: int = 0, chosen: bool = False, fused: bool = False) -> int:
    """The largest array that the reductions of ``body`` evaluate before they reduce it.

    That are the operands of a sum of products, and what an expression uses more than once; the rest is fused. Dimensions of at
    most ``few`` points do not count in operands: those are evaluated one after the other. What is summed column by column, up to ``columns`` of
    them (see ``rules/by_columns.py``), is no array at all.

    Args:
        chosen: whether what is reduced of choices is an array of all points, too.
        fused: whether what is computed over all axes of a product, or used more than once, is fused with the sum.
    """
    largest = 0
    for node in postorder(body):
        if not isinstance(node, Reduce):
            continue
        if chosen and is_written(node):
            largest = max(largest, _bytes_over(_axes_of(node), node.dtype))
        again = [] if fused else _used_twice(node)
        sizes = [_bytes_over(free_axes(expr), expr.dtype) for expr in again]
        if node.is_sum:
            _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
            if len({frozenset(free_axes(f.expr)) for f in inner}) > 1:
                made = [f.expr for f in inner if not isinstance(f.expr, (Read, Const, Axis))]
                made = [e for e in made if not _has_columns(e, [f.expr for f in inner], node.axes, columns)]
                if fused:
                    every = {a for f in inner for a in free_axes(f.expr)}
                    made = [e for e in made if set(free_axes(e)) != every]
                sizes += [_bytes_over([a for a in free_axes(e) if points([a]) > few], e.dtype) for e in made]
        largest = max([largest, *sizes])
    return largest


def is_written(node: Reduce) -> bool:
    """Whether XLA on the CPU writes to memory what ``node`` reduces, as it does what is chosen by conditions, or is better told to: it is no prefix, no scatter and no product of matrices."""
    if not (is_chosen(node) or is_in_long_rows(node)):
        return False
    product = product_of(node.exprs[0], conjuncts(node.where))
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    values = [f for f in split_outer(product.factors, node.axes)[1] if not f.guard]
    if node.is_sum and len({frozenset(free_axes(f.expr)) for f in values}) > 1:
        return False  # a product of matrices, of which one is masked
    rows = {a for t in tests for a in free_axes(t)}.difference(node.axes)
    columns = {a for f in values for a in free_axes(f.expr)}.difference(node.axes)
    is_masked = bool(tests) and min(points(rows - columns), points(columns - rows)) >= NARROW
    axes = tuple(free_axes(node))
    return not is_masked and all(
        isinstance(r(axes, node), Refusal) for r in (recognise_scan, recognise_scatter)
    )


def _axes_of(node: Reduce) -> dict[Axis, None]:
    return dict.fromkeys(a for e in (*node.exprs, node.where) for a in free_axes(e))


def _has_columns(wide: Expr, factors: Sequence[Expr], reduced: Sequence[Axis], most: int) -> bool:
    """Whether ``wide`` depends on a kept axis of few points, and another factor on all of its axes but that one; what is costly is computed once."""
    if expensive_calls([wide]):
        return False
    own = set(free_axes(wide))
    others = [set(free_axes(e)) for e in factors if e is not wide]
    alone = [a for a in own if not among(a, reduced) and not any(a in other for other in others)]
    return any(points([a]) <= most and any(other == own - {a} for other in others) for a in alone)


def _used_twice(node: Reduce) -> list[Expr]:
    """The operations below a reduction that several others use."""
    uses: dict[Expr, int] = {}
    for below in postorder(*node.exprs):
        for child in below.children:
            uses[child] = uses.get(child, 0) + 1
    return [e for e, count in uses.items() if count > 1 and isinstance(e, Call) and not e.weak]


def _bytes_over(axes: Iterable[Axis], dtype: str) -> int:
    own = list(axes)
    return dtypes.width(dtype) * points(own) if all(known(a.extent) is not None for a in own) else 0


def overlaps(tensor: Compute) -> bool:
    """Whether an index mixes a reduced axis with another one, as windows and convolutions do."""
    nodes = reductions(tensor.body)
    read = ((free_axes(i), node.axes) for node in nodes for r in reads_of(*node.exprs) for i in r.indices)
    return any(len(free) > 1 and any(a in free for a in axes) for free, axes in read)


def wanted(policy: Policy, names: Iterable[str]) -> str | None:
    """The form that the user named for a tensor of one of these names."""
    for name in names:
        if name in policy.forms:
            return policy.forms[name]
    return policy.forms.get(ANY)


class Large:
    """Which intermediates are too large to exist in whole.

    A tensor is large if it is above the memory budget, or above the cache and ``MOST_LARGER`` times as large as each tensor
    that it is made from (through other large ones). Windows and convolutions are large for a budget only: their rows overlap.
    """

    def __init__(self, order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> None:
        self.policy = policy
        self.sources: dict[Tensor, frozenset[Tensor]] = {}
        self.tensors: dict[Compute, None] = {}
        readers = _names_of_readers(order)
        for tensor in order:
            if tensor in given:
                continue
            own: set[Tensor] = set()
            for source in tensor.inputs:
                own |= self.sources[source] if source in self.tensors else {source}
            self.sources[tensor] = frozenset(own)
            if isinstance(tensor, Compute) and self._is_large(tensor, [tensor.name, *readers[tensor]]):
                self.tensors[tensor] = None

    def _is_large(self, tensor: Compute, names: Sequence[str]) -> bool:
        size, policy = bytes_of(tensor), self.policy
        if size is None or not tensor.axes:
            return False
        if self.is_over_budget(tensor):
            return True
        form = wanted(policy, names)
        if form in (TILES, KERNEL):
            return True
        if form == GENERAL or TILES in policy.without:
            return False
        largest = max((bytes_of(t) or 0 for t in self.sources[tensor]), default=0)
        small = size <= policy.rates.cache or size < MOST_LARGER * largest
        return not small and not overlaps(tensor)

    def is_over_budget(self, tensor: Tensor) -> bool:
        size, budget = bytes_of(tensor), self.policy.max_memory
        return size is not None and budget is not None and size > budget

    def has_to_be_tiled(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` must not exist in whole, whatever it costs to compute it again."""
        return self.is_over_budget(tensor) or wanted(self.policy, [tensor.name]) in (TILES, KERNEL)

    def again(self, tensor: Tensor, times: int) -> float:
        """Seconds to compute ``tensor`` so many times more, less what its memory is worth.

        That is ``MEMORY_WORTH`` times as long as it takes to write it and to read it back.
        """
        rates = self.policy.rates
        if not isinstance(tensor, Compute):
            return 0.0
        work = replace(work_of(tensor), stream=0, temporaries=0)  # in a tile it stays in the cache
        return times * work.seconds(rates) - 2 * MEMORY_WORTH * (bytes_of(tensor) or 0) / rates.spill


def _names_of_readers(order: Sequence[Tensor]) -> dict[Tensor, list[str]]:
    found: dict[Tensor, list[str]] = {t: [] for t in order}
    for tensor in order:
        for source in tensor.inputs:
            found.setdefault(source, []).append(tensor.name)
    return found


def has_large_operand(tensor: Compute, policy: Policy, in_tiles: bool) -> bool:
    """Whether a sum of ``tensor`` would evaluate an operand that is too large to exist."""
    form = wanted(policy, [tensor.name])
    columns = MOST_TERMS if policy.facts.copies_for_products and not in_tiles else 0
    chosen = policy.facts.lays_out_sums
    fused = policy.facts.fuses_products
    few = FEW if in_tiles else 1
    size = inner_bytes(tensor.body, few, columns, chosen, fused)
    budget = policy.max_memory
    if overlaps(tensor) and form != KERNEL:
        return False
    if budget is not None and size > budget:
        return True
    if form == GENERAL or TILES in policy.without:
        return False
    if form in (TILES, KERNEL):
        return bool(tensor.axes)
    sources = max(bytes_of(t) or 0 for t in (*tensor.inputs, tensor))
    if size > policy.rates.cache:
        return size >= MOST_LARGER * sources
    # What is chosen by conditions, and then reduced, XLA on the CPU writes to memory: from a quarter of the cache on.
    is_chosen = chosen and size > inner_bytes(tensor.body, few, columns, False, fused)
    return is_chosen and size > 2 * block_bytes(policy) and size >= FAR_FEWER * sources


def block_bytes(policy: Policy) -> float:
    """Bytes that one tensor of a tile may take: little enough for the cache, enough to be worth starting the operations."""
    rates = policy.rates
    limit = max(rates.cache / 8, 10 * rates.spill / rates.kernel)
    return limit if policy.max_memory is None else min(limit, policy.max_memory)
