"""What a known mask takes of all pairs in a band is computed in blocks beside the diagonal: sliding and chunked attention."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.narrow.pairs import blocks_of

N = 256
ROW, COLUMN = np.arange(N)[:, None], np.arange(N)[None]
NEAR = np.abs(ROW - COLUMN) < 10
SLOPES = np.array([0.5, 0.25], "float32")[:, None, None]


def scores(q: Any, k: Any) -> Any:
    return q @ jnp.swapaxes(k, -1, -2) / 4


def attention(mask: Any, fill: Any = -jnp.inf, axis: int = -1) -> Any:
    """The sum of sines of attention with a mask, which is an array or made by a function."""

    def f(q: Any, k: Any, v: Any) -> Any:
        chosen = jnp.where(mask() if callable(mask) else mask, scores(q, k), fill)
        weights = jax.nn.softmax(chosen, axis)
        return jnp.sum(jnp.sin((weights if axis == -1 else jnp.swapaxes(weights, 1, 2)) @ v))

    return f


def near_by_iota() -> Any:
    i = jnp.arange(N)
    return jnp.abs(i[:, None] - i) < 10


def causal_window() -> Any:
    low = jnp.tril(jnp.ones((N, N), bool))
    return low & ~jnp.tril(low, -20)


def heads(q: Any, k: Any, v: Any) -> Any:
    """Grouped queries, by the function of jax.nn with a window."""
    several = [jnp.stack([x, 2 * x], 2) for x in (q, jnp.sin(q))]
    q4 = jnp.concatenate(several, 2)
    made = jax.nn.dot_product_attention(
        q4, jnp.stack([k, -k], 2), jnp.stack([v, v], 2), local_window_size=16, is_causal=True
    )
    return jnp.sum(jnp.sin(made))


def pair_energy(q: Any, k: Any, v: Any) -> Any:
    """The energy of points that are neighbours of a chain."""
    x = jnp.concatenate([q[0], k[0]])[:, :3]
    i = np.arange(2 * N)
    chosen = (np.abs(i[:, None] - i) < 8) & (i[:, None] != i)
    distances = jnp.sum((x[:, None] - x) ** 2, -1)
    return jnp.sum(jnp.where(chosen, jnp.exp(-distances), 0.0)) + jnp.sum(v)


TAKEN: dict[str, Any] = {
    "a window": attention(NEAR),
    "a window by positions": attention(near_by_iota),
    "a causal window": attention(causal_window),
    "chunks": attention(ROW // 32 == COLUMN // 32),
    "the least number": attention(NEAR, jnp.finfo("float32").min),
    "what is outside": lambda q, k, v: jnp.sum(
        jnp.sin(jax.nn.softmax(jnp.where(~NEAR, -jnp.inf, scores(q, k)), -1) @ v)
    ),
    "added": lambda q, k, v: jnp.sum(
        jnp.sin(jax.nn.softmax(scores(q, k) + np.where(NEAR, 0, -np.inf).astype("float32"), -1) @ v)
    ),
    "slopes": lambda q, k, v: jnp.sum(
        jax.nn.softmax(jnp.where(NEAR, scores(q, k) - SLOPES * jnp.abs(ROW - COLUMN), -jnp.inf)) @ v
    ),
    "a large number": attention(NEAR, -1e9),
    "no large number": attention(NEAR, -2.0),
    # rows of which nothing is left are means of all columns
    "rows without any": attention(NEAR & (ROW > 20), -3e38),
    "rows that data empty": lambda q, k, v: attention(NEAR & (v[0, :, 0] > 1), -1e9)(q, k, v),
    "rows that data choose": lambda q, k, v: jnp.sum(
        jnp.sin(jnp.where(v[0, :, :1] > 0, jax.nn.softmax(jnp.where(NEAR, scores(q, k), -3.0)), k[0, :, :1]) @ v)
    ),
    "the least of rows": lambda q, k, v: jnp.sum(
        jnp.sin(jnp.min(jnp.where(NEAR, scores(q, k) + 3, 9.0), -1)) + jnp.max(jnp.where(NEAR, scores(q, k), 1.0))
    ),
    "sums of heads": lambda q, k, v: jnp.sum(
        jnp.sin(jnp.sum(jax.nn.softmax(jnp.where(NEAR, scores(q, k), -1e4)), 0) @ v[0])
    ),
    "dropout": lambda q, k, v: jnp.sum(
        jnp.sin(
            jnp.where(
                jax.random.bernoulli(jax.random.key(1), 0.9, (2, N, N)),
                jax.nn.softmax(jnp.where(NEAR, scores(q, k), -jnp.inf)) / 0.9,
                0.0,
            )
            @ v
        )
    ),
    "a table": lambda q, k, v: jnp.sum(
        jnp.sin(
            jax.nn.softmax(
                jnp.where(NEAR, scores(q, k) + jnp.take(v[0].ravel(), COLUMN - ROW + N, axis=0), -jnp.inf)
            )
            @ v
        )
    ),
    "a table at positions of data": lambda q, k, v: jnp.sum(
        jnp.sin(
            jax.nn.softmax(
                jnp.where(
                    NEAR, scores(q, k) + v[0].ravel()[COLUMN - ROW + N + (k[0, :, :1] > 0)], -jnp.inf
                )
            )
            @ v
        )
    ),
    "windows of several widths": lambda q, k, v: attention(NEAR)(
        q, jax.nn.softmax(jnp.where(abs(ROW - COLUMN) < 30, scores(q, k), -jnp.inf)) @ v, k
    ),
    "a mask of data beside it": lambda q, k, v: attention((v[0, :, 0] > -9) & NEAR)(q, k, v),
    "columns first": attention(NEAR, axis=1),
    "heads mixed": lambda q, k, v: jnp.sum(
        jnp.einsum("gh,hij->gij", v[:, :2, 0], jax.nn.softmax(jnp.where(NEAR, scores(q, k), -jnp.inf)))
        @ v
    ),
    "log sums": lambda q, k, v: jnp.sum(
        jax.scipy.special.logsumexp(jnp.where(NEAR, jnp.tanh(scores(q, k)), -jnp.inf), -1) * v[..., 0]
    ),
    "without softmax": lambda q, k, v: jnp.sum(jnp.sin((scores(q, k) * NEAR) @ v)),
    "fewer rows": lambda q, k, v: jnp.sum(
        jnp.sin(jax.nn.softmax(jnp.where(NEAR[::2], scores(q[:, ::2], k), -jnp.inf)) @ v)
    ),
    "heads of jax.nn": heads,
    "pairs of points": pair_energy,
    "under vmap": lambda q, k, v: jnp.sum(
        jax.vmap(attention(NEAR))(jnp.stack([q, k]), jnp.stack([k, k]), jnp.stack([v, q]))
    ),
    "in a scan": lambda q, k, v: jnp.sum(
        jax.lax.scan(
            lambda c, x: (c + jax.nn.softmax(jnp.where(near_by_iota(), x * scores(c, k), -jnp.inf)) @ v, None),
            q,
            jnp.arange(2.0, dtype=q.dtype),
        )[0]
        ** 2
    ),
    "recomputed": jax.checkpoint(attention(causal_window)),
    "a mask from outside what is recomputed": jax.checkpoint(attention(NEAR)),
    "a mask from outside two loops": lambda q, k, v: (
        lambda near: jnp.sum(
            jax.lax.scan(
                jax.checkpoint(
                    lambda c, x: (c + jax.nn.softmax(jnp.where(near, x * scores(c, k), -jnp.inf)) @ v, None)
                ),
                q,
                jnp.arange(2.0, dtype=q.dtype),
            )[0]
            ** 2
        )
    )(near_by_iota()),
}  # fmt: skip
LEFT: dict[str, Any] = {
    # each element by itself is less than any block
    "a diagonal": lambda q, k, v: jnp.trace(jnp.sin(scores(q[0], k[1]))) + jnp.sum(v),
    "all before": attention(COLUMN <= ROW),
    "two choices": lambda q, k, v: jnp.sum(
        jax.nn.softmax(jnp.where(v[0, :, 0] > 0, jnp.where(NEAR, scores(q, k), -3e38), -3e38)) @ v
    ),
    # a slope that is infinite at the zeros beside the ends: all scores are computed, and then little is left out
    "a root": lambda q, k, v: jnp.sum(
        jax.nn.softmax(jnp.where(NEAR, jnp.sqrt(scores(q, k) ** 2), -jnp.inf)) @ v
    ),
    "scores in another order": lambda q, k, v: jnp.sum(
        jax.nn.softmax(jnp.where(NEAR, scores(q, k)[:, :, (7 * np.arange(N)) % N], -jnp.inf)) @ v
    ),
    "scores that are there": lambda q, k, v: jnp.sum(
        jax.nn.softmax(jnp.where(NEAR, jnp.cumsum(scores(q, k), -1), -jnp.inf)) @ v
    ),
}


def given(rng: np.random.Generator, dtype: str) -> list[Any]:
    return [jnp.asarray(rng.standard_normal((2, N, 16)), dtype) for _ in range(3)]


def widths(f: Any, *args: Any) -> list[str]:
    """What is told of parts by blocks."""
    report = te.explain(te.adjoint(f), *args)
    return [line.reason for line in report.parts if "columns for each" in line.reason]


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_in_the_band_is_computed(name: str, rng: np.random.Generator) -> None:
    f, most = (
        TAKEN[name],
        1e-11 if name != "heads of jax.nn" else 1e-5,
    )  # whose softmax is in single precision
    with jax.enable_x64(True):
        args = given(rng, "float64")
        expected = jax.jit(jax.value_and_grad(f, (0, 1, 2))).lower(*args).compile()
        made = jax.jit(te.value_and_grad(f, (0, 1, 2))).lower(*args).compile()
        for own, other in zip(*map(jax.tree.leaves, (made(*args), expected(*args))), strict=True):
            np.testing.assert_allclose(own, other, rtol=most, atol=most)
    flops = [c.cost_analysis()["flops"] for c in (made, expected)]
    assert flops[0] < 0.6 * flops[1]


@pytest.mark.parametrize("name", LEFT)
def test_what_may_be_more_is_left(name: str, rng: np.random.Generator) -> None:
    f, args = LEFT[name], given(rng, "float32")
    assert not widths(f, *args)
    expected = jax.grad(f, (0, 1, 2))(*args)
    for own, other in zip(te.grad(f, (0, 1, 2))(*args), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


def test_the_report_says_what_part(rng: np.random.Generator) -> None:
    told = widths(TAKEN["a window"], *given(rng, "float32"))
    assert told
    assert set(told) == {"48 of 256 columns for each 16 rows: a mask takes no others"}


def test_each_width_has_blocks_of_its_own(rng: np.random.Generator) -> None:
    told = set(widths(TAKEN["windows of several widths"], *given(rng, "float32")))
    assert {line.split()[0] for line in told} == {"48", "96"}


def test_the_second_order(rng: np.random.Generator) -> None:
    q, k, v = given(rng, "float32")
    f = TAKEN["a window"]

    def twice(grad: Any) -> Any:
        return jax.grad(lambda q: jnp.sum(grad(f)(q, k, v) ** 2))(q)

    np.testing.assert_allclose(twice(te.grad), twice(jax.grad), rtol=1e-3, atol=1e-5)


def test_a_function_that_is_not_differentiated_is_as_it_was(rng: np.random.Generator) -> None:
    f, args = TAKEN["a window"], given(rng, "float32")
    np.testing.assert_array_equal(te.adjoint(f)(*args), f(*args))


@pytest.mark.parametrize("seed", range(6))
def test_blocks_hold_all_that_a_mask_takes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.choice([256, 512, 128]))
    ratio = columns / N
    low, high = sorted(rng.integers(-30, 30, 2))
    offset = np.arange(columns) - ratio * np.arange(N)[:, None]
    mask = (offset >= low) & (offset <= high)
    found = blocks_of(mask)
    if found is None:
        assert high - low > columns / 8 or columns == 128
        return
    values = rng.standard_normal(mask.shape)
    blocks = found.of_pairs(np.where(mask, values, 0), 0, 1, 0)
    assert blocks.shape == (found.count, found.height, found.width)
    assert found.width <= columns / 2
    vector = rng.standard_normal(columns)
    own = jnp.einsum("bij,bj->bi", blocks, found.of_columns(jnp.asarray(vector), 0))
    np.testing.assert_allclose(
        found.as_rows(own, 0), np.where(mask, values, 0) @ vector, rtol=1e-4, atol=1e-4
    )
    assert not found.around(mask).any()
