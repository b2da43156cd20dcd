"""Loops that read and write arrays at their counter: values and gradients beside jax.grad, what is emitted, and what is refused.

What is emitted is asked of every kernel. Values are those of half of the kernels, told by names, and of three random loops;
``JAXTE_HYPOTHESIS=full`` takes all kernels and forty loops.
"""

import os
import re
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jax_loops import KERNELS
from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.loops.counters import Counters, Outer, Position, constant
from tests.agreement import QUICKEST
from tests.frontends.random_loops import RandomLoop

FULL = os.environ.get("JAXTE_HYPOTHESIS") == "full"
VALUED = [name for name in KERNELS if FULL or zlib.crc32(name.encode()) % 3 == 0]

# loops in the forward pass, and arrays that they hand on: what is stacked, or taken at once, is neither
FORWARD = {
    **dict.fromkeys(("trmm", "trmm_elements", "syrk", "doitgen", "covariance", "softmax_rows"), (0, 0)),
    **dict.fromkeys(("causal_convolution", "forces", "arc_distance", "attention_rows"), (0, 0)),
    **dict.fromkeys(("garch", "returns"), (1, 1)),
    "biquad": (1, 2),
    "thomas": (2, 3),
    **dict.fromkeys(("runge_kutta", "viterbi"), (1, 1)),
    **dict.fromkeys(("wave", "polynomials"), (1, 2)),
    **dict.fromkeys(("seidel", "soft_alignment"), (2, 2)),
    "adi_sweep": (2, 3),
}


def _in_loops(jaxpr: Any, inside: bool = False) -> set[tuple[int, ...]]:
    """The shapes of what steps of loops compute."""
    found = {v.aval.shape for eqn in jaxpr.eqns for v in eqn.outvars if inside}
    for eqn in jaxpr.eqns:
        for inner in (getattr(p, "jaxpr", None) for p in eqn.params.values()):
            found |= set() if inner is None else _in_loops(inner, inside or eqn.primitive.name == "scan")
    return found


def _both(f: Any, raised: Any, *args: Any) -> Any:
    """Values and gradients by all arguments, of JAX and of jaxte, compiled as one program."""
    places = tuple(range(len(args)))
    both = jax.jit(
        lambda *args: [jax.value_and_grad(own, places)(*args) for own in (f, raised)],
        compiler_options=QUICKEST,
    )
    return both(*args)


