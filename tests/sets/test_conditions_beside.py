"""Reads that a condition beside them, in ``&`` or ``|``, keeps in range."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.sets.conditions import same_condition
from jaxte.tensors.bodies import contexts
from jaxte.tensors.tensor import Tensor

N = 7
Condition = Callable[[Tensor, Expr], Expr]

CONDITIONS: dict[str, tuple[Condition, Callable[[np.ndarray, int], bool]]] = {
    "before": (lambda x, i: (i >= 1) & (x[i - 1] > 0), lambda x, i: i >= 1 and x[i - 1] > 0),
    "behind": (lambda x, i: (x[i - 1] > 0) & (i >= 1), lambda x, i: i >= 1 and x[i - 1] > 0),
    "excepted": (lambda x, i: (x[i + 2] > 0) | (i + 2 >= N), lambda x, i: i + 2 >= N or x[i + 2] > 0),
    "both ends": (
        lambda x, i: (i >= 1) & ((x[i - 1] > x[i + 1]) & (i < N - 1)),
        lambda x, i: 1 <= i < N - 1 and x[i - 1] > x[i + 1],
    ),
    "denied": (lambda x, i: ~((i < 1) | (x[i - 1] <= 0)), lambda x, i: i >= 1 and x[i - 1] > 0),
    "two of them": (
        lambda x, i: ((i >= 1) & (x[i - 1] > 0)) | ((i < N - 1) & (x[i + 1] < 0)),
        lambda x, i: (i >= 1 and x[i - 1] > 0) or (i < N - 1 and x[i + 1] < 0),
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_value_and_gradient(name: str, rng: np.random.Generator) -> None:
    condition, plain = CONDITIONS[name]

    @te.function
    def chosen(x: Tensor) -> Tensor:
        return te.compute((N,), lambda i: te.select(condition(x, i), x[i] ** 2, 3 * x[i]), "y")

    @te.function
    def masked(x: Tensor) -> Tensor:
        k = te.reduce_axis((0, N), "k")
        return te.compute((), lambda: te.sum(x[k] ** 2, axis=k, where=condition(x, k)), "s")

    a = rng.normal(size=N).astype("float32")
    holds = np.array([plain(a, i) for i in range(N)])
    np.testing.assert_allclose(chosen(a), np.where(holds, a**2, 3 * a), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda a: chosen(a).sum())(a), np.where(holds, 2 * a, 3), rtol=1e-6)
    np.testing.assert_allclose(masked(a), (a**2)[holds].sum(), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(masked)(a), np.where(holds, 2 * a, 0), rtol=1e-6)


@pytest.mark.parametrize(
    "outside",
    [
        lambda x, i: (i >= 0) & (x[i - 1] > 0),
        lambda x, i: (i >= 1) | (x[i - 1] > 0),
        lambda x, i: (x[i] > 0) & (x[i - 1] > 0),
    ],
)
@pytest.mark.parametrize("places", [1, None])
def test_what_does_not_keep_it_in_range(
    outside: Condition, places: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if places is not None:  # what all places have in common
        monkeypatch.setattr(contexts, "PLACES", places)
    x = te.placeholder((N,), name="x")
    with pytest.raises(te.RangeError, match=r"x\[i - 1\] reads x\[-1\] at i=0"):
        te.compute((N,), lambda i: te.select(outside(x, i), x[i], 0.0))


def test_formulas_read_what_derived_adjoints_write(rng: np.random.Generator) -> None:
    x, head = te.placeholder((N,), name="x"), te.placeholder((N,), name="h")

    def median(i: Expr) -> Expr:
        a, b, c = x[te.maximum(i - 1, 0)], x[i], x[te.minimum(i + 1, N - 1)]
        return te.maximum(te.minimum(a, b), te.minimum(te.maximum(a, b), c))

    (dx,) = te.differentiate(te.compute((N,), median, "y"), [x], head=head)
    written = te.definitions(dx)
    assert "1 <= i and " in written
    arrays = {t.name: rng.normal(size=N).astype("float32") for t in (x, head)}
    expected = te.evaluate(dx, {x: arrays["x"], head: arrays["h"]})
    np.testing.assert_allclose(te.define(written)(**arrays), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (lambda i, j: i < 3, lambda i, j: i <= 2, True),
        (lambda i, j: i < 3, lambda i, j: i < 4, False),
        (lambda i, j: i < 4, lambda i, j: i < 3, False),
        (lambda i, j: i + j >= 2, lambda i, j: 1 - j < i, True),
        (lambda i, j: i < j, lambda i, j: j < i, False),
    ],
)
def test_comparisons_that_hold_at_the_same_positions(
    first: Callable[[Expr, Expr], Expr], second: Callable[[Expr, Expr], Expr], same: bool
) -> None:
    i, j = te.reduce_axis((0, 9), "i"), te.reduce_axis((0, 9), "j")
    assert same_condition(first(i, j), second(i, j)) is same
