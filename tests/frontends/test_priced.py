"""What is raised because the prices of both programs say so, where no rule of structure does."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import mlir

import jaxte as te
from jaxte.bridge.price.programs import amounts_of
from jaxte.bridge.primitive.program import Program
from jaxte.frontends.jaxpr import priced as price_of_functions


def tensor_square(a: Any, b: Any) -> Any:
    """A gate by traces of a product of all pairs, which JAX holds in whole."""
    square = jnp.einsum("nij,nkl->nijkl", a, b)
    trace, inner = jnp.einsum("nijij->n", square), jnp.einsum("nijjk->nik", square)
    return jnp.sum(jax.nn.silu(trace)[:, None, None] * inner)


def histogram(x: Any, w: Any) -> Any:
    centres = jnp.linspace(-3, 3, 64)
    return jnp.sum((w[:, None] * jnp.exp(-(((x[:, None] - centres) / 0.1) ** 2))).sum(0) ** 2)


def laplacian(x: Any, w: Any, v: Any) -> Any:
    """The Laplacian of a small network at many points, by vmap of the trace of a Hessian, as in a physics-informed loss."""

    def network(point: Any) -> Any:
        return jnp.tanh(jnp.tanh(point @ w) @ v)[0]

    return jnp.mean(jax.vmap(lambda p: jnp.trace(jax.hessian(network)(p)))(x) ** 2)


def prediction_error(x: Any, a: Any) -> Any:
    """A product of windows with a vector, of whose rows most of the time is spent: sums over the windows take less."""
    past = jnp.stack([x[:, 16 - k - 1 : -k - 1] for k in range(16)], -1)
    return jnp.mean(jnp.log1p((x[:, 16:] - past @ a) ** 2))


def hues(x: Any) -> Any:
    """Colours to hues and back, twice, of whose gradient XLA's one loop computes what the channels share for every way to it."""
    for turn in (0.2, 0.3):
        r, g, b = jnp.unstack(x, axis=-1)
        value, least = jnp.maximum(jnp.maximum(r, g), b), jnp.minimum(jnp.minimum(r, g), b)
        chroma = value - least + 0.1
        hue = jnp.where(
            value == r, (g - b) / chroma, jnp.where(value == g, 2 + (b - r) / chroma, 4 + (r - g) / chroma)
        )
        hue = 6 * ((hue / 6 + turn) % 1.0)
        ramps = [
            jnp.clip(p, 0, 1) for p in (jnp.abs(hue - 3) - 1, 2 - jnp.abs(hue - 2), 2 - jnp.abs(hue - 4))
        ]
        x = jnp.stack([value - chroma * (1 - ramp) for ramp in ramps], -1)
    return jnp.mean(x**2)


def volumes(x: Any, w: Any) -> Any:
    """A filter of three dimensions, of one feature to eight, for which no platform but a GPU has a routine."""
    return jnp.sum(jnp.abs(jax.lax.conv(x, w, (2, 2, 2), "VALID", precision=jax.lax.Precision.HIGHEST)))


RAISED = {
    "volumes in the highest precision": (volumes, ((2, 1, 32, 32, 32), (8, 1, 2, 2, 2))),
    "hues": (hues, ((128, 128, 3),)),
    "hues of powers": (
        lambda x: hues((x * x + 0.01) ** 0.8),
        ((128, 128, 3),),
    ),  # which all ways to them compute again
    "an error of predictions": (prediction_error, ((32, 2048), (16,))),
    "a Laplacian of a network": (laplacian, ((128, 32), (32, 64), (64, 1))),
    "tensor square": (tensor_square, ((16000, 3, 3), (16000, 3, 3))),
    "histogram": (histogram, ((12000,), (12000,))),
}
KEPT = {
    "layers": (lambda x, w, v: jnp.sum(jax.nn.relu(x @ w) @ v), ((512, 128), (128, 256), (256, 10))),
    "a softmax": (lambda x: -jnp.sum(jax.nn.log_softmax(x)[:, 0]), ((512, 1000),)),
    "few numbers": (tensor_square, ((40, 3, 3), (40, 3, 3))),
    "an entropy": (
        lambda x: -jnp.sum(jax.nn.one_hot(jnp.arange(512) % 10, 1000) * jax.nn.log_softmax(x)),
        ((512, 1000),),
    ),
    "a stencil": (lambda u: jnp.sum((4 * u[1:-1] - u[2:] - u[:-2]) ** 2), ((512, 512),)),
    "an algorithm": (
        lambda a, b: tensor_square(a, b) + jnp.sum(jnp.matmul(a, b, precision="BF16_BF16_F32")),
        ((16000, 3, 3), (16000, 3, 3)),
    ),
}


