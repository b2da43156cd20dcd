"""Products of matrices that are raised by themselves: values and gradients, and which products XLA is left with."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

TURNED = "lhs_contracting_dims={0}, rhs_contracting_dims={1}"  # both factors are laid out again


def mixer(x: Any, w: Any, v: Any) -> Any:
    return x + (jnp.tanh(x.swapaxes(1, 2) @ w) @ v).swapaxes(1, 2)


def gated(x: Any, w: Any, v: Any) -> Any:
    return jax.nn.silu(x @ w) * (x @ v)


def checkpointed(x: Any, w: Any) -> Any:
    return jax.checkpoint(lambda h: jnp.sin(h) @ w)(x)


def scores(x: Any, w: Any, y: Any) -> Any:
    return jnp.einsum("btd,de,bte->bt", x, w, y)


def weight_first(w: Any, x: Any) -> Any:
    return jnp.einsum("kn,btk->btn", w, jnp.cos(x))


def steps(x: Any, w: Any) -> Any:
    return jax.lax.scan(lambda h, v: (jnp.tanh(h @ v), None), x, w)[0]


LAYERS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "mixer": (mixer, [(32, 24, 40), (24, 48), (48, 24)]),
    "gated": (gated, [(8, 64, 32), (32, 48), (32, 48)]),
    "checkpoint": (checkpointed, [(8, 64, 32), (32, 48)]),
    "bilinear scores": (scores, [(8, 64, 32), (32, 32), (8, 64, 32)]),
    "weight first": (weight_first, [(32, 48), (8, 64, 32)]),
    "layers in a loop": (steps, [(8, 64, 32), (2, 32, 32)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_matrices_are_not_transposed(name: str, rng: np.random.Generator) -> None:
    f, shapes = LAYERS[name]
    args = [jnp.asarray(0.3 * rng.normal(size=s).astype("float32")) for s in shapes]
    found, counts = _both(f, args, TURNED)
    for own, expected in zip(*found, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5 * float(abs(expected).max()))
    assert counts[0] == 0 < counts[1]


def covariance(x: Any) -> Any:
    return jnp.cov(x, rowvar=False)


def style(x: Any) -> Any:
    return jnp.einsum("bnc,bnd->bcd", x, x)


def contrastive(x: Any) -> Any:
    z = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    return jax.nn.log_softmax(z @ z.T)


SQUARES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "covariance": (covariance, (1024, 24)),
    "style of images": (style, (2, 600, 24)),
    "contrastive": (contrastive, (200, 24)),
}


@pytest.mark.parametrize("name", SQUARES)
def test_a_product_with_itself_has_one_product_for_a_gradient(name: str, rng: np.random.Generator) -> None:
    f, shape = SQUARES[name]
    x = jnp.asarray(rng.normal(size=shape).astype("float32"))
    found, counts = _both(f, [x], " dot(")
    for own, expected in zip(*found, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5 * float(abs(expected).max()))
    assert counts == [2, 3]


KEPT: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "rows along one axis": (lambda x, w: x @ w, [(512, 32), (32, 64)]),
    "few multiplications": (lambda x, w: x @ w, [(4, 8, 32), (32, 64)]),
    "heads": (lambda x, w: jnp.einsum("btd,dhk->bthk", x, w), [(8, 64, 32), (32, 4, 16)]),
    "a transposed matrix": (lambda x, w: x @ w.T, [(8, 64, 32), (64, 32)]),
    "two arrays": (lambda x, y: x @ y.T, [(200, 32), (200, 32)]),
    "in another precision": (
        lambda x, w: jnp.matmul(x, w, precision="highest"),
        [(8, 64, 32), (32, 48)],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_products_stay(name: str) -> None:
    f, shapes = KEPT[name]
    report = te.explain(te.adjoint(f), *(jax.ShapeDtypeStruct(s, "float32") for s in shapes))
    assert not report.regions


def test_they_hold_under_transformations(rng: np.random.Generator) -> None:
    x, w, v = (
        jnp.asarray(0.3 * rng.normal(size=s).astype("float32"))
        for s in ((2, 8, 64, 32), (32, 48), (2, 8, 64, 32))
    )
    own, plain = te.adjoint(lambda x: jnp.sin(x @ w)), lambda x: jnp.sin(x @ w)
    for a, b in zip(jax.jvp(own, (x,), (v,)), jax.jvp(plain, (x,), (v,)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    curved = [
        jax.vmap(jax.grad(lambda x, f=f: jnp.vdot(jax.grad(lambda y: jnp.sum(f(y) ** 2))(x), x)))
        for f in (own, plain)
    ]
    np.testing.assert_allclose(curved[0](x), curved[1](x), rtol=1e-3, atol=1e-4)


def test_layers_of_one_shape_share_their_code() -> None:
    def layers(x: Any, w: Any, v: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ w) @ v) @ w

    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in ((8, 64, 32), (32, 32), (32, 32))]
    raised = te.adjoint(layers)
    regions = raised.plan(raised.traced(tuple(shapes), {})).regions
    assert len(regions) == 3 and len({id(r.code) for r in regions}) == 1


def test_a_loop_takes_products_of_all_steps_first() -> None:
    def rnn(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, row: (jnp.tanh(row + h @ w), None), jnp.zeros((2, 64, 80)), x)[0]

    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in ((16, 2, 64, 80), (80, 80))]
    report = te.explain(te.adjoint(rnn), *shapes)
    assert len(report.loops) + len(report.regions) == 1


def _both(f: Callable[..., Any], args: list[Any], text: str) -> tuple[list[Any], list[int]]:
    """The gradients of both, and how often ``text`` stands in their compiled programs."""
    places = tuple(range(len(args)))
    loss = lambda *a: jnp.sum(f(*a) ** 2)  # noqa: E731
    made = [Fused(jax.jit(g(loss, places)).lower(*args)) for g in (te.grad, jax.grad)]
    return [m(*args) for m in made], [m.as_text().count(text) for m in made]
