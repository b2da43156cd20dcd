"""What is raised by estimate: functions of which something gains, and those that JAX does as well."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te


def pairs(x: Any) -> Any:
    return x[:, None] - x[None]


def forces(x: Any) -> Any:
    d = pairs(x)
    return jnp.sum(d / jnp.sqrt(jnp.sum(d**2, -1, keepdims=True) + 0.01) ** 3, 1)


def neumann(u: Any) -> Any:
    for _ in range(2):
        p = jnp.pad(u, 1, mode="edge")
        u = u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return u


def pyramid(u: Any) -> Any:
    small = lax.reduce_window(u, 0.0, lax.add, (2, 2), (2, 2), "VALID") / 4
    return u - jnp.repeat(jnp.repeat(small, 2, 0), 2, 1)


def rolled(u: Any, matrix: Any) -> Any:
    for _ in range(3):
        v = jnp.stack([jnp.roll(u, 1), jnp.roll(u, -1), u])
        u = u + 0.1 * jnp.sum(matrix @ v.reshape(3, -1), 0).reshape(u.shape)
    return jnp.roll(u, 1)


def kernel(u: Any) -> Any:
    shifted = [jnp.roll(u, (i, j), (0, 1)) for i in range(-2, 3) for j in range(-2, 3)]
    return sum(jnp.exp(-((u - v) ** 2)) * v for v in shifted)


def parts_of(u: Any, size: int) -> list[Any]:
    n = u.shape[0] - 2 * size
    steps = range(2 * size + 1)
    return [u[i : i + n, j : j + n] for i in steps for j in steps]


def kernel_inside(u: Any) -> Any:
    c = u[2:-2, 2:-2]
    return sum(jnp.exp(-((c - v) ** 2)) * v for v in parts_of(u, 2))


def kernel_between_zeros(u: Any) -> Any:
    return sum(jnp.exp(-((u - v) ** 2)) * v for v in parts_of(jnp.pad(u, 2), 2))


def products_between_zeros(u: Any) -> Any:
    return sum(jnp.tanh(u * v) for v in parts_of(jnp.pad(u, 2), 2))


def shifted_distances(u: Any) -> Any:
    return jnp.stack([jnp.sum(jnp.abs(u - jnp.roll(u, d, 1)), -1) for d in range(8)], -1)


def saturated(d: Any) -> Any:
    return jnp.sum(jnp.where(jnp.abs(d) < 0.1, 0.5 * d * d, 0.1 * jnp.abs(d)))


def walk(u: Any) -> Any:
    """Squared differences of neighbours, and many functions of what is no difference."""
    y = u
    for n in range(30):
        y = y * u + n
    return jnp.sum((u[1:] - u[:-1]) ** 2) + jnp.sum(y / (1 + y * y))


def along_two_axes(u: Any) -> Any:
    return saturated(u[1:] - u[:-1]) + saturated(u[:, 1:] - u[:, :-1])


def vmapped_roll(u: Any) -> Any:
    return jax.vmap(lambda s: jnp.roll(u, s, 1))(jnp.arange(4))


def both_ways(u: Any) -> Any:
    return jax.vmap(lambda s: jnp.roll(u, s, 1))(jnp.arange(-4, 5)).mean(0)


def around_a_point(u: Any) -> Any:
    near = jnp.arange(-1, 2)
    return jax.vmap(lambda m: jax.vmap(lambda n: jnp.roll(u, (m, n), (0, 1)))(near))(near).mean((0, 1))


def each_by_its_own(f: Any) -> Any:
    """Planes of a lattice gas, each moved by its own velocity."""
    x, y = jnp.array([0, 1, 0, -1, 1]), jnp.array([0, 0, 1, 1, -1])
    return jax.vmap(lambda own, a, b: jnp.roll(own, (a, b), (0, 1)))(f, x, y).sum(0)


def one_feature(u: Any) -> Any:
    k = np.float32([[0, 1, 0], [1, -4, 1], [0, 1, 0]])[None, None]
    return lax.conv_general_dilated(jnp.pad(u, 1, mode="wrap")[None, None], k, (1, 1), "VALID")[0, 0]


SMALL, LARGE = (64, 3), (1024, 3)
RAISED: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "pairs that are read twice": (forces, SMALL),
    "many pairs": (lambda x: jnp.exp(-jnp.sum(pairs(x) ** 2, -1)), LARGE),
    "stencils between repeated ends": (neumann, (64, 64)),
    "windows and what repeats them": (pyramid, (64, 64)),
    "distances by a few coordinates": (lambda x: jnp.exp(-jnp.sum(pairs(x) ** 2, -1)), (128, 3)),
    "sums of absolute differences of a few coordinates": (
        lambda x: jnp.exp(-jnp.sum(jnp.abs(pairs(x)), -1)),
        (128, 3),
    ),
    "differences to the nearest image": (
        lambda x: jnp.sum((pairs(x) - jnp.round(pairs(x))) ** 2, -1) ** 2,
        (128, 3),
    ),
    "the nearest of few centres": (lambda x: jnp.min(jnp.sum((x[:, None] - x[:8]) ** 2, -1), 1), LARGE),
    "many reads, dear functions": (kernel, (64, 64)),
    "short sums between shifts": (shifted_distances, (64, 64, 3)),
    "the diagonal of a product": (lambda x: jnp.diagonal(x @ x.T), (64, 64)),
    "a product with a known matrix of few numbers": (lambda x: (np.eye(64) - np.eye(64, k=1)) @ x, (64, 64)),
    "products with a few numbers between shifts": (lambda u: rolled(u, jnp.eye(3) - 0.5), (64, 64)),
    "saturated differences along two axes": (along_two_axes, (256, 256)),
    "rolls by known shifts under vmap": (lambda u: vmapped_roll(u) * u, (64, 64)),
    "rolls by shifts of both signs under vmap": (both_ways, (64, 64)),
    "rolls along two axes by shifts of both signs": (around_a_point, (64, 64)),
    "planes that are rolled by known shifts, each by its own": (each_by_its_own, (5, 128, 128)),
    "a convolution of one feature": (one_feature, (64, 64)),
}
KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "dear functions of parts": (kernel_inside, (64, 64)),
    "dear functions of parts between zeros": (kernel_between_zeros, (64, 64)),
    "dear functions of products with parts": (products_between_zeros, (64, 64)),
    "few pairs that are read once": (lambda x: jnp.exp(-jnp.sum(pairs(x) ** 2, -1)), SMALL),
    "few distances by many coordinates": (lambda x: jnp.exp(-jnp.sum(pairs(x) ** 2, -1)), (64, 16)),
    "absolute differences": (lambda x: jnp.sum(jnp.abs(pairs(x)), -1), (64, 64)),
    "one stencil": (lambda u: jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u, (64, 64)),
    "repeated elements beside others": (lambda u: jnp.repeat(u, 2, 0) - np.arange(64.0), (64, 64)),
    "products of matrices": (lambda u: u @ u.T, (64, 64)),
    "differences beside functions of all else": (walk, (256, 256)),
    "saturated differences along one axis": (lambda u: saturated(u[1:] - u[:-1]), (256, 256)),
    "rolls by known shifts, one after the other": (lambda u: jnp.tanh(vmapped_roll(u)), (64, 64)),
    "most of a product": (lambda u: (u @ u.T)[8:], (64, 64)),
    "a product with a known matrix of many numbers": (lambda x: np.tri(64) @ x, (64, 64)),
}


def report(f: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    return te.explain(te.adjoint(lambda x: jnp.sum(f(x) ** 2)), jax.ShapeDtypeStruct(shape, "float32"))


@pytest.mark.parametrize("name", RAISED)
def test_one_region_of_all(name: str) -> None:
    found = report(*RAISED[name])
    assert len(found.regions) == 1 and not found.kept, found


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_stencils_between_ends_of_the_array_in_a_loop(mode: str) -> None:
    """The reverse pass moves two thirds of what JAX's does, at most."""

    def stepped(u: Any) -> Any:
        def step(u: Any, _: None) -> tuple[Any, None]:
            p = jnp.pad(u, 1, mode=mode)
            return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u), None

        return jnp.sum(lax.scan(step, u, length=10)[0] ** 2)

    u = jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), "float32")
    ours, theirs = (jax.jit(jax.grad(f)).lower(u).compile() for f in (te.adjoint(stepped), stepped))
    assert 3 * ours.cost_analysis()["bytes accessed"] < 2 * theirs.cost_analysis()["bytes accessed"]
    np.testing.assert_allclose(ours(u), theirs(u), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("f", "shape"), [(both_ways, (16, 128)), (around_a_point, (32, 64)), (each_by_its_own, (5, 128, 64))]
)
def test_rolls_by_known_shifts(
    f: Callable[[Any], Any], shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    """They are reads and slices: no gather forward, no scatter backward, and the same values."""
    u = jnp.asarray(rng.normal(size=shape), "float32")

    def loss(u: Any) -> Any:
        return jnp.sum(jnp.tanh(f(u)))

    text = jax.jit(te.value_and_grad(loss)).lower(u).as_text()
    assert "gather" not in text and "scatter" not in text
    report = te.explain(te.adjoint(loss), u)
    assert any(line.where.startswith("test_gains.py") for line in report.regions[0].lines), report
    for ours, theirs in zip(te.value_and_grad(loss)(u), jax.value_and_grad(loss)(u), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_known_parts_of_a_padded_array_in_both_orders(rng: np.random.Generator) -> None:
    """Few large parts at positions that follow nothing: two dimensions of parts, in front of and behind what they are parts of."""
    starts = np.array([[3, 0, 7], [1, 1, 9]])

    def parts(x: Any) -> Any:
        taken = jax.vmap(jax.vmap(lambda s: jax.lax.dynamic_slice_in_dim(x, s, 1024), 0, -1))(
            jnp.asarray(starts)
        )
        return taken * jnp.arange(1.0, 7.0).reshape(2, 1, 1, 3)

    x = jnp.asarray(rng.normal(size=(1034, 8)), "float32")
    expected = np.stack([np.stack([x[s : s + 1024] for s in row], -1) for row in starts])
    expected *= np.arange(1.0, 7.0).reshape(2, 1, 1, 3)
    weights = jnp.asarray(rng.normal(size=expected.shape), "float32")

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.sin(parts(x)) * weights)

    text = jax.jit(te.grad(loss)).lower(x).as_text()
    assert "gather" not in text and "scatter" not in text
    np.testing.assert_allclose(jax.jit(te.adjoint(parts))(x), expected, rtol=1e-6)
    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KEPT)