def _convolved(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _pooled(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def _pairs(x: Any, y: Any, steps: int) -> Any:
    """Distances of all pairs, and so many steps with a few numbers, which take no time."""
    for n in range(steps // 2):
        y = y * (0.9 + 0.01 * n) + 0.1
    return jnp.sum(jnp.exp(-jnp.abs(x[:, None] - x[None, :256]))) + jnp.sum(y)


def _residual(x: Any, w: Any, v: Any) -> Any:
    """A residual of first and second derivatives of a network at points: of many steps, most of whose time is in functions that every program computes."""

    def network(point: Any) -> Any:
        return jnp.tanh(jnp.tanh(point @ w) @ v)[0]

    def residual(p: Any) -> Any:
        slope, curvature = jax.grad(network)(p), jax.hessian(network)(p)
        return slope[1] + network(p) * slope[0] - 0.01 * curvature[0, 0]

    return jnp.mean(jax.vmap(residual)(x) ** 2)


POOL = {
    "many functions, each of which all programs compute": (_residual, ((256, 2), (2, 32), (32, 1))),
    "a pool, whose windows alone take longer than what is raised": (
        lambda x: jnp.sum(
            jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2
        ),
        ((16, 64, 64, 32),),
    ),
    "all but a convolution is raised": (
        lambda x, w, v: jnp.sum(_pooled(_convolved(x, w)) ** 2 * v),
        ((2, 64, 64, 16), (3, 3, 16, 16), (1, 32, 32, 1)),
    ),
    "many steps of little work": (lambda x, y: _pairs(x, y, 70), ((1024,), (4,))),
    "few steps of the same work": (lambda x, y: _pairs(x, y, 12), ((1024,), (4,))),
}


def _report(f: Any, shapes: Any, **options: Any) -> Any:
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in shapes]
    return te.explain(te.adjoint(f, **options), *structs)


@pytest.mark.parametrize("name", RAISED)
def test_raised_by_price(name: str) -> None:
    found = _report(*RAISED[name])
    assert found.regions and found.priced is not None
    assert 1.12 * found.priced.raised < found.priced.left
    assert "by estimate: value and gradient in" in str(found)


def test_code_that_is_priced_runs_once_and_is_lowered_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    f, shapes = RAISED["histogram"]
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in shapes]
    emitted, run = Program._emitted, list[str]()

    def counted(self: Program, *arrays: Any) -> list[Any]:
        run.append(self.name)
        return emitted(self, *arrays)

    monkeypatch.setattr(Program, "_emitted", counted)
    with monkeypatch.context() as patched:
        patched.delattr(mlir, "lower_fun")  # nor is it traced once more
        once = jax.jit(te.value_and_grad(f, (0, 1))).lower(*structs).as_text()
    assert sorted(run) == ["backward", "forward_with_residuals"]
    monkeypatch.setattr(Program, "as_traced", lambda self, _: None)
    assert jax.jit(te.value_and_grad(f, (0, 1))).lower(*structs).as_text() == once


def test_another_precision_is_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((4, 4), name="x")
    k = te.reduce_axis((0, 4), "k")
    square = te.compute((4, 4), lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), "y")
    own = Program("forward", "square", (x,), (), lambda: (square,), (0,))
    avals = [jax.ShapeDtypeStruct((4, 4), "float32")]
    monkeypatch.setattr(Program, "_emitted", lambda self, a: [a @ a])
    own.traced(avals)
    assert own.as_traced(avals) is not None
    with jax.default_matmul_precision("highest"):
        assert own.as_traced(avals) is None


