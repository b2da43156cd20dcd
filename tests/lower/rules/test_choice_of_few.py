"""Single elements of tables with few rows: each is compared with where it stands, and no element is gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

FORM = "choice of few"


def letters(p: te.Tensor, at: te.Tensor) -> te.Tensor:
    """Scores of motifs of letters along sequences."""
    q = te.reduce_axis((0, p.shape[1]), "q")
    shape = at.shape[0], p.shape[0], at.shape[1] - p.shape[1] + 1
    return te.compute(shape, lambda n, m, i: te.sum(p[m, q, at[n, i + q]], axis=q), "y")


def labels(x: te.Tensor, at: te.Tensor) -> te.Tensor:
    """What is predicted of the label of each row."""
    return te.compute(
        at.shape,
        lambda n: te.logsumexp(x[n, c := te.reduce_axis((0, x.shape[1]), "c")], axis=c) - x[n, at[n]],
        "y",
    )


def kinds(x: te.Tensor, at: te.Tensor) -> te.Tensor:
    """Bonds between kinds of neighbours, of which there are as many as rows."""
    return te.compute((at.shape[0] - 1,), lambda i: x[1, at[i]] * x[0, at[i + 1]], "y")


def palette(x: te.Tensor, at: te.Tensor) -> te.Tensor:
    """Images by planes, of pixels that name a colour."""
    return te.compute((x.shape[0], *at.shape), lambda c, i, j: x[c, at[i, j]], "y")


def plain_letters(p: Any, at: Any) -> Any:
    count = at.shape[1] - p.shape[1] + 1
    return sum(jnp.take(p[:, q], at[:, q : q + count], axis=1).transpose(1, 0, 2) for q in range(p.shape[1]))


Case = tuple[Callable[..., te.Tensor], Callable[..., Any], tuple[int, ...], tuple[int, ...]]
CASES: dict[str, Case] = {
    "letters": (letters, plain_letters, (5, 3, 4), (4, 700)),
    "labels": (
        labels,
        lambda x, at: jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, at[:, None], 1)[:, 0],
        (9000, 5),
        (9000,),
    ),
    "kinds": (kinds, lambda x, at: x[1][at[:-1]] * x[0][at[1:]], (2, 3), (9000,)),
    "palette": (palette, lambda x, at: x[:, at], (3, 8), (60, 70)),
}


def arrays(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    _, _, shape, block = CASES[name]
    return rng.standard_normal(shape).astype("float32"), rng.integers(0, shape[-1], block).astype("int32")


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_gathered(name: str, rng: np.random.Generator) -> None:
    builder, plain, _, _ = CASES[name]
    x, at = arrays(name, rng)
    fn = te.function(builder)
    assert FORM in fn.explain(x, at).forms["y"]
    assert "stablehlo.gather" not in jax.jit(fn).lower(x, at).as_text()
    np.testing.assert_allclose(fn(x, at), plain(x, at), rtol=1e-5, atol=1e-6)
    own, theirs = (jax.grad(lambda x, f=f: jnp.sum(jnp.sin(f(x, at))))(x) for f in (fn, plain))
    np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_elements_are_as_they_are_and_nothing_beyond(name: str, rng: np.random.Generator) -> None:
    """Infinities and NaN stay where they are read, and positions out of range give NaN; the interpreter says so."""
    builder, _, _, _ = CASES[name]
    x, at = arrays(name, rng)
    x.reshape(-1, x.shape[-1])[0, :2] = np.inf, np.nan
    at.reshape(-1)[[3, 50, 700]] = -1, x.shape[-1], 2**30
    given = [te.placeholder(a.shape, str(a.dtype), name) for a, name in ((x, "x"), (at, "at"))]
    y = builder(*given)
    feeds = dict(zip(given, (x, at), strict=True))
    found = te.function(builder)(x, at)
    assert np.isnan(found).any() and np.isfinite(found).any()
    np.testing.assert_allclose(found, te.interpret(y, feeds), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", "bfloat16"])
def test_elements_of_any_dtype(dtype: str, rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.standard_normal((2, 3)) * 50).astype(dtype)
    at = rng.integers(-2, 5, 9000).astype("int16")

    def rows(x: te.Tensor, at: te.Tensor) -> te.Tensor:
        return te.compute((2, 9000), lambda a, i: x[a, at[i]], "y")

    fn = te.function(rows)
    assert fn.explain(x, at).forms["y"] == FORM and fn(x, at).dtype == x.dtype
    fill = jnp.nan if jnp.issubdtype(x.dtype, jnp.inexact) else 0
    expected = x.at[:, at].get(mode="fill", fill_value=fill, wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(fn(x, at), "complex64"), np.asarray(expected, "complex64"))


def test_positions_in_range_need_no_comparison_with_the_last(rng: np.random.Generator) -> None:
    def folded(x: te.Tensor, at: te.Tensor) -> te.Tensor:
        return te.compute(at.shape, lambda i: x[at[i] % 3], "y")

    x, at = rng.standard_normal(3).astype("float32"), rng.integers(-9, 9, 9000).astype("int32")
    fn = te.function(folded)
    assert fn.source(x, at).count("jnp.where") == 2 and "nan" not in fn.source(x, at)
    np.testing.assert_array_equal(fn(x, at), x[at % 3])


def rows_of(shape: tuple[int, ...], block: int) -> str:
    def read(x: te.Tensor, at: te.Tensor) -> te.Tensor:
        return te.compute((block, *x.shape[1:]), lambda i, *j: x[(at[i], *j)], "y")

    given = jax.ShapeDtypeStruct(shape, "float32"), jax.ShapeDtypeStruct((block,), "int32")
    return te.function(read, platform="cpu").explain(*given).forms["y"]


def test_rows_and_large_tables_and_few_positions_are_gathered() -> None:
    assert rows_of((8,), 9000) == FORM
    assert rows_of((8, 3), 9000) == FORM
    assert rows_of((8, 64), 9000) == "gather"  # rows of 64 are copied in vectors
    assert rows_of((9,), 9000) == "gather"
    assert rows_of((8,), 100) == "gather"
