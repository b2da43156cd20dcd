"""Products of sums of small arrays are multiplied out: how many sums there are, that nothing of the size of all points is made, values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.planning.orders.distribution import distributed
from jaxte.tensors.tensor import Compute

N, D = 24, 16


def of(element: Any) -> Compute:
    """``element`` of q[i, d], k[j, d], r[i - j + n - 1, d], summed over d."""
    q, k, r = (te.placeholder(s, name=n) for n, s in (("q", (N, D)), ("k", (N, D)), ("r", (2 * N - 1, D))))
    d = te.reduce_axis((0, D), "d")
    return te.compute(
        (N, N), lambda i, j: te.sum(element(q[i, d], k[j, d], r[i - j + N - 1, d]), axis=d), "s"
    )


def sums(tensor: Compute) -> list[Reduce]:
    assert isinstance(tensor.body, Reduce)
    return distributed(tensor.body, tensor.axes)


@pytest.mark.parametrize(
    "element",
    [
        lambda q, k, r: q * (k + r),
        lambda q, k, r: r * (q + k),
        lambda q, k, r: (r + k) * (2 * q),
        lambda q, k, r: -(k + r) * q,
    ],
)
def test_each_term_is_a_product(element: Any) -> None:
    assert len(sums(of(element))) == 2


def test_constants_around_sums_of_products() -> None:
    """Each term is a product without a factor over all axes; one that has such a factor keeps all in one loop."""
    a, u, v = (te.placeholder(s, name=n) for n, s in (("a", (N, N)), ("u", (N, D)), ("v", (N, D))))
    i, j = te.reduce_axis((0, N), "i"), te.reduce_axis((0, N), "j")

    def doubled(term: Any) -> Compute:
        return te.compute(
            (D,),
            lambda k: te.sum(2 * (a[i, j] * u[i, k] / v[i, k] + term(k)) + a[i, j] * v[j, k], axis=(i, j)),
            "s",
        )

    assert len(sums(doubled(lambda k: -(a[i, j] * u[j, k])))) == 3
    assert len(sums(doubled(lambda k: te.exp(u[i, k] * a[i, j])))) == 1


@pytest.mark.parametrize(
    "element",
    [
        lambda q, k, r: q * (k - r),  # exact where both are close
        lambda q, k, r: (k + r) * (k + r),
        lambda q, k, r: te.log(q) * (k + r),  # inf * (3 + -2) is inf, inf * 3 + inf * -2 is not
        lambda q, k, r: q * te.exp(k + r),
    ],
)
def test_left_alone(element: Any) -> None:
    tensor = of(element)
    (same,) = sums(tensor)
    assert same is tensor.body


def test_short_sums_are_left_alone() -> None:
    x, y, w = (te.placeholder((n, 3), name=name) for n, name in ((N, "x"), (N, "y"), (1, "w")))
    c = te.reduce_axis((0, 3), "c")
    tensor = te.compute((N, N), lambda i, j: te.sum(w[0, c] * (x[i, c] + y[j, c]), axis=c), "s")
    (same,) = sums(tensor)
    assert same is tensor.body


def test_values_and_points(rng: np.random.Generator) -> None:
    tensor = of(lambda q, k, r: q * (k + r))
    inputs = list(tensor.inputs)
    arrays = [rng.standard_normal(tuple(map(int, t.shape))).astype("float32") for t in inputs]
    fn = te.function(inputs, tensor)
    by_name = {t.name: a for t, a in zip(inputs, arrays, strict=True)}
    q, k, r = (by_name[n] for n in "qkr")
    shifted = np.stack([[r[i - j + N - 1] for j in range(N)] for i in range(N)])
    np.testing.assert_allclose(fn(*arrays), np.einsum("id,ijd->ij", q, k[None] + shifted), atol=1e-5)
    # no operand of an einsum has a value for each point of the sum
    assert not re.search(r'einsum\("[^"]*ijd', fn.source())