@pytest.mark.parametrize("name", KEPT)
def test_kept_by_price(name: str) -> None:
    found = _report(*KEPT[name])
    assert found.priced is None and not found.regions, found


def bilateral(x: Any) -> Any:
    """Rolls, which a rule of structure raises, within exponentials that the derived gradient computes once more."""
    above, below = jnp.zeros_like(x), jnp.zeros_like(x)
    for i, j in np.ndindex(5, 5):
        near = jnp.roll(x, (i - 2, j - 2), (0, 1))
        w = jnp.exp(-((x - near) ** 2))
        above, below = above + w * near, below + w
    return jnp.sum((above / below) ** 2)


def test_left_by_price_though_a_rule_says_that_it_gains() -> None:
    found = _report(bilateral, ((512, 512),))
    assert not found.regions and any("as it stands" in line.reason for line in found.kept), found


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("few numbers", 1),
        ("layers", 2),
        ("a softmax", 0),
        ("tensor square", 3),
        ("many functions, each of which all programs compute", 2),
        ("a pool, whose windows alone take longer than what is raised", 2),
        ("all but a convolution is raised", 3),
        ("many steps of little work", 2),
        ("few steps of the same work", 3),
    ],
    ids=lambda own: str(own),
)
def test_what_costs_least_is_asked_first(name: str, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function alone, its gradient where that may take long, and what has to be derived where something may be gained."""
    priced: list[Any] = []

    def counted(closed: Any, platform: str) -> Any:
        priced.append(closed)
        return amounts_of(closed, platform)

    monkeypatch.setattr(price_of_functions, "amounts_of", counted)
    _report(*{**RAISED, **KEPT, **POOL}[name])
    assert len(priced) == asked


def chain(u: Any) -> Any:
    for _ in range(5):
        u = u + 0.1 * (
            jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        )
    return jnp.sum(u**2)


def taken(x: Any, at: Any) -> Any:
    """Rows at positions that are data, which take most of the time in every program, and a window."""
    for _ in range(16):
        x = x[at]
    return jnp.sum(jax.lax.reduce_window(x, 0.0, jax.lax.add, (4, 1), (1, 1), "VALID") ** 2)


def test_the_gradient_as_it_stands_is_not_traced_where_it_cannot_be_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    priced: list[bool] = []

    def counted(closed: Any, wanted: Any, plan: Any) -> Any:
        priced.append(plan.is_changed)
        return program(closed, wanted, plan)

    program = price_of_functions._program
    monkeypatch.setattr(price_of_functions, "_program", counted)
    assert len(_report(chain, ((512, 512),)).regions) == 1 and not priced
    priced.clear()
    at = jax.ShapeDtypeStruct((16384,), "int32")
    found = te.explain(te.adjoint(taken), jax.ShapeDtypeStruct((16384, 2), "float32"), at)
    assert found.regions and priced == [True]


def test_no_price_where_no_paces_are_measured() -> None:
    assert _report(*RAISED["tensor square"], platform="gpu").priced is None


def test_less_is_held_and_gradients_agree(rng: np.random.Generator) -> None:
    f, shapes = RAISED["tensor square"]
    args = [jnp.asarray(rng.normal(size=s), "float32") for s in shapes]
    ours, theirs = (jax.jit(g(f, (0, 1))).lower(*args).compile() for g in (te.grad, jax.grad))
    assert ours.memory_analysis().temp_size_in_bytes < 0.2 * theirs.memory_analysis().temp_size_in_bytes
    for a, b in zip(ours(*args), theirs(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)
