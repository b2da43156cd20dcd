"""The index forms of an operand: what it depends on, and through which combinations of axes.

A form is an index expression without its constant part, divided by the greatest common divisor of its
coefficients: ``X[2*t + 2*k + 1]`` and ``Y[t + k]`` have the same form ``t + k``. An operand that depends on its axes
through forms only can be evaluated once for each value of the forms, on an axis of its own for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Var, as_expr
from jaxte.lang.graphs import components
from jaxte.lang.operators import COMPARISONS
from jaxte.lang.walk import free_axes, postorder, substitute, with_indices
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.digits import are_digits
from jaxte.sets.index_forms import is_index, term_of
from jaxte.sets.linear import Linear

Key = frozenset[tuple[Expr, int]]


@dataclass(frozen=True, slots=True)
class Form:
    """A combination of axes that indices are made of.

    Attributes:
        terms: its linear part, with coprime coefficients.
        axes: the axes in it, also those below ``//`` and ``%``.
        lo: the least value that keeps every read of it inside its tensor, or None if that is not known.
        hi: one more than the largest such value.
    """

    terms: Linear
    axes: tuple[Axis, ...]
    lo: Expr | None = None
    hi: Expr | None = None

    @property
    def key(self) -> Key:
        return frozenset(self.terms.terms.items())

    @property
    def plain(self) -> bool:
        """Whether it is a single axis as it is."""
        return len(self.axes) == 1 and self.terms.coefficient(self.axes[0]) == 1 == len(self.terms.terms)


@dataclass(frozen=True, slots=True)
class Use:
    """``index == factor * form + offset``."""

    form: Form
    factor: int
    offset: Linear


@lru_cache(maxsize=4096)  # each recogniser asks for those of the same reads
def decompose(index: Expr) -> Use | None:
    """The form of an affine index; None if it holds no axis."""
    whole = linear(index)
    moving = {a: c for a, c in whole.terms.items() if not isinstance(a, Var)}
    if not moving:
        return None
    term, factor = term_of(Linear(moving))
    offset = Linear({a: c for a, c in whole.terms.items() if isinstance(a, Var)}, whole.constant)
    axes = tuple(free_axes(from_linear(term.form)))
    return Use(Form(term.form, axes), factor, offset) if axes else None


def forms_of(exprs: Sequence[Expr], numbers: bool = False) -> list[Form]:
    """The forms through which ``exprs`` depend on axes, in order of appearance.

    Args:
        exprs: what depends on axes.
        numbers: whether numbers that several axes make are forms too, ``i + k`` in ``minimum(i + k, 16) * x[i + k]``; else they depend on each axis.
    """
    return list(_forms_of(tuple(exprs), numbers))


@lru_cache(maxsize=256)  # several recognisers ask for those of the same product
def _forms_of(exprs: tuple[Expr, ...], numbers: bool) -> tuple[Form, ...]:
    found: dict[Key, Form] = {}
    for use, extent in _uses(exprs, numbers):
        if (opposite := found.get(_negated(use.form.key))) is not None:
            use = Use(opposite, -use.factor, use.offset)
        lo, hi = (None, None) if extent is None else _inside(use, extent)
        known = found.get(use.form.key)
        if known is not None:
            lo, hi = _meet(known.lo, lo, largest=True), _meet(known.hi, hi, largest=False)
        found[use.form.key] = Form(use.form.terms, use.form.axes, lo, hi)
    return tuple(found.values())


def _negated(key: Key) -> Key:
    return frozenset((atom, -coefficient) for atom, coefficient in key)


def _uses(exprs: Sequence[Expr], numbers: bool) -> Iterator[tuple[Use, Expr | None]]:
    """Every use of axes: indices with the extent that they have to stay in, and bare axes."""
    stack, seen = list(reversed(exprs)), set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        match node:
            case Read(tensor, indices):
                inner = []
                for index, extent in zip(indices, tensor.shape, strict=True):
                    if not is_index(index):
                        inner.append(index)
                    elif (use := decompose(index)) is not None:
                        yield use, as_expr(extent)
                stack.extend(reversed(inner))
            case Axis():
                yield Use(Form(Linear({node: 1}), (node,)), 1, Linear({})), None
            case Reduce():
                stack.extend(reversed(list(free_axes(node))))
            case Call() if node.op in COMPARISONS and all(map(is_index, node.args)):
                # what is chosen where an index is out of range: no value of a form
                stack.extend(reversed(list(free_axes(node))))
            case Call() if numbers and (own := _number(node)) is not None:
                yield own, None
            case _:
                stack.extend(reversed(node.children))


def _number(node: Call) -> Use | None:
    """The form of a number that several axes make; None for anything else."""
    if len(free_axes(node)) < 2 or not is_index(node):
        return None
    use = decompose(node)
    return use if use is not None and all(isinstance(a, Axis) for a in use.form.terms.terms) else None


def _inside(use: Use, extent: Expr) -> tuple[Expr, Expr]:
    """The range of the form that keeps ``factor * form + offset`` in ``[0, extent)``."""
    size = abs(use.factor)
    below = use.offset if use.factor > 0 else linear(extent) - Linear({}, 1) - use.offset
    above = linear(extent) - Linear({}, 1) - use.offset if use.factor > 0 else use.offset
    lo = normal(-(from_linear(below) // size))
    return lo, normal(from_linear(above) // size + 1)


def _meet(a: Expr | None, b: Expr | None, largest: bool) -> Expr | None:
    if a is None or b is None or a is b:
        return a if b is None or a is b else b
    if isinstance(a, Const) and isinstance(b, Const):
        return max(a, b, key=int) if largest else min(a, b, key=int)
    return None


def rewrite_forms(expr: Expr, table: Sequence[tuple[Form, Expr]], numbers: bool = False) -> Expr:
    """``expr`` with each form of ``table`` replaced by another index expression, in numbers as well if they are asked for."""
    by_key = {form.key: new for form, new in table}
    known: dict[Expr, Expr] = {form.axes[0]: new for form, new in table if form.plain}
    for node in postorder(expr):
        if isinstance(node, Read):
            indices = [_rewritten(index, by_key, known) for index in node.indices]
            known[node] = Read(node.tensor, indices)
        elif numbers and isinstance(node, Call) and _number(node) is not None:
            known[node] = _rewritten(node, by_key, known)
    return substitute(expr, known)


def _rewritten(index: Expr, by_key: Mapping[Key, Expr], known: Mapping[Expr, Expr]) -> Expr:
    use = decompose(index) if is_index(index) else None
    if use is not None:
        for key, factor in ((use.form.key, use.factor), (_negated(use.form.key), -use.factor)):
            if key in by_key:
                return normal(factor * by_key[key] + from_linear(use.offset))
    return substitute(index, known)


def with_normal_indices(expr: Expr) -> Expr:
    """``expr`` with every index that is affine in normal form."""
    return with_indices(expr, lambda i: normal(i) if is_index(i) else i)


def tied_axes(groups: Iterable[Sequence[Axis]]) -> list[tuple[Axis, ...]]:
    """The axes joined by common groups, in order of appearance."""
    tied = components(filter(None, groups), lambda group: group)
    return [tuple(dict.fromkeys(axis for group in members for axis in group)) for members in tied]


def is_injective(form: Form) -> bool:
    """Whether a form takes another value at every point of its axes' ranges, as a row-major position does."""
    atoms = form.terms.terms
    return all(isinstance(a, Axis) and isinstance(a.extent, Const) for a in atoms) and are_digits(form.terms)


def is_row_major(index: Expr) -> bool:
    """Whether ``index`` is the position in row-major order over axes from 0, without gaps: ``32 * p + q`` for ``q`` below 32."""
    if not is_index(index):
        return False
    form = linear(index)
    stride = 1
    for axis, coefficient in sorted(form.terms.items(), key=lambda item: abs(item[1])):
        if not isinstance(axis, Axis) or not isinstance(axis.extent, Const) or coefficient != stride:
            return False
        stride *= int(axis.extent)
    return form.constant == 0 and len(form.terms) > 1
