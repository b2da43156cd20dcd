"""What may be infinite at points that a condition excludes counts for nothing: the mask is where it is, or it is zero where no point is left."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor
from tests.lower.evaluation.program import evaluate_program
from tests.lowered import program_of, text_of

SHAPES = {"M": (3, 4), "W": (3, 4), "X": (3,), "Y": (4,), "Z": (4, 5)}
M, W, X, Y, Z = (te.placeholder(shape, "float64", name) for name, shape in SHAPES.items())
MASK = np.array([[1.0, -1, 1, -1], [1, -1, 1, -1], [-1, -1, -1, -1]])
FEEDS = {
    M: MASK,
    W: np.arange(1.0, 13).reshape(3, 4),
    X: np.array([0.5, 1.5, 0.0]),
    Y: np.array([2.0, 0, 1, -1]),
    Z: np.where(np.arange(4)[:, None] % 2, 0.0, 1.5) * np.ones(5),
}


def axes() -> tuple[te.Axis, te.Axis]:
    return te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 4), "k")


def in_one_operand() -> Compute:
    """The quotient has fewer dimensions than the mask, which another operand has."""
    i, k = axes()
    return te.compute((), lambda: te.sum(X[i] / Y[k], axis=[i, k], where=M[i, k] > 0), "S")


def for_each_column() -> Compute:
    """The logarithm has a dimension that the mask has not: a product of matrices, whose rows are zero where no point takes them."""
    k = te.reduce_axis((0, 4), "k")
    return te.compute((3, 5), lambda i, j: te.sum(W[i, k] * te.log(Z[k, j]), axis=k, where=M[i, k] > 0), "S")


def outside() -> Compute:
    """What does not depend on what is summed over is infinite where there is nothing to sum."""
    k = te.reduce_axis((0, 4), "k")
    return te.compute((3,), lambda i: te.sum(Y[k] * (1 / X[i]), axis=k, where=M[i, k] > 0), "S")


@pytest.mark.parametrize("make", [in_one_operand, for_each_column, outside])
def test_what_is_excluded_counts_for_nothing(make: object) -> None:
    output: Compute = make()  # type: ignore[operator]
    head = te.placeholder(output.shape, "float64", "H")
    read: list[Placeholder] = [t for t in output.inputs if isinstance(t, Placeholder) and t is not M]
    results: list[Tensor] = [output, *te.differentiate(output, read, head=head)]
    feeds = {**FEEDS, head: np.ones(output.shape)}
    for tensor in results:
        program = program_of(tensor)
        (found,) = evaluate_program(program, [feeds[t] for _, t in program.params])
        (meant,) = te.interpret([tensor], {t: feeds[t] for _, t in program.params})
        assert np.isfinite(meant).all()
        np.testing.assert_allclose(found, meant, rtol=1e-12, err_msg=tensor.name)


def test_matrices_stay_a_product_of_matrices() -> None:
    assert "jnp.einsum" in text_of(for_each_column())
    assert "jnp.any" in text_of(for_each_column())


def test_plain_elements_are_masked_once() -> None:
    """An input is taken to be finite, so one operand alone has the mask."""
    i, k = axes()
    S = te.compute((5,), lambda j: te.sum(X[i] * Z[k, j], axis=[i, k], where=M[i, k] > 0), "S")
    assert text_of(S).count("M > 0") == 1


A, B, P, V = (
    te.placeholder(shape, "float64", name)
    for shape, name in (((3, 2), "A"), ((4, 2), "B"), ((3, 4), "P"), ((5,), "V"))
)
KEPT = {
    A: np.array([[1.0, -1], [1, 1], [-1, 1]]),
    B: np.array([[1.0, -1], [-1, 1], [1, 1], [-1, -1]]),
    V: np.array([0.5, 1, 1.5, 2, 2.5]),
}
COMMON = np.einsum("ik,jk->ij", KEPT[A] > 0, KEPT[B] > 0)
KEPT[P] = np.where(COMMON, np.arange(1.0, 13).reshape(3, 4), -1.0)


def test_masks_that_leave_no_point_together() -> None:
    """Each mask holds for some ``k``, both for none: what only such points read counts for nothing."""
    i, j, k, m = (te.reduce_axis((0, n), name) for n, name in ((3, "i"), (4, "j"), (2, "k"), (5, "m")))
    where = (A[i, k] > 0) & (B[j, k] > 0)
    output = te.compute(
        (), lambda: te.sum(te.log(P[i, j]) * te.sqrt(V[m]), axis=[i, j, k, m], where=where), "S"
    )
    head = te.placeholder((), "float64", "H")
    for tensor in (output, *te.differentiate(output, [P, V], head=head)):
        program = program_of(tensor)
        feeds = {t: {**KEPT, head: np.ones(())}[t] for _, t in program.params}
        (meant,) = te.interpret([tensor], feeds)
        assert np.isfinite(meant).all()
        (found,) = evaluate_program(program, list(feeds.values()))
        np.testing.assert_allclose(found, meant, rtol=1e-12, err_msg=tensor.name)


def test_masks_within_and_around_a_sum() -> None:
    """``P[i, j]`` is read where one mask within the sum of the adjoint and one around it hold for the same ``k``."""
    kept, weight = te.placeholder((2,), "float64", "C"), te.placeholder((4, 2), "float64", "W")
    j = te.reduce_axis((0, 4), "j")
    output = te.compute(
        (3, 2),
        lambda i, k: te.sum(
            te.select((kept[k] > 0) & (A[i, k] > 0), weight[j, k] * te.sqrt(P[i, j]), 0.0), axis=j
        ),
        "S",
    )
    head = te.placeholder((3, 2), "float64", "H")
    (adjoint,) = te.differentiate(output, [weight], head=head)
    program = program_of(adjoint)
    feeds = {A: KEPT[A], head: np.ones((3, 2)), kept: np.array([-1.0, 1.0]), P: np.full((3, 4), 4.0)}
    feeds[P][0] = -1.0  # which the first ``k`` alone reads, that does not count
    (found,) = evaluate_program(program, [feeds[t] for _, t in program.params])
    np.testing.assert_array_equal(found, np.array([0.0, 4.0]) * np.ones((4, 1)))


@pytest.mark.parametrize("apart", [False, True])
def test_masks_around_a_sum_that_is_a_tensor(apart: bool) -> None:
    """Some element of the sum reads ``X[c, k]``, but none that the mask around it leaves: apart, the sum over ``k`` is a tensor for each ``c`` and ``i`` itself."""
    around, own = te.placeholder((2, 3), "float64", "M"), te.placeholder((3, 40), "float64", "N")
    root, weight = te.placeholder((2, 40), "float64", "X"), te.placeholder((40,), "float64", "W")
    other = te.placeholder((3, 50), "float64", "O")
    k, m = te.reduce_axis((0, 40), "k"), te.reduce_axis((0, 50), "m")

    def element(c: te.Axis, i: te.Axis) -> te.Expr:
        value = weight[k] * te.sqrt(root[c, k])
        if apart:
            value = te.sum(value, axis=[k, m], where=(own[i, k] > 0) & (other[i, m] > 0))
        else:
            value = te.sum(value, axis=k, where=own[i, k] > 0)
        return te.select(around[c, i] > 0, value, 0.0)

    feeds = {
        around: np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]]),
        own: np.repeat([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], 20, axis=1),
        root: np.repeat([[-1.0, 4.0], [4.0, -1.0]], 20, axis=1),
        weight: np.ones(40),
        other: np.ones((3, 50)),
    }
    (output,) = planned([te.compute((2, 3), element, "S")])
    program = program_of(output)
    (found,) = evaluate_program(program, [feeds[t] for _, t in program.params])
    np.testing.assert_array_equal(found, np.diag([40.0, 40.0, 0.0])[:2] * (50 if apart else 1))
