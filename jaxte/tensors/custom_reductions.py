"""Reductions by a combiner and an identity that the user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, overload

from jaxte.lang import dtypes, functions
from jaxte.lang.checks import a_label, called, described, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import Call, Const, Expr, Reducer, ScalarLike, Symbol, as_expr, cast
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.tensors.reductions import Axes, axes_given, make_reduce, operand_of

Scalars: TypeAlias = "ScalarLike | tuple[ScalarLike, ...] | list[ScalarLike]"


class Reduction(Protocol):
    """A reduction of one expression, or of several at once."""

    @overload
    def __call__(
        self,
        expr: tuple[ScalarLike, ...] | list[ScalarLike],
        axis: Axes | None = None,
        where: ScalarLike | None = None,
        *,
        over: Axes | None = None,
    ) -> tuple[Expr, ...]: ...
    @overload
    def __call__(
        self,
        expr: ScalarLike,
        axis: Axes | None = None,
        where: ScalarLike | None = None,
        *,
        over: Axes | None = None,
    ) -> Expr: ...


@wants_arguments
def comm_reducer(
    combine: Callable[..., Scalars], identity: Scalars | Callable[..., Scalars], name: str = "reduce"
) -> Reduction:
    """Makes a reduction of a combiner of your own.

    Args:
        combine: ``combine(x, y)`` of two scalar expressions, or of two tuples of them; associative and commutative.
        identity: what changes nothing: a number, or a tuple of them, or ``identity(dtype, ...)`` that returns such.
        name: label in printed formulas.

    Returns:
        ``reduction(expr, axis, where=None)``, or with ``over=`` for ``axis``, which takes and returns one expression or a tuple of them.

    Example:
        >>> largest = te.comm_reducer(
        ...     lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.maximum(x[1], y[1])),
        ...     lambda t0, t1: (te.const(-1, t0), te.const(float("-inf"), t1)), name="largest")
        >>> at, value = te.compute((4,), lambda i: largest((k, A[i, k]), axis=k))
    """

    label = a_label(name, "the name of a reduction") or "reduce"
    if not callable(combine):
        raise ArgumentError(
            f"the combiner of {label} is {described(combine)}; give a function combine(x, y) of expressions"
        )

    @wants_arguments
    def reduction(expr: Any, axis: Any = None, where: Any = None, *, over: Any = None) -> Any:
        single = not isinstance(expr, (tuple, list))
        exprs = tuple(operand_of(e, name) for e in ((expr,) if single else expr))
        exprs = tuple(cast(e, e.dtype) if e.weak else e for e in exprs)
        reducer = _custom_reducer(combine, identity, name, tuple(e.dtype for e in exprs), single)
        results = make_reduce(reducer, exprs, axes_given(axis, over, label), where)
        return results[0] if single else results

    reduction.__name__ = label if label.isidentifier() else "reduction"
    return reduction


def _custom_reducer(
    combine: Callable[..., Any], identity: Any, name: str, kinds: tuple[str, ...], single: bool
) -> Reducer:
    lhs = tuple(Symbol(f"x{n}", dtype) for n, dtype in enumerate(kinds))
    rhs = tuple(Symbol(f"y{n}", dtype) for n, dtype in enumerate(kinds))
    arguments = (lhs[0], rhs[0]) if single else (lhs, rhs)
    combined = called(combine, arguments, f"the combiner of {name}")
    start = called(identity, kinds, f"the identity of {name}") if callable(identity) else identity
    results = _results(combined, kinds, f"the combiner of {name}")
    neutral = _results(start, kinds, f"the identity of {name}")
    for what, made_of in (("the combiner", results), ("the identity", neutral)):
        _check_closed(f"{what} of {name}", made_of)
    return Reducer("custom", name, "even", lhs, rhs, results, neutral)


def _check_closed(what: str, values: Sequence[Expr]) -> None:
    """A reduction combines values as they come: nothing that differs from element to element, and no tensor."""
    for node in postorder(*values):
        if not isinstance(node, (Symbol, Const, Call)):
            raise DefinitionError(
                f"{what} has `{text(node)}`; it is made of its arguments and of numbers: let the reduced expression hold it, "
                "as one of a tuple if need be"
            )


def _results(values: Any, kinds: tuple[str, ...], what: str) -> tuple[Expr, ...]:
    listed = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    if len(listed) != len(kinds):
        raise DefinitionError(
            f"{what} returns {len(listed)} values for {len(kinds)} expressions; return one for each"
        )
    return tuple(_typed(as_expr(v), dtype) for v, dtype in zip(listed, kinds, strict=True))


def _typed(value: Expr, dtype: str) -> Expr:
    """``value`` as ``dtype``; a number becomes a constant of that type."""
    if not isinstance(value, Const):
        return cast(value, dtype)
    if dtypes.is_integer(dtype) and isinstance(value.value, float) and value.value % 1:
        raise DtypeError(f"{value.value!r} is no number of {dtype}; cast what is reduced with te.cast first")
    return functions.const(value.value, dtype)