def test_nothing(name: str) -> None:
    found = report(*KEPT[name])
    assert not found.regions and all(line.reason for line in found.kept), found


def test_padded_windows_are_banded_products(rng: np.random.Generator) -> None:
    """The zeros are a condition of the product, and no window is laid out."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        kp, vp = (jnp.pad(a, ((8, 0), (0, 0))) for a in (k, v))
        index = jnp.arange(128)[:, None] + jnp.arange(9)
        weights = jax.nn.softmax(jnp.einsum("td,twd->tw", q, kp[index]))
        return jnp.sum(jnp.einsum("tw,twd->td", weights, vp[index]) ** 2)

    args = [jnp.asarray(rng.normal(size=(128, 16)), jnp.float32) for _ in range(3)]
    raised = te.adjoint(attention)
    text = te.source(raised, *args)
    assert "gather[" not in text and text.count(" where ") >= 2
    both = zip(te.grad(raised, (0, 1, 2))(*args), jax.grad(attention, (0, 1, 2))(*args), strict=True)
    for found, expected in both:
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("most", "count"), [(16, 64), (32, 128), (128, 128)])
def test_a_small_table_of_all_pairs_is_left_to_jax(most: int, count: int) -> None:
    """Each row of a bias for each distance is read by many pairs: a slice for each row is dearer than a scatter into the table."""
    distances = np.clip(np.arange(count) - np.arange(count)[:, None], -most, most) + most

    def scores(table: Any, x: Any) -> Any:
        return jnp.sum((x + table[distances].transpose(2, 0, 1)) ** 2)

    args = jnp.ones((2 * most + 1, 8)), jnp.ones((8, count, count))
    assert not te.explain(te.adjoint(scores), *args).regions


def test_distances_are_raised_and_the_nearest_is_left_to_jax() -> None:
    nearest = lambda x: jnp.min(jnp.sum(pairs(x) ** 2 + 1.0, -1), 1)  # noqa: E731
    found = report(nearest, LARGE)
    assert len(found.regions) == 1
    assert any("reduction" in line.reason for line in found.kept if "reduce_min" in line.what), found
    x = jnp.sin(jnp.arange(384.0)).reshape(128, 3)
    loss = lambda x: jnp.sum(nearest(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-4, atol=1e-5)


def test_differences_of_several_arrays_stay() -> None:
    """Nothing is added before each is squared: JAX's transposes are one loop."""

    def smoothness(u: Any, v: Any) -> Any:
        return sum(jnp.sum((jnp.roll(a, -1, d) - a) ** 2) for a in (u, v) for d in (0, 1))

    u = jax.ShapeDtypeStruct((64, 64), "float32")
    assert not te.explain(te.adjoint(smoothness), u, u).regions


