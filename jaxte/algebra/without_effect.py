"""What has no effect on a result, so that no derivative flows through it: the running maximum of a softmax, the mean of a variance.

``exp(x - m) / sum(exp(x - m))`` is the same for every ``m``, and so is ``m + log(sum(exp(x - m)))``. No derivative flows through such an ``m``, although
none of the single terms of its adjoint is zero.

The definitions show it: with ``m[at] + c`` in place of ``m[at]``, an element ``e`` of what reads it becomes ``e + degree * c`` or ``e * exp(degree * c)``.
The degree follows from operation to operation, as units do: a product adds up degrees, a logarithm makes a shift of a scale, a sum keeps a scale that all its
terms have. Conditions, and what has no slope, pass nothing on. Where no output has a degree, no derivative flows to ``m``.

Likewise what a variance passes on to the mean that it is taken around is zero: the slope of ``sum over j of (x[b, j] - m[b]) ** 2`` in ``m[b]`` is
``-2 * sum over j of (x[b, j] - m[b])``, which is zero where ``m[b]`` is the mean of ``x[b, :]``: a pass over all elements for what is a rounding error. The
definitions show that, too, of variances and covariances, weighted or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isinf

from jaxte.algebra.data import data_readings
from jaxte.algebra.polynomial import Expansion, TooLarge
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import LEVELS
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, postorder, substitute
from jaxte.tensors.tensor import Compute, Tensor

_EXTREMA = ("max", "min")
_WITHOUT_SLOPE = ("stop_gradient", "sign", "floor", "ceil", "round", "trunc")
_SHIFTS = {"negative": -1.0, "cast": 1.0}  # what becomes of the degree of a shift
_SCALES = {
    "negative": 1.0,
    "cast": 1.0,
    "abs": 1.0,
    "square": 2.0,
    "sqrt": 0.5,
    "rsqrt": -0.5,
    "reciprocal": -1.0,
}


class _UnknownError(Exception):
    """An element that is neither shifted nor scaled."""


@dataclass(frozen=True)
class _Degree:
    """How an element changes with the pivot at ``at``: by ``degree`` times as much, or by the exponential of that as a factor."""

    at: tuple[Expr, ...]
    degree: Expr
    is_scale: bool

    def is_like(self, other: _Degree) -> bool:
        return (
            self.is_scale == other.is_scale
            and self.degree is other.degree
            and identical(list(self.at), list(other.at))
        )


def without_effect(
    order: Sequence[Tensor], outputs: Sequence[Tensor], opaque: Collection[Tensor]
) -> set[Tensor]:
    """The extrema in ``order`` that none of ``outputs`` depends on, as far as their definitions show.

    Args:
        order: what outputs are computed of, each tensor after those that it reads.
        opaque: tensors whose derivatives do not follow from their definitions.
    """
    return {
        t
        for t in order
        if isinstance(t, Compute)
        and isinstance(t.body, Reduce)
        and t.body.reducer.name in _EXTREMA
        and not among(t, outputs)
        and t not in opaque
        and _are_invariant(outputs, t, order, opaque)
    }


def extrema_without_effect(
    states: Sequence[Tensor], definitions: Sequence[Tensor], order: Sequence[Tensor]
) -> set[int]:
    """The numbers of those ``definitions`` of a recurrence that are extrema which none of the others depends on: the maxima of a forward algorithm.

    Args:
        states: what stands for the definitions where they are read.
        order: what the definitions are made of from states, each tensor after those that it reads.
    """
    found = set()
    for n, (state, own) in enumerate(zip(states, definitions, strict=True)):
        if isinstance(own, Compute) and isinstance(own.body, Reduce) and own.body.reducer.name in _EXTREMA:
            others = [t for t in order if t is not own]
            if not among(state, own.inputs) and _are_invariant(definitions, own, others, (), state):
                found.add(n)
    return found


def _are_invariant(
    outputs: Sequence[Tensor],
    pivot: Compute,
    order: Sequence[Tensor],
    opaque: Collection[Tensor],
    stand: Tensor | None = None,
) -> bool:
    """Whether none of ``outputs`` but ``pivot`` itself changes with that, which ``stand`` stands for where it is read."""
    followed = _Followed(pivot, stand)
    try:
        for tensor in order:
            if not followed.degrees.keys().isdisjoint(tensor.inputs):
                if not isinstance(tensor, Compute) or tensor in opaque or len(followed.degrees) > LEVELS:
                    return False
                followed.add(tensor)
    except (_UnknownError, TooLarge):
        return False
    return followed.degrees.keys().isdisjoint(t for t in outputs if t is not pivot)


class _Followed:
    """The degrees of tensors in that of ``pivot``; those without one do not depend on it."""

    def __init__(self, pivot: Compute, stand: Tensor | None) -> None:
        self._forms = Expansion()
        own = _Degree(tuple(pivot.axes), self._forms.normal(Const(1.0)), False)
        self._axes: dict[Tensor, Sequence[Expr]] = {pivot: pivot.axes}
        if stand is not None:
            self._axes[stand] = pivot.axes
        self.degrees: dict[Tensor, _Degree] = dict.fromkeys(self._axes, own)

    def add(self, tensor: Compute) -> None:
        """Follows the definition of ``tensor``, which reads some that have a degree."""
        memo: dict[Expr, _Degree | None] = {}
        for node in postorder(tensor.body):
            try:
                memo[node] = self._of(node, memo)
            except _UnknownError:  # which does not matter if it passes nothing on
                memo[node] = _UNKNOWN
        own = memo[tensor.body]
        if own is _UNKNOWN:
            raise _UnknownError
        if own is not None:
            self.degrees[tensor] = own
            self._axes[tensor] = tensor.axes

    def _of(self, node: Expr, memo: Mapping[Expr, _Degree | None]) -> _Degree | None:
        match node:
            case Read(tensor, indices):
                if any(memo[i] is not None for i in indices):
                    raise _UnknownError
                return self._read(tensor, indices)
            case Reduce(exprs=exprs) if any(memo[e] is not None for e in exprs):
                _check_known(exprs, memo)
                return self._reduced(node, memo)
            case Call(op, args) if is_inexact(node.dtype) and op.name not in _WITHOUT_SLOPE:
                passing = args[1:] if op is SELECT else args
                if any(memo[a] is not None for a in passing):
                    _check_known(passing, memo)
                    return self._chosen(args, memo) if op is SELECT else self._call(op.name, args, memo)
        return None

    def _read(self, tensor: Tensor, indices: Sequence[Expr]) -> _Degree | None:
        own = self.degrees.get(tensor)
        if own is None:
            return None
        at = dict(zip(self._axes[tensor], indices, strict=True))
        degree = self._forms.normal(substitute(own.degree, at))
        return _Degree(tuple(substitute(i, at) for i in own.at), degree, own.is_scale)

    def _call(self, name: str, args: Sequence[Expr], memo: Mapping[Expr, _Degree | None]) -> _Degree | None:
        match name, args, [memo[a] for a in args]:
            case "exp", _, [_Degree(at, degree, False)]:
                return _Degree(at, degree, True)
            case "log", _, [_Degree(at, degree, True)]:
                return _Degree(at, degree, False)
            case _, _, [_Degree() as own] if name in (_SCALES if own.is_scale else _SHIFTS):
                factor = (_SCALES if own.is_scale else _SHIFTS)[name]
                return self._degree(own, own.degree * factor)
            case "power", (_, Const(exponent)), [_Degree(is_scale=True) as own, None]:
                return self._degree(own, own.degree * Const(exponent))
            case "multiply" | "divide", _, [_Degree(is_scale=True), _] | [_, _Degree(is_scale=True)]:
                return self._total(memo[args[0]], memo[args[1]], 1.0 if name == "multiply" else -1.0)
            case "multiply", (_, factor), [_Degree() as own, None]:
                return self._degree(own, own.degree * factor)
            case "multiply", (factor, _), [None, _Degree() as own]:
                return self._degree(own, own.degree * factor)
            case "divide", (_, divisor), [_Degree() as own, None]:
                return self._degree(own, own.degree / divisor)
            case "add" | "subtract", _, [a, b] if not (a and a.is_scale) and not (b and b.is_scale):
                return self._total(a, b, 1.0 if name == "add" else -1.0)
            case "add" | "subtract" | "maximum" | "minimum", _, _:
                return _alike(args, memo)
        raise _UnknownError

    def _chosen(self, args: Sequence[Expr], memo: Mapping[Expr, _Degree | None]) -> _Degree | None:
        """The degree of both branches of a choice."""
        condition, taken, other = args
        own = _alike((taken, other), memo)
        return self._where(own, condition) if memo[other] is None else own

    def _reduced(self, node: Reduce, memo: Mapping[Expr, _Degree | None]) -> _Degree | None:
        """The degree of a sum of terms that are scaled alike, or of the extremum of elements that are changed alike."""
        own = self._where(_alike(node.exprs, memo), node.where)
        if node.reducer.name not in _EXTREMA and not (node.is_sum and own.is_scale):
            raise _UnknownError
        if any(depends_on(e, node.axes) for e in (*own.at, own.degree)):
            raise _UnknownError
        return own

    def _where(self, own: _Degree, condition: Expr) -> _Degree:
        """``own`` with what data equal where ``condition`` holds: the sums over the rows of a segment are scaled as its rows are."""
        equal: dict[Expr, Expr] = {}
        for part in conjuncts(condition):
            equal.update(data_readings(part))
        if not equal:
            return own
        at = tuple(substitute(i, equal) for i in own.at)
        return _Degree(at, self._forms.normal(substitute(own.degree, equal)), own.is_scale)

    def _degree(self, own: _Degree, degree: Expr) -> _Degree | None:
        """``own`` with another degree; None where that is zero."""
        normal = self._forms.normal(degree)
        return (
            None if isinstance(normal, Const) and normal.value == 0 else _Degree(own.at, normal, own.is_scale)
        )

    def _total(self, a: _Degree | None, b: _Degree | None, sign: float) -> _Degree | None:
        """``a`` and ``sign`` times ``b``, of one kind."""
        if b is None:
            return a
        if a is None:
            return self._degree(b, b.degree * sign)
        if a.is_scale != b.is_scale or not identical(list(a.at), list(b.at)):
            raise _UnknownError
        return self._degree(a, a.degree + b.degree * sign)


_UNKNOWN = _Degree((), Const(0.0), False)


def _check_known(nodes: Sequence[Expr], memo: Mapping[Expr, _Degree | None]) -> None:
    if any(memo[node] is _UNKNOWN for node in nodes):
        raise _UnknownError


def _alike(nodes: Sequence[Expr], memo: Mapping[Expr, _Degree | None]) -> _Degree:
    """The degree that all of ``nodes`` have; a zero is scaled by anything, an infinity shifted too."""
    found: _Degree | None = None
    free: list[Const] = []
    for node in nodes:
        own = memo[node]
        if own is None and isinstance(node, Const):
            free.append(node)
        elif own is None or (found is not None and not found.is_like(own)):
            raise _UnknownError
        else:
            found = own
    assert found is not None
    if not all(
        c.value == 0 if found.is_scale else (isinstance(c.value, float) and isinf(c.value)) for c in free
    ):
        raise _UnknownError
    return found
