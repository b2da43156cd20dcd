"""``te.define``: formulas as functions, beside plain NumPy."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


x, A, X, W = drawn(6), drawn(4, 6), drawn(2, 10, 3), drawn(3, 3, 4)


@pytest.mark.parametrize(
    ("text", "inputs", "expected"),
    [
        ("Y[i] = sum[k](A[i, k] * x[k])", (A, x), A @ x),
        ("Y[i] = sum[k < 3](x[i + k])", (x,), [x[i : i + 3].sum() for i in range(4)]),
        ("Y[i] = sum[i <= k](x[k])  (i < 6)", (x,), x[::-1].cumsum()[::-1]),
        ("Y[i] = sum over i - 2 < k <= i where x[k] > 0 of x[k] * 2  (i < 6)", (x,), [2 * sum(max(x[k], 0) for k in (i - 1, i) if k >= 0) for i in range(6)]),
        ("Y = logsumexp[i](x[i])", (x,), jax.nn.logsumexp(x)),
        ("Y[] = logsumexp[i](x[i], where=i < 3)", (x,), jax.nn.logsumexp(x[:3])),
        ("Y[i] = mean[k](A[i, k], where=k > 1)", (A,), A[:, 2:].mean(1)),
        ("Y[j] = x[j] - mean[k](x[k])", (x,), x - x.mean()),
        ("Y[i] = a * x[end - i] + pi", (2.0, x), 2 * x[::-1] + np.pi),
        ("Y[i, j] = A[i, j] if 1 <= i < 3 and not i == j else -inf", (A,), np.where((np.arange(4)[:, None] >= 1) & (np.arange(4)[:, None] < 3) & ~np.eye(4, 6, dtype=bool), A, -np.inf)),
        ("Y[i] = argmax[k](A[i, k])", (A,), A.argmax(1)),
        ("Y[i, o] = float32(i) + x[i]  (o < 2)", (x,), np.stack([np.arange(6) + x] * 2, 1)),
        ("M[i] = max[k](A[i, k])\nE[i, k] = exp(A[i, k] - M[i])\nS[i, k] = E[i, k] / sum[m](E[i, m])", (A,), jax.nn.softmax(A)),
        ("# a norm\nY = sqrt(sum[i](\n    x[i] ** 2\n))  # along i", (x,), np.linalg.norm(x)),
    ],
)  # fmt: skip
def test_values(text: str, inputs: tuple[Any, ...], expected: Any) -> None:
    np.testing.assert_allclose(te.define(text)(*inputs), expected, rtol=1e-4, atol=1e-5)


def test_a_program_and_its_gradient() -> None:
    f = te.define(
        """Y[b, t, o] = sum[k, c](X[b, t + k, c] * W[k, c, o])
           Z[b, o] = max[t](relu(Y[b, t, o]))"""
    )

    def plain(X: Any, W: Any) -> Any:
        y = sum(jnp.einsum("btc,co->bto", X[:, k : k + 8], W[k]) for k in range(3))
        return jnp.max(jax.nn.relu(y), 1)

    np.testing.assert_allclose(f(X, W), plain(X, W), rtol=1e-4)
    np.testing.assert_allclose(f(W=W, X=X), plain(X, W), rtol=1e-4)
    for n in (0, 1):
        own, expected = (jax.grad(lambda *a, g=g: (g(*a) ** 2).sum(), n)(X, W) for g in (f, plain))
        np.testing.assert_allclose(own, expected, rtol=1e-3, atol=1e-4)
    assert "scatter" not in str(jax.make_jaxpr(jax.grad(lambda X: f(X, W).sum()))(X))


def test_several_outputs_sizes_and_functions() -> None:
    f = te.define("Y[i] = half(x[i])\nZ[i] = x[i % n] + n\nV[i] = largest[k](A[i, k])", n=3, i=4,
                  half=lambda v: v / 2, largest=te.comm_reducer(te.maximum, float("-inf"), "largest"))  # fmt: skip
    y, z, v = f(x[:4], A)
    np.testing.assert_allclose(y, x[:4] / 2)
    np.testing.assert_allclose(z, x[np.arange(4) % 3] + 3)
    np.testing.assert_allclose(v, A.max(1))


def test_pairs_and_ties() -> None:
    pick = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.maximum(a[1], b[1])),
        lambda t0, t1: (te.const(-1, t0), te.const(float("-inf"), t1)),
        "pick",
    )
    found = te.define("P[i] = pick over k of (int32(k), A[i, k])[0]  (i < 4, k < 6)", pick=pick)(A)
    np.testing.assert_array_equal(found, A.argmax(1))
    equal = jnp.ones(4)
    assert jax.grad(lambda x: te.define("Y = max[k](x[k], ties=first)")(x))(equal).tolist() == [1, 0, 0, 0]
    assert jax.grad(lambda x: te.define("Y = max[k](x[k])")(x))(equal).tolist() == [0.25] * 4


def test_declared_inputs() -> None:
    f = te.define("A: float32(4, 6)\nx: float32(n)\nY[i] = sum[k](A[i, k] * x[k])", n=6)
    np.testing.assert_allclose(f(A, x), A @ x, rtol=1e-5)
    with pytest.raises(
        te.ShapeError,
        match=r"A is given with the shape \(3, 6\), and stands here with \(4, 6\)\n  A: float32",
    ):
        f(A[:3], x)
    with pytest.raises(te.DefinitionError, match="x is given as int32, and stands here as float32"):
        f(A, np.arange(6, dtype="int32"))


def test_a_formula_goes_on_behind_an_operator_and_may_have_signs_of_mathematics() -> None:
    a = np.float32([[1, 2, 3], [4, 5, 6]])
    text = """Y[i] = ∑[k](a[i, k] × 2) −
                     a[i, 0]
              Z[i] = Y[i] if Y[i] ≤ 20 else 20"""
    np.testing.assert_array_equal(te.define(text)(a), np.minimum(2 * a.sum(1) - a[:, 0], 20))


def test_an_axis_hides_the_size_of_its_name() -> None:
    x = np.arange(6, dtype="float32")
    prefix = te.define("y[n] = sum[i <= n](x[i])", n=6)
    np.testing.assert_array_equal(prefix(x), np.cumsum(x))
    assert repr(prefix) == "<te.define: y[n] = sum[i <= n](x[i])>"
    short = te.define("y[m] = sum[i < n](x[i]) + sum[i < m](x[i])", m=3, n=4)
    np.testing.assert_array_equal(short(x), 6 + np.float32([0, 0, 1]))


@pytest.mark.parametrize(
    ("power", "remedy"),
    [
        ("2**40", "2.0**40"),
        ("2**-1", "2.0**-1"),
        ("9**9**9", "9.0**387420489"),
        ("n**5", "100000.0**5"),
    ],
)
def test_powers_of_integers_that_are_none_of_32_bits(power: str, remedy: str) -> None:
    """They were wrapped in silence."""
    formula = te.define(f"Y[i] = {power} * X[i]", **({"n": 100_000} if "n" in power else {}))
    with pytest.raises(te.ArgumentError, match=re.escape(f"write {remedy} for the number")):
        formula(jnp.ones(3))
    np.testing.assert_array_equal(te.define("Y[i] = 2**10 * X[i]")(jnp.ones(3)), np.full(3, 1024))
