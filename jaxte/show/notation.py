"""How formulas are written, whatever the notation: names, the bounds of sums, and one walk that needs no recursion.

A :class:`Notation` says how each kind of node looks; ``jaxte.show.printing`` has plain text, HTML and LaTeX.
"""

from __future__ import annotations

import keyword
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Scalar, Symbol, Var, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.scalars.rows import CALL
from jaxte.lang.walk import postorder, reductions
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import limit_of
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import axis_bounds, reach
from jaxte.sets.linear import Linear
from jaxte.tensors.tensor import Compute, Tensor

SUMMATION, CHOICE = 1, 2  # bind less than everything in ``jaxte.lang.scalars.rows``

Piece = tuple[str, int]  # a written expression and how strongly it binds, see ``jaxte.lang.scalars.rows``

LONGEST = (
    2000  # characters; longer subexpressions become an ellipsis: shared ones would make the text exponential
)
LONGEST_READ = 8000  # of text that te.define reads again, such as the adjoint of a median of three


@dataclass(frozen=True, slots=True)
class Bound:
    """``axis >= value`` or ``axis <= value``, as ``condition`` says it.

    Attributes:
        covers: whether it implies the constant end of the axis' range.
    """

    value: Expr
    condition: Expr
    covers: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A reduction axis with the bounds that depend on other axes."""

    axis: Axis
    lower: Bound | None
    upper: Bound | None


def ranges_of(node: Reduce) -> tuple[list[Range], list[Expr]]:
    """The axes of a reduction with the bounds in its condition, and the rest of the condition."""
    lower: dict[Axis, Bound] = {}
    upper: dict[Axis, Bound] = {}
    guards = []
    for condition in conjuncts(node.where):
        found = _bound_in(condition, node.axes)
        if found is None or found[0] in (lower if found[1] else upper):
            guards.append(condition)
        else:
            axis, is_lower, bound = found
            (lower if is_lower else upper)[axis] = bound
    return [Range(axis, lower.get(axis), upper.get(axis)) for axis in node.axes], guards


def _bound_in(condition: Expr, axes: Sequence[Axis]) -> tuple[Axis, bool, Bound] | None:
    """The axis that ``condition`` bounds from below (True) or above, if it is such a condition."""
    forms = nonnegative_forms(condition)
    own = [axis for axis in axes if forms and forms[0].coefficient(axis)]
    limit = limit_of(condition, own[-1]) if own else None
    if limit is None or among(own[-1], postorder(*limit.end.terms)):
        return None  # inside // and % the axis could not be solved for
    bound = Bound(from_linear(limit.end), condition, _covers(limit.end, own[-1], limit.is_lower))
    return own[-1], limit.is_lower, bound


def _covers(form: Linear, axis: Axis, is_lower: bool) -> bool:
    """Whether ``form`` stays on the inner side of the constant end of the axis' range."""
    ends = reach(form)
    own = axis_bounds([axis]).get(axis)
    if ends is None or own is None:
        return False
    return ends[0] >= own[0] if is_lower else ends[1] <= own[1]


class Notation(ABC):
    """How nodes are written, given how their children are."""

    ellipsis: str
    longest = LONGEST  # characters of a subexpression

    @abstractmethod
    def name(self, label: str) -> str:
        """A name that a user gave, made harmless."""

    def axis(self, label: str) -> str:
        """What an axis is called of this name, before primes tell it from others."""
        return label

    @abstractmethod
    def number(self, value: Scalar) -> Piece: ...

    @abstractmethod
    def element(self, tensor: str, indices: Sequence[str]) -> str:
        """An element of a tensor."""

    @abstractmethod
    def operation(self, node: Call, args: Sequence[Piece]) -> Piece: ...

    @abstractmethod
    def reduction(
        self,
        node: Reduce,
        exprs: Sequence[Piece],
        ranges: Sequence[Range],
        guards: Sequence[Expr],
        of: Writer,
    ) -> Piece: ...


