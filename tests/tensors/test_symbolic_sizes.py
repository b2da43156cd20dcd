"""Definitions over sizes that are symbols: values and gradients at the sizes 1, 2, 3, 7 and 11, called directly and exported, beside plain JAX
and the interpreter. Each is run at one size, which its name chooses; ``JAXTE_HYPOTHESIS=full`` runs all of them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

import jaxte as te

SIZES = (1, 2, 3, 7, 11)


@dataclass(frozen=True)
class Case:
    """A builder, the same in plain JAX, the shapes of its arguments, and the least size."""

    build: Callable[..., Any]
    plain: Callable[..., Any]
    shapes: Callable[[Any], tuple[tuple[Any, ...], ...]] = lambda n: ((n,),)
    least: int = 1


def over(extent: Any, name: str = "k", start: Any = 0) -> Any:
    return te.reduce_axis((start, extent), name)


def third(x: Any) -> Any:
    k = over(3)
    return te.compute((x.shape[0] // 3,), lambda i: te.sum(te.sin(x[3 * i + k]), axis=k), "y")


def third_max(x: Any) -> Any:
    k = over(3)
    return te.compute((x.shape[0] // 3,), lambda i: te.max(x[3 * i + k], axis=k), "y")


def circular(x: Any) -> Any:
    n, k = x.shape[0], over(x.shape[0])
    return te.compute((), lambda: te.sum(x[k] * x[(k + 1) % n], axis=k), "y")


def circular_product(x: Any, c: Any) -> Any:
    n, k = x.shape[0], over(x.shape[0])
    return te.compute((n,), lambda i: te.sum(x[k] * c[(i - k) % n], axis=k), "y")


def around(x: Any) -> Any:
    n, k = x.shape[0], over(3)
    return te.compute((n,), lambda i: te.sum(te.sin(x[(i + k - 1) % n]), axis=k), "y")


def mirrored(x: Any) -> Any:
    n, k = x.shape[0], over(3)

    def element(i: Any) -> Any:
        at = i + k - 1
        return te.sum(te.sin(x[te.abs(te.minimum(at, 2 * (n - 1) - at))]), axis=k)

    return te.compute((n,), element, "y")


def quarters(x: Any) -> Any:
    k = over(x.shape[0] // 4 - 1)
    return te.compute((), lambda: te.sum(x[4 * k] ** 2, axis=k), "y")


def variance(x: Any) -> Any:
    n, k = x.shape[0], over(x.shape[0])
    mean = te.compute((), lambda: te.sum(x[k], axis=k) / n, "mean")
    return te.compute((n,), lambda i: (x[i] - mean[()]) ** 2 / (n * n), "y")


def both_neighbours(x: Any) -> Any:
    n, k = x.shape[0], over(x.shape[0])
    return te.compute((), lambda: te.sum(x[(k - 1) % n] * x[(k + 1) % n], axis=k), "y")


def adaptive_pool(x: Any) -> Any:
    n, k = x.shape[0], over(x.shape[0])

    def element(i: Any) -> Any:
        return te.sum(x[k], axis=k, where=te.logical_and(k >= i * n // 7, 7 * k < (i + 1) * n))

    return te.compute((7,), element, "y")


def suffixes(x: Any) -> Any:
    k = over(x.shape[0])
    return te.compute(x.shape, lambda i: te.prod(x[k], axis=k, where=k >= i), "y")


def flat(x: Any) -> Any:
    n, m = x.shape
    return te.compute((n * m,), lambda i: te.sin(x[i // m, i % m]), "y")


def element_wise(shape: Callable[[Any], Any], element: Callable[..., Any]) -> Callable[..., Any]:
    """A builder over one array of ``n`` elements."""
    return lambda x, *rest: te.compute((shape(x.shape[0]),), lambda i: element(x, x.shape[0], i, *rest), "y")


def product_of_all(x: Any) -> Any:
    axes = [over(3, "m"), over(x.shape[0])]
    return te.compute((), lambda: te.prod(x[axes[1], axes[0]], axis=axes), "y")


CASES = {
    "a product over two axes": Case(product_of_all, jnp.prod, lambda n: ((n, 3),)),
    "a pool": Case(third, lambda x: jnp.sin(x[: len(x) // 3 * 3]).reshape(-1, 3).sum(1)),
    "a maximum pool": Case(third_max, lambda x: x[: len(x) // 3 * 3].reshape(-1, 3).max(1)),
    "every other": Case(element_wise(lambda n: n // 2, lambda x, n, i: te.sin(x[2 * i])), lambda x: jnp.sin(x[: len(x) // 2 * 2 : 2])),
    "every other, one more": Case(element_wise(lambda n: (n + 1) // 2, lambda x, n, i: x[2 * i] ** 2), lambda x: x[::2] ** 2),
    "every other from the end": Case(element_wise(lambda n: n // 2, lambda x, n, i: x[n - 1 - 2 * i] ** 2), lambda x: x[::-1][: len(x) // 2 * 2 : 2] ** 2),
    "every other, one before": Case(
        lambda x: te.compute((x.shape[0] // 2,), lambda i: te.select(i >= 1, x[2 * i - 1], 0.0) ** 2, "y"),
        lambda x: jnp.pad(x, (1, 0))[: len(x) : 2] ** 2,
        lambda n: ((2 * n,),),
    ),
    "all but the last, turned": Case(element_wise(lambda n: n - 1, lambda x, n, i: x[n - 2 - i] * x[i]), lambda x: x[:-1][::-1] * x[:-1]),
    "around the middle": Case(element_wise(lambda n: n, lambda x, n, i: x[te.abs(i - n // 2)] ** 2), lambda x: x[jnp.abs(jnp.arange(len(x)) - len(x) // 2)] ** 2),
    "a clamp": Case(element_wise(lambda n: n, lambda x, n, i: te.sin(x[te.minimum(i + 2, n - 1)])), lambda x: jnp.sin(x[jnp.minimum(jnp.arange(len(x)) + 2, len(x) - 1)])),
    "interleaved": Case(
        element_wise(lambda n: 2 * n, lambda x, n, i: te.select(i % 2 == 0, x[i // 2], x[i // 2] ** 2)),
        lambda x: jnp.stack([x, x**2], 1).reshape(-1),
    ),
    "suffix products": Case(suffixes, lambda x: jnp.cumprod(x[::-1])[::-1]),
    "a number of elements": Case(element_wise(lambda n: n, lambda x, n, i: x[i] * te.sin(i * (2 * math.pi / n))), lambda x: x * jnp.sin(jnp.arange(len(x)) * (2 * math.pi / len(x)))),
    "a variance": Case(variance, lambda x: (x - x.mean()) ** 2 / len(x) ** 2),
    "a circle": Case(circular, lambda x: jnp.sum(x * jnp.roll(x, -1))),
    "a circular product": Case(
        circular_product, lambda x, c: jnp.stack([jnp.sum(x * jnp.roll(c[::-1], i + 1)) for i in range(len(x))]), lambda n: ((n,), (n,))
    ),
    "two steps around": Case(element_wise(lambda n: n, lambda x, n, i: x[i] * x[(i + 2) % n]), lambda x: x * jnp.roll(x, -2)),
    "three steps back": Case(element_wise(lambda n: n, lambda x, n, i: x[i] * x[(i - 3) % n]), lambda x: x * jnp.roll(x, 3), least=3),
    "windows around": Case(around, lambda x: sum(jnp.sin(jnp.roll(x, s)) for s in (1, 0, -1))),
    "mirrored windows": Case(mirrored, lambda x: sum(jnp.sin(jnp.pad(x, 1, mode="reflect")[s : s + len(x)]) for s in range(3)), least=2),
    "repeated": Case(element_wise(lambda n: 2 * n, lambda x, n, i: te.sin(x[i % n])), lambda x: jnp.sin(jnp.tile(x, 2))),
    "blocks": Case(
        lambda x, w: te.compute((x.shape[0] // 4 * 4,), lambda c: x[c] * w[c // (x.shape[0] // 4)], "y"),
        lambda x, w: x[: len(x) // 4 * 4] * jnp.repeat(w, len(x) // 4),
        lambda n: ((n,), (4,)),
        4,
    ),
    "blocks up to the last": Case(
        lambda x, w: te.compute(x.shape, lambda c: x[c] * w[te.minimum(c // (x.shape[0] // 4), 4)], "y"),
        lambda x, w: x * w[jnp.minimum(jnp.arange(len(x)) // (len(x) // 4), 4)],
        lambda n: ((n,), (5,)),
        4,
    ),
    "blocks and a rest": Case(
        lambda x, w: te.compute(x.shape, lambda c: te.select(c < x.shape[0] // 4 * 4, x[c] * w[c // (x.shape[0] // 4)], te.sin(x[c])), "y"),
        lambda x, w: jnp.where(jnp.arange(len(x)) < len(x) // 4 * 4, x * w[jnp.minimum(jnp.arange(len(x)) // (len(x) // 4), 3)], jnp.sin(x)),
        lambda n: ((n,), (4,)),
        4,
    ),
    "partners": Case(
        element_wise(lambda n: 2 * (n // 2), lambda x, n, i: x[i] * x[te.select(i % 2 == 0, i + 1, i - 1)]),
        lambda x: (x[: len(x) // 2 * 2].reshape(-1, 2) * x[: len(x) // 2 * 2].reshape(-1, 2)[:, ::-1]).reshape(-1),
    ),
    "seven times": Case(element_wise(lambda n: 7 * n, lambda x, n, i: te.sin(x[i % n])), lambda x: jnp.tile(jnp.sin(x), 7)),
    "an adaptive choice": Case(lambda x: te.compute((7,), lambda i: x[i * x.shape[0] // 7] ** 2, "y"), lambda x: x[jnp.arange(7) * len(x) // 7] ** 2),
    "a short range": Case(quarters, lambda x: jnp.sum(x[: 4 * (len(x) // 4 - 1) : 4] ** 2), least=8),
    "both neighbours": Case(both_neighbours, lambda x: jnp.sum(jnp.roll(x, 1) * jnp.roll(x, -1))),
    "every other, around": Case(element_wise(lambda n: n, lambda x, n, i: te.sin(x[2 * i % n])), lambda x: jnp.sin(x[2 * jnp.arange(len(x)) % len(x)])),
    "a choice of positions": Case(element_wise(lambda n: n, lambda x, n, i: te.sin(x[te.select(i == 0, n - 1, i - 1)])), lambda x: jnp.sin(jnp.roll(x, 1))),
    "an adaptive pool": Case(adaptive_pool, lambda x: jnp.stack([jnp.sum(x[i * len(x) // 7 : -(-(i + 1) * len(x) // 7)]) for i in range(7)])),
    "a range of less than nothing": Case(quarters, lambda x: jnp.sum(x[: max(0, 4 * (len(x) // 4 - 1)) : 4] ** 2)),
    "an element": Case(element_wise(lambda n: n, lambda x, n, i: x[i] * x[1]), lambda x: x * x[1], least=2),
    "flat": Case(flat, lambda x: jnp.sin(x).reshape(-1), lambda n: ((n, n),)),
}  # fmt: skip


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jnp.sum(jnp.sin(f(*args)))


def arrays(case: Case, n: int) -> list[Any]:
    rng = np.random.default_rng(n)
    return [jnp.asarray(rng.normal(size=shape) + 0.1, "float32") for shape in case.shapes(n)]


def check(case: Case, both: Callable[..., Any], args: list[Any]) -> float:
    """Compares value and gradients; returns the value."""
    plain = jax.value_and_grad(loss(case.plain), tuple(range(len(args))))(*args)
    found = both(*args)
    for own, expected in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
    return float(found[0])


def chosen(name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """One of ``sizes``, by the name, or all of them."""
    return sizes if settings.default.max_examples > 1000 else (sizes[zlib.crc32(name.encode()) % len(sizes)],)


@pytest.mark.parametrize("name", CASES)
def test_called_with_sizes(name: str) -> None:
    case = CASES[name]
    n = te.var("n", at_least=case.least)
    inputs = [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(case.shapes(n))]
    f = te.function(inputs, case.build(*inputs))
    both = jax.jit(jax.value_and_grad(loss(f), tuple(range(len(inputs)))))
    for size in chosen(name, tuple(s for s in SIZES if s >= case.least)):
        args = arrays(case, size)
        meant = te.interpret(f.outputs, dict(zip(inputs, args, strict=True)))
        np.testing.assert_allclose(check(case, both, args), np.sum(np.sin(meant)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_exported(name: str) -> None:
    case = CASES[name]
    least = max(case.least, ASKED.get(name, 1))
    (n,) = jax.export.symbolic_shape("n", constraints=[f"n >= {least}"])
    both = jax.value_and_grad(loss(te.function(case.build)), tuple(range(len(case.shapes(1)))))
    specs = [jax.ShapeDtypeStruct(shape, "float32") for shape in case.shapes(n)]
    exported = jax.export.export(jax.jit(both))(*specs)
    for size in chosen(f"{name}, exported", (least, 11)):
        check(case, exported.call, arrays(case, size))


# what JAX has to know of the size beyond what the definition asks for, since a slice of no element stands in the code
ASKED = {
    "a range of less than nothing": 4,  # the range to n // 4 - 1
    "partners": 2,  # every other one of 2 * (n // 2) elements
}


@pytest.mark.parametrize(
    "name", ["blocks", "blocks up to the last", "blocks and a rest", "partners", "seven times"]
)
def test_no_positions_that_are_data(name: str) -> None:
    case = CASES[name]
    n = te.var("n", at_least=case.least)
    inputs = [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(case.shapes(n))]
    y = case.build(*inputs)
    adjoints = te.differentiate(y, inputs, head=te.placeholder(y.shape, name="H"))
    assert ".at[" not in te.source([y, *adjoints])


def test_positions_around_sizes_that_may_be_small_are_data() -> None:
    """Five steps around the end of ``n`` elements are one gather, and not six slices of which a large ``n`` has two."""
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    assert te.source(te.compute((n,), lambda i: x[(i + 5) % n], "y")).count(".at[") == 1


def test_sizes_that_no_array_tells() -> None:
    n = te.var("n")
    half = te.placeholder((n // 2,), name="half")
    with pytest.raises(
        te.FeedError,
        match=r"`n // 2` does not tell n, and no other extent does; add an input whose extent is n alone",
    ):
        te.interpret(te.compute((n // 2,), lambda i: half[i], "y"), {half: np.ones(3, "float32")})
    whole = te.placeholder((2 * n + 1,), name="whole")
    y = te.compute((n // 2,), lambda i: half[i] + whole[4 * i], "y")
    f = te.function([half, whole], y)
    np.testing.assert_allclose(f(jnp.ones(2), jnp.arange(9.0)), [1, 5])
    with pytest.raises(
        te.FeedError,
        match=r"has 2 elements \(with n = 4 from the other arrays\), but the array fed to it has 3",
    ):
        f(jnp.ones(3), jnp.arange(9.0))


def test_least_sizes() -> None:
    with pytest.raises(te.ArgumentError, match=r"at_least of te.var.'n'. is 0; give the least size"):
        te.var("n", at_least=0)
    n = te.var("n", at_least=3)
    x = te.placeholder((n,), name="x")
    with pytest.raises(te.RangeError, match=r'state that n is larger: te.var\("n", at_least=4\)'):
        te.compute((n,), lambda i: x[3], "y")
    f = te.function([x], te.compute((n,), lambda i: x[2] * x[i], "y"))
    with pytest.raises(te.FeedError, match=r"is fed 2 elements, which makes n = 2; it is at least 3"):
        f(jnp.ones(2))


def test_bounds_of_data_are_refused() -> None:
    n = te.placeholder((), "int32", "count")
    with pytest.raises(te.ShapeError, match="affine in axes and sizes"):
        te.reduce_axis((0, n[()]), "k")


def test_results_of_less_than_no_elements() -> None:
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    y = te.compute((n - 5,), lambda i: x[i] + x[i + 5], "y")
    message = r"y has an axis of `n - 5` elements, which is -3 with n = 2; feed larger arrays, and state the least size where it is made"
    with pytest.raises(te.FeedError, match=message):
        te.interpret(y, {x: np.ones(2, "float32")})
    with pytest.raises(te.FeedError, match=message):
        te.function([x], y)(jnp.ones(2))


def test_ends_of_slices_are_not_counted_from_the_end() -> None:
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    k = over(n - 5)
    f = te.function([x], te.compute((), lambda: te.sum(x[k], axis=k), "y"))
    assert f(jnp.ones(3)) == 0  # x[:-2] has an element
    assert f(jnp.ones(7)) == 2


def test_windows_without_elements_between_zeros() -> None:
    """``lax`` counts no position in an image that is shorter than its spread kernel, also where the kernel has no tap: a sum of nothing is a zero."""
    n = te.var("n", at_least=3)
    x, w = te.placeholder((3, 4 * n - 8), name="x"), te.placeholder((2, 3, n - 3), name="w")
    p, q = over(3, "p"), over(n - 3, "q")
    y = te.compute((8, 2), lambda a, i: te.sum(x[p, 4 * q + a] * w[i, p, q], axis=(p, q)), "y")
    f = te.function([x, w], y)
    for size in (3, 4, 7):
        a = np.sin(np.arange(12.0 * size - 24)).reshape(x.shape[0], 4 * size - 8)
        b = np.cos(np.arange(6.0 * size - 18)).reshape(2, 3, size - 3)
        want = [sum(a[:, 4 * k + j] @ b[:, :, k].T for k in range(size - 3)) + np.zeros(2) for j in range(8)]
        np.testing.assert_allclose(f(jnp.asarray(a), jnp.asarray(b)), want, rtol=1e-4, atol=1e-5)


def test_parts_that_fit_for_all_but_the_smallest_size_say_what_to_state() -> None:
    """JAX compares sizes as texts, and that of a slice up to an end that may be behind the array is a minimum."""

    def around(x: Any) -> Any:
        n, k = x.shape[0], te.reduce_axis((0, 3), "k")
        return te.compute((n // 2,), lambda i: te.sum(x[(2 * i + k) % n] ** 2, axis=k), "y")

    def spec(*constraints: str) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(jax.export.symbolic_shape("n", constraints=constraints), "float32")

    with pytest.raises(te.ShapeError, match=r'around is traced .* constraints=\["n >= 2"\]'):
        jax.export.export(jax.jit(te.function(around)))(spec())
    exported = jax.export.export(jax.jit(te.function(around)))(spec("n >= 2"))
    for n in (2, 5):
        x = np.arange(1, n + 1, dtype="float32")
        at = (2 * np.arange(n // 2)[:, None] + np.arange(3)) % n
        np.testing.assert_allclose(exported.call(x), (x[at] ** 2).sum(1))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.parametrize("values", ["elements", "ones", "maxima"])
def test_sums_up_to_positions_that_may_all_be_outside(values: str, suffix: bool, size: int) -> None:
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    k = over(n)

    def body(i: Any) -> Any:
        where = k >= i + 3 if suffix else k < i - 3
        if values == "maxima":
            return te.maximum(te.max(x[k], axis=k, where=where), -9.0)
        return te.sum(x[k] if values == "elements" else 1.0, axis=k, where=where) * x[i]

    y = te.compute((n,), body, "y")
    a = np.cos(np.arange(size, dtype="float32"))
    f = te.function([x], y)
    np.testing.assert_allclose(f(a), te.interpret(y, {x: a}), rtol=1e-5)
    i, j = np.ogrid[:size, :size]
    there = j >= i + 3 if suffix else j < i - 3
    if values == "maxima":
        best = np.where(there, a, -10.0).argmax(axis=1)
        expected = np.bincount(best[there.any(axis=1)], minlength=size)
    elif values == "ones":
        expected = there.sum(axis=1)
    else:
        expected = there @ a + a @ there
    np.testing.assert_allclose(jax.grad(lambda a: f(a).sum())(a), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 5, 6, 9])
def test_elements_that_an_end_is_met_at_are_counted_from_none(size: int) -> None:
    """Of ``n`` positions held below 6, ``n - 6`` are held where there are so many, and none otherwise."""
    n = te.var("n")
    x, z = te.placeholder((6,), name="x"), te.placeholder((n,), name="z")
    k = over(n)
    f = te.function([x, z], te.compute((n,), lambda i: te.sum(x[te.minimum(k, 5)], axis=k) * z[i], "y"))
    b = np.arange(size) + 1.0
    expected = np.bincount(np.minimum(np.arange(size), 5), minlength=6) * b.sum()
    found = jax.grad(lambda a: f(a, jnp.asarray(b, "float32")).sum())(jnp.ones(6))
    np.testing.assert_allclose(found, expected)
