"""te.cost against counts made by hand."""

from __future__ import annotations

import pytest

from jaxte.lang.errors import ArgumentError, DefinitionError, ShapeError
from jaxte.lang.expr import Expr, as_expr, call
from jaxte.lang.operators import SELECT, Op
from jaxte.meaning.cost import Cost, cost
from jaxte.tensors.compute import compute
from jaxte.tensors.custom_reductions import comm_reducer
from jaxte.tensors.inputs import placeholder, var
from jaxte.tensors.reductions import max as te_max
from jaxte.tensors.reductions import prod, reduce_axis
from jaxte.tensors.reductions import sum as te_sum
from jaxte.tensors.tensor import Compute, Tensor, new_axes

EXP = Op("exp", "inexact", 1)

A = placeholder((4, 8), name="A")
x = placeholder((8,), name="x")


def test_elementwise() -> None:
    assert cost(compute((4, 8), lambda i, j: A[i, j] + 1.0)) == Cost(32, 0, 32)
    assert cost(compute((4, 8), lambda i, j: A[i, j] * A[i, j] / 2.0)) == Cost(32, 64, 32)


def test_a_placeholder_costs_nothing() -> None:
    assert cost(A) == Cost(0, 0, 0)


def test_a_contraction() -> None:
    k = reduce_axis((0, 8), "k")
    assert cost(compute((4,), lambda i: te_sum(A[i, k] * x[k], axis=k))) == Cost(32, 32, 4)


def test_calls_and_index_arithmetic_count_as_multiplications() -> None:
    flat = placeholder((32,), name="F")
    assert cost(compute((4, 8), lambda i, j: flat[8 * i + j])) == Cost(32, 32, 32)
    assert cost(compute((32,), lambda i: A[i // 8, i % 8])) == Cost(32, 64, 32)
    assert cost(compute((4, 8), lambda i, j: call(EXP, A[i, j]))) == Cost(32, 32, 32)


def test_choices_comparisons_and_maxima_count_nothing() -> None:
    k = reduce_axis((0, 8), "k")
    body = lambda i, j: call(SELECT, A[i, j] > 0, A[i, j], -A[i, j])  # noqa: E731
    assert cost(compute((4, 8), body)) == Cost(32, 0, 32)
    assert cost(compute((4,), lambda i: te_max(A[i, k], axis=k))) == Cost(32, 0, 4)


def test_conditions_count_at_every_point() -> None:
    k = reduce_axis((0, 8), "k")
    guarded = compute((4,), lambda i: te_sum(A[i, k], axis=k, where=k % 2 == 0))
    assert cost(guarded) == Cost(32, 32, 4)


def test_products_multiply_once_per_point() -> None:
    k = reduce_axis((0, 8), "k")
    assert cost(compute((4,), lambda i: prod(A[i, k], axis=k))) == Cost(32, 32, 4)
    assert cost(compute((4,), lambda i: prod(A[i, k] * x[k], axis=k))) == Cost(32, 64, 4)


def test_a_custom_combiner_counts_what_it_multiplies() -> None:
    k = reduce_axis((0, 8), "k")
    both = comm_reducer(lambda a, b: a + b + a * b, lambda dtype: as_expr(0.0))
    assert cost(compute((4,), lambda i: both(A[i, k], axis=k))) == Cost(32, 32, 4)


def test_a_tuple_reduction_is_one_pass() -> None:
    k = reduce_axis((0, 8), "k")
    pair = comm_reducer(
        lambda a, b: (a[0] + b[0], a[1] * b[1]), lambda s, t: (as_expr(0.0), as_expr(1.0)), "pair"
    )
    first, second = pair((A[0, k], A[1, k]), axis=k)
    together = Compute("Y", (), first + second)
    assert cost(together) == Cost(8, 8, 1)


def test_several_reductions_of_a_body_add_up_and_nested_ones_multiply() -> None:
    (i,) = new_axes((4,), ["i"])
    k, m = reduce_axis((0, 8), "k"), reduce_axis((0, 3), "m")
    rows, few = te_sum(A[i, k] * x[k], axis=k), te_sum(x[m], axis=m)
    # 4 elements, 8 + 3 points each; 8 multiplications inside, one outside
    assert cost(Compute("Y", (i,), rows * few)) == Cost(44, 36, 4)
    nested = te_sum(x[m] * te_sum(A[i, k] * x[m], axis=k), axis=m)
    # 3 * 8 points; 3 * (1 + 8) multiplications
    assert cost(Compute("Y", (i,), nested)) == Cost(96, 108, 4)


def test_a_node_counts_once_in_each_scope() -> None:
    (i,) = new_axes((4,), ["i"])
    k = reduce_axis((0, 8), "k")
    square = x[i] * x[i]
    assert cost(Compute("Y", (i,), square + square)) == Cost(4, 4, 4)
    assert cost(Compute("Y", (i,), square + te_sum(A[i, k] + square, axis=k))) == Cost(32, 36, 4)


def test_an_element_takes_one_iteration_at_least() -> None:
    k = reduce_axis((0, 0), "k")
    assert cost(compute((4,), lambda i: te_sum(A[i, k], axis=k))) == Cost(4, 0, 4)
    assert cost(compute((0, 8), lambda i, j: x[j] * 2.0)) == Cost(0, 0, 0)
    assert cost(compute((), lambda: x[0] * 2.0)) == Cost(1, 1, 1)


def test_shared_tensors_count_once() -> None:
    B = compute((4, 8), lambda i, j: A[i, j] * 2.0, "B")
    C, D = B + 1.0, B * B
    assert cost([C, D]) == Cost(96, 64, 96)
    assert cost(C) + cost(D) == Cost(128, 96, 128)
    assert cost([C, C]) == cost(C)


def test_symbolic_sizes() -> None:
    n = var("n")
    X = placeholder((n, 3), name="X")
    k = reduce_axis((0, n), "k")
    Y = compute((3,), lambda j: te_sum(X[k, j] * 2.0, axis=k), "Y")
    with pytest.raises(
        ShapeError, match=r"cost of Y: axis k has `n` points, and the size n is symbolic.*sizes="
    ):
        cost(Y)
    assert cost(Y, sizes={n: 5}) == cost(Y, sizes={"n": 5}) == Cost(15, 15, 3)
    half = compute((n // 2,), lambda i: X[2 * i, 0], "half")
    assert cost(half, sizes={n: 7}) == Cost(3, 3, 3)


def test_sizes_that_no_tensor_has_are_refused() -> None:
    n = var("n")
    Y = compute((n,), lambda i: 2 * placeholder((n,), name="x")[i], "Y")
    with pytest.raises(ArgumentError, match="no size of these tensors is called m; their sizes are n"):
        cost(Y, {"n": 3, "m": 4})
    with pytest.raises(ArgumentError, match="is called m, whose sizes are all numbers"):
        cost(placeholder((3,), name="x"), {"m": 4})


def test_what_is_not_a_tensor() -> None:
    with pytest.raises(DefinitionError, match="has int 3; give a Tensor or several"):
        cost([A, 3])  # type: ignore[list-item]


def test_depth_and_length_need_no_recursion() -> None:
    levels = 2000
    body: Expr = x[0]
    tensor: Tensor = x
    for level in range(levels):
        body = body * (1.0 + level)
        tensor = compute((8,), lambda i, t=tensor: t[i] * 2.0)
    deep = Compute("deep", (), body)
    assert cost([deep, tensor]) == Cost(8 * levels + 1, 9 * levels, 8 * levels + 1)
