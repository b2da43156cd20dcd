"""Differences of prefix sums are sums over windows where integer sets say so, in every spelling; others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.walk import reads_of
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.xla_counts import Fused

ROWS, SIZE = 4, 160
Array = Any
Function = Callable[[Array], Array]


def prefix(x: Array, axis: int = 1) -> Array:
    return jnp.cumsum(x, axis)


def moving_average(x: Array) -> Array:
    c = prefix(x)
    return (c[:, 16:] - c[:, :-16]) / 16


def from_the_end(x: Array) -> Array:
    c = jax.lax.cumsum(x, 1, reverse=True)
    return c[:, :-7] - c[:, 7:]


def zero_before(x: Array) -> Array:
    c = jnp.concatenate([jnp.zeros_like(x[:, :1]), prefix(x)], axis=1)
    return c[:, 9:] - c[:, :-9]


def padded_before(x: Array) -> Array:
    c = prefix(jnp.pad(x, ((0, 0), (1, 0))))
    return c[:, 9:] - c[:, :-9]


def in_place(x: Array) -> Array:
    c = prefix(x)
    return c.at[:, 12:].set(c[:, 12:] - c[:, :-12])[:, 11:] / 12


def subtracted_in_place(x: Array) -> Array:
    c = prefix(x)
    return c.at[:, 12:].add(-c[:, :-12])


def growing(x: Array) -> Array:
    c = prefix(x)
    return (c - jnp.pad(c, ((0, 0), (8, 0)))[:, :-8]) / jnp.minimum(jnp.arange(SIZE) + 1, 8)


def of_neighbours(x: Array) -> Array:
    return jnp.diff(prefix(x), axis=1)


def of_blocks(x: Array) -> Array:
    return jnp.diff(prefix(x)[:, ::8], axis=1)


def of_scaled(x: Array) -> Array:
    c = 0.25 * prefix(x)
    return c[:, 4:] - c[:, :-4]


def variance(x: Array) -> Array:
    first, second = prefix(x), prefix(x**2)
    return (second[:, 9:] - second[:, :-9]) / 9 - ((first[:, 9:] - first[:, :-9]) / 9) ** 2


def last_ones(x: Array) -> Array:
    c = prefix(x)
    return c[:, -1] - c[:, -17]


def boxes(x: Array) -> Array:
    c = jnp.pad(prefix(prefix(x, 0)), ((1, 0), (1, 0)))
    return c[2:, 5:] - c[:-2, 5:] - c[2:, :-5] + c[:-2, :-5]


def boxes_in_another_order(x: Array) -> Array:
    c = prefix(prefix(x, 0))
    return c[2:, 5:] + c[:-2, :-5] - c[:-2, 5:] - c[2:, :-5]


WINDOWS = (moving_average, from_the_end, zero_before, padded_before, in_place, subtracted_in_place, growing)
WINDOWS += (of_neighbours, of_blocks, of_scaled, variance, last_ones)


def kept_as_well(x: Array) -> Array:
    c = prefix(x)
    return jnp.tanh(c[:, 16:]) * (c[:, 16:] - c[:, :-16])


def more_than_half(x: Array) -> Array:
    c = prefix(x)
    return c[:, 100:] - c[:, :-100]


def longer_and_longer(x: Array) -> Array:
    c = prefix(x)
    return c[:, ::2] - c[:, : SIZE // 2]


def of_other_numbers(x: Array) -> Array:
    return prefix(x)[:, 5:] - prefix(x * x)[:, :-5]


def with_other_weights(x: Array) -> Array:
    c = prefix(x)
    return c[:, 5:] / 3 - c[:, :-5] / 4


def of_many_windows(x: Array) -> Array:
    c = prefix(x)
    return sum((c[:, 40:] - c[:, 40 - n : -n]) ** 2 for n in range(4, 40, 4))


DIFFERENCES = (
    kept_as_well,
    more_than_half,
    longer_and_longer,
    of_other_numbers,
    with_other_weights,
    of_many_windows,
)


def loss(f: Function) -> Function:
    return lambda x: jnp.sum(f(x) ** 2)


def emitted(f: Function) -> str:
    return te.source(te.adjoint(loss(f), everything=True), jax.ShapeDtypeStruct((ROWS, SIZE), "float32"))


def has_prefix(text: str) -> bool:
    return any(word in text for word in ("cumsum(", "_prefix", "_suffix", "lax.scan", "associative_scan"))


@pytest.mark.parametrize(
    "f", [*WINDOWS, boxes, boxes_in_another_order, *DIFFERENCES], ids=lambda f: f.__name__
)
def test_values_and_gradients(f: Function, rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.standard_normal((ROWS, SIZE)).astype("float32"))
    (value, slope), (expected, correct) = te.value_and_grad(loss(f))(x), jax.value_and_grad(loss(f))(x)
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    np.testing.assert_allclose(slope, correct, rtol=1e-4, atol=2e-5 * float(abs(correct).max()))


@pytest.mark.parametrize("f", WINDOWS, ids=lambda f: f.__name__)
def test_no_prefixes_are_left(f: Function) -> None:
    assert not has_prefix(emitted(f))


@pytest.mark.parametrize("f", DIFFERENCES, ids=lambda f: f.__name__)
def test_what_no_window_is_stays(f: Function) -> None:
    assert has_prefix(emitted(f))


def test_four_corners_are_a_box() -> None:
    """Long enough for a window along both axes."""
    x = jax.ShapeDtypeStruct((40, 60), "float32")
    for f in (boxes, boxes_in_another_order):
        text = " ".join(te.source(te.adjoint(loss(f)), x).split())
        assert not has_prefix(text)
        assert " [0, 2)" in text and " [0, 5)" in text


def test_operations() -> None:
    """Sixteen additions an element each way, where prefixes took some hundred and were read in strides."""
    x = jax.ShapeDtypeStruct((ROWS, SIZE), "float32")
    slope = jax.grad(te.adjoint(loss(moving_average), everything=True))
    flops = Fused(jax.jit(slope).lower(x)).cost_analysis()["flops"]
    assert flops < 40 * ROWS * SIZE, f"{flops:,.0f}"


def test_windows_lose_no_digits() -> None:
    x = jnp.asarray(np.random.default_rng(0).random((1, SIZE), dtype="float32")).at[0, 0].set(2.0**24)
    exact = np.lib.stride_tricks.sliding_window_view(np.asarray(x, dtype="float64"), 16, axis=1)[:, 1:].mean(
        -1
    )
    assert abs(np.asarray(moving_average(x)) - exact).max() > 0.03  # as JAX computes it
    found = jax.vjp(te.adjoint(moving_average, everything=True), x)[0]
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_infinities_stay_in_their_windows() -> None:
    x = jnp.ones((1, SIZE)).at[0, 40].set(jnp.inf)
    found = np.asarray(jax.vjp(te.adjoint(moving_average, everything=True), x)[0])[0]
    assert np.isnan(np.asarray(moving_average(x))[0, 60])
    assert (
        found == np.where((np.arange(1, SIZE - 15) <= 40) & (np.arange(17, SIZE + 1) > 40), np.inf, 1)
    ).all()


def _prefixes(rows: int, n: int, dtype: str, suffix: bool) -> tuple[te.Placeholder, Compute]:
    x = te.placeholder((rows, n), dtype, name="x")
    k = te.reduce_axis((0, n), name="k")
    inside = (lambda i: k >= i) if suffix else (lambda i: k <= i)
    return x, te.compute((rows, n), lambda b, i: te.sum(x[b, k], k, where=inside(i)), "c")


@given(
    n=st.integers(2, 24),
    width=st.integers(1, 12),
    step=st.integers(1, 3),
    start=st.integers(0, 3),
    suffix=st.booleans(),
    swapped=st.booleans(),
    dtype=st.sampled_from(["float32", "float16", "int32", "uint8", "complex64"]),
)
@settings(max_examples=60, deadline=None)
def test_limits_shapes_dtypes(
    n: int, width: int, step: int, start: int, suffix: bool, swapped: bool, dtype: str
) -> None:
    """Definitions mean the same before and after, whatever the limits; short windows are found in all of them."""
    count = (n - 1 - start - width) // step + 1
    if count < 1:
        return
    x, c = _prefixes(2, n, dtype, suffix)
    near, far = (lambda b, i: c[b, step * i + start]), (lambda b, i: c[b, step * i + start + width])
    first, second = (near, far) if swapped else (far, near)
    y = te.compute((2, count), lambda b, i: first(b, i) - second(b, i), "y")
    (found,) = planned([y])
    values = np.random.default_rng(n).integers(0, 5, (2, n)).astype(dtype)
    np.testing.assert_array_equal(te.interpret(found, {x: values}), te.interpret(y, {x: values}))
    if count > 1 and 2 * width <= n:
        assert all(
            r.tensor is x
            for t in topological_order([found])
            if isinstance(t, Compute)
            for r in reads_of(t.body)
        )


@given(n=st.integers(4, 20), first=st.integers(0, 6), second=st.integers(0, 6), guard=st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_choices_of_prefixes(n: int, first: int, second: int, guard: int) -> None:
    """A difference that only some positions have: one window where the sets agree, else what it was."""
    x, c = _prefixes(2, n, "float32", False)

    def element(b: te.Axis, i: te.Axis) -> te.Expr:
        before = te.select(i >= max(first, second, guard), c[b, i - first], 0.0)
        return te.select(i >= guard, c[b, i] - before, c[b, i])

    y = te.compute((2, n), element, "y")
    values = np.random.default_rng(n).integers(0, 9, (2, n)).astype("float32")
    np.testing.assert_array_equal(te.interpret(planned([y])[0], {x: values}), te.interpret(y, {x: values}))


def test_a_sum_of_sums() -> None:
    """Both sums written in one definition, without a tensor of prefixes."""
    x = te.placeholder((SIZE,), name="x")
    k, m = te.reduce_axis((0, SIZE), "k"), te.reduce_axis((0, SIZE), "m")
    y = te.compute(
        (SIZE - 9,),
        lambda i: te.sum(x[k] ** 2, k, where=k < i + 9) - te.sum(x[m] ** 2, m, where=m < i),
        "y",
    )
    assert str(planned([y])[0].body) == "sum(x[i + k] ** 2 for k in [0, 9))"


def test_what_a_condition_leaves_out_is_not_divided_by() -> None:
    """A difference of quotients that stand where their divisor is not zero."""
    x, v = te.placeholder((64,), name="x"), te.placeholder((64,), name="v")
    k = te.reduce_axis((0, 64), "k")
    sums = te.compute((64,), lambda i: te.sum(x[k], axis=k, where=k <= i), "sums")

    def body(i: te.Axis) -> te.Expr:
        return te.select(i >= 2, sums[i] / v[i], 0.0) - te.select(i >= 2, sums[i - 2] / v[i], 0.0)

    y = te.compute((64,), body, "y")
    feeds = {x: np.sin(np.arange(64, dtype="float32")), v: np.arange(64, dtype="float32") // 2}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-4, atol=1e-5)


# functions of windows, each of prefix sums c and d of two arrays, and of the length of the windows
OF_WINDOWS: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "variance": lambda c, d, t, n: (d[t + n] - d[t]) / n - ((c[t + n] - c[t]) / n) ** 2,
    "saturated": lambda c, d, t, n: te.tanh(c[t + n] - c[t]) + d[t + n] - d[t],
    "weighted mean": lambda c, d, t, n: (c[t + n] - c[t]) / (d[t + n] - d[t]),
    "crossing": lambda c, d, t, n: te.maximum(c[t + n] - c[t], c[t + n] - c[t + n // 2]),
}


@pytest.mark.parametrize("name", OF_WINDOWS)
def test_functions_of_windows_sum_each_window_once(name: str, rng: np.random.Generator) -> None:
    """In the adjoint, too: four times as long windows take about four times the additions."""
    size = 400

    def build(x: te.Tensor, n: int) -> te.Tensor:
        k = te.reduce_axis((0, size), "k")
        c = te.compute((size,), lambda t: te.sum(x[k], k, where=k <= t), "c")
        d = te.compute((size,), lambda t: te.sum(x[k] ** 2, k, where=k <= t), "d")
        return te.compute((size - n,), lambda t: OF_WINDOWS[name](c, d, t, n), "y")

    x = jnp.asarray(rng.uniform(0.5, 1.5, size).astype("float32"))
    flops = []
    for n in (6, 24):
        own = te.function(lambda x, n=n: build(x, n))
        slope = jax.grad(lambda x, own=own: jnp.sum(own(x) ** 2))
        plain = jax.grad(lambda x, n=n: jnp.sum(OF_PLAIN[name](x, n) ** 2))
        wanted = plain(x)
        np.testing.assert_allclose(slope(x), wanted, rtol=2e-4, atol=2e-6 * float(abs(wanted).max()))
        flops.append(jax.jit(slope).lower(x).compile().cost_analysis()["flops"])
    assert flops[1] < 6 * flops[0]


def windows_of(x: Array, n: int) -> Array:
    """Sums of the ``n`` elements behind each one."""
    return jnp.stack([x[i : len(x) - n + i] for i in range(1, n + 1)]).sum(0)


OF_PLAIN: dict[str, Callable[[Array, int], Array]] = {
    "variance": lambda x, n: windows_of(x**2, n) / n - (windows_of(x, n) / n) ** 2,
    "saturated": lambda x, n: jnp.tanh(windows_of(x, n)) + windows_of(x**2, n),
    "weighted mean": lambda x, n: windows_of(x, n) / windows_of(x**2, n),
    "crossing": lambda x, n: jnp.maximum(windows_of(x, n), windows_of(x, n // 2)[n - n // 2 :][: len(x) - n]),
}
