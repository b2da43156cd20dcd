"""The building blocks of differentiation: what one tensor passes on to one of its immediate inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.readers import free_of_guards, guarded_by_sums
from jaxte.autodiff.rules.seeds import Adjoint, Origin, contributions_of_reduction, seed_of
from jaxte.autodiff.sums.cheap import allowed, cheaper, merge, taken, typed, within_budget, zero_of
from jaxte.autodiff.terms.beside import same_elements
from jaxte.autodiff.terms.guards import guard
from jaxte.autodiff.terms.scalar import Contribution, contributions
from jaxte.autodiff.terms.shared import points_of, with_shared
from jaxte.lang import dtypes
from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import DifferentiationError, DtypeError
from jaxte.lang.expr import Axis, Expr, Read, Reduce, as_expr, call, cast, conjunction
from jaxte.lang.limits import MARGIN
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import all_of, reads_of, substitute
from jaxte.meaning.cost import own_points
from jaxte.sets.intervals import known
from jaxte.tensors.copies import Extended, piecewise_indices, with_copies
from jaxte.tensors.reducers import builtin_reducer, number_of
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import axis_names_of
from jaxte.tensors.tensor import Compute, Extern, Tensor, new_axes

Way = Callable[[Contribution, Sequence[Axis]], list[Expr]]


def zeros(name: str, shape: Sequence[Extent], dtype: str) -> Compute:
    """A tensor of zeros."""
    return Compute(name, new_axes(tuple(shape)), zero_of(dtype))


def zero_adjoint(tensor: Tensor, prefix: Sequence[Extent]) -> Compute:
    """The adjoint of a tensor that nothing flows into, of shape ``prefix + tensor.shape``."""
    names = [*(f"p{n}" for n in range(len(prefix))), *axis_names_of(tensor)]
    return Compute(f"d{tensor.name}", new_axes((*prefix, *tensor.shape), names), zero_of(tensor.dtype))


def identity_head(output: Tensor) -> Compute:
    """The head that makes an adjoint a Jacobian: one where both halves of the indices are equal."""
    own = axis_names_of(output)
    first, second = new_axes(output.shape, [f"{n}'" for n in own]), new_axes(output.shape, own)
    same = conjunction([call(EQUAL, a, b) for a, b in zip(first, second, strict=True)])
    return Compute(f"identity_{output.name}", (*first, *second), guard(same, number_of(1, output.dtype)))


@wants_arguments
def diff_building_block(
    output: Tensor, input: Tensor, head: Tensor, missing_ok: bool = False
) -> Compute | Extern | None:
    """``head`` times the Jacobian of ``output`` with respect to its immediate input ``input``.

    ``result[p, a] = sum over o of head[p, o] * d output[o] / d input[a]``, with the sums over zeros eliminated.

    Args:
        output: a computed tensor.
        input: a tensor that the body of ``output`` reads.
        head: shape ``prefix + output.shape``.

    Returns:
        A tensor of shape ``prefix + input.shape``.

    Raises:
        DifferentiationError: ``output`` does not read ``input``.
    """
    for what, tensor in (("output", output), ("input", input), ("head", head)):
        one_of_type(tensor, Tensor, f"the {what} of te.diff_building_block", "a Tensor")
    if isinstance(output, Extern):
        return _extern_block(output, input, head)
    solved = _solved_block(output, input, head, missing_ok)
    if solved is None or head.ndim > output.ndim or not isinstance(output, Compute):
        return solved
    copied = _block_through_copies(output, input, head, solved)
    best = solved if copied is None else copied
    if own_points(output) is None or taken(best, output, head) <= allowed(output, input):
        return best
    added = _solved_block(output, input, head, missing_ok, cheaper)
    assert added is not None
    return min((best, solved, added), key=lambda part: taken(part, output, head))


def _solved_block(
    output: Tensor, input: Tensor, head: Tensor, missing_ok: bool, way: Way = within_budget
) -> Compute | None:
    """The summand with every read solved for the points at which it hits an element, or written in another ``way``."""
    found = contributions_to(output, input, head, missing_ok)
    if found is None:
        return None
    prefix, parts = found
    assert isinstance(output, Compute)
    targets = target_axes(output, input, prefix)
    if not prefix:
        wide = [axis for axis in output.axes if known(axis.extent) != 1]
        parts = with_shared(parts, points_of(parts, wide), f"shared_{output.name}")
    terms = [term for part in parts for term in way(part, targets)]
    body = typed(collect(terms), input.dtype)
    origin = Origin(output, input, head)
    return Adjoint(f"d{input.name}", (*prefix, *targets), body, [head], [origin])


def _block_through_copies(output: Compute, input: Tensor, head: Tensor, solved: Compute) -> Compute | None:
    """The summand that adds up what copies of ``input`` with continued ends receive; None where no read has one, or none is needed."""
    reads = [r for r in reads_of(output.body) if r.tensor is input]
    piecewise = [index for read in reads for index in piecewise_indices(read).values()]
    points, allowed = own_points(solved), own_points(output)
    if not piecewise or points is None or allowed is None:
        return None
    if points <= MARGIN * allowed and all(index.straight for index in piecewise):
        return None
    copied = with_copies(output.body, lambda read: read.tensor is input, {})
    assert copied is not None
    straight = Compute(output.name, output.axes, copied.body)
    same_elements(straight, output)
    adjoints: dict[Tensor, list[Tensor]] = {input: []}
    for tensor, source in ((straight, head), *((copy, None) for copy in reversed(copied.copies))):
        own = source if source is not None else _sum_of(adjoints[tensor], tensor)
        for read in tensor.inputs:
            if read is input or isinstance(read, Extended):
                part = _solved_block(tensor, read, own, False)
                assert part is not None
                adjoints.setdefault(read, []).append(_with_value_of(part, straight, output))
    # no origin of its own: it reads the adjoints of the copies, each of which knows its own derivative for the head
    total = _sum_of(adjoints[input], input)
    return Adjoint(total.name, total.axes, total.body, [total])


def _sum_of(parts: Sequence[Tensor], tensor: Tensor) -> Compute:
    merged = merge(tensor, [], parts, ())
    assert isinstance(merged, Compute)
    return merged


def _with_value_of(part: Compute, straight: Compute, output: Compute) -> Compute:
    """``part`` with reads of ``output``, which exists, in place of those of ``straight``, which has the same elements."""
    table: dict[Expr, Expr] = {
        read: Read(output, read.indices) for read in reads_of(part.body) if read.tensor is straight
    }
    return Adjoint(part.name, part.axes, substitute(part.body, table), [part]) if table else part


def jacobian(output: Tensor, input: Tensor, optimize: bool = True) -> Compute:
    """The Jacobian of ``output`` with respect to its immediate input ``input``; see ``te.jacobian``."""
    for what, tensor in (("output", output), ("input", input)):
        one_of_type(tensor, Tensor, f"the {what} of te.jacobian", "a Tensor")
    head = identity_head(output)
    if optimize:
        block = diff_building_block(output, input, head)
        assert isinstance(block, Compute)
        return block
    found = contributions_to(output, input, head, missing_ok=False)
    assert found is not None
    prefix, parts = found
    assert isinstance(output, Compute)
    targets = target_axes(output, input, prefix)
    body = collect([_definition(part, targets) for part in parts])
    return Compute(f"d{input.name}", (*prefix, *targets), typed(body, input.dtype))


def _definition(part: Contribution, targets: Sequence[Axis]) -> Expr:
    """The contribution as the sum over all points, most of them zero."""
    assert isinstance(part.read, Read)
    hits = [call(EQUAL, index, target) for index, target in zip(part.read.indices, targets, strict=True)]
    where = conjunction([part.where, *hits])
    value = cast(part.value, part.read.dtype)
    if not part.axes:
        return guard(where, value)
    return Reduce(builtin_reducer("sum", value.dtype), (value,), part.axes, where)


def contributions_to(
    output: Tensor, input: Tensor, head: Tensor, missing_ok: bool
) -> tuple[tuple[Axis, ...], list[Contribution]] | None:
    """The axes of the head's prefix, and what each read of ``input`` receives; None where nothing can flow, if that is ok."""
    if not isinstance(output, Compute):
        raise DifferentiationError(
            f"{output.name} is an input of the graph; it does not depend on {input.name}"
        )
    if not any(t is input for t in output.inputs):
        if missing_ok:
            return None
        names = ", ".join(t.name for t in output.inputs) or "nothing"
        raise DifferentiationError(
            f"{output.name} does not read {input.name} itself (it reads {names}); "
            "use te.differentiate for tensors further away"
        )
    if not dtypes.is_inexact(input.dtype):
        if missing_ok:
            return None
        raise DtypeError(
            f"{input.name} has dtype {input.dtype}, which has no derivative; cast it to a float first"
        )
    prefix = tuple(
        Axis(f"p{n}" if head.ndim - output.ndim > 1 else "p", 0, extent)
        for n, extent in enumerate(head.shape[: head.ndim - output.ndim])
    )
    if isinstance(head, Compute):
        prefix = tuple(Axis(a.name, 0, a.hi) for a in head.axes[: len(prefix)])

    def wanted(leaf: Expr) -> bool:
        return isinstance(leaf, Read) and leaf.tensor is input

    free = free_of_guards(guarded_by_sums(output, head), input)
    if isinstance(free.body, Reduce):
        parts = contributions_of_reduction(free, head, prefix, wanted)
    else:
        seed = seed_of(head, (*prefix, *output.axes), output)
        parts = contributions(free.body, output.axes, seed, Read(output, output.axes), wanted)
    return prefix, [_along_wide_axes(part) for part in parts]