class Writer:
    """Writes expressions in one notation, with one name for each tensor and axis.

    Args:
        tensors: names of tensors, written as they are; the others are called by their labels.
        axes: the axes to be named first, so that they keep their own names.
    """

    def __init__(
        self, notation: Notation, tensors: Mapping[Tensor, str] | None = None, axes: Iterable[Axis] = ()
    ) -> None:
        self.notation = notation
        self._tensors = tensors or {}
        self._axes: dict[Axis, str] = {}
        self._taken: set[str] = set()
        self._pieces: dict[Expr, Piece] = {}
        for axis in axes:
            self.axis(axis)

    def __call__(self, expr: Expr) -> Piece:
        for node in postorder(expr):
            if node not in self._pieces:
                written, strength = self._write(node)
                if len(written) > self.notation.longest:
                    written, strength = self.notation.ellipsis, CALL
                self._pieces[node] = written, strength
        return self._pieces[expr]

    def text(self, expr: Expr) -> str:
        return self(expr)[0]

    def tensor(self, tensor: Tensor) -> str:
        return self._tensors.get(tensor) or self.notation.name(tensor.name)

    def axis(self, axis: Axis) -> str:
        """The name of an axis; axes with the same label are told apart by primes."""
        if axis not in self._axes:
            label = self.notation.axis(axis.name)
            while label in self._taken:
                label += "'"
            self._taken.add(label)
            self._axes[axis] = self.notation.name(label)
        return self._axes[axis]

    def _write(self, node: Expr) -> Piece:
        match node:
            case Const(value):
                return self.notation.number(value)
            case Axis():
                return self.axis(node), CALL
            case Var(name):
                return self.notation.name(name), CALL
            case Symbol():
                return self.notation.name(node.name), CALL
            case Read(tensor, indices):
                return self.notation.element(self.tensor(tensor), [self.text(i) for i in indices]), CALL
            case Call(_, args):
                return self.notation.operation(node, [self._pieces[a] for a in args])
            case Reduce():
                ranges, guards = ranges_of(node)
                return self.notation.reduction(
                    node, [self._pieces[e] for e in node.exprs], ranges, guards, self
                )
        raise AssertionError(type(node))


def reduction_axes(body: Expr) -> list[Axis]:
    """Every axis that is reduced over in ``body``, outer reductions first."""
    found = [node.axes for node in reductions(body)]
    return list(dict.fromkeys(axis for axes in reversed(found) for axis in axes))


def inclusive_end(axis: Axis) -> Expr:
    """The last value of an axis."""
    return minus_one(axis.hi)


def minus_one(expr: Expr) -> Expr:
    try:
        return from_linear(linear(expr) - Linear({}, 1))
    except IndexExpressionError:
        return expr - 1


_KEPT = frozenset({*keyword.kwlist, "over", "of", "where"})  # words of formulas


def as_word(label: str) -> str:
    """A label as a name that formulas may have: letters, digits and apostrophes behind them; ``params['w']`` is ``params_w``."""
    body = label.rstrip("'")
    word = re.sub(r"[\W_]*\W[\W_]*", "_", body).strip("_") if not body.isidentifier() else body
    word = word if not word.startswith("__") else word.lstrip("_")
    if not word or word[0].isdigit():
        word = f"t{word}"
    return (word if word not in _KEPT else f"{word}_") + label[len(body) :]


def distinct_names(
    tensors: Iterable[Tensor], spelled: Callable[[str], str] = lambda label: label
) -> dict[Tensor, str]:
    """A label for each of ``tensors``, as it is ``spelled``, numbered where several have the same one."""
    names: dict[Tensor, str] = {}
    taken: set[str] = set()
    counts: dict[str, int] = {}
    for tensor in tensors:
        label = own = spelled(tensor.name)
        while label in taken:
            counts[own] = counts.get(own, 0) + 1
            label = f"{own}_{counts[own]}"
        taken.add(label)
        names[tensor] = label
    return names


def writer_for(tensor: Compute, notation: Notation, names: Mapping[Tensor, str] | None = None) -> Writer:
    """A writer that gives the axes of ``tensor`` their own names, then those that it reduces over."""
    return Writer(notation, names, [*tensor.axes, *reduction_axes(tensor.body)])
