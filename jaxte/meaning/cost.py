"""Cost of a definition before any lowering: counts, not clocks, so that tests can assert on them.

For an element of a body, let a *scope* be the body outside its reductions, or the operands and condition of one
reduction outside the reductions within. A scope is evaluated once per element, respectively once per point
of its reduction, and every node of the expression graph once in each scope that it stands in.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxte.lang import operators as ops
from jaxte.lang.checks import a_mapping, described, one_of_type, several, wants_arguments
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce, Var, as_expr, conjuncts
from jaxte.lang.graphs import reached
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, postorder, reads_of, reductions, substitute
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import difference
from jaxte.tensors.recurrences.node import definitions_in
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

# What a processor does beside the multiplications: sums, choices, comparisons and changes of type.
_FREE = frozenset(
    op.name
    for op in (
        *(
            ops.ADD,
            ops.SUBTRACT,
            ops.NEGATIVE,
            ops.MAXIMUM,
            ops.MINIMUM,
            ops.SELECT,
            ops.AND,
            ops.OR,
            ops.NOT,
        ),
        *(ops.BIT_AND, ops.BIT_OR, ops.BIT_XOR, ops.BIT_NOT),
        *(ops.LEFT_SHIFT, ops.RIGHT_SHIFT, *ops.COMPARISONS),
    )
) | {"cast"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What definitions cost.

    Attributes:
        iterations: points at which bodies are evaluated.
        multiplications: multiplications, divisions, modulos and function calls over all of them.
        memory: elements of the computed tensors.
    """

    iterations: int = 0
    multiplications: int = 0
    memory: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.iterations + other.iterations,
            self.multiplications + other.multiplications,
            self.memory + other.memory,
        )


@wants_arguments
def cost(tensors: Tensor | Iterable[Tensor], sizes: Mapping[Var | str, int] | None = None) -> Cost:
    """The cost of everything that ``tensors`` need, each tensor once.

    Args:
        tensors: one Tensor, or several of them (a result of :func:`differentiate`, too).
        sizes: values of the symbolic sizes, by ``te.var`` or by name.

    Returns:
        Iterations: output elements times reduced points; several reductions in one body add up, nested ones
        multiply, and an element takes at least one; a sum at positions that are data meets each of its points once. Multiplications: every ``*``, ``/``, ``//``, ``%`` and
        function call in bodies, conditions and indices, as often as it is evaluated. Memory: elements of
        every computed tensor.

    Raises:
        ShapeError: a size that is not known.

    Example:
        >>> A, x = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="x")
        >>> k = te.reduce_axis((0, 8), "k")
        >>> te.cost(te.compute((4,), lambda i: te.sum(A[i, k] * x[k], axis=k)))
        Cost(iterations=32, multiplications=32, memory=4)
    """
    listed = several(tensors, Tensor, "the argument of te.cost", "a Tensor or several")
    extents = _Extents({} if sizes is None else sizes)
    needed = topological_order(listed)
    extents.check_known([as_expr(e) for tensor in needed for e in tensor.shape])
    total = Cost()
    for tensor in definitions_in(needed):
        total += _cost_of(tensor, extents)
    return total


def own_points(tensor: Compute) -> int | None:
    """The iterations of ``tensor`` alone; None where they depend on symbolic sizes."""
    try:
        return _cost_of(tensor, _Extents({})).iterations
    except ShapeError:
        return None


