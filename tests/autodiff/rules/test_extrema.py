"""Gradients of maxima and minima of elements that are computed: none is lost where a loop rounds an element in another way."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte import Tensor
from jaxte.autodiff.rules import extrema
from jaxte.lang.expr import Axis, Const, Reduce, as_expr
from jaxte.lang.walk import substitute
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.xla_counts import Fused

ROWS, COLUMNS = 37, 53


def products(x: Any, y: Any, w: Any, m: Any) -> Any:
    """Of the three products XLA joins one or another with the sum, from loop to loop."""
    return x * y + w * y + x * w


def clipped(x: Any, y: Any, w: Any, m: Any) -> Any:
    return (x - m.clip(x * y + w, 0.0, 1.0) * y) ** 2 + (w - y) ** 2


def bump(x: Any, y: Any, w: Any, m: Any) -> Any:
    return m.exp(-((x - y) ** 2)) * w + x * y


def extremum(element: Callable[..., Any], reduce: str, ties: str = "even") -> Callable[..., Tensor]:
    def definition(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        k = te.reduce_axis((0, x.shape[1]), "k")
        reduction = {"min": te.min, "max": te.max}[reduce]
        return te.compute(
            (x.shape[0], y.shape[0]),
            lambda i, j: reduction(element(x[i, k], y[j, k], w[k, i], te), axis=k, ties=ties),
            "r",
        )

    return definition


def elements(element: Callable[..., Any], x: Any, y: Any, w: Any) -> Any:
    return element(x[:, None], y, w.T[:, None], jnp)


def arrays(points: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = ((ROWS, points), (COLUMNS, points), (points, ROWS), (ROWS, COLUMNS))
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def gradients(fn: Callable[..., Any], *arguments: Any) -> list[Any]:
    *own, cotangent = arguments
    return list(jax.vjp(fn, *own)[1](cotangent))


def compiled(fn: Callable[..., Any], *arguments: Any) -> list[Any]:
    return list(jax.jit(lambda *a: gradients(fn, *a))(*arguments))


def wide(arguments: list[np.ndarray]) -> list[Any]:
    return [jnp.asarray(a.astype(np.float64)) for a in arguments]


def agree(found: list[Any], wanted: list[Any]) -> None:
    for own, other in zip(found, wanted, strict=True):
        scale = np.max(np.abs(np.asarray(other)))
        np.testing.assert_allclose(own, other, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("reduce", ["min", "max"])
@pytest.mark.parametrize("points", [2, 3, 9, 40])
@pytest.mark.parametrize("element", [products, clipped, bump])
def test_no_gradient_is_lost_by_rounding(element: Callable[..., Any], points: int, reduce: str) -> None:
    """Compiled, in float32. Many of these were NaN or short of a half when elements were compared in each loop anew."""
    arguments = arrays(points)
    found = compiled(te.function(extremum(element, reduce)), *arguments)
    with jax.enable_x64(True):
        plain = lambda *a: getattr(jnp, reduce)(elements(element, *a), -1)  # noqa: E731
        agree(found, gradients(plain, *wide(arguments)))


def nearest(x: Tensor, y: Tensor) -> Tensor:
    j, d = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "d")
    return te.compute((x.shape[0],), lambda i: te.min(te.sum((x[i, d] - y[j, d]) ** 2, axis=d), axis=j), "m")


@pytest.mark.parametrize("budget", [None, 1_000_000, 100_000, 10_000])
def test_the_nearest_of_many_points_in_tiles(budget: int | None) -> None:
    """The squared distances of a tile were compared with minima of another loop: a tenth of the points had NaN."""
    rng = np.random.default_rng(0)
    x, y, h = (rng.normal(size=shape).astype(np.float32) for shape in ((700, 3), (900, 3), (700,)))
    found = compiled(te.function(nearest, max_memory=budget), x, y, h)
    with jax.enable_x64(True):
        plain = lambda x, y: jnp.min(jnp.sum((x[:, None] - y) ** 2, -1), 1)  # noqa: E731
        agree(found, gradients(plain, *wide([x, y, h])))


@pytest.mark.parametrize("points", [3, 40])
def test_second_derivatives_and_batches(points: int) -> None:
    """jax.grad of the backward pass, and jax.vmap of it: the places are integers, which have no tangents."""

    def sines(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a: jnp.sum(jnp.sin(fn(*a)))

    def along(fn: Callable[..., Any], direction: list[Any]) -> Callable[..., Any]:
        def slope(*a: Any) -> Any:
            parts = jax.grad(sines(fn), (0, 1, 2))(*a)
            return sum(jnp.vdot(p, d) for p, d in zip(parts, direction, strict=True))

        return jax.vmap(jax.grad(slope, (0, 1, 2)), (0, None, None))

    fn = te.function(extremum(products, "max"))
    with jax.enable_x64(True):
        x, y, w = wide(arrays(points))[:3]
        direction = wide(arrays(points, seed=1))[:3]
        batch = jnp.stack([x, 2 * x])
        found = jax.jit(along(fn, direction))(batch, y, w)
        agree(found, along(lambda *a: jnp.max(elements(products, *a), -1), direction)(batch, y, w))


@pytest.mark.parametrize("budget", [None, 100_000, 20_000])
def test_points_that_are_there_four_times(budget: int | None) -> None:
    """Four equal distances, rounded: where they are not found again, the first and the last of them share the derivative."""
    rng = np.random.default_rng(0)
    x, h = rng.normal(size=(300, 3)).astype(np.float32), rng.normal(size=300).astype(np.float32)
    y = np.repeat(rng.normal(size=(100, 3)).astype(np.float32), 4, 0)
    dx, dy = compiled(te.function(nearest, max_memory=budget), x, y, h)
    with jax.enable_x64(True):
        plain = lambda x, y: jnp.min(jnp.sum((x[:, None] - y) ** 2, -1), 1)  # noqa: E731
        wanted = gradients(plain, *wide([x, y, h]))
    once = [np.asarray(a).reshape(100, 4, 3).sum(1) for a in (dy, wanted[1])]
    agree([dx, once[0]], [wanted[0], once[1]])


# --- ties


def shares(level: np.ndarray, ties: str) -> np.ndarray:
    """The part of the adjoint that each element receives, by a loop."""
    found = np.zeros(level.shape)
    for at in np.ndindex(level.shape[:-1]):
        (hits,) = np.nonzero(level[at] == level[at].min())
        match ties:
            case "first" | "last":
                found[(*at, hits[0 if ties == "first" else -1])] = 1
            case "all":
                found[(*at, hits)] = 1
            case _:
                found[(*at, hits)] = 1 / len(hits)
    return found


@pytest.mark.parametrize("budget", [None, 20_000])
@pytest.mark.parametrize("points", [1, 4, 31, 32, 70])
@pytest.mark.parametrize("ties", ["even", "first", "last", "all"])
def test_rules_for_equal_elements(ties: str, points: int, budget: int | None) -> None:
    """Small integers, whose products and sums are exact: many of them are equal."""
    rng = np.random.default_rng(points)
    x, y, w = (np.float32(rng.integers(-1, 2, a.shape)) for a in arrays(points)[:3])
    h = arrays(points)[3]
    found = compiled(te.function(extremum(products, "min", ties), max_memory=budget), x, y, w, h)
    level = np.asarray(elements(products, *(a.astype(np.float64) for a in (x, y, w))))
    share = shares(level, ties) * h[:, :, None]
    wanted = [
        np.sum(share * (y + w.T[:, None]), 1),
        np.sum(share * (x + w.T)[:, None], 0),
        np.sum(share * (y + x[:, None]), 1).T,
    ]
    agree(found, wanted)


@pytest.mark.parametrize("points", [5, 31, 32, 50])
def test_a_nan_spreads_to_all_elements_it_is_compared_with(points: int) -> None:
    x, y, w, h = arrays(points)
    x[4, 2] = np.nan
    found = compiled(te.function(extremum(products, "max")), x, y, w, h)[0]
    assert np.isnan(found[4]).all() and np.isfinite(np.delete(found, 4, 0)).all()


@pytest.mark.parametrize("points", [5, 50])
def test_conditions_and_infinities(points: int) -> None:
    """Elements that do not count receive nothing, be they less than the minimum; infinite ones are equal to each other."""
    k = te.reduce_axis((0, points), "k")

    def definition(x: Tensor) -> Tensor:
        return te.compute((3,), lambda i: te.min(2.0 * x[i, k] + x[i, k] * x[0, 0], axis=k, where=k > i))

    x = np.random.default_rng(0).normal(size=(3, points)).astype(np.float32)
    x[0, 0] = 1.0
    x[1, 0], x[1, 1] = -9.0, -8.0
    x[2] = np.inf
    found = compiled(te.function(definition), x, np.ones(3, np.float32))[0]
    assert found[1, 0] == found[1, 1] == 0 and found[1].sum() == 3
    np.testing.assert_allclose(found[2], np.where(np.arange(points) > 2, 3 / (points - 3), 0), rtol=1e-6)


def test_extents_that_are_symbols() -> None:
    n, k = te.var("n"), te.var("k")
    x, h = te.placeholder((n, k), "float32", "x"), te.placeholder((n,), "float32", "h")
    j = te.reduce_axis((0, k), "j")
    y = te.compute((n,), lambda i: te.max(x[i, j] * x[i, j] - x[i, 0] * 2.0, axis=j))
    dx = te.differentiate(y, [x], h)[0]
    rng = np.random.default_rng(0)
    for shape in ((4, 3), (5, 60)):
        own, cotangent = rng.normal(size=shape).astype(np.float32), np.ones(shape[0], np.float32)
        found = jax.jit(te.function([h, x], dx))(cotangent, own)
        with jax.enable_x64(True):
            wanted = gradients(lambda x: jnp.max(x * x - 2 * x[:, :1], 1), *wide([own, cotangent]))
        agree([found], wanted)


def test_an_element_that_holds_another_maximum() -> None:
    """The adjoint of the inner maximum is a polynomial in which the places of the outer one stand as they are."""
    a, k = te.placeholder((5,), "float64", "a"), te.reduce_axis((0, 3), "k")
    inner = te.compute((3,), lambda i: te.max(a[i + k] * a[k] - a[i], axis=k))
    outer = te.compute((3,), lambda i: te.max(inner[k] * 2.0 - inner[i] * a[k], axis=k))
    te.testing.check_grads(te.function([a], outer), (np.random.default_rng(0).normal(size=5),))


# --- what is emitted


def backward(source: str) -> str:
    return source[source.index("def backward(") : source.index("def _fwd(")].split('"""')[2]


