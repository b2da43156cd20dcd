"""Sums of products are summed one axis after the other: counts of the definitions that are made, and their values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.algebra.product import Factor
from jaxte.lang.walk import free_axes
from jaxte.planning.graph import planned
from jaxte.planning.orders.contraction_search import Step, Sum, tensor_of
from jaxte.planning.terms import Split, coordinates, term_bounds
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import PartialSum, topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import QUICKEST
from tests.points import points_of


def _axes(*extents: int) -> list:
    return [te.reduce_axis((0, n), "kmpq"[i]) for i, n in enumerate(extents)]


def kronecker() -> Compute:
    a, b, x = (te.placeholder(s, name=n) for n, s in (("a", (6, 6)), ("b", (5, 5)), ("x", (3, 30))))
    p, q = _axes(6, 5)
    element = lambda r, i: te.sum(a[i // 5, p] * b[i % 5, q] * x[r, p * 5 + q], axis=(p, q))  # noqa: E731
    return te.compute((3, 30), element, "y")


def spline() -> Compute:
    w, c = te.placeholder((3, 4), name="w"), te.placeholder((6, 6, 6), name="c")
    i, j, k = _axes(4, 4, 4)
    return te.compute(
        (9, 9, 9),
        lambda x, y, z: te.sum(
            w[x % 3, i] * w[y % 3, j] * w[z % 3, k] * c[x // 3 + i, y // 3 + j, z // 3 + k], axis=(i, j, k)
        ),
        "y",
    )


def window() -> Compute:
    g, x = te.placeholder((11,), name="g"), te.placeholder((2, 30, 31), name="x")
    k, m = _axes(11, 11)
    return te.compute((2, 20, 21), lambda b, i, j: te.sum(g[k] * g[m] * x[b, i + k, j + m], axis=(k, m)), "y")


def padded_window() -> Compute:
    """With zeros around: the condition of each axis goes with it."""
    g, x = te.placeholder((9,), name="g"), te.placeholder((20, 21), name="x")
    k, m = _axes(9, 9)

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        inside = (i + k >= 4) & (i + k < 24) & (j + m >= 4) & (j + m < 25)
        return te.sum(g[k] * g[m] * x[i + k - 4, j + m - 4], axis=(k, m), where=inside)

    return te.compute((20, 21), element, "y")


def reflected_window() -> Compute:
    """Around the ends of one axis, and reflected at those of the other."""
    g, x = te.placeholder((7,), name="g"), te.placeholder((2, 24, 25), name="x")
    k, m = _axes(7, 7)

    def inside(i: te.Expr) -> te.Expr:
        return 24 - te.abs(24 - te.abs(i))

    def element(b: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(g[k] * g[m] * x[b, (i + k - 3) % 24, inside(j + m - 3)], axis=(k, m))

    return te.compute((2, 24, 25), element, "y")


def low_rank() -> Compute:
    """A filter that is a sum of products of vectors, over channels."""
    u, v, x = (te.placeholder(s, name=n) for n, s in (("u", (7, 3)), ("v", (7, 3)), ("x", (20, 20, 2))))
    k, m, r = _axes(7, 7, 3)
    return te.compute(
        (14, 14, 2), lambda i, j, c: te.sum(u[k, r] * v[m, r] * x[i + k, j + m, c], axis=(k, m, r)), "y"
    )


def depthwise_then_pointwise() -> Compute:
    d, w, x = (te.placeholder(s, name=n) for n, s in (("d", (3, 3, 4)), ("w", (4, 8)), ("x", (12, 12, 4))))
    k, m, c = _axes(3, 3, 4)
    return te.compute(
        (10, 10, 8), lambda i, j, o: te.sum(d[k, m, c] * w[c, o] * x[i + k, j + m, c], axis=(k, m, c)), "y"
    )


def of_differences() -> Compute:
    """``i + j`` takes fewer values than ``(i, j)``."""
    h, w = te.placeholder((40, 16), name="h"), te.placeholder((16,), name="w")
    (k,) = _axes(16)
    return te.compute((20, 20), lambda i, j: te.sum(h[i + j, k] * te.exp(w[k]), axis=k), "y")


def repeated_rows() -> Compute:
    a, b = te.placeholder((5, 16), name="a"), te.placeholder((5, 16), name="b")
    (k,) = _axes(16)
    return te.compute((20, 20), lambda i, j: te.sum(a[i // 4, k] * b[j // 4, k], axis=k), "y")


def quadratic_filter() -> Compute:
    """A product of three factors on different indices: fewer operations by a fifth, and a product of matrices in place of shifted slices."""
    h, x = te.placeholder((12, 12), name="h"), te.placeholder((200,), name="x")
    k, m = _axes(12, 12)
    return te.compute((189,), lambda t: te.sum(h[k, m] * x[t + k] * x[t + m], axis=(k, m)), "y")


#: definition, how many times fewer points, and how many times those of the definition each adjoint may take
CASES: dict[str, tuple[Callable[[], Compute], float, float]] = {
    "kronecker": (kronecker, 2.5, 1.5),
    "spline": (spline, 7, 1.0),
    "window": (window, 4, 1.2),
    "padded window": (padded_window, 3, 1.2),
    "reflected window": (reflected_window, 2.5, 1.2),
    "low rank": (low_rank, 2.5, 1.5),
    "depthwise then pointwise": (depthwise_then_pointwise, 3, 1.5),
    "of differences": (of_differences, 4, 1.0),
    "repeated rows": (repeated_rows, 6, 1.0),
    "quadratic filter": (quadratic_filter, 0.9, 2.0),
}


def _points(tensors: object) -> int:
    return te.cost(tensors).iterations  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_counts(name: str) -> None:
    define, fewer, of_adjoints = CASES[name]
    y = define()
    (better,) = planned([y])
    assert any(isinstance(t, PartialSum) for t in topological_order([better]))
    assert fewer * _points(better) <= _points(y)
    inputs = [t for t in topological_order([y]) if isinstance(t, Placeholder)]
    head = te.placeholder(y.shape, y.dtype, "H")
    assert points_of(te.differentiate(y, inputs, head)) <= of_adjoints * _points(y) * len(inputs)
    elements = [prod(map(int, t.shape)) for t in topological_order([better])]
    assert max(elements) <= 6 * sum(prod(map(int, t.shape)) for t in (*inputs, y))


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, rng: np.random.Generator) -> None:
    y = CASES[name][0]()
    inputs = [t for t in topological_order([y]) if isinstance(t, Placeholder)]
    arrays = [rng.standard_normal(t.shape).astype("float32") for t in inputs]
    h = rng.standard_normal(y.shape).astype("float32")
    fn = te.function(inputs, y)

    def both(h: jax.Array, *arrays: jax.Array) -> object:
        value, pull = jax.vjp(fn, *arrays)
        return value, *pull(h)

    found = jax.jit(both).lower(h, *arrays).compile(compiler_options=QUICKEST)(h, *arrays)
    feeds = dict(zip(inputs, arrays, strict=True))
    np.testing.assert_allclose(found[0], te.interpret(y, feeds), rtol=2e-4, atol=2e-4)
    unplanned = te.function(inputs, y, override={y: ([*inputs], _plain_adjoints)})
    expected = (
        jax.jit(lambda h, *a: jax.vjp(unplanned, *a)[1](h))
        .lower(h, *arrays)
        .compile(compiler_options=QUICKEST)
    )
    for own, other in zip(found[1:], expected(h, *arrays), strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-3)


def _plain_adjoints(y: Compute, inputs: list, head: Compute) -> list:
    """The adjoints without a plan: one sum each."""
    return [te.diff_building_block(y, t, head) for t in inputs]


def test_adjoints_of_a_triple_correlation_are_partial_sums() -> None:
    """One of them for each of the three factors, and sums of shifted slices: as an einsum for each lag they were 84 statements."""
    x, H = te.placeholder((512,), name="x"), te.placeholder((16, 16), name="H")
    t = te.reduce_axis((0, 496), "t")
    y = te.compute((16, 16), lambda a, b: te.sum(x[t] * x[t + a] * x[t + b], axis=t), "y")
    (dx,) = te.differentiate(y, [x], H)
    text = str(te.source(dx))
    assert text.count("jnp.einsum(") == 0 and text.count("\n        dx") <= 12
    rng = np.random.default_rng(0)
    own, head = rng.normal(size=512), rng.normal(size=(16, 16))
    w = np.stack([own[a : a + 496] for a in range(16)])
    expected = np.zeros(512)
    expected[:496] += np.einsum("ab,at,bt->t", head, w, w)
    for a in range(16):
        expected[a : a + 496] += own[:496] * (head[a] @ w + head[:, a] @ w)
    own32, head32 = own.astype("float32"), head.astype("float32")
    np.testing.assert_allclose(te.evaluate(dx, {x: own32, H: head32}), expected, rtol=1e-4, atol=1e-3)


def test_products_at_plain_axes_are_left_to_einsum() -> None:
    a, b, c = (te.placeholder((8, 8), name=n) for n in "abc")
    k, m = _axes(8, 8)
    y = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, m] * c[m, j], axis=(k, m)), "y")
    assert planned([y]) == (y,) or planned([y])[0] is y


def test_partial_sums_have_the_axes_of_one_factor_after_those_of_the_other() -> None:
    """As a product of matrices has them; in the order of the result, ``b, o, j, r``, it was transposed."""
    a, c, x = (
        te.placeholder(s, name=n) for n, s in (("a", (32, 32, 8)), ("c", (8, 32, 32)), ("x", (9, 1024)))
    )
    i, j, r = te.reduce_axis((0, 32), "i"), te.reduce_axis((0, 32), "j"), te.reduce_axis((0, 8), "r")
    y = te.compute(
        (9, 1024),
        lambda b, o: te.sum(a[i, o // 32, r] * c[r, j, o % 32] * x[b, 32 * i + j], axis=(i, j, r)),
        "y",
    )
    (part,) = [t for t in topological_order(planned([y])) if isinstance(t, PartialSum)]
    assert [axis.name for axis in part.axes] == ["b", "j", "o", "r"]
    assert 'einsum("ior,bij->bjor"' in str(te.source(y))


def test_a_convolution_stays_one_sum() -> None:
    x, w = te.placeholder((2, 14, 14, 8), name="x"), te.placeholder((3, 3, 8, 16), name="w")
    k, m, c = _axes(3, 3, 8)
    y = te.compute(
        (2, 12, 12, 16), lambda b, i, j, o: te.sum(x[b, i + k, j + m, c] * w[k, m, c, o], axis=(k, m, c)), "y"
    )
    assert planned([y])[0] is y


def test_the_result_is_printed_as_definitions() -> None:
    text = te.source(planned([window()]))
    assert "y_over_k[b, i, j] = sum(g[k] * x[b, i + k, j] for k in [0, 11))" in text
    assert "y[b, i, j] = sum(g[m] * y_over_k[b, i, j + m] for m in [0, 11))" in text


def test_an_equation_of_outer_axes_on_both_sides_is_one_of_their_difference() -> None:
    """``k`` and ``i`` stand on either side, and what the sum is over them is one row over ``k - i``."""
    x, (j,), axes = te.placeholder((5,), name="x"), _axes(5), [te.reduce_axis((0, 4), n) for n in "ki"]
    k, i = axes
    where = te.equal(k - 2 * j, i)
    own = Sum((Factor(x[j]),), (j,), (where,))
    split = Split(own.axes, [x[j], where])
    found = coordinates(split.terms, term_bounds(split.terms, ()), axes)
    assert found is not None and len(found.order) == 1
    part = tensor_of(Step(own, split, found), "float32", "y")
    assert part is not None and set(free_axes(part.body)) == set(part.axes)
    value = np.arange(1.0, 6, dtype="float32")
    expected = [sum(value[n] for n in range(5) if 2 * n == d) for d in range(-3, 4)]
    np.testing.assert_array_equal(te.interpret(part, {x: value}), expected)
