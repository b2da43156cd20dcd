"""Forward mode: tangents are what the adjoints are the transpose of, and the transpose of a transpose is the definition itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from tests.derivatives.test_adjoint_values import CASES


def x(*shape: int, name: str = "X", dtype: str = "float32") -> te.Placeholder:
    return te.placeholder(shape, dtype, name)


def values(tensors, feeds):
    order = topological_order(tensors)
    return te.interpret(list(tensors), {t: v for t, v in feeds.items() if among(t, order)})


def _inputs(output: te.Tensor) -> list[Placeholder]:
    return [t for t in topological_order([output]) if isinstance(t, Placeholder)]


def _numbers(rng, tensors):
    return {
        t: rng.standard_normal(t.shape) if t.dtype == "float64" else rng.integers(0, 3, t.shape, t.dtype)
        for t in tensors
    }


@pytest.mark.parametrize("name", sorted(CASES))
def test_tangents_are_the_transpose_of_adjoints(name: str) -> None:
    output = CASES[name]()
    rng = np.random.default_rng(1)
    floats = [t for t in _inputs(output) if t.dtype == "float64"]
    tangents = [x(*t.shape, name=f"T_{t.name}", dtype=t.dtype) for t in floats]
    head = x(*output.shape, name="H", dtype=output.dtype)
    adjoints = list(te.differentiate(output, floats, head))
    tangent = te.jvp(output, floats, tangents)
    feeds = _numbers(rng, [*_inputs(output), *tangents, head])
    (forward,) = values([tangent], feeds)
    backward = values(adjoints, feeds)
    own = sum(np.sum(a * feeds[t]) for a, t in zip(backward, tangents, strict=True))
    np.testing.assert_allclose(np.sum(feeds[head] * forward), own, rtol=1e-10, atol=1e-10)
    again = values(
        [te.differentiate(a, [head], t)[0] for a, t in zip(adjoints, tangents, strict=True)], feeds
    )
    np.testing.assert_allclose(sum(again), forward, rtol=1e-10, atol=1e-10)


def _correlation(stride: int, dilation: int) -> tuple[te.Placeholder, te.Placeholder, te.Tensor]:
    image, kernel, k = x(12, name="X"), x(3, name="W"), te.reduce_axis((0, 3), "k")
    extent = (12 - 2 * dilation - 1) // stride + 1
    y = te.compute((extent,), lambda i: te.sum(image[stride * i + dilation * k] * kernel[k], axis=k), "Y")
    return image, kernel, y


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_the_adjoint_of_a_convolution_differentiated_for_the_head_is_the_convolution(
    stride: int, dilation: int
) -> None:
    """The same node, whatever zero elimination made of the adjoint."""
    image, kernel, y = _correlation(stride, dilation)
    head = x(*y.shape, name="H")
    for source in (image, kernel):
        (adjoint,) = te.differentiate(y, [source], head)
        (back,) = te.differentiate(adjoint, [head], source)
        assert te.formula(back).split(" = ")[1] == te.formula(y).split(" = ")[1]
        assert te.cost(back) == te.cost(y)


def test_transposing_twice_gives_the_definition() -> None:
    s, i2 = x(6, 6, name="S"), x(9, name="Z")
    perm = te.placeholder((5,), "int32", "I", facts=te.facts.within(9))
    k = te.reduce_axis((0, 6), "k")
    definitions = [
        (s, te.compute((6, 6), lambda i, j: s[j, 5 - i], "turned")),
        (s, te.compute((3, 4), lambda i, j: s[2 * i, j + 1] - s[i, j], "strided")),
        (s, te.compute((6,), lambda i: te.sum(s[i, k], axis=k, where=k <= i), "triangle")),
        (i2, te.compute((5,), lambda i: i2[perm[i]], "gathered")),
        (i2, te.compute((12,), lambda i: te.select((i >= 1) & (i < 10), i2[i - 1], 0.0), "padded")),
    ]
    for source, y in definitions:
        head = x(*y.shape, name="H")
        back = te.transpose(te.transpose(y, source, head), head, source)
        assert te.formula(back).split(" = ")[1] == te.formula(y).split(" = ")[1]


def test_the_transpose_of_a_tangent_is_the_adjoint() -> None:
    image, kernel, y = _correlation(2, 1)
    z = te.compute(y.shape, lambda i: te.tanh(y[i]), "Z")
    linear = te.linearize(z, [image, kernel])
    head = x(*z.shape, name="H")
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(t.shape).astype("f") for t in (image, kernel, head, *linear.tangents)}
    expected = values(list(te.differentiate(z, [image, kernel], head)), feeds)
    found = values([te.transpose(linear.results[0], t, head) for t in linear.tangents], feeds)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert linear(None, linear.tangents[1])[0].shape == z.shape


def test_transpose_is_of_linear_maps() -> None:
    a = x(4)
    square = te.compute((4,), lambda i: a[i] * a[3 - i], "square")
    with pytest.raises(te.DifferentiationError, match=r"square is not linear in X"):
        te.transpose(square, a)
    affine = te.compute((4,), lambda i: 2 * a[i] + 1, "affine")
    assert te.transpose(affine, a).shape == (4,)


def test_softmax_has_no_tangent_of_its_running_maximum() -> None:
    a, m, n = x(4, 10), te.reduce_axis((0, 10), "m"), te.reduce_axis((0, 10), "n")
    peak = te.compute((4,), lambda i: te.max(a[i, m], axis=m), "peak")
    e = te.compute((4, 10), lambda i, j: te.exp(a[i, j] - peak[i]), "e")
    s = te.compute((4,), lambda i: te.sum(e[i, n], axis=n), "s")
    y = te.compute((4, 10), lambda i, j: e[i, j] / s[i], "Y")
    names = {t.name for t in topological_order([te.jvp(y, a, x(4, 10, name="T"))])}
    assert "peak_dot" not in names and "ties_peak" not in names
    shifted = te.compute((4,), lambda i: s[i] + peak[i], "shifted")  # here it counts
    assert "peak_dot" in {t.name for t in topological_order([te.jvp(shifted, a, x(4, 10, name="T"))])}


def test_no_condition_is_about_a_tangent() -> None:
    """Guarded tangents stay linear, and slopes that are infinite behind a guard give no NaN."""
    a, k = x(5), te.reduce_axis((0, 5), "k")
    safe = te.compute((5,), lambda i: te.select(a[i] > 0, a[i], 0.0), "safe")
    total = te.compute((5,), lambda i: te.sum(safe[k], axis=k, where=k <= i) * a[i], "total")
    root = te.compute((5,), lambda i: te.select(total[i] > 0, te.sqrt(total[i]), 0.0), "root")
    linear = te.linearize(root, a)
    feeds = {a: np.float32([-1, 0, 2, 3, -4]), linear.tangents[0]: np.ones(5, "f")}
    (found,) = values(linear.results, feeds)
    assert np.isfinite(found).all()
    te.transpose(linear.results[0], linear.tangents[0])  # would be refused


def test_tangents_with_a_prefix_are_columns_of_the_jacobian() -> None:
    image, kernel, y = _correlation(2, 2)
    directions = x(7, 12, name="V")
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(t.shape).astype("f") for t in (kernel, directions)}
    (found,) = values([te.jvp(y, image, directions)], feeds)
    (jacobian,) = values([te.jacobian(y, image)], {kernel: feeds[kernel]})
    np.testing.assert_allclose(found, feeds[directions] @ jacobian.T, rtol=1e-5)


def test_a_tensor_that_moves_by_itself_and_with_others() -> None:
    a = x(4)
    y = te.compute((4,), lambda i: a[i] ** 2, "Y")
    z = te.compute((4,), lambda i: y[i] * a[3 - i], "Z")
    t, u = x(4, name="T"), x(4, name="U")
    feeds = {a: np.float32([1, 2, 3, 4]), t: np.float32([1, 0, 2, 0]), u: np.float32([0, 1, 1, 0])}
    (found,) = values([te.jvp(z, [a, y], [t, u])], feeds)
    v, dt, du = feeds[a], feeds[t], feeds[u]
    np.testing.assert_allclose(found, (2 * v * dt + du) * v[::-1] + v**2 * dt[::-1])


def _cumulative(kind: str) -> tuple[te.Placeholder, te.Tensor]:
    a, k = x(6, dtype="float64"), te.reduce_axis((0, 6), "k")
    if kind == "prod":
        return a, te.compute((6,), lambda i: te.prod(a[k], axis=k, where=k <= i), "Y")
    if kind == "max":
        return a, te.compute((6,), lambda i: te.max(a[k], axis=k, where=k >= i), "Y")
    maps = te.comm_reducer(
        lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]),
        lambda *kinds: (te.const(1.0, kinds[0]), te.const(0.0, kinds[1])),
        "maps",
    )
    _, y = te.compute((6,), lambda i: maps((a[k], te.sin(a[k])), axis=k, where=k <= i), "Y")
    return a, y


_PLAIN = {
    "prod": jnp.cumprod,
    "max": lambda v: jax.lax.cummax(v, reverse=True),
    "maps": lambda v: jax.lax.associative_scan(
        lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (v, jnp.sin(v))
    )[1],
}


@pytest.mark.parametrize("kind", ["prod", "max", "maps"])
def test_tangents_of_cumulative_reductions(kind: str) -> None:
    a, y = _cumulative(kind)
    t, h = x(6, name="T", dtype="float64"), x(6, name="H", dtype="float64")
    rng = np.random.default_rng(3)
    feeds = {p: rng.standard_normal(6) for p in (a, t, h)}
    plain = _PLAIN[kind]
    with jax.enable_x64(True):
        expected = jax.jvp(plain, (feeds[a],), (feeds[t],))[1]
        second = jax.jvp(lambda v: jax.vjp(plain, v)[1](jnp.asarray(feeds[h]))[0], (feeds[a],), (feeds[t],))[
            1
        ]
        first = te.evaluate(te.jvp(y, a, t), {a: feeds[a], t: feeds[t]})
    (again,) = values([te.jvp(te.differentiate(y, [a], h)[0], a, t)], feeds)
    np.testing.assert_allclose(first, expected, rtol=1e-12)
    np.testing.assert_allclose(again, second, rtol=1e-10, atol=1e-12)


def test_a_third_derivative_of_a_cumulative_product_is_derived_state_by_state() -> None:
    a, y = _cumulative("prod")
    head = x(6, name="H", dtype="float64")
    g = te.differentiate(y, [a], head)[0]
    for n in range(2):
        total = te.compute((), lambda g=g: te.sum(g[k := te.reduce_axis((0, 6), "k")], axis=k), f"E{n}")
        g = te.differentiate(total, [a])[0]
    v = np.linspace(0.5, 1.5, 6)
    (found,) = values([g], {a: v, head: np.ones(6)})
    with jax.enable_x64(True):
        f = lambda v: jnp.sum(jnp.cumprod(v))  # noqa: E731
        for _ in range(2):
            f = lambda v, f=f: jnp.sum(jax.grad(f)(v))  # noqa: E731
        np.testing.assert_allclose(found, jax.grad(f)(v), rtol=1e-10)


def test_tangents_of_complex_numbers() -> None:
    z = te.placeholder((3,), "complex64", "Z")
    y = te.compute((3,), lambda i: te.real(te.conj(z[i]) * z[2 - i] * (1 + 2j)) + te.abs(z[i]), "Y")
    t = te.placeholder((3,), "complex64", "T")
    rng = np.random.default_rng(0)
    v, d = ((rng.standard_normal(3) + 1j * rng.standard_normal(3)).astype("c8") for _ in range(2))
    expected = jax.jvp(lambda z: jnp.real(jnp.conj(z) * z[::-1] * (1 + 2j)) + jnp.abs(z), (v,), (d,))[1]
    np.testing.assert_allclose(te.interpret(te.jvp(y, z, t), {z: v, t: d}), expected, rtol=1e-5, atol=1e-6)


def test_tangents_through_functions_of_arrays() -> None:
    a, b, t = x(3, 3, name="A"), x(3, name="b"), x(2, 3, 3, name="T")
    solved = te.extern((3,), jnp.linalg.solve, [a, b], "solve")
    y = te.compute((3,), lambda i: solved[i] * b[i], "Y")
    rng = np.random.default_rng(0)
    m, v, d = (rng.standard_normal(s).astype("f") for s in ((3, 3), (3,), (2, 3, 3)))
    expected = [jax.jvp(lambda m: jnp.linalg.solve(m, v) * v, (m,), (one,))[1] for one in d]
    found = te.evaluate(te.jvp(y, a, t), {a: m, b: v, t: d})
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4, atol=1e-5)


def test_overrides_move_forward_by_transposition() -> None:
    a = x(4)
    y = te.compute((4,), lambda i: te.round(a[i]) * a[3 - i], "Y")
    rounded = te.compute((4,), lambda i: te.round(y[i]), "rounded")
    through = {rounded: ([y], lambda out, inputs, head: [head])}
    t = x(4, name="T")
    feeds = {a: np.float32([1.2, 2.7, -0.4, 3.3]), t: np.float32([1, 2, 3, 4])}
    found, expected = values([te.jvp(rounded, a, t, override=through), te.jvp(y, a, t)], feeds)
    np.testing.assert_allclose(found, expected)

    def clipped(out, inputs, head):
        return [te.compute((4,), lambda i: te.clip(head[i], -1.0, 1.0), "clipped")]

    with pytest.raises(te.DifferentiationError, match=r"override of rounded is not linear.*defjvp"):
        te.jvp(rounded, a, t, override={rounded: ([y], clipped)})


def test_hessians_and_their_products() -> None:
    a, b, k = x(5), x(4, name="B"), te.reduce_axis((0, 4), "k")
    energy = te.compute((), lambda: te.sum((a[k + 1] - a[k] ** 2) ** 2 * te.exp(b[k]), axis=k), "E")

    def plain(a, b):
        return jnp.sum((a[1:] - a[:-1] ** 2) ** 2 * jnp.exp(b))

    rng = np.random.default_rng(0)
    va, vb, da, db = (rng.standard_normal(n).astype("f") for n in (5, 4, 5, 4))
    feeds = {a: va, b: vb}
    rows = te.hessian(energy, [a, b])
    expected = jax.hessian(plain, argnums=(0, 1))(va, vb)
    for n in range(2):
        for m in range(2):
            np.testing.assert_allclose(values([rows[n][m]], feeds)[0], expected[n][m], rtol=1e-4, atol=1e-5)
    t, u = x(5, name="T"), x(4, name="U")
    found = values(te.hvp(energy, [a, b], [t, u]), {**feeds, t: da, u: db})
    own = jax.jvp(jax.grad(plain, (0, 1)), (va, vb), (da, db))[1]
    for one, other in zip(found, own, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert te.hessian(energy, a).shape == (5, 5)


def test_errors_say_which_argument() -> None:
    a, b, i = x(4), x(3, name="B"), x(4, name="I", dtype="int32")
    y = te.compute((4,), lambda n: a[n] * 2 + te.cast(i[n], "float32"), "Y")
    with pytest.raises(te.ShapeError, match=r"the tangent of X .*\(4,?\)"):
        te.jvp(y, a, b)
    with pytest.raises(te.ArgumentError, match=r"2 inputs \(X, B\) and 1 tangents"):
        te.jvp(y, [a, b], [a])
    with pytest.raises(te.DtypeError, match=r"I has dtype int32, which has no tangent"):
        te.jvp(y, i, i)
    with pytest.raises(te.DifferentiationError, match=r"tangent of X is a ndarray"):
        te.jvp(y, a, np.ones(4))
    with pytest.raises(te.ShapeError, match=r"same prefix"):
        te.jvp(y, [a, b], [x(2, 4, name="T"), x(3, name="U")])
    with pytest.raises(te.ShapeError, match=r"te.hvp of Y"):
        te.hvp(y, a, a)
    with pytest.raises(te.ArgumentError, match=r"te\.jvp"):
        te.jvp(y)


def test_several_outputs_at_once() -> None:
    a = x(4)
    y = te.compute((4,), lambda i: a[i] ** 2, "Y")
    z = te.compute((3,), lambda i: a[i + 1] * y[i], "Z")
    heads = [x(2, 4, name="G"), x(2, 3, name="H")]
    (both,) = te.differentiate([y, z], [a], heads)
    parts = [te.differentiate(t, [a], h)[0] for t, h in zip((y, z), heads, strict=True)]
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(t.shape).astype("f") for t in (a, *heads)}
    found, *own = values([both, *parts], feeds)
    np.testing.assert_allclose(found, own[0] + own[1], rtol=1e-6)
    assert both.shape == (2, 4)
    (alone,) = te.differentiate([y, z], [a], [None, heads[1]])
    np.testing.assert_allclose(values([alone], feeds)[0], own[1], rtol=1e-6)
    with pytest.raises(te.DifferentiationError, match=r"2 outputs \(Y, Z\).*one head for each"):
        te.differentiate([y, z], [a])
    with pytest.raises(te.ShapeError, match=r"same prefix"):
        te.differentiate([y, z], [a], [x(4, name="G"), heads[1]])


def test_jacobians_several_steps_away() -> None:
    a = x(4)
    y = te.compute((4,), lambda i: a[i] ** 2, "Y")
    z = te.compute((3,), lambda i: y[i + 1] - y[i], "Z")
    (found,) = values([te.jacobian(z, a)], {a: np.float32([1, 2, 3, 4])})
    np.testing.assert_allclose(found, [[-2, 4, 0, 0], [0, -4, 6, 0], [0, 0, -6, 8]])
    assert [t.shape for t in te.jacobian([y, z], a)] == [(4, 4), (3, 4)]
    assert te.jacobian([z], [a, y])[0][1].shape == (3, 4)
    (none,) = values([te.jacobian(z, x(2, name="B"))], {})
    np.testing.assert_array_equal(none, np.zeros((3, 2)))
    assert [t.shape for t in te.jacobian([y, z], [a, x(2, name="B")])[1]] == [(3, 4), (3, 2)]