def test_elements_that_are_read_are_compared_where_they_are() -> None:
    k = te.reduce_axis((0, 9), "k")
    fn = te.function(lambda x: te.compute((5,), lambda i: te.max(-x[i, k], axis=k)))
    text = backward(fn.source(jax.ShapeDtypeStruct((5, 9), jnp.float32)))
    assert "lax.reduce(" not in text and " == " in text


def compiled_text(points: int, max_memory: int | None = None) -> tuple[str, str]:
    """The compiled gradients, and the emitted backward pass, of a minimum over ``points`` computed elements."""
    arguments = arrays(points)
    fn = te.function(extremum(products, "min"), max_memory=max_memory)
    hlo = Fused(jax.jit(lambda *a: gradients(fn, *a)).lower(*arguments)).as_text()
    return hlo, backward(fn.source(*arguments[:3]))


VARIADIC = r"= \(f32\[[^=]*s32\[[^=]*\) reduce\("


def test_places_are_found_by_one_reduction() -> None:
    """One instruction of XLA's computes the elements, compares them and returns integers; no other one is exact."""
    hlo, text = compiled_text(3)
    assert len(re.findall(VARIADIC, hlo)) == 1
    assert not re.search(r"[<>=]=? ?r\b|elements_r", text)  # nothing but the integers is asked


