"""Steps of periodic stencils as loops over copies with continued ends: when, how many, and what they come to.

The references are plain JAX code with ``jnp.roll`` and what ``jax.grad`` makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.forms.pieces.peeled_edges import PEELED
from jaxte.lower.program.across import continued_ends
from jaxte.lower.program.across.continued_ends import CONTINUED
from jaxte.lower.program.plan import lower
from tests.agreement import pulled
from tests.lowered import check, inputs_of, sources

Shifts = Sequence[tuple[int, ...]]
FIVE = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
LINE = ((0,), (1,), (-1,))


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continued_ends, "FEWEST_CONTINUED", 1)
    monkeypatch.setattr(continued_ends, "_MOST_GROWTH", 8)


def step(u: te.Tensor, shifts: Shifts, name: str = "u") -> te.Tensor:
    """A stencil with its own square, so that its slope reads it."""
    n = u.shape

    def element(*at: Any) -> Any:
        reads = [u[tuple((i + s) % m for i, s, m in zip(at, by, n, strict=True))] for by in shifts]
        return u[at] + sum(0.1 * (k + 1) * read for k, read in enumerate(reads)) - 0.05 * u[at] * reads[-1]

    return te.compute(n, element, name)


def rolled(u: jax.Array, shifts: Shifts, steps: int) -> jax.Array:
    """``steps`` of the same in plain JAX."""
    for _ in range(steps):
        reads = [jnp.roll(u, tuple(-s for s in by), range(u.ndim)) for by in shifts]
        u = u + sum(0.1 * (k + 1) * read for k, read in enumerate(reads)) - 0.05 * u * reads[-1]
    return u


def chain(shape: tuple[int, ...], shifts: Shifts, steps: int, dtype: str = "float32") -> te.Tensor:
    u: te.Tensor = te.placeholder(shape, dtype, "x")
    for _ in range(steps):
        u = step(u, shifts)
    return u


def gradient(fn: Any) -> Any:
    return jax.value_and_grad(lambda x: jnp.sum(jnp.sin(fn(x))))


def fusions(fn: Any, shape: tuple[int, ...]) -> int:
    text = jax.jit(fn).lower(jax.ShapeDtypeStruct(shape, "float32")).compile().as_text()
    return text[text.index("ENTRY") :].count(" fusion(")


def copies_of(text: list[str]) -> int:
    return sum("jnp.concatenate" in source for source in text)


def test_a_step_is_a_concatenation_for_each_axis_and_a_loop() -> None:
    text = sources(chain((128, 128), FIVE, 3))
    assert copies_of(text) == 6 and not any("dynamic_update_slice" in source for source in text)
    line = sources(chain((2**14,), LINE, 3))
    assert copies_of(line) == 3 and not any("dynamic_update_slice" in source for source in line)


@pytest.mark.parametrize(
    ("shape", "shifts", "most"), [((128, 128), FIVE, 0.35), ((2**14,), LINE, 0.6)], ids=["plane", "line"]
)
def test_both_passes_are_fewer_loops_than_with_edges(
    shape: tuple[int, ...], shifts: Shifts, most: float
) -> None:
    y = chain(shape, shifts, 3)
    continued, peeled = (te.function(inputs_of(y), y, without=without) for without in ((), (CONTINUED,)))
    loops, others = fusions(gradient(continued), shape), fusions(gradient(peeled), shape)
    assert loops <= most * others, (loops, others)


def test_what_is_copied_is_held_once() -> None:
    """Residuals are slices of the copies: two arrays of reactions held as often as with edges."""

    def reaction(u: jax.Array, v: jax.Array) -> jax.Array:
        lap = lambda a: sum(jnp.roll(a, s, k) for s in (1, -1) for k in (0, 1)) - 4 * a  # noqa: E731
        for _ in range(3):
            r = u * v * v
            u, v = u + 0.1 * lap(u) - r, v + 0.05 * lap(v) + r
        return jnp.sum(u**2) + jnp.sum(v**2)

    shapes = [jax.ShapeDtypeStruct((128, 128), "float32")] * 2
    code = jax.jit(te.value_and_grad(reaction, (0, 1))).lower(*shapes).compile()
    memory = code.memory_analysis()
    assert (
        memory.temp_size_in_bytes <= 9 * 130 * 130 * 4
    )  # four steps of two arrays are held, and one is made


def test_a_tensor_and_its_copy_are_returned_as_one() -> None:
    x = te.placeholder((2**14,), name="x")
    u = step(x, LINE, "u")
    v = step(u, LINE, "v")
    w = te.compute((2**14,), lambda i: u[i] * v[i], "w")
    text = check(u, v, w)
    assert copies_of(text) == 2
    assert any(source == "u_extended[1:16385]" for source in text), text


@pytest.mark.parametrize(
    "made",
    [
        lambda: chain((120, 120), FIVE, 2),
        lambda: chain(
            (32, 32, 32),
            [(0, 0, 0), *(tuple(np.eye(3, dtype=int)[k] * s) for k in range(3) for s in (1, -1))],
            2,
        ),
        lambda: chain((512, 512), FIVE, 2),
        lambda: chain((2**14,), ((0,), (6000,), (-1,)), 2),
        lambda: chain((2**16,), LINE, 1),
    ],
    ids=["few elements", "three axes", "large, two axes", "far", "a given array alone"],
)
def test_where_it_does_not_gain_edges_stay(made: Any) -> None:
    assert copies_of([s for s in sources(made()) if "extended" in s]) == 0


def test_two_reads_do_not_pay_for_a_copy() -> None:
    x = te.placeholder((2**14,), name="x")
    u = te.compute(x.shape, lambda i: te.exp(x[i]), "u")
    n = 2**14
    twice = te.compute((n,), lambda i: u[(i + 1) % n] - u[(i - 1) % n], "y")
    assert copies_of(sources(twice)) == 0
    three = te.compute((n,), lambda i: u[(i + 1) % n] - u[(i - 1) % n] + u[i], "y")
    assert copies_of(sources(three)) == 1
    others = te.compute((n,), lambda i: three[i] - u[(i + 1) % n], "z")
    assert copies_of(sources(others)) == 1  # the copy that is there anyway has no price


def test_ends_of_another_kind_leave_a_body_to_its_edges() -> None:
    n = 128
    u = te.compute((n, n), lambda i, j: te.exp(te.placeholder((n, n), name="x")[i, j]), "u")
    mixed = te.compute(
        (n, n), lambda i, j: u[(i + 1) % n, j] + u[(i - 1) % n, j] + u[i, te.minimum(j + 1, n - 1)], "y"
    )
    assert copies_of(sources(mixed)) == 0


def test_what_several_read_as_it_is_is_not_computed_again_for_each() -> None:
    """Without a copy of its own, a loop without edges would be fused into all that read it."""
    n = 2**14
    x = te.placeholder((n,), name="x")
    u = te.compute((n,), lambda i: te.exp(x[i]), "u")
    s = step(u, LINE, "s")
    a = te.compute((n,), lambda i: te.tanh(s[i]), "a")
    b = te.compute((n,), lambda i: te.sin(s[i]), "b")
    assert any("s_interior" in line for line in te.source([a, b]).splitlines())
    assert not any("s_interior" in line for line in te.source([a]).splitlines())


def test_names_and_platforms_decide() -> None:
    y = chain((128, 128), FIVE, 2)
    forms = lambda policy: [c.form for c in lower("f", inputs_of(y), [y], policy).choices]  # noqa: E731
    assert PEELED not in forms(Policy())
    for policy in (Policy(without=frozenset({CONTINUED})), Policy(forms={"u": PEELED}), Policy("gpu")):
        assert forms(policy) == [PEELED, PEELED], policy


shifts_of_a_line = st.lists(st.tuples(st.integers(-4, 4)), min_size=3, max_size=4, unique=True)
shifts_of_a_plane = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-3, 3)), min_size=3, max_size=5, unique=True
)


@pytest.mark.usefixtures("of_any_size")
@settings(max_examples=min(settings.default.max_examples, 8), deadline=None)
@given(
    st.one_of(
        st.tuples(st.tuples(st.integers(9, 21)), shifts_of_a_line),
        st.tuples(st.tuples(st.integers(7, 11), st.integers(8, 13)), shifts_of_a_plane),
    ),
    st.integers(1, 3),
    st.sampled_from(["float32", "float64", "complex64"]),
)
@example(((16,), [(0,), (1,), (-2,)]), 3, "float32")
def test_values_and_gradients_are_those_of_rolled_arrays(
    stencil: tuple[tuple[int, ...], Shifts], steps: int, dtype: str
) -> None:
    shape, shifts = stencil
    y = chain(shape, shifts, steps, dtype)
    assert any("extended" in source for source in sources(y))
    x = (np.random.default_rng(0).normal(size=shape) * 0.3).astype(dtype)
    tolerance = 1e-10 if dtype == "float64" else 2e-5
    with jax.enable_x64(dtype == "float64"):
        expected, wanted = pulled(lambda x: rolled(x, shifts, steps), [x], x)
        found, gradient = pulled(te.function(inputs_of(y), y), [x], x)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(gradient, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("of_any_size")
def test_the_interpreter_agrees_on_orders_of_reads_and_results() -> None:
    """Copies of what is returned, read before and after, of integers, and across a sum."""
    check(chain((24,), ((0,), (3,), (-1,)), 3, "int32"))
    u = chain((9, 12), FIVE, 2)
    p, q = te.reduce_axis((0, 9), "p"), te.reduce_axis((0, 12), "q")
    total = te.compute((), lambda: te.sum(u[p, q] * u[p, q], (p, q)), "total")
    v = step(u, FIVE, "v")
    check(u, total, v)
    check(total, v, u)
