"""Sums over windows as differences of cumulative sums: exact for integers, asked for by name for other numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.bridge.calls import measured
from jaxte.bridge.tuning import tuning
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from tests.agreement import inputs_of
from tests.lowered import arrays_for, run

FORM = "cumulative sums"
Pads = tuple[tuple[int, int], ...]


def windows(
    shape: tuple[int, ...],
    taps: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    pads: Pads,
    dtype: str,
    front: bool = False,
) -> tuple[te.Tensor, te.Tensor]:
    """Sums over windows of all axes but the last one, or but the first one."""
    x = te.placeholder(shape, dtype, "x")
    own = [te.reduce_axis((0, k), f"k{n}") for n, k in enumerate(taps)]
    sizes = shape[:-1] if front else shape[1:]
    extents = [
        (n + a + b - (k - 1) * d - 1) // s + 1
        for n, (a, b), k, d, s in zip(sizes, pads, taps, dilation, strides, strict=True)
    ]

    def body(*at: Any) -> Any:
        t, rest = (at[:-1], at[-1]) if front else (at[1:], at[0])
        places = [
            s * i + d * k - a for i, k, s, d, (a, _) in zip(t, own, strides, dilation, pads, strict=True)
        ]
        inside = te.const(True)
        for place, n in zip(places, sizes, strict=True):
            inside = inside & (place >= 0) & (place < n)
        return te.sum(x[(*places, rest) if front else (rest, *places)], axis=own, where=inside)

    return x, te.compute((*extents, shape[-1]) if front else (shape[0], *extents), body, "y")


CASES: list[tuple[Any, ...]] = [
    ((2, 9), (4,), (1,), (1,), ((0, 0),)),
    ((2, 9, 8), (4, 5), (1, 1), (1, 1), ((2, 2), (0, 1))),
    ((2, 12, 14), (4, 5), (2, 1), (2, 1), ((2, 2), (0, 1))),
    ((1, 19), (4,), (3,), (3,), ((1, 5),)),
    ((1, 23), (5,), (3,), (2,), ((4, 0),)),
    ((3, 8), (8,), (1,), (1,), ((7, 7),)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "bool", "float32", "complex64"])
def test_values_are_those_of_the_interpreter(case: tuple[Any, ...], dtype: str) -> None:
    x, y = windows(*case, dtype=dtype)
    program = lower("f", [x], [y], Policy(forms={"*": FORM}))
    (choice,) = program.choices
    assert choice.form.startswith(FORM)
    arrays = arrays_for(program)
    if dtype in ("int32", "uint32"):  # so large that cumulative sums overflow
        arrays = [
            np.random.default_rng(0).integers(0, np.iinfo(dtype).max, a.shape).astype(dtype) for a in arrays
        ]
    with np.errstate(over="ignore"):
        (expected,) = interpret([y], {x: arrays[0]})
    (found,) = run(program, arrays)
    assert found.dtype == expected.dtype
    if dtype in ("float32", "complex64"):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("front", [False, True])
def test_gradients_are_those_of_reduce_window(front: bool) -> None:
    shape = (12, 11, 2) if front else (2, 12, 11)
    x, y = windows(shape, (4, 5), (2, 1), (1, 2), ((1, 2), (3, 0)), "float32", front)
    fn = te.function([x], y, forms={"*": FORM})
    rng = np.random.default_rng(0)
    value = jnp.asarray(rng.standard_normal(shape), jnp.float32)

    def among(own: tuple[Any, ...], other: Any) -> tuple[Any, ...]:
        return (*own, other) if front else (other, *own)

    def plain(x: Any) -> Any:
        return lax.reduce_window(
            x, 0.0, lax.add, among((4, 5), 1), among((2, 1), 1), among(((1, 2), (3, 0)), (0, 0)),
            window_dilation=among((1, 2), 1),
        )  # fmt: skip

    expected, pullback = jax.vjp(plain, value)
    found = fn(value)
    head = jnp.asarray(rng.standard_normal(expected.shape), jnp.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.vjp(fn, value)[1](head)[0], pullback(head)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels, way", [(64, "blocked scan"), (8, "sequential scan")])
def test_tables_may_be_made_in_blocks_or_steps(channels: int, way: str) -> None:
    """What scans start with has the zeros of the other dimensions."""
    x, y = windows((40, 30, channels), (9, 7), (1, 2), (1, 1), ((4, 4), (0, 3)), "int32", front=True)
    program = lower("f", [x], [y], Policy(forms={"*": FORM}))
    assert way in program.choices[0].form
    arrays = arrays_for(program)
    padded = np.pad(arrays[0], ((4, 4), (0, 3), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (9, 7), (0, 1))[:, ::2]
    np.testing.assert_array_equal(run(program, arrays)[0], views.sum((-1, -2)))


def blur(size: int) -> Any:
    def build(x: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, size), "k")
        return te.compute((x.shape[0] - size + 1,), lambda i: te.sum(x[i + k], axis=k), "y")

    return build


def form_of(fn: Any, *args: Any, **options: Any) -> str:
    told = te.function(fn, **options).explain(*args)
    return next(c.form for c in told.choices["forward"] if c.tensor == "y")


def test_long_windows_of_integers_take_it_by_themselves() -> None:
    x = np.ones(1_000_000, "int32")
    assert form_of(blur(5000), x).startswith(FORM)
    assert not form_of(blur(9), x).startswith(FORM)
    assert not form_of(blur(5000), x, forms={"y": "doubling slices"}).startswith(FORM)


@pytest.mark.parametrize("budget", [None, 1])
def test_floating_point_numbers_never_do(budget: int | None) -> None:
    x = np.ones(1_000_000, "float32")
    fn = te.function(blur(5000), max_memory=budget)
    assert not form_of(blur(5000), x, max_memory=budget).startswith(FORM)
    why = dict(fn.explain(x).refused["y"])[FORM]
    assert "round" in why and "nan" in why and "by name" in why
    assert form_of(blur(5000), x, forms={"y": FORM}).startswith(FORM)


def test_it_is_taken_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_measured", {})
    monkeypatch.setattr(
        tuning, "_interleaved", lambda calls, seconds: {f: 1e-3 if f == FORM else 2e-3 for f in calls}
    )
    x = np.ones(300, "float32")
    te.autotune(blur(40), x)
    assert form_of(blur(40), x).startswith(FORM)


def test_sizes_may_be_symbolic() -> None:
    n = te.var("n")
    x = te.placeholder((n,), "int32", "x")
    k = te.reduce_axis((0, 4), "k")
    y = te.compute((n - 3,), lambda i: te.sum(x[i + k], axis=k), "y")
    program = lower("f", inputs_of([y]), [y], Policy(forms={"*": FORM}))
    assert program.choices[0].form.startswith(FORM)
    (found,) = run(program, [np.arange(11, dtype="int32")])
    np.testing.assert_array_equal(found, np.convolve(np.arange(11), np.ones(4, int), "valid"))
