"""Rows gathered at positions that may be out of range: what functions of them are emitted as, and that every element stays what it was."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, E = 9, 40
FILL = 'mode="fill"'
X = te.placeholder((N, 4), name="x")
V, W = te.placeholder((3, N), name="v"), te.placeholder((N,), name="w")
S, T = (te.placeholder((E,), "int32", name) for name in "st")

# definition, the same in NumPy of the rows that are read
FUNCTIONS: dict[str, tuple[te.Tensor, Any]] = {
    "differences along edges": (
        te.compute((E, 4), lambda e, c: te.tanh(X[S[e], c] - X[T[e], c]), "d"),
        lambda at, x, v, s, t: np.tanh(at(x, s, 0) - at(x, t, 0)),
    ),
    "a step later": (
        te.compute((4, E), lambda c, e: te.exp((X[S[e], c] * 2 + 1) * X[T[e], c]), "d"),
        lambda at, x, v, s, t: np.exp((at(x, s, 0) * 2 + 1) * at(x, t, 0)).T,
    ),
    "columns": (
        te.compute((3, E), lambda b, e: te.log1p(V[b, S[e]] ** 2), "d"),
        lambda at, x, v, s, t: np.log1p(at(v, s, 1) ** 2),
    ),
}
CHEAP = te.compute((E, 4), lambda e, c: te.relu(X[S[e], c] - X[T[e], c]), "d")


def rows(array: np.ndarray, at: np.ndarray, axis: int) -> np.ndarray:
    """What is there, and NaN where nothing is."""
    found = np.take(array, np.clip(at, 0, N - 1), axis)
    inside = ((at >= 0) & (at < N)).reshape([-1 if n == axis else 1 for n in range(array.ndim)])
    return np.where(inside, found, np.nan)


def arrays(rng: np.random.Generator) -> list[np.ndarray]:
    """With zeros of both signs and infinity in them, and positions in range, below and above."""
    x, v = (rng.standard_normal(s).astype("float32") for s in ((N, 4), (3, N)))
    x[2], x[3], x[4, 0], v[1, 2:5] = 0.0, -0.0, np.inf, (-0.0, 0.0, -np.inf)
    return [x, v, *(rng.integers(-3, N + 3, E).astype("int32") for _ in "st")]


def of(y: te.Tensor, platform: str = "cpu") -> Any:
    return te.function([X, V, S, T], y, platform=platform)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_is_multiplied_in(name: str, rng: np.random.Generator) -> None:
    y, expected = FUNCTIONS[name]
    given = arrays(rng)
    text = of(y).source().split("\ndef backward(")[0]
    assert FILL not in text and 'mode="clip"' in text and "_inside / " in text
    found = of(y)(*given)
    np.testing.assert_allclose(found, expected(rows, *given), rtol=2e-5, atol=1e-6)


def test_every_element_is_what_it_was(rng: np.random.Generator) -> None:
    """A function that tells zeros of both signs apart."""
    x, v, s, t = arrays(rng)
    y = te.compute((E, 4), lambda e, c: te.exp(1 / X[S[e], c]), "d")
    found = np.asarray(of(y)(x, v, s, t))
    assert "_inside / " in of(y).source()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, np.exp(1 / rows(x, s, 0)), rtol=2e-5)


def test_only_before_functions_and_where_it_gains() -> None:
    """What is cheap, or no row, is computed in vectors anyway; elsewhere than on the CPU a choice is as fast."""
    assert FILL in of(CHEAP).source() and "_inside" not in of(CHEAP).source()
    single = te.compute((E,), lambda e: te.exp(W[S[e]]), "d")
    assert FILL in te.function([W, S], single).source()
    y, _ = FUNCTIONS["differences along edges"]
    assert FILL in of(y, "gpu").source() and FILL in of(y, "tpu").source()


def test_gradients_drop_what_is_outside(rng: np.random.Generator) -> None:
    """Beside the rows of NumPy: each function is computed once for both ends of an edge, in one text."""
    x, v, s, t = arrays(rng)
    x = np.where(np.isfinite(x), x, 1).astype("float32")
    y, _ = FUNCTIONS["differences along edges"]
    h = rng.standard_normal((E, 4)).astype("float32")
    _, pull = jax.vjp(lambda x: of(y)(x, v, s, t), jnp.asarray(x))
    slope = h * (1 - np.tanh(rows(x, s, 0) - rows(x, t, 0)) ** 2)
    expected = np.zeros_like(x, "float64")
    for e in range(E):
        for at, sign in ((s[e], 1), (t[e], -1)):
            if 0 <= at < N:
                expected[at] += sign * slope[e]
    np.testing.assert_allclose(pull(h)[0], expected, rtol=1e-4, atol=1e-5)
