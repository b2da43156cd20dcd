"""Elements repeated along rows of registers are one sum over windows on a TPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def repeated(*times: int) -> Any:
    def build(x: Any) -> Any:
        shape = tuple(e * t for e, t in zip(x.shape, times, strict=True))
        return te.compute(shape, lambda *at: x[tuple(i // t for i, t in zip(at, times, strict=True))], "y")

    return build


def text(build: Any, x: Any, platform: str = "tpu") -> str:
    return str(te.source(te.function(build, platform=platform), x)).partition("def backward")[0]


@pytest.mark.parametrize(
    ("times", "shape"), [((1, 2, 2), (3, 4, 5)), ((2, 3, 1), (2, 3, 4)), ((1, 1, 4), (2, 3, 4))]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_repeats_along_rows_are_one_call(times: tuple[int, ...], shape: tuple[int, ...], dtype: str) -> None:
    x = np.asarray(np.arange(np.prod(shape)).reshape(shape) - 7, dtype)
    x[0, 0, 0], x[1, 1, 1] = np.nan, np.inf
    build = repeated(*times)
    assert text(build, x).count("reduce_window") == 1 and "jnp.repeat" not in text(build, x)
    assert "jnp.repeat" in text(build, x, "cpu") and "jnp.repeat" in text(build, x, "gpu")
    expected, pull = jax.vjp(
        lambda x: jnp.repeat(jnp.repeat(jnp.repeat(x, times[0], 0), times[1], 1), times[2], 2), x
    )
    found, own = jax.vjp(te.function(build, platform="tpu"), x)
    head = jnp.ones_like(expected)
    for a, b in ((found, expected), (own(head)[0], pull(head)[0])):
        np.testing.assert_array_equal(np.asarray(a, "float32"), np.asarray(b, "float32"))


@pytest.mark.parametrize(
    ("times", "dtype"), [((2, 1, 1), "float32"), ((1, 1, 32), "float32"), ((1, 1, 2), "int32")]
)
def test_what_lies_apart_is_long_or_counts_is_repeated(times: tuple[int, ...], dtype: str) -> None:
    x = np.zeros((3, 4, 5), dtype)
    assert "jnp.repeat" in text(repeated(*times), x) and "reduce_window" not in text(repeated(*times), x)


def test_maxima_of_strided_windows_are_one_call() -> None:
    def pooled(x: Any) -> Any:
        p, q = te.reduce_axis((0, 2), "p"), te.reduce_axis((0, 2), "q")
        b, n, m, c = x.shape
        return te.compute(
            (b, n // 2, m // 2, c),
            lambda b, i, j, c: te.max(x[b, 2 * i + p, 2 * j + q, c], axis=(p, q)),
            "y",
        )

    x = np.zeros((2, 64, 64, 32), "float32")
    assert "lax.reduce_window" in text(pooled, x) and "::2" not in text(pooled, x)
