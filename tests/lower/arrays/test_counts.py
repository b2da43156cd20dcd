"""What is counted from nodes: operations, points, bytes; each number here is worked out by hand."""

from __future__ import annotations

import pytest

from jaxte.lang.expr import Expr, Var, as_expr
from jaxte.lang.operators import ADD
from jaxte.lower.arrays.counts import bytes_of, flops, held_bytes, in_turns, points, reordered, total_flops
from jaxte.lower.arrays.data import Scatter
from jaxte.lower.arrays.elementwise import Apply, Name, Number
from jaxte.lower.arrays.loops import Each, Parts, Stacked, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Convolution, Einsum, Reduced, ReduceWindow, Tensordot
from jaxte.lower.arrays.views import Index, Range, Transpose, View
from jaxte.sets.intervals import extent_of


def name(identifier: str, *extents: int | Expr, dtype: str = "float32") -> Name:
    return Name(identifier, tuple(map(as_expr, extents)), (dtype, False))


X, Y, AT = name("X", 4, 6), name("Y", 6, 5), name("I", 3, dtype="int32")
IMAGE, KERNEL = name("IMAGE", 2, 4, 7), name("KERNEL", 6, 2, 3)
ZERO = as_expr(0)
SPARSE = Convolution(IMAGE, KERNEL, (1,), ((ZERO, ZERO),), (2,), (1,), ("NCX", "OIX", "NCX"), as_expr(2))
WINDOWS = ReduceWindow("sum", X, Number(0.0), (2, 3), (1, 1), ((ZERO, ZERO), (ZERO, ZERO)), (1, 1), (1, 1))

COUNTED: list[tuple[Node, int, float]] = [
    (Apply(ADD, (X, Number(1.0))), 24, 24),
    (Einsum("ij,jk->ik", (X, Y)), 120, 240),  # a product and a sum at each of 4 * 6 * 5
    (Einsum("ij->i", (X,)), 24, 24),
    (Tensordot(X, Y), 120, 240),
    (Reduced("sum", X, (1,)), 24, 24),
    (WINDOWS, 72, 72),  # 3 * 4 windows of 6
    (Scatter(X, (AT,), "add", name("V", 3, 6)), 18, 18),
    (
        SPARSE,
        2 * 6 * 11 * 2 * 3,
        2 * 2 * 6 * 11 * 2 * 3 / 2,
    ),  # 13 elements with zeros; two input features in a group
    (View(X, Index((Range(None, as_expr(2)),))), 12, 0),
]


@pytest.mark.parametrize(("node", "of_loop", "operations"), COUNTED, ids=lambda n: type(n).__name__)
def test_counts(node: Node, of_loop: int, operations: float) -> None:
    assert points(node) == of_loop and flops(node) == operations


def test_bytes() -> None:
    assert bytes_of(X) == 96 and bytes_of(name("B", 4, 6, dtype="bfloat16")) == 48
    doubled = Apply(ADD, (X, X))
    assert held_bytes(doubled) == 0  # it is part of what reads it
    assert held_bytes(Stacked((X, X), 0)) == 192
    assert held_bytes(Einsum("ij,jk->ik", (doubled, Y))) == 96  # the factor, which is more than the product


THREE, SQUARE, ONE_WIDE = name("T", 2, 4, 6), name("S", 6, 6), name("O", 4, 1, 6)
REORDERED: list[tuple[Node, int]] = [
    (Einsum("ij,jk->ik", (X, Y)), 0),
    (Einsum("ij,jk->ki", (X, Y)), 0),  # the factors exchanged
    (Einsum("ij,kj->ik", (X, SQUARE)), 0),  # the second factor transposed, which products of matrices take
    (Einsum("bij,jk->bik", (THREE, Y)), 0),  # rows of b and i
    (Einsum("bij,jk->bki", (THREE, Y)), 2 * 4 * 5),  # the result
    (Einsum("bij,ik->bjk", (THREE, name("Z", 4, 3))), 2 * 4 * 6),  # what is summed stands in the middle
    (Einsum("bij,bik->bjk", (THREE, name("Z", 2, 4, 3))), 0),  # and here it does not
    (Einsum("ioj,jk->iok", (ONE_WIDE, Y)), 0),
    (View(X, Transpose((1, 0))), 24),
    (View(ONE_WIDE, Transpose((1, 0, 2))), 0),
]


@pytest.mark.parametrize(("node", "elements"), REORDERED, ids=lambda n: getattr(n, "spec", None))
def test_elements_that_change_places(node: Node, elements: int) -> None:
    assert reordered(node) == elements


def test_a_symbolic_extent_counts_as_it_is_asked_for() -> None:
    node = Apply(ADD, (name("X", Var("n"), 3), Number(1.0)))
    assert points(node) == 3 and points(node, extent_of) == 3 * 1024


def test_what_is_in_a_loop_counts_in_each_turn() -> None:
    turns, inner = loop("k", 3), loop("l", 2)
    row = View(X, Index((as_expr(0), Range(turns.axis, turns.axis + 2))))
    squares = Each(Total(Each(Apply(ADD, (row, Number(1.0))), (inner,))), (turns,))
    counts = {type(node).__name__: times for node, times in in_turns(Stacked((squares,), 0))}
    assert counts["Apply"] == 6 and counts["Total"] == 3 and counts["Stacked"] == 1
    assert total_flops([Stacked((squares,), 0)], extent_of, Apply) == 6 * points(
        Apply(ADD, (row, Number(1.0))), extent_of
    )


def test_parts_of_an_array_are_split_once() -> None:
    half = name("half", 2, 6)
    doubled = Apply(ADD, (X, X))
    halves = Each(Reduced("sum", half, (0,)), (Parts((half,), (doubled,), (0,), 2),))
    counts = {type(node).__name__: times for node, times in in_turns(Stacked((halves,), 0))}
    assert counts["Apply"] == 1 and counts["Reduced"] == 2
