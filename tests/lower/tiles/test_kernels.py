"""Tiles as Pallas kernels: pair sums, windows and attention with score functions, forward and derived backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.errors import LoweringError
from jaxte.lower.cost.policy import Policy
from tests.stages import Pass, check_stages

pytestmark = pytest.mark.usefixtures("x64")
N, D = 24, 4
Score = Callable[[Any, Any, Any], Any]


def near(i: Any, j: Any, width: int) -> Any:
    return te.logical_and(i - j < width, j - i < width)


# name: what becomes of a score by the positions of query and key; and the same on whole arrays
VARIANTS: dict[str, tuple[Score, Score]] = {
    "plain": (lambda s, i, j: s, lambda s, i, j: s),
    "causal": (lambda s, i, j: te.select(i >= j, s, -1e30), lambda s, i, j: jnp.where(i >= j, s, -1e30)),
    "sliding window": (
        lambda s, i, j: te.select(near(i, j, 5), s, -1e30),
        lambda s, i, j: jnp.where(abs(i - j) < 5, s, -1e30),
    ),
    "linear biases": (
        lambda s, i, j: s - 0.25 * te.cast(i - j, s.dtype),
        lambda s, i, j: s - 0.25 * (i - j),
    ),
    "soft cap": (lambda s, i, j: 2.0 * te.tanh(s / 2.0), lambda s, i, j: 2 * jnp.tanh(s / 2)),
    "prefix": (
        lambda s, i, j: te.select(te.logical_or(i >= j, j < 6), s, -1e30),
        lambda s, i, j: jnp.where((i >= j) | (j < 6), s, -1e30),
    ),
}


def attention(score: Score) -> Callable[..., Any]:
    """Attention in the words of te; a bias by relative position, and a mask by document, are arrays."""

    def build(q: Any, k: Any, v: Any, *more: Any) -> Any:
        n, d = q.shape
        c, j, j2 = te.reduce_axis((0, d), "c"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, n), "j2")
        s = te.compute((n, n), lambda i, j: te.sum(q[i, c] * k[j, c], axis=c), "s")
        t = te.compute(
            (n, n), lambda i, j: score(s[i, j], i, j, *more) if more else score(s[i, j], i, j), "t"
        )
        most = te.compute((n,), lambda i: te.max(t[i, j], axis=j), "most")
        p = te.compute((n, n), lambda i, j: te.exp(t[i, j] - most[i]), "p")
        w = te.compute((n, n), lambda i, j: p[i, j] / te.sum(p[i, j2], axis=j2), "w")
        return te.compute((n, d), lambda i, e: te.sum(w[i, j] * v[j, e], axis=j), "o")

    return build


def plain_attention(score: Score) -> Callable[..., Any]:
    def run(q: Any, k: Any, v: Any, *more: Any) -> Any:
        i, j = jnp.arange(q.shape[0])[:, None], jnp.arange(q.shape[0])[None, :]
        s = jnp.einsum("ic,jc->ij", q, k, precision="highest")
        return jnp.einsum("ij,je->ie", jax.nn.softmax(score(s, i, j, *more), axis=1), v, precision="highest")

    return run


MORE: dict[str, tuple[Any, Any, Callable[[np.random.Generator], list[np.ndarray]]]] = {
    "relative bias": (
        lambda s, i, j, b: s + b[i - j + N - 1],
        lambda s, i, j, b: s + b[i - j + N - 1],
        lambda rng: [numbers(rng, 2 * N - 1)],
    ),
    "documents": (
        lambda s, i, j, of: te.select(of[i] == of[j], s, -1e30),
        lambda s, i, j, of: jnp.where(of[i] == of[j], s, -1e30),
        lambda rng: [np.sort(rng.integers(0, 4, N)).astype("int32")],
    ),
}


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def check_nodes(
    build: Callable[..., Any], args: list[np.ndarray], forms: dict[str, str] | None = None
) -> str:
    """Values and adjoints of the nodes beside ``interpret``; the text, of which every pass is a kernel."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(args)]
    policy = Policy(forms=forms or {"*": "kernel"})
    check_stages(Pass(build(*inputs), dict(zip(inputs, args, strict=True)), policy), compile_too=False)
    text = str(te.source(te.function(build, forms=policy.forms), *args))
    assert text.count("_kernel(") >= 3
    assert "_kernel(" in text[text.index("def backward") :]  # the derived adjoints are kernels of their own
    return text


