"""JAX functions raised: gradients beside jax.grad, and what was raised."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from tests.xla_counts import Fused


def laplacian(u: Any) -> Any:
    return jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u


def heat(u: Any) -> Any:
    for _ in range(2):
        u = u + 0.1 * laplacian(u)
    return u**2


def padded(u: Any, mode: str) -> Any:
    p = jnp.pad(u, 1, mode=mode)
    return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u) ** 2


def gray_scott(u: Any) -> Any:
    u = jnp.tanh(u)  # concentrations: the sine of large powers would show the last digits of each
    v = u * u
    r = u * v * v
    u, v = u + 0.1 * laplacian(u) - r, v + 0.05 * laplacian(v) + r - 0.1 * v
    return u + v**2


def upwind(u: Any) -> Any:
    left, right = jnp.roll(u, 1), jnp.roll(u, -1)
    return jnp.where(u > 0, u * (u - left), u * (right - u)) / (1 + (right - left) ** 2)


def edges(u: Any) -> Any:
    return (
        u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] - u[:-2, 1:-1])).at[0].set(0.0).at[::2, 3].multiply(3.0) ** 2
    )


def windows(u: Any, init: float, op: Any, padding: str) -> Any:
    return lax.reduce_window(u, init, op, (3, 2), (2, 1), padding) ** 2


def depthwise(u: Any) -> Any:
    w = jnp.sin(jnp.arange(27.0)).reshape(3, 3, 1, 3)
    x = jnp.stack([u, u * u, jnp.cos(u)], -1)[None]
    return lax.conv_general_dilated(
        x, w, (2, 1), "SAME", feature_group_count=3, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


RAISED: dict[str, Callable[[Any], Any]] = {
    "heat": heat,
    "pad zeros": lambda u: padded(u, "constant"),
    "pad edge": lambda u: padded(u, "edge"),
    "pad wrap": lambda u: padded(u, "wrap"),
    "pad reflect": lambda u: padded(u, "reflect"),
    "Gray-Scott": gray_scott,
    "upwind": upwind,
    "at": edges,
    "max windows": lambda u: windows(u, -jnp.inf, lax.max, "SAME"),
    "min windows": lambda u: windows(u, jnp.inf, lax.min, "VALID"),
    "sum windows": lambda u: windows(u, 0.0, lax.add, "SAME"),
    "windows of one element": lambda u: (
        lax.reduce_window_sum_p.bind(
            u,
            window_dimensions=(1, 1),
            window_strides=(1, 2),
            padding=((1, 2), (0, 1)),
            base_dilation=(2, 1),
            window_dilation=(1, 1),
        )
        ** 2
    ),
    "tiles": lambda u: jnp.tile(u, (2, 3)) ** 2 * jnp.arange(180.0),
    "unstacked": lambda u: jnp.unstack(u, axis=1)[3] * jnp.unstack(jnp.sin(u), axis=1)[-1],
    "depthwise": depthwise,
    # small, since the sine of large squares would show the last digits of each sum
    "cumsum": lambda u: jnp.cumsum(u / 8, 1) ** 2 + lax.cumsum(u, 0, reverse=True),
    "nearest": lambda u: jax.image.resize(u, (80, 120), "nearest") ** 2,
    "frames": lambda u: (u[:, jnp.arange(15)[:, None] * 2 + jnp.arange(5)] * jnp.hanning(5)) ** 2,
    "diff": lambda u: jnp.diff(u, axis=0) ** 2 + jnp.abs(jnp.diff(u, axis=1))[1:, :1],
    "gradient": lambda u: jnp.stack(jnp.gradient(u)) ** 2,
    "relu of a pool": lambda u: jax.nn.relu(windows(u, -jnp.inf, lax.max, "VALID") - 1),
    "reversed roll": lambda u: jnp.roll(u[::-1], 3, 1)[:, ::-1] * jnp.roll(u, (2, 1), (0, 1)),
}


@pytest.fixture
def u(rng: np.random.Generator) -> Any:
    return jnp.asarray(rng.normal(size=(40, 60)), "float32")


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: jnp.sum(jnp.sin(f(u)))


@pytest.mark.parametrize("name", RAISED)
def test_gradients_are_those_of_jax(name: str, u: Any) -> None:
    f = total(RAISED[name])
    raised = te.adjoint(f, everything=True)
    value, gradient = jax.jit(te.value_and_grad(raised))(u)
    expected, expected_gradient = jax.jit(jax.value_and_grad(f))(u)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(
        gradient, expected_gradient, rtol=2e-5, atol=2e-5 * np.abs(expected_gradient).max()
    )
    assert te.explain(raised, u).regions, "nothing was raised"


def test_a_heat_equation_is_stencils(u: Any) -> None:
    text = te.source(te.grad(total(heat)), u)
    assert "% 40" in text and "scatter" not in text and ".at[" not in text


def test_where_nothing_gains_the_function_itself_is_called(u: Any) -> None:
    calls = []

    def f(u: Any) -> Any:
        calls.append(u)
        return jnp.sum(jax.nn.softmax(u @ u.T))

    jaxpr = jax.make_jaxpr(te.grad(f))(u)
    assert str(jaxpr) == str(jax.make_jaxpr(jax.grad(f))(u))


def test_signatures_are_those_of_jax(u: Any) -> None:
    def f(params: Any, n: int, u: Any, *, scale: float) -> Any:
        out = scale * n * jnp.sum(params["k"] * jnp.cumsum(u, 0) ** 2)
        return out, {"u": u, "name": "heat"}

    args = {"k": jnp.cos(u)}, 3, u
    found = te.value_and_grad(f, (0, 2), has_aux=True)(*args, scale=0.5)
    expected = jax.value_and_grad(f, (0, 2), has_aux=True)(*args, scale=0.5)
    assert te.explain(te.grad(f, has_aux=True), *args, scale=0.5).regions
    assert found[0][1]["name"] == "heat"
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
        (found[0][0], found[1]),
        (expected[0][0], expected[1]),
    )
    value, pull = te.vjp(jnp.cumsum, u)
    np.testing.assert_allclose(pull(value)[0], jax.vjp(jnp.cumsum, u)[1](value)[0], rtol=1e-4, atol=1e-3)


def test_values_that_python_asks_for(u: Any) -> None:
    def f(u: Any, threshold: Any) -> Any:
        return jnp.sum(heat(u)) if threshold > 0 else jnp.sum(u)

    np.testing.assert_allclose(te.grad(f)(u, jnp.float32(-1)), np.ones((40, 60)))


def test_a_builder_is_told_to_be_wrapped(u: Any) -> None:
    def builder(x: te.Tensor) -> te.Tensor:
        return te.compute((), lambda: x[0, 0], "y")

    with pytest.raises(te.ArgumentError, match=r"te.grad\(te.function\(builder\)\)"):
        te.grad(builder)(u)
    assert te.grad(te.function(builder))(u)[0, 0] == 1


def test_transformations_of_raised_functions(u: Any) -> None:
    f, small = total(heat), u[:36, :36]
    raised = te.adjoint(f)
    batch = jnp.stack([small, 2 * small])
    np.testing.assert_allclose(
        jax.vmap(te.grad(f))(batch), jax.vmap(jax.grad(f))(batch), rtol=1e-3, atol=1e-4
    )
    second = lambda g: jax.grad(lambda u: jnp.sum(g(u) ** 2))(small)  # noqa: E731
    np.testing.assert_allclose(second(te.grad(raised)), second(jax.grad(f)), rtol=1e-3, atol=1e-3)
    scanned = lambda g: jax.grad(lambda u: lax.scan(lambda c, _: (c + g(u), None), 0.0, None, 3)[0])(small)  # noqa: E731
    np.testing.assert_allclose(scanned(raised), scanned(f), rtol=1e-4, atol=1e-4)


def test_forward_mode_and_hessians(u: Any) -> None:
    f, x = lambda v: jnp.sum(jnp.cumsum(jnp.sin(v)) ** 3), u[0, :5]
    raised = te.adjoint(f, everything=True)
    for name, arguments in (("jvp", ((x,), (x,))), ("linearize", (x,))):
        found, expected = getattr(te, name)(raised, *arguments), getattr(jax, name)(f, *arguments)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        moved = [r[1](x) if name == "linearize" else r[1] for r in (found, expected)]
        np.testing.assert_allclose(*moved, rtol=1e-4)
    np.testing.assert_allclose(te.hessian(raised)(x), jax.hessian(f)(x), rtol=1e-4, atol=1e-4)


def test_derivatives_that_functions_bring_along(u: Any) -> None:
    def f(u: Any) -> Any:
        y = jax.nn.relu(u) + jax.nn.softplus(u) * lax.stop_gradient(u) + jax.nn.silu(u) + jax.nn.selu(u)
        return jnp.sum(jnp.roll(y, 1, 0) ** 2)

    x = u[:5, :4].at[0].set(0.0)
    raised = te.adjoint(f, everything=True)
    assert not te.explain(raised, x).kept
    np.testing.assert_allclose(te.grad(raised)(x), jax.grad(f)(x), rtol=1e-5, atol=1e-6)
    second = [jax.grad(lambda x, g=g: jnp.sum(jax.grad(g)(x) ** 2))(x) for g in (raised, f)]
    np.testing.assert_allclose(*second, rtol=1e-4, atol=1e-5)


def test_an_operand_at_two_places_of_such_a_function_moves_at_both(u: Any) -> None:
    f = lambda x: jnp.sum(jnp.logaddexp(x, x) ** 2)  # noqa: E731
    raised = te.adjoint(f, everything=True)
    assert not te.explain(raised, u[:3]).kept
    np.testing.assert_allclose(te.grad(raised)(u[:3]), jax.grad(f)(u[:3]), rtol=1e-5)


def test_a_second_derivative_of_one_argument_needs_no_override_of_the_other(u: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        return jnp.sum(jnp.sin(jnp.cumsum(b, 0))) + jnp.sum(jnp.sin(a * lax.stop_gradient(a)))

    def second(f: Callable[..., Any]) -> Any:
        total = lambda a, b: sum(jnp.sum(jnp.sin(g)) for g in jax.grad(f, (0, 1))(a, b))  # noqa: E731
        return jax.grad(total, (0, 1))(u[:5], u[5:10])

    for found, expected in zip(second(te.adjoint(f, everything=True)), second(f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_bodies_of_loops_and_branches_are_raised(u: Any) -> None:
    def f(u: Any) -> Any:
        u, totals = lax.scan(lambda u, x: (u + x * laplacian(u), jnp.sum(u)), u, jnp.linspace(0.1, 0.2, 4))
        u = lax.cond(totals[0] > 0, lambda u: jnp.roll(u, 2), lambda u: u * jnp.roll(u, 1), u)
        return jnp.sum(jax.checkpoint(laplacian)(jax.jit(laplacian)(u) ** 2)) + jnp.sum(totals)

    raised = te.adjoint(f, everything=True)
    names = [line.where for region in te.explain(raised, u).regions for line in region.lines]
    assert len(names) >= 5
    found, expected = jax.jit(te.grad(raised))(u), jax.jit(jax.grad(f))(u)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_side_effects_stay_in_order(u: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(u: Any) -> Any:
        jax.debug.print("before")
        u = heat(u)
        jax.debug.print("after")
        return jnp.sum(u)

    jax.block_until_ready(te.grad(f)(u))
    jax.effects_barrier()
    assert capsys.readouterr().out.split() == ["before", "after"]


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_keys_that_are_traced(make: Any) -> None:
    """As an argument of the function, and as what it closes over."""
    x = jnp.arange(5.0)

    def f(key: Any, x: Any) -> Any:
        return jnp.sum(jax.random.normal(key, (5,)) * jnp.exp(x) * jnp.roll(x, 1))

    expected = jax.grad(f, 1)(make(0), x)
    for gradient in (te.grad(f, 1), jax.grad(te.adjoint(f, everything=True), 1)):
        np.testing.assert_allclose(jax.jit(gradient)(make(0), x), expected, rtol=1e-6)
    closed = jax.jit(lambda key: te.grad(lambda x: f(key, x))(x))
    np.testing.assert_allclose(closed(make(0)), expected, rtol=1e-6)


def smoothed(u: Any) -> Any:
    for _ in range(2):
        u = u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1))
    return u


def test_a_call_that_returns_its_argument(u: Any) -> None:
    def f(u: Any) -> Any:
        same = jax.image.resize(u, u.shape, "bilinear")
        return jnp.sum(smoothed(same) ** 2) + jnp.sum(same)

    raised = te.adjoint(f, everything=True)
    np.testing.assert_allclose(jax.grad(raised)(u), jax.grad(f)(u), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(te.grad(f)(u), jax.grad(f)(u), rtol=1e-5, atol=1e-5)


def test_steps_of_several_results_beside_what_is_raised(u: Any) -> None:
    def f(u: Any) -> Any:
        matrix = u[:8, :8] @ u[:8, :8].T + 9 * jnp.eye(8)
        return jnp.linalg.slogdet(matrix)[1] + jnp.sum(smoothed(u) ** 2)

    np.testing.assert_allclose(te.grad(f)(u), jax.grad(f)(u), rtol=1e-4, atol=1e-4)


def test_known_arrays_that_are_dear_are_computed_once(u: Any) -> None:
    decay = lambda u: jnp.exp(-0.1 * jnp.linspace(0, 1, u.shape[1]) ** 2)  # noqa: E731

    def f(u: Any) -> Any:
        return jnp.sum((decay(u) * smoothed(decay(u) * u)) ** 2)

    assert "exp(" not in te.source(te.grad(f), u)
    np.testing.assert_allclose(te.grad(f)(u), jax.grad(f)(u), rtol=1e-5, atol=1e-5)


def test_known_functions_of_positions_go_in_as_numbers() -> None:
    """XLA would compute the cosine for each element of each frame that it multiplies."""
    places = np.arange(0, 1536, 64)[:, None] + np.arange(128)

    def energy(x: Any) -> Any:
        frames = x[places] * jnp.hanning(128)
        return jnp.sum((frames**2).mean(-1) ** 2)

    x = jnp.sin(jnp.arange(1600.0))
    np.testing.assert_allclose(te.grad(energy)(x), jax.grad(energy)(x), rtol=1e-4, atol=1e-7)
    assert te.explain(te.grad(energy), x).regions
    assert " cosine(" not in Fused(jax.jit(te.grad(energy)).lower(x)).as_text()


def advected(u: Any) -> Any:
    """Differences of neighbours times the array itself, among others."""
    for _ in range(3):
        slope = jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0)
        u = u - 0.1 * (u * slope) + 0.1 * laplacian(u)
    return u


def conserved(u: Any) -> Any:
    for _ in range(3):
        u = u + 0.05 * u * (jnp.roll(u, 1, 1) - u) - 0.1 * (u - jnp.roll(u, -1, 0)) * u
    return u


def dispersed(u: Any) -> Any:
    for _ in range(3):
        third = jnp.roll(u, -2, 0) - 2 * jnp.roll(u, -1, 0) + 2 * jnp.roll(u, 1, 0) - jnp.roll(u, 2, 0)
        u = u - 0.1 * ((jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0)) * u) - 0.01 * third
    return u


@pytest.mark.parametrize("f", [advected, conserved, dispersed])
def test_what_an_array_is_carried_by_itself_is_one_stencil(f: Callable[[Any], Any], u: Any) -> None:
    """``u * (u[i + 1] - u[i - 1])`` is a term of the stencil around it: three steps and their sum are four tensors."""
    loss = total(f)
    report = te.explain(te.adjoint(loss), u)
    forward = next(iter(report.regions[0].code.choices.values()))
    assert len(forward) == 4
    np.testing.assert_allclose(te.grad(loss)(u), jax.grad(loss)(u), rtol=2e-5, atol=1e-5)


NARROW = np.random.default_rng(5).normal(size=(2, 8, 8, 8)).astype(jnp.bfloat16)
FILTER = np.random.default_rng(6).normal(size=(3, 3, 8, 4)).astype(jnp.bfloat16)
WIDER: dict[str, Any] = {
    "a product": lambda x, w: jnp.einsum("nhwc,ijco->nhwo", x, w, preferred_element_type="float32"),
    "a convolution": lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type="float32"
    ),
}


@pytest.mark.parametrize("name", WIDER)
def test_narrow_operands_that_are_summed_in_float32(name: str) -> None:
    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(WIDER[name](jnp.roll(x, 1, 1) * x, w) ** 2)

    expected = jax.grad(loss, (0, 1))(NARROW, FILTER)
    for gradient in (te.grad(loss, (0, 1)), jax.grad(te.adjoint(loss, everything=True), (0, 1))):
        for own, other in zip(gradient(NARROW, FILTER), expected, strict=True):
            assert own.dtype == other.dtype == jnp.bfloat16
            scale = float(jnp.max(jnp.abs(other.astype("float32"))))
            np.testing.assert_allclose(own.astype("float32"), other.astype("float32"), atol=0.02 * scale)