def test_more_elements_are_computed_once_and_compared() -> None:
    """Behind a barrier, where memory allows it: a variadic reduction is a scalar loop, 2 ns an element."""
    hlo, text = compiled_text(40)
    assert not re.findall(VARIADIC, hlo) and "elements_r = _apart(" in text
    _, text = compiled_text(40, max_memory=4000)
    assert "first_r" in text and "first_r" not in compiled_text(40)[1]


@pytest.mark.parametrize("reduction", [te.max, te.min, te.sum])
def test_a_limit_that_moves_with_an_axis_of_one_value_is_none(reduction: Any) -> None:
    """Its adjoint takes no prefixes, of which there would be one for each element."""
    x, k = te.placeholder((6, 20), name="x"), te.reduce_axis((0, 20), "k")
    y = te.compute((6, 1), lambda i, j: reduction(te.tanh(x[i, k]), axis=k, where=k > j + 2), "y")
    head = te.placeholder((6, 1), name="h")
    (dx,) = te.differentiate(y, [x], head)
    assert te.cost([dx, y]).iterations <= 5 * te.cost([y]).iterations
    assert not any(t.name.startswith("state") for t in topological_order([dx]))
    rng = np.random.default_rng(0)
    feeds = {x: rng.normal(size=(6, 20)).astype("float32"), head: rng.normal(size=(6, 1)).astype("float32")}
    np.testing.assert_allclose(te.evaluate(dx, feeds), te.interpret(dx, feeds), rtol=1e-5, atol=1e-6)