def check_run(build: Callable[..., Any], plain: Callable[..., Any], args: list[np.ndarray]) -> None:
    """Values and gradients by Pallas's interpreter beside plain JAX and its ``jax.grad``."""
    f = te.function(build, forms={"*": "kernel"})
    floats = tuple(n for n, a in enumerate(args) if a.dtype.kind == "f")

    def both(run: Callable[..., Any]) -> Any:
        value = jax.eval_shape(run, *args)
        head = np.cos(np.arange(value.size, dtype="float32")).reshape(value.shape)
        return jax.jit(jax.value_and_grad(lambda *a: jnp.vdot(run(*a), head), floats))(*args)

    for a, b in zip(jax.tree.leaves(both(f)), jax.tree.leaves(both(plain)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [*VARIANTS, *MORE])
def test_attention_with_scores(name: str, rng: np.random.Generator) -> None:
    own, plain, more = (*VARIANTS[name], None) if name in VARIANTS else MORE[name]
    args = [numbers(rng, N, D) for _ in range(3)] + (more(rng) if more else [])
    text = check_nodes(attention(own), args)
    assert "lax.map" not in text and "lax.scan" not in text
    if name == "relative bias":
        check_run(attention(own), plain_attention(plain), [a.astype("float32") for a in args])


def pair_sums(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def build(x: Any, y: Any) -> Any:
        j, c = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "c")
        far = te.compute(
            (x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "far"
        )
        return te.compute((x.shape[0],), lambda i: reduce(far[i, j], j), "pairs")

    return build


def test_pair_sums_with_any_reducer(rng: np.random.Generator) -> None:
    args = [numbers(rng, 32, 3), numbers(rng, 20, 3)]
    soft = te.comm_reducer(lambda a, b: a + b + a * b, lambda t: te.const(0, t), "soft")
    for reduce in (
        lambda e, j: te.sum(te.exp(-e), axis=j),
        lambda e, j: te.max(-e, axis=j),
        lambda e, j: soft(0.01 * e, axis=j),
    ):
        check_nodes(pair_sums(reduce), args)


def row_sums(x: Any) -> Any:
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, c] ** 2, axis=c), "rows")


def windows(q: Any, k: Any) -> Any:
    """Scores of each query with the seven keys around it."""
    c = te.reduce_axis((0, q.shape[1]), "c")
    padded = te.compute(
        (k.shape[0] + 6, k.shape[1]),
        lambda j, c: te.select(te.logical_and(j >= 3, j < k.shape[0] + 3), k[j - 3, c], 0.0),
        "padded",
    )
    return te.compute((q.shape[0], 7), lambda i, w: te.sum(q[i, c] * padded[i + w, c], axis=c), "scores")


def test_windows_are_loaded_with_their_halo(rng: np.random.Generator) -> None:
    text = check_nodes(windows, [numbers(rng, 32, 4), numbers(rng, 32, 4)])
    assert "_ref[pl.ds(" in text


def local_attention(q: Any, k: Any, v: Any) -> Any:
    s = windows(q, k)
    w = te.reduce_axis((0, 7), "w")
    p = te.ops.softmax(s)
    return te.compute(
        q.shape,
        lambda i, e: te.sum(
            te.select(te.logical_and(i + w >= 3, i + w < q.shape[0] + 3), p[i, w] * v[i + w - 3, e], 0.0),
            axis=w,
        ),
        "o",
    )


def test_local_attention(rng: np.random.Generator) -> None:
    check_nodes(local_attention, [numbers(rng, 32, 4) for _ in range(3)])


def test_blocks_that_do_not_divide(rng: np.random.Generator) -> None:
    check_nodes(pair_sums(lambda e, j: te.sum(te.exp(-e), axis=j)), [numbers(rng, 13, 2), numbers(rng, 7, 2)])


def test_what_a_kernel_cannot_be_is_an_error_by_name() -> None:
    def asked(platform: str, *shapes: Any, dtype: str = "float32", name: str = "pairs") -> None:
        f = te.function(
            pair_sums(lambda e, j: te.sum(te.exp(-e), axis=j)), platform=platform, forms={name: "kernel"}
        )
        te.source(f, *(jax.ShapeDtypeStruct(s, dtype) for s in shapes))

    with pytest.raises(LoweringError, match=r"pairs as a kernel on tpu.*complex64.*up to 32 bits"):
        asked("tpu", (64, 2), (64, 2), dtype="complex64")
    with pytest.raises(LoweringError, match="one position takes 8,000,000 bytes, more than the 1,048,576"):
        asked("tpu", (64, 2), (2_000_000, 2))
    with pytest.raises(LoweringError, match=r"far as a kernel on cpu.*no kernel was asked for that makes it"):
        asked("cpu", (64, 2), (64, 2), name="far")
    with pytest.raises(LoweringError, match="Triton takes no slices"):
        te.source(
            te.function(row_sums, platform="gpu", forms={"rows": "kernel"}), np.zeros((64, 3), "float32")
        )
    n = te.var("n")
    x, y = te.placeholder((n, 2), name="x"), te.placeholder((8, 2), name="y")
    pairs = pair_sums(lambda e, j: te.sum(te.exp(-e), axis=j))(x, y)
    with pytest.raises(LoweringError, match=r"pairs as a kernel on cpu.*extent of i is symbolic"):
        te.source(te.function([x, y], pairs, forms={"pairs": "kernel"}))