def _along_wide_axes(part: Contribution) -> Contribution:
    """``part`` at the one position that each of its axes of extent 1 has, so that nothing asks whether its elements differ along them."""
    return part.at({axis: axis.lo for axis in part.axes if known(axis.extent) == 1})


def target_axes(output: Compute, input: Tensor, prefix: Sequence[Axis]) -> tuple[Axis, ...]:
    """Axes for an element of ``input``, named after its own axes or the indices that it is read at."""
    if isinstance(input, Compute):
        names = [a.name for a in input.axes]
    else:
        first = next(r for r in reads_of(output.body) if r.tensor is input)
        names = [_index_name(index, n) for n, index in enumerate(first.indices)]
    before = {axis.name: None for axis in prefix}
    taken = dict(before)
    for name in names:
        while name in taken:
            name += "'"
        taken[name] = None
    return tuple(
        Axis(name, 0, as_expr(extent))
        for name, extent in zip(list(taken)[len(before) :], input.shape, strict=True)
    )


def _index_name(index: Expr, position: int) -> str:
    axes = [node.name for node in all_of(Axis, index)]
    return axes[0] if axes else f"i{position}"


def _extern_block(output: Extern, input: Tensor, head: Tensor) -> Extern | None:
    adjoint = output.group.adjoint(output, head)  # type: ignore[attr-defined]
    for source, part in zip(output.inputs, adjoint, strict=True):
        if source is input:
            return part
    return None