class _Extents:
    """The extents of axes as integers."""

    def __init__(self, sizes: Mapping[Var | str, int]) -> None:
        given = a_mapping(sizes, "sizes of te.cost", "{te.var: number}").items()
        self._sizes = {_size(size): as_expr(_number(n, size)) for size, n in given}

    def check_known(self, shapes: Iterable[Expr]) -> None:
        """That each size that is given is one of ``shapes``."""
        known = sorted({n.name for e in dict.fromkeys(shapes) for n in all_of(Var, e)})
        for name in self._sizes:
            if name not in known:
                has = f"; their sizes are {', '.join(known)}" if known else ", whose sizes are all numbers"
                raise ArgumentError(f"te.cost: no size of these tensors is called {name}{has}")

    def of(self, axes: Sequence[Axis], name: str) -> int:
        """The number of points of ``axes``, in the tensor called ``name``."""
        return prod(self._extent(axis, name) for axis in axes)

    def _extent(self, axis: Axis, name: str) -> int:
        match axis.lo, axis.hi:
            case Const(int() as lo), Const(int() as hi):
                return max(int(hi) - int(lo), 0)
        extent = axis.hi - axis.lo
        own = {
            n: self._sizes[n.name] for n in postorder(extent) if isinstance(n, Var) and n.name in self._sizes
        }
        form = linear(substitute(extent, own))
        for atom in form.terms:
            unknown = [node.name for node in all_of(Var, atom)]
            if unknown:
                raise ShapeError(
                    f"cost of {name}: axis {axis.name} has `{text(axis.extent)}` points, and the size {unknown[0]} is "
                    f"symbolic; give it a value, as in te.cost(tensors, sizes={{{unknown[0]!r}: 8}})"
                )
            raise ShapeError(
                f"cost of {name}: the range of axis {axis.name} depends on `{text(atom)}`, which has no value"
            )
        return max(form.constant, 0)


def _size(size: Any) -> str:
    """The name of a size."""
    if isinstance(size, str):
        return size
    return one_of_type(size, Var, "a key of the sizes of te.cost", "a te.var or its name").name


def _number(value: Any, size: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"the size {size} of te.cost is {described(value)}; give an integer")
    least = size.least if isinstance(size, Var) else 1
    if value < least:
        raise ArgumentError(f"the size {size} of te.cost is {value}; give an integer of at least {least}")
    return int(value)


def _cost_of(tensor: Compute, extents: _Extents) -> Cost:
    elements = extents.of(tensor.axes, tensor.name)
    # What one evaluation of each reduction takes; inner reductions come before outer ones.
    known: dict[Reduce, Cost] = {}
    for node in reductions(tensor.body):
        points = extents.of(node.axes, tensor.name)
        inner = _scope(node.children, known)
        combining = _scope(node.reducer.results, {}).multiplications
        known[node] = Cost(points * max(inner.iterations, 1), points * (inner.multiplications + combining))
    # A sum at positions that are data meets each of its points once, for all the elements that they may go to.
    fewer = {
        n: max(1, extents.of(told, tensor.name)) for n in known if (told := told_by_data(n, tensor.axes))
    }
    element = _scope(
        (tensor.body,), {n: c for n, c in known.items() if n not in fewer} | dict.fromkeys(fewer, Cost())
    )
    total = Cost(elements * max(element.iterations, 1), elements * element.multiplications, elements)
    for node, times in fewer.items():
        own = known[node]
        total += Cost(elements // times * own.iterations, elements // times * own.multiplications)
    return total


def told_by_data(node: Reduce, axes: Sequence[Axis]) -> list[Axis]:
    """Those of ``axes`` whose value a condition of ``node`` tells for each of its points: ``a`` of ``where I[i] + k == a``."""
    found: dict[Axis, None] = {}
    for condition in conjuncts(node.where):
        if isinstance(condition, Call) and condition.op is ops.EQUAL and reads_of(condition):
            form = difference(condition)
            if form is None:  # bits, or a comparison of data that are no positions
                continue
            told = (a for a in axes if form.coefficient(a) in (1, -1) and a not in found)
            found |= dict.fromkeys(itertools.islice(told, 1))
    return list(found)


def _scope(roots: Sequence[Expr], known: Mapping[Reduce, Cost]) -> Cost:
    """One evaluation of a scope with the reductions in it."""
    total, operations = Cost(), 0
    seen: set[tuple[object, ...]] = set()
    for node in reached(roots, lambda node: () if isinstance(node, Reduce) else node.children):
        if isinstance(node, Reduce):
            # the results of a tuple reduction are found in one pass
            one_pass = (node.reducer, node.exprs, node.axes, node.where)
            if one_pass not in seen:
                seen.add(one_pass)
                total += known[node]
        elif isinstance(node, Call) and node.op.name not in _FREE:
            operations += 1
    return total + Cost(multiplications=operations)
