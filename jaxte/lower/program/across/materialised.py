"""Tensors that exist in memory before they are read, since XLA would compute them again for each slice or copy of an element that reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cache, partial
from math import prod

from jaxte.autodiff.terms.shared import Shared
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW, FEW_POSITIONS, MANY_OPERATIONS, WORTH_A_TENSOR
from jaxte.lang.operators import COMPARISONS, SUBTRACT
from jaxte.lang.walk import (
    all_of,
    depends_on,
    free_axes,
    postorder,
    reads_data,
    reads_of,
    reductions,
    substitute,
)
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.work import expensive_calls
from jaxte.lower.program.across.padded_once import (
    are_several,
    by_tensor,
    calls_in,
    has_loops,
    is_cheap,
    mixed_axes,
    paddings,
    shifted_axes,
)
from jaxte.lower.program.across.stencils import leads_to_stencils, stencils_behind_cheap_ones
from jaxte.planning.indices.lines import Line
from jaxte.planning.indices.shared_elements import is_kept
from jaxte.sets.intervals import known
from jaxte.sets.piecewise_affine import is_repeated
from jaxte.tensors.copies import Extended
from jaxte.tensors.tensor import Compute, Tensor


def materialised(order: Iterable[Tensor], returned: frozenset[Tensor]) -> frozenset[Tensor]:
    """The tensors among those computed in ``order`` that are to exist in memory before they are read.

    These are the ones that take more than a few operations, or are put together of pieces, and that another one reads at
    several places, or a row of for all others, unless it surrounds them with zeros, which makes them exist; and windows of many positions, or products of
    several terms, that several read, the caller of what is ``returned`` among them, or a loop that reduces. Where each slice is of elements of its own, none is computed twice, so only
    what is expensive is kept out of the loop over the slices.
    """
    order = list(order)
    found = _windows_read_again(order, returned) | _repeated(order) | _summed_in_blocks(order)
    found |= (
        _operands_of_several(order, returned) | _of_differences_in_common(order) | _summed_term_by_term(order)
    )
    rows: set[Tensor] = set()
    leads: dict[Tensor, bool] = {}
    for reader in order:
        if not isinstance(reader, Compute):
            continue
        found.update(t for t in reader.inputs if isinstance(t, (Line, Shared)))
        padded, shifted, summed = paddings(reader.body), shifted_axes(reader.body), _summed(reader.body)
        # for a body that reads many tensors, once for all of them
        mixed = cache(partial(mixed_axes, reader.body))
        if leads_to_stencils(reader, leads):
            found |= stencils_behind_cheap_ones(reader) - padded.keys()
        for tensor, reads in by_tensor(reader.body).items():
            if not isinstance(tensor, Compute):
                continue
            if any(_is_repeated_row(read, reader.axes) for read in reads):
                rows.add(tensor)
            if tensor in padded or not are_several(reads, shifted):
                continue
            if summed.issuperset(reads):
                continue
            if not _is_each_once(reads, mixed()) or has_loops(tensor.body):
                found.add(tensor)
    return _not_cheap(order, found, rows)


def _not_cheap(order: Sequence[Tensor], found: Set[Tensor], rows: Set[Tensor]) -> frozenset[Tensor]:
    """Those of ``found`` that take more than a few operations, and of ``rows``, of which a row is read again and again, that take many.

    Operations of what a tensor is fused with are its own too: edges are set one after the other.
    """
    taken: dict[Tensor, int] = {}  # for an element, where it is not computed before
    kept: set[Tensor] = set()
    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        in_chain = calls_in(tensor.body) + sum(taken.get(r.tensor, 0) for r in reads_of(tensor.body))
        gathered = is_kept(tensor) and reads_data(tensor.body)
        cheap = is_cheap(tensor.body) and in_chain <= WORTH_A_TENSOR and not gathered
        read_again = tensor in rows and in_chain > MANY_OPERATIONS
        if has_loops(tensor.body):
            kept.update({tensor} & found)
        elif read_again or (tensor in found and (isinstance(tensor, Extended) or not cheap)):
            kept.add(tensor)
        else:
            taken[tensor] = in_chain
    return frozenset(kept)


def _windows_read_again(order: Sequence[Tensor], returned: frozenset[Tensor]) -> set[Tensor]:
    """The reductions over windows of many positions, and written products, that more than one tensor reads, by way of cheap ones too."""
    times: Counter[Tensor] = Counter(returned)
    for reader in reversed(order):
        if isinstance(reader, Compute):
            again = max(times[reader], 1) if is_cheap(reader.body) else 1
            times.update(dict.fromkeys(reader.inputs, again))
    many = (t for t in order if isinstance(t, Compute) and times[t] > 1)
    # Taps of a window, from which on XLA is kept from computing it again for each reader: 5 x 5 and 7 x 7 gain 1.5 and 2, 3 x 3 nothing.
    return {t for t in many if _taps(t.body) >= MANY_OPERATIONS or _is_short_product(t.body)}


def _operands_of_several(order: Sequence[Tensor], returned: frozenset[Tensor]) -> set[Tensor]:
    """Functions that several products of matrices read: each product is a call, before which XLA would compute them again, laid out as it wants them.

    What is returned, a residual of the backward pass, is read by a product of that, too.
    """
    times: Counter[Tensor] = Counter(returned)
    for reader in order:
        nodes = postorder(reader.body) if isinstance(reader, Compute) else []
        products = [n for n in nodes if isinstance(n, Reduce) and is_contraction(n)]
        times.update(read.tensor for n in products for read in reads_of(*n.exprs))
    return {t for t, n in times.items() if n > 1 and isinstance(t, Compute) and expensive_calls([t.body])}


def _of_differences_in_common(order: Sequence[Tensor]) -> set[Tensor]:
    """Sums that are written out whose terms are of the same differences of pairs, as distances and the products of their rates are, and those of their shape.

    XLA fuses no more terms with what reads the sums, and writes the difference of each feature as an array: 16 for two sums over 8 features.
    """
    readers: dict[Expr, set[Tensor]] = {}
    short: list[Compute] = []
    for tensor in order:
        node = tensor.body if isinstance(tensor, Compute) else None
        if isinstance(tensor, Compute) and isinstance(node, Reduce) and _is_short(node):
            short.append(tensor)
            numbers = {a: Const(n, "int32") for n, a in enumerate((*tensor.axes, *node.axes))}
            pairs = [e for e in all_of(Call, *node.exprs) if _is_of_pairs(e, node)]
            for own in pairs:
                readers.setdefault(substitute(own, numbers), set()).add(tensor)
    shapes = {t.shape for several in readers.values() if len(several) > 1 for t in several}
    return {t for t in short if t.shape in shapes}


def _summed_term_by_term(order: Sequence[Tensor]) -> set[Tensor]:
    """Sums that are written out, of several terms, which a loop that reduces reads, by way of elementwise tensors too.

    XLA on the CPU fuses them with the reduction, in which nothing is done in vectors where an element takes more than a few operations: five terms for
    each of 1,000 x 8 elements take 3 times, of 1,000 x 1,000 1.6 times what an array and its sum take, four 1.1 times.
    """
    found: set[Tensor] = set()
    seen: set[Tensor] = set()
    for reader in order:
        loops = [n for n in reductions(reader.body) if _is_loop(n)] if isinstance(reader, Compute) else []
        stack = [read.tensor for n in loops for read in reads_of(*n.exprs)]
        while stack:
            tensor = stack.pop()
            if not isinstance(tensor, Compute) or tensor in seen:
                continue
            seen.add(tensor)
            if isinstance(tensor.body, Reduce) and _is_short(tensor.body):
                found.add(tensor)
            elif not tensor.body.reduces:
                stack += tensor.inputs
    return found


def _is_loop(node: Reduce) -> bool:
    """Whether it is neither written out nor a product of matrices, for which what it reads is an array."""
    extents = (known(as_expr(a.extent)) or FEW_POSITIONS + 1 for a in node.axes)
    return prod(extents) > FEW_POSITIONS and not is_contraction(node)


def _is_of_pairs(difference: Call, node: Reduce) -> bool:
    """Whether it is a difference, for each point that is summed, of what depends on different axes of the result."""
    if difference.op is not SUBTRACT or not all(depends_on(a, node.axes) for a in difference.args):
        return False
    sides = [{a for a in free_axes(side) if not among(a, node.axes)} for side in difference.args]
    return bool(sides[0] - sides[1] and sides[1] - sides[0])


def _is_short_product(root: Expr) -> bool:
    """Whether ``root`` is a product of matrices of so few terms that it is written out, and fused, but more than its readers should compute again."""
    if not isinstance(root, Reduce) or not is_contraction(root):
        return False
    return _is_short(root)


def _is_short(node: Reduce) -> bool:
    """Whether it is a sum that is written out, of several terms."""
    return node.is_sum and FEW < prod(known(as_expr(a.extent)) or 0 for a in node.axes) <= FEW_POSITIONS


def _repeated(order: Sequence[Tensor]) -> set[Tensor]:
    """What is computed for tensors of which each element is read several times in a row, ``x[i // 2]``, by way of cheap ones too.

    Where it is dear, which it would be as many times for each level of repeats.
    """
    found: set[Tensor] = set()
    seen: set[Tensor] = set()
    for reader in order:
        if not isinstance(reader, Compute):
            continue
        stack = [read.tensor for read in reads_of(reader.body) if is_repeated(read.indices)]
        while stack:
            tensor = stack.pop()
            if not isinstance(tensor, Compute) or tensor in seen:
                continue
            seen.add(tensor)
            if is_cheap(tensor.body):
                stack += tensor.inputs
            elif _is_dear(tensor.body):
                found.add(tensor)
    return found


def _is_dear(root: Expr) -> bool:
    """Whether an element takes a function that is a loop, repeated elements, or a sum over a few positions, which XLA makes no loop of its own.

    Places of maxima and how many share one, comparisons for each position, are as well found again: 2 x 2 pools lose a third where they are kept.
    """
    sums = [n for n in reductions(root) if n.is_sum]
    sums = [
        n for n in sums if not any(isinstance(e, Call) and e.op in COMPARISONS for e in postorder(*n.exprs))
    ]
    few = any(
        prod(known(as_expr(a.extent)) or MANY_OPERATIONS for a in n.axes) < MANY_OPERATIONS for n in sums
    )
    return few or bool(expensive_calls([root])) or any(is_repeated(r.indices) for r in reads_of(root))


def _summed_in_blocks(order: Sequence[Tensor]) -> set[Tensor]:
    """What prefixes are taken of, where it is a function that is a loop, or a prefix itself.

    Each element is met in its block's sum, and again by all behind it in the block. Prefixes of a few positions are written out, and fused: of one axis after
    the other, each would be computed for every element of all axes.
    """
    found: set[Tensor] = set()
    for reader in order:
        below = {read.tensor for n in _prefixes(reader) for read in reads_of(*n.exprs)}
        found |= {
            t
            for t in below
            if isinstance(t, Compute) and (expensive_calls([t.body]) or any(map(_is_one_sided, _prefixes(t))))
        }
    return found


def _prefixes(tensor: Tensor) -> list[Reduce]:
    nodes = postorder(tensor.body) if isinstance(tensor, Compute) else []
    return [n for n in nodes if isinstance(n, Reduce) and _is_prefix(n)]


def _is_one_sided(node: Reduce) -> bool:
    """Whether it has one bound for each of its axes; bands have two."""
    return len([c for c in conjuncts(node.where) if depends_on(c, node.axes)]) == len(node.axes)


def _is_prefix(node: Reduce) -> bool:
    """Whether bounds move with the result, but no index does: a window's are where it leaves its tensor."""
    outer = [a for a in free_axes(node.where) if not among(a, node.axes)]
    indices = [i for read in reads_of(*node.exprs) for i in read.indices]
    return bool(outer) and not any(depends_on(i, outer) and depends_on(i, node.axes) for i in indices)


def _is_repeated_row(read: Read, axes: Sequence[Axis]) -> bool:
    """Whether ``read`` takes a row of its tensor, the same for each value of one of ``axes``: fused with its reader, the row is computed for each."""
    pairs = zip(read.tensor.shape, read.indices, strict=True)
    is_row = any(isinstance(index, Const) and known(as_expr(extent)) != 1 for extent, index in pairs)
    return is_row and not set(axes) <= {a for i in read.indices for a in free_axes(i)}


def _taps(root: Expr) -> int:
    """How many positions of a tensor one element of ``root`` reads, which its neighbours read too."""
    return prod(known(as_expr(a.extent)) or 1 for a in shifted_axes(root))


def _summed(root: Expr) -> frozenset[Expr]:
    """The reads below ``root`` that are all that a sum is of, over axes of their own: XLA writes what several sums read, and computes it once."""
    found = [node.exprs[0] for node in reductions(root) if node.where is TRUE]
    return frozenset(r for r in found if isinstance(r, Read) and all(isinstance(i, Axis) for i in r.indices))


def _is_each_once(reads: Sequence[Read], mixed: frozenset[Axis]) -> bool:
    """Whether ``reads`` are one, at an axis for each index, all of ``mixed`` among them: no element is in two slices."""
    one, *others = {read.indices for read in reads}
    return not others and all(isinstance(i, Axis) for i in one) and mixed <= set(one)