def test_numbers_of_points_are_of_the_axes_that_are_counted() -> None:
    """The same maximum over one axis and over two, of which the second has one position that counts: each asks for the winner as it counts."""
    x, k = te.placeholder((5, 8), name="x"), te.reduce_axis((0, 8), "k")
    y = te.compute((5,), lambda i: te.max(x[i, k], axis=k, ties="first"), "y")
    assert isinstance(y, Compute) and isinstance(y.body, Reduce)
    (i,), m = y.axes, te.reduce_axis((0, 4), "m")
    one, four = y.body, Reduce(y.body.reducer, y.body.exprs, (*y.body.axes, m), as_expr(m < 1))
    values = np.random.default_rng(0).standard_normal((5, 8)).astype("float32")
    hits = np.arange(8) == values.argmax(1)[:, None]
    along = [Axis(a.name, a.lo, a.hi) for a in four.axes]
    table = dict(zip(four.axes, along, strict=True))
    for node, expected in ((one, hits[..., None]), (four, hits[..., None] & (np.arange(4) < 1))):
        adjoint = substitute(extrema.extremum_adjoint(y, node, Const(1.0)), table)
        found = te.interpret(Compute("dx", (i, *along), adjoint), {x: values})
        np.testing.assert_array_equal(found * (np.arange(4) < 1), expected * (np.arange(4) < 1))


@pytest.mark.parametrize(("start", "stop"), [(2, 7), (-3, 40)])
def test_computed_elements_along_an_axis_that_begins_elsewhere(start: int, stop: int) -> None:
    """Positions of an axis are not counted from where it begins."""
    k = te.reduce_axis((start, stop), "k")

    @te.function
    def fn(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        return te.compute(w.shape, lambda i: te.max(te.tanh(x[k - start + 1] * w[i]) * (k + 4), axis=k), "y")

    def plain(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.max(jnp.tanh(x[1:] * w[:, None]) * jnp.arange(start + 4, stop + 4), axis=1)

    rng = np.random.default_rng(5)
    x, w = (rng.normal(size=n).astype("float32") for n in (stop - start + 1, 3))
    found, expected = (jax.jacrev(f, (0, 1))(x, w) for f in (fn, plain))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
