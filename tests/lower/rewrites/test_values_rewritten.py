"""Bodies that a rewrite takes, and near misses that look like them: the same values before and after, by plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.lower.rewrites.disjoint_terms import without_disjoint_sums
from jaxte.lower.rewrites.merge_sums import with_shared_calls
from jaxte.lower.rewrites.stack_slices import with_stacked_terms
from jaxte.lower.views.scope import Scope
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute

A, B, C = (te.placeholder((3, 5), "float64", name=name) for name in "ABC")
X, S = (te.placeholder((6, 4), "float64", name=name) for name in "XS")
W = te.placeholder((2, 4, 8), "float64", name="W")
Z = te.placeholder((9,), "float64", name="Z")
k, q = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 4), "q")

Body = Callable[[Axis, Axis], Expr]


def exponential(i: Expr, other: te.Tensor) -> Expr:
    return te.sum(te.exp(A[i, k]) * other[i, k], axis=k)


def disjoint(root: Expr, axes: tuple[Axis, ...]) -> Expr:
    return without_disjoint_sums(root, axes, Scope(axes))


# a rewrite, the extents of two axes, a body over them, and whether it is one for the rewrite
BODIES: dict[str, tuple[Callable[..., Expr], tuple[int, int], Body, bool]] = {
    "sums of different signs": (
        lambda root, axes: with_shared_calls(root),
        (3, 1),
        lambda i, j: exponential(i, B) - exponential(i, C),
        True,
    ),
    "sums under different conditions": (
        lambda root, axes: with_shared_calls(root),
        (3, 1),
        lambda i, j: te.select(i < 2, exponential(i, B), 0.0) + exponential(i, C),
        False,
    ),
    "sums under one condition": (
        lambda root, axes: with_shared_calls(root),
        (3, 1),
        lambda i, j: te.select(i < 2, exponential(i, B), 0.0) - te.select(i < 2, exponential(i, C), 0.0),
        True,
    ),
    "products with slices": (
        lambda root, axes: with_stacked_terms(root),
        (6, 8),
        lambda i, j: te.sum(X[i, q] * W[0, q, j] + S[i, q] * W[1, q, j], axis=q),
        True,
    ),
    "products with slices the other way round": (
        lambda root, axes: with_stacked_terms(root),
        (6, 8),
        lambda i, j: te.sum(X[i, q] * W[0, q, j] + S[i, q] * W[1, q, 7 - j], axis=q),
        False,
    ),
    "terms apart": (
        disjoint,
        (9, 1),
        lambda i, j: te.select(i < 4, Z[i], 0.0) + te.select((i >= 4) & (i < 9), Z[8 - i] * 2, 0.0),
        True,
    ),
    "terms apart, one with a hole": (
        disjoint,
        (9, 1),
        lambda i, j: (
            te.select((i < 4) & te.not_equal(i, 2), Z[i], 0.0)
            + te.select((i >= 4) & (i < 8) & te.not_equal(i, 6), Z[8 - i] * 2, 0.0)
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_values_are_the_same(name: str, rng: np.random.Generator) -> None:
    rewrite, extents, body, taken = BODIES[name]
    axes = tuple(Axis(n, 0, e) for n, e in zip("ij", extents, strict=True))
    root = body(*axes)
    new = rewrite(root, axes)
    assert (new is not root) == taken
    before, after = (Compute("y", axes, expr) for expr in (root, new))
    inputs = [t for t in topological_order([before]) if isinstance(t, Placeholder)]
    feeds = {t: rng.normal(size=t.shape) for t in inputs}
    np.testing.assert_allclose(te.interpret(after, feeds), te.interpret(before, feeds), rtol=1e-12)
