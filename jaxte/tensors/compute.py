"""``compute``: from a function of axes to tensors, with every read checked to stay inside its tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, Protocol, TypeAlias, overload

from jaxte.lang.checks import described, one_of_type, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lang.expr import Axis, Expr, Read, Reduce, ScalarLike, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, AND, OR, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, reductions, substitute
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.quasi_affine import quasi_affine
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.bodies.functions import axis_names, check_result, evaluated, parameter_names
from jaxte.tensors.bodies.integer_indices import with_chosen_powers, with_plain_indices
from jaxte.tensors.bodies.open_ranges import closed
from jaxte.tensors.bodies.open_uses import OpenAxis
from jaxte.tensors.bodies.piecewise_indices import Cut, cut
from jaxte.tensors.bodies.range_checks import check_reads
from jaxte.tensors.bodies.symbolic_indices import without_divisions
from jaxte.tensors.bodies.wide_integers import with_fitting_integers
from jaxte.tensors.shapes import check_shape
from jaxte.tensors.tensor import Compute, new_axes

Sizes = int | Expr | Iterable[int | Expr]
Several = tuple[ScalarLike, ...] | list[ScalarLike]
Computes: TypeAlias = tuple[Compute, ...]


class SeveralOfAny(Protocol):
    """A body of several tensors over any number of axes, ``lambda *i: ...``."""

    def __call__(self, *axes: Axis) -> Several: ...


# Bodies of several tensors stand with their axes: a lambda then has typed parameters, and mypy sees that its result is no single scalar.
# fmt: off
@overload
def compute(shape: Sizes, fn: Callable[..., ScalarLike], name: str | None = None) -> Compute: ...
@overload
def compute(shape: Callable[..., ScalarLike], fn: str | None = None, name: str | None = None) -> Compute: ...
@overload
def compute(shape: Sizes, fn: SeveralOfAny, name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[Axis], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[Axis, Axis], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[Axis, Axis, Axis], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[Axis, Axis, Axis, Axis], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Sizes, fn: Callable[[Axis, Axis, Axis, Axis, Axis], Several], name: str | None = None) -> Computes: ...
@overload
def compute(shape: Callable[[], Several], fn: str | None = None, name: str | None = None) -> Computes: ...
@overload
def compute(shape: Callable[[Axis], Several], fn: str | None = None, name: str | None = None) -> Computes: ...
@overload
def compute(shape: Callable[[Axis, Axis], Several], fn: str | None = None, name: str | None = None) -> Computes: ...
@overload
def compute(shape: Callable[[Axis, Axis, Axis], Several], fn: str | None = None, name: str | None = None) -> Computes: ...
@overload
def compute(shape: Callable[[Axis, Axis, Axis, Axis], Several], fn: str | None = None, name: str | None = None) -> Computes: ...
# fmt: on
@wants_arguments
def compute(
    shape: Sizes | Callable[..., ScalarLike | Several],
    fn: Callable[..., ScalarLike | Several] | str | None = None,
    name: str | None = None,
) -> Compute | tuple[Compute, ...]:
    """A tensor given by what one element is.

    Args:
        shape: extents of the output; integers or ``te.var`` sizes, ``()`` for a scalar. It may be left out, ``te.compute(fn, name)``, where
            the reads of the body determine it: each axis begins at 0 and goes as far as all reads stay inside of their tensors.
        fn: takes one index per axis, returns the scalar expression of that element, or a tuple of expressions
            for several tensors over the same axes. The axes take the names of its parameters.
        name: label in printed formulas and emitted code.

    Returns:
        A :class:`Compute`, or a tuple of them. A reduction that is not on top of the expression becomes a
        tensor of its own.

    Raises:
        RangeError: a read that can leave its tensor, with a point at which it does.
        DefinitionError: a body that returns no scalar, or uses an axis it does not have.
        ShapeError: a range that is left open and does not follow from the reads.

    Example:
        >>> X = te.placeholder((8, 34, 16), name="X")
        >>> W = te.placeholder((3, 16, 32), name="W")
        >>> k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 16), "c")
        >>> Y = te.compute((8, 32, 32), lambda b, t, o: te.sum(X[b, t + k, c] * W[k, c, o], axis=[k, c]), "Y")
    """
    if isinstance(shape, Expr) and (fn is None or isinstance(fn, str)):
        raise ArgumentError(
            f"te.compute is given the expression `{text(shape)}`; give a function of the indices that returns it, te.compute(lambda: ...)"
        )
    if isinstance(shape, str):
        raise ArgumentError(
            f"te.compute is given {described(shape)} as a shape; its order is te.compute(shape, fn, name)"
        )
    extents: Any = shape
    body: Any = fn
    if callable(shape) and (fn is None or isinstance(fn, str)):
        extents, body, name = None, shape, fn if name is None else name
    label = "T" if name is None else one_of_type(name, str, "the name of a te.compute", "a string")
    axes = _axes_of(extents, body, label)
    result = evaluated(body, *axes)
    if not isinstance(result, (tuple, list)):
        return defined([label], axes, [result])[0]
    if not result:
        raise DefinitionError(
            f"the body of {label} returns an empty tuple; return one expression for each tensor"
        )
    return defined([f"{label}_{n}" for n in range(len(result))], axes, result)


def _axes_of(shape: Any, fn: Any, label: str) -> tuple[Axis, ...]:
    """The axes of the output: with the extents of ``shape``, or open without it."""
    extents = None if shape is None and fn is not None else check_shape(shape, label)
    if not callable(fn):
        raise ArgumentError(
            f"the body of {label} is {described(fn)}; give a function of one index for each axis"
        )
    if extents is None:
        return tuple(OpenAxis(own, reduction=False) for own in parameter_names(fn, label))
    return new_axes(extents, axis_names(fn, len(extents), label))


def defined(names: Sequence[str], axes: tuple[Axis, ...], results: Sequence[Any]) -> tuple[Compute, ...]:
    """A tensor for each of ``results``, expressions of ``axes``, of which any may be open."""
    bodies = [check_result(result, name) for name, result in zip(names, results, strict=True)]
    for name, body in zip(names, bodies, strict=True):
        check_axes(name, axes, body)
    axes, bodies = closed(axes, bodies)
    made = []
    for name, given in zip(names, bodies, strict=True):
        body = with_fitting_integers(name, given)
        typed = cast(body, body.dtype) if body.weak else body
        made.append(
            Compute(
                name,
                axes,
                _settled(name, axes, with_chosen_powers(without_divisions(name, typed, _positions))),
            )
        )
    return tuple(made)


def _settled(name: str, axes: tuple[Axis, ...], body: Expr) -> Expr:
    """``body`` with reads that are checked, no choices in indices, and no reduction but on top."""
    found = cut(axes, body)
    if found is None:
        body = with_plain_indices(axes, body)
        check_reads(name, axes, body)
        return extract_reductions(name, axes, quasi_affine(body))
    if found.owner is not None:
        return _settled(name, axes, substitute(body, {found.owner: _joined(found)}))
    result: Expr | None = None
    for number, part in reversed(list(enumerate(found.parts))):
        own = tuple(part.axis if a is found.axis else a for a in axes)
        value = _settled(f"{name}_{number}", tuple(a for a in own if isinstance(a, Axis)), part.body)
        if isinstance(value, Reduce):
            value = _read_of_own(f"{name}_{number}", value, [a for a in own if isinstance(a, Axis)])
        if isinstance(part.axis, Axis):
            value = substitute(value, {part.axis: found.axis})
        result = value if result is None else call(SELECT, found.axis < part.run.stop, value, result)
    assert result is not None
    return result


def _joined(found: Cut) -> Expr:
    """The reduction that was cut along one of its axes: a sum as the sum of its parts, others with a choice at each position."""
    owner = found.owner
    assert owner is not None
    rest = tuple(a for a in owner.axes if a is not found.axis)
    parts = [
        (p.run.stop, p.axis, p.body)
        for p in found.parts
        if isinstance(p.axis, Axis) and isinstance(p.body, Reduce)
    ]
    if owner.is_sum:
        sums: list[Expr] = [b.changed(axes=(a, *rest)) for _, a, b in parts]
        return reduce(lambda a, b: call(ADD, a, b), sums)
    (_, axis, last), *before = reversed(parts)
    *exprs, where = (substitute(child, {axis: found.axis}) for child in last.children)
    for stop, axis, body in before:
        *new, holds = (substitute(child, {axis: found.axis}) for child in body.children)
        exprs = [call(SELECT, found.axis < stop, a, b) for a, b in zip(new, exprs, strict=True)]
        if reads_of(holds) or reads_of(where):  # each inside of its own part only
            where = call(SELECT, found.axis < stop, holds, where)
        elif holds is not where:
            where = call(OR, call(AND, found.axis < stop, holds), call(AND, found.axis >= stop, where))
    return owner.rebuild([*exprs, where])


def check_axes(name: str, axes: Sequence[Axis], body: Expr) -> None:
    """Every axis in ``body`` is an output axis or reduced over."""
    for axis in free_axes(body):
        if not among(axis, axes):
            how = (
                f"it is a reduction axis used outside its reduction; put the use inside te.sum(..., axis={axis.name})"
                if axis.reduction
                else "it belongs to another tensor; use the parameters of this body"
            )
            raise DefinitionError(f"the body of {name} uses axis {axis.name}: {how}")


def extract_reductions(name: str, axes: tuple[Axis, ...], body: Expr) -> Expr:
    """``body`` with every reduction that is not on top read from a tensor of its own."""
    if isinstance(body, Reduce):
        top, roots = body, [*body.exprs, body.where]
    else:
        top, roots = None, [body]
    nested = reductions(*roots)
    if not nested:
        return body
    guards = guards_of(body, set(nested))
    table: dict[Expr, Expr] = {}
    for number, node in enumerate(nested):
        current = substitute(node, dict(table.items()))
        assert isinstance(current, Reduce)
        free = tuple(free_axes(current))
        guard = [c for c in guards[node] if is_decidable(c) and all(among(a, free) for a in free_axes(c))]
        order = (*axes, *(top.axes if top is not None else ()))
        table[node] = _read_of_own(f"{name}_{number}", current, order, guard)
    if top is None:
        return substitute(body, table)
    return top.rebuild([substitute(r, table) for r in roots])


def _read_of_own(name: str, node: Reduce, order: Sequence[Axis], guard: Sequence[Expr] = ()) -> Read:
    """The reduction as an element of a tensor over the axes it depends on, which sums only where it is asked for.

    The axes are in the ``order`` of what reads it, so that nothing is transposed in between.
    """
    depends = free_axes(node)
    free = (*(a for a in order if a in depends), *(a for a in depends if not among(a, order)))
    where = node.where
    for condition in guard:
        where = call(AND, condition, where)
    own = tuple(Axis(axis.name, 0, axis.extent) for axis in free)
    body = node.changed(where=where)
    shifted = {old: new + old.lo for old, new in zip(free, own, strict=True)}
    return Read(Compute(name, own, substitute(body, shifted)), [axis - axis.lo for axis in free])


def _positions(name: str, axes: Sequence[Axis], index: Expr) -> Expr:
    """``index`` as an element of a tensor of positions over ``axes``."""
    own = tuple(Axis(axis.name, 0, axis.extent) for axis in axes)
    shifted = {old: new + old.lo for old, new in zip(axes, own, strict=True)}
    return Read(Compute(name, own, substitute(index, shifted)), [axis - axis.lo for axis in axes])
