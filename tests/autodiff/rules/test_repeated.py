"""Reductions whose results are repeated along axes: the head is summed over the copies, before it meets the slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import QUICKEST
from tests.points import excess

N, M, C = 5, 6, 7  # elements, copies of a result, copies in front of it

circle = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")
REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "prod": (te.prod, lambda x: jnp.prod(x, -1)),
    "max": (te.max, lambda x: jnp.max(x, -1)),
    "min": (te.min, lambda x: jnp.min(x, -1)),
    "circle": (circle, lambda x: jnp.prod(1 + x, -1) - 1),
}


def repeated(reduce: Callable[..., Any]) -> Callable[[Any], te.Tensor]:
    def build(x: Any) -> te.Tensor:
        k = te.reduce_axis((0, N), "k")
        return te.compute((C, 3, M), lambda c, i, j: reduce(te.sin(x[i, k]), axis=k), "y")

    return build


@pytest.mark.parametrize("name", REDUCTIONS)
def test_points_and_values(name: str, rng: np.random.Generator) -> None:
    reduce, reference = REDUCTIONS[name]
    x, h = te.placeholder((3, N), name="x"), te.placeholder((C, 3, M), name="H")
    y = repeated(reduce)(x)
    (dx,) = te.differentiate(y, [x], h)
    assert te.formula(dx).count("dy_once[") and excess(y, [dx]) <= 1, te.definitions(dx)
    assert te.cost([t for t in topological_order([dx]) if t.name == "dy_once"]).iterations == C * 3 * M
    own, head = rng.standard_normal((3, N)), rng.standard_normal((C, 3, M))
    plain = lambda x: jnp.broadcast_to(reference(jnp.sin(x))[:, None], (C, 3, M))  # noqa: E731
    with jax.enable_x64(True):
        (expected,) = jax.vjp(plain, own)[1](head)
        fn = te.function(repeated(reduce))
        (found,) = jax.vjp(fn, own)[1](head)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        twice = [
            jax.jit(jax.grad(lambda x, f=f: jnp.sum(jax.grad(lambda x: jnp.sum(f(x) ** 2))(x) ** 2)))
            .lower(own)
            .compile(compiler_options=QUICKEST)(own)
            for f in (fn, plain)
        ]
    np.testing.assert_allclose(*twice, rtol=1e-9)


def test_a_jacobian_and_a_constant_head() -> None:
    x = te.placeholder((2, 3), name="x")
    k = te.reduce_axis((0, 3), "k")
    y = te.compute((2, 4), lambda i, j: te.prod(x[i, k], axis=k), "y")
    own = np.arange(6.0, dtype="float32").reshape(2, 3) + 1
    expected = jax.jacobian(lambda x: jnp.broadcast_to(jnp.prod(x, 1)[:, None], (2, 4)))(own)
    np.testing.assert_allclose(te.interpret(te.jacobian(y, x), {x: own}), expected)
    i, j = te.reduce_axis((0, 2), "i"), te.reduce_axis((0, 4), "j")
    (summed,) = te.gradient(te.compute((), lambda: te.sum(y[i, j], axis=(i, j)), "s"), [x])
    np.testing.assert_allclose(te.interpret(summed, {x: own}), expected.sum((0, 1)))


def test_what_a_guard_keeps_out_of_all_copies_stays_out() -> None:
    """No NaN of an infinite slope times a sum of zeros."""
    x, w = te.placeholder((2, 3), name="x"), te.placeholder((2,), name="w")
    k = te.reduce_axis((0, 3), "k")
    y = te.compute((2, 4), lambda i, j: te.prod(te.log(x[i, k]), axis=k), "y")
    z = te.compute((2, 4), lambda i, j: te.select(w[i] > 0, y[i, j], 1.0), "z")
    (dx,) = te.differentiate(z, [x], te.placeholder((2, 4), name="H"))
    inputs = {t.name: t for t in topological_order([dx]) if not isinstance(t, Compute)}
    feeds = {
        "x": np.array([[0.0, -1.0, 2.0], [2.0, 3.0, 4.0]]),
        "w": np.array([-1.0, 1.0]),
        "H": np.ones((2, 4)),
    }
    found = te.interpret(dx, {t: feeds[name].astype("float32") for name, t in inputs.items()})
    assert (found[0] == 0).all() and np.isfinite(found).all() and (found[1] != 0).all()


@pytest.mark.parametrize(
    ("size", "made"), [(4, {"before_y": 1, "after_y": 1}), (16, {"pairs_y": 3, "others_y": 4})]
)
def test_all_adjoints_read_the_same_products(size: int, made: dict[str, int]) -> None:
    """The products of all others, or of those before and after each element, are made once, whatever is differentiated for."""
    x, w = te.placeholder((size,), name="x"), te.placeholder((4, size), name="w")
    k = te.reduce_axis((0, size), "k")
    y = te.compute((4,), lambda i: te.prod(x[k] * w[i, k] + x[size - 1 - k], axis=k), "y")
    both = te.differentiate(y, [x, w], te.placeholder((4,), name="H"))
    names = [t.name for t in topological_order(both)]
    assert {name: names.count(name) for name in made} == made