def test_remainders_are_left_to_jax() -> None:
    """They are dear, and a region computes what its backward pass needs again."""
    found = report(lambda x: jnp.cumsum(jnp.mod(x, 3.0) * x), (2048,))
    assert len(found.regions) == 1
    assert any(line.reason.startswith("a remainder") for line in found.kept), found


def test_what_is_known_outside_of_a_loop_is_known_inside(rng: np.random.Generator) -> None:
    """Velocities of a lattice gas are constants of its loop: what is moved by them are slices in each turn, and products with them are sums."""
    x, y = np.array([0, 1, 0, -1, 0]), np.array([0, 0, 1, 0, -1])

    def step(f: Any, _: None) -> tuple[Any, None]:
        rho = f.sum(0)
        u = jnp.tensordot(jnp.asarray(np.stack([x, y]), jnp.float32), f, 1) / rho
        along = jnp.asarray(x)[:, None, None] * u[0] + jnp.asarray(y)[:, None, None] * u[1]
        f = f + 0.6 * (rho * (1 + 3 * along) / 5 - f)
        return jax.vmap(lambda own, a, b: jnp.roll(own, (a, b), (0, 1)))(
            f, jnp.asarray(x), jnp.asarray(y)
        ), None

    def loss(f: Any) -> Any:
        return jnp.sum(jax.lax.scan(step, f, length=5)[0].sum(0) ** 2)

    f = jnp.asarray(1 + 0.1 * rng.normal(size=(5, 128, 128)), jnp.float32)
    text = jax.jit(te.grad(loss)).lower(f).as_text()
    assert "gather" not in text and "scatter" not in text and "dot_general" not in text
    np.testing.assert_allclose(te.grad(loss)(f), jax.grad(loss)(f), rtol=1e-4, atol=1e-5)