def _carried(jaxpr: Any) -> list[int]:
    """How many arrays each loop of a jaxpr hands on, loops within loops included."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "scan":
            found.append(scan_counts(eqn.params)[1])
        for p in eqn.params.values():
            inner = getattr(p, "jaxpr", None)
            found += [] if inner is None else _carried(inner)
    return found


@pytest.mark.parametrize("name", FORWARD)
def test_what_is_emitted(name: str) -> None:
    own = KERNELS[name]
    args = own.arguments(small=True)
    carried = _carried(jax.make_jaxpr(te.adjoint(own.loss))(*args).jaxpr)
    assert (len(carried), sum(carried)) == FORWARD[name]


@pytest.mark.parametrize("name", VALUED)
def test_kernels(name: str) -> None:
    own = KERNELS[name]
    with jax.enable_x64(True):
        expected, found = _both(own.loss, te.adjoint(own.loss), *own.arguments(small=True))
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(40) if FULL else (0, 1, 4))
def test_random_loops(seed: int) -> None:
    f = RandomLoop(seed)
    with jax.enable_x64(True):
        expected, found = _both(f, te.adjoint(f), *f.arguments())
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11)


def _history(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return y.at[i].set(jnp.tanh(y[i - 1] + x[i]))

    return jnp.sum(lax.fori_loop(1, len(x), body, jnp.zeros_like(x)) ** 2)


def test_nothing_is_copied_in_the_backward_pass() -> None:
    x = jnp.ones((64, 16)) / 7
    steps = [str(jax.make_jaxpr(g(_history))(x)) for g in (jax.grad, te.grad)]
    assert "scatter" in steps[0] and "dynamic_update_slice" in steps[0]
    assert "scatter" not in steps[1] and "dynamic_update_slice" not in steps[1]
    within = [_in_loops(jax.make_jaxpr(g(_history))(x).jaxpr) for g in (jax.grad, te.grad)]
    assert x.shape in within[0] and x.shape not in within[1]


TRANSFORMS: tuple[Callable[[Any], Any], ...] = (
    jax.hessian,
    lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
    jax.jacfwd,
    lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),))[1],
    lambda f: jax.grad(jax.checkpoint(f)),
)


def test_transformations() -> None:
    """All of them in one program."""
    every = jax.jit(
        lambda x: [[t(f)(x) for t in TRANSFORMS] for f in (te.adjoint(_history), _history)],
        compiler_options=QUICKEST,
    )
    with jax.enable_x64(True):
        found, expected = every(jnp.asarray(np.random.default_rng(0).normal(size=(5, 2))))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _told(f: Any, *args: Any) -> str:
    return "\n".join(str(line) for line in te.explain(te.grad(f), *args).loops)


def test_what_is_told() -> None:
    x = jnp.ones((8, 4))
    told = _told(_history, x)
    assert "1 array is stacked by rows, 0 are handed on; 1 row is taken by each step" in told
    assert re.search(r"test_counter_loops\.py:\d+ ", told)


def _products(x: Any, w: Any) -> Any:
    """Two products of each row with vectors, the second with a function of the first."""

    def body(i: Any, state: Any) -> Any:
        q, s = state
        e = jnp.tanh(x[i] @ w)
        return q.at[i].set(e), s + x[i] * e

    q, s = lax.fori_loop(0, len(x), body, (jnp.zeros(len(x)), jnp.zeros_like(w)))
    return jnp.sum(jnp.sin(q)) + jnp.sum(jnp.cos(s))


def _product(x: Any, w: Any) -> Any:
    return jnp.sum(
        jnp.cos(lax.fori_loop(0, len(x), lambda i, q: q.at[i].set(x[i] @ w), jnp.zeros(len(x), x.dtype)))
    )


@pytest.mark.parametrize(
    ("f", "columns", "platform", "loops"),
    [
        (_products, 512, "cpu", 1),  # large rows are read once for both products
        (_products, 32, "cpu", 0),  # a step takes longer than reading a short row again
        (_products, 512, "gpu", 0),  # likewise, whatever the row
        (_product, 512, "cpu", 0),
    ],
)
def test_rows_of_several_products_are_read_once(f: Any, columns: int, platform: str, loops: int) -> None:
    args = jnp.ones((6, columns)), jnp.ones(columns)
    raised = te.adjoint(f, platform=platform)
    carried = _carried(jax.make_jaxpr(raised)(*args).jaxpr)
    assert len(carried) == loops
    if loops:
        assert "1 array is stacked by rows, 1 are handed on" in "\n".join(
            map(str, te.explain(raised, *args).loops)
        )


def test_rows_of_several_products_are_right() -> None:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        args = [jnp.asarray(rng.normal(size=s)) for s in ((4, 200), (200,))]
        expected, found = _both(_products, te.adjoint(_products), *args)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "regions"), [("fdtd_2d", 0), ("jacobi_2d", 1)])
def test_states_that_are_added_to_in_place_stay(name: str, regions: int) -> None:
    """Of what is set in place the cotangent is padded, which the raised region does better."""
    own = KERNELS[name]
    told = str(te.explain(te.adjoint(own.loss), *own.arguments()))
    assert f"in {regions} region" in told


REFUSED = {
    "written at positions that are data": lambda x: lax.fori_loop(
        0, 8, lambda i, y: y.at[jnp.argmax(x[i])].set(y[i] * x[i]), jnp.ones_like(x)
    ),
    "computed as a whole in each step": lambda x: lax.fori_loop(
        0, 8, lambda i, y: jnp.sin(y.at[i].set(x[i])), jnp.ones_like(x)
    ),
    "some of which were written before": lambda x: lax.fori_loop(
        0, 8, lambda i, y: y.at[i].set(jnp.sum(jnp.sin(y), 0) + x[i]), jnp.ones_like(x)
    ),
    "written at one place in all steps": lambda x: lax.fori_loop(
        0, 8, lambda i, y: y.at[0].set(y[1] + x[i]).at[i].set(y[0] * x[0]), jnp.ones_like(x)[:1].repeat(8, 0)
    ),
    "several rows are written at once": lambda x: lax.fori_loop(
        0, 7, lambda i, y: lax.dynamic_update_slice(y, jnp.sin(y[:2]) * x[i], (i, 0)), jnp.ones_like(x)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_refused(reason: str) -> None:
    """Each stays as it is, says why, and is right."""

    def f(x: Any) -> Any:
        return jnp.sum(jnp.cos(REFUSED[reason](x)))

    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(8, 4)))
        if reason != "written at one place in all steps":  # the second write makes its rows counted
            assert reason in _told(f, x)
        expected, found = _both(f, te.adjoint(f), x)
        np.testing.assert_allclose(found[1][0], expected[1][0], rtol=1e-10, atol=1e-12)


def test_numbers_of_counters() -> None:
    """Comparisons with what counts outside hold, fail, or are not known."""
    outer = Outer(1, 5)
    i = Position(np.zeros(3, int), ((outer, 1),))

    def body(i: Any, t: Any) -> Any:
        return i < 0, i - 2 < 0, i - t, jnp.where(i < 0, i + 9, i), jnp.where(t < 1, t + 9, t), t % 2, t // 2

    closed = jax.make_jaxpr(body)(1, 1)
    jaxpr = closed.jaxpr
    known = Counters(jaxpr, dict(zip(jaxpr.invars, (i, Position(np.arange(3))), strict=True)), 3)
    found = [known.of(v) for v in jaxpr.outvars]
    assert found[0] is not None and not found[0].numbers.any()
    assert found[1] is None
    assert found[2] is not None and (found[2].least, found[2].most) == (-1, 5)
    assert constant(3, 2).numbers.tolist() == [3, 3]
