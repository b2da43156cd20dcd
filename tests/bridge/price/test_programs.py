"""What a program does by its jaxpr: how often XLA's loops compute each operation, and what is part of no loop. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.bridge.price.amounts import seconds
from jaxte.bridge.price.programs import amounts_of
from jaxte.lower.cost.paces import CPU_PACES

N = 64
U = jax.ShapeDtypeStruct((N, N), "float32")


def amounts(f: Callable[..., Any], *args: Any) -> dict[str, float]:
    return amounts_of(jax.make_jaxpr(f)(*(args or (U,))))


def heat(steps: int) -> Callable[..., Any]:
    def f(u: Any) -> Any:
        for _ in range(steps):
            u = u + 0.1 * (
                jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
            )
        return jnp.sum(u**2)

    return f


def test_one_loop_reads_and_writes_once() -> None:
    found = amounts(lambda u: u * 2 + 1)
    assert found == {"cheap": 2 * N * N, "moved": 8 * N * N, "start": 1.0}


def test_equal_operations_are_one() -> None:
    assert amounts(lambda u: u * 2 + u * 2)["cheap"] == 2 * N * N


def test_what_nothing_reads_is_left_out() -> None:
    assert amounts(lambda u: (jnp.exp(u), u + 1)[1]).get("exponential", 0.0) == 0.0


def test_what_is_dear_is_an_array_where_several_loops_read_it() -> None:
    """Within one loop it is computed for each place, as the power of a response norm is."""
    assert amounts(lambda u: jnp.exp(u)[1:] * jnp.exp(u)[:-1])["exponential"] == 2 * (N - 1) * N
    found = amounts(lambda u: (jnp.exp(u)[1:] + 1, jnp.exp(u)[:-1] + 1))
    assert found["exponential"] == N * N and found["start"] == 3


@pytest.mark.parametrize(
    "f", [jnp.sin, jnp.cos, jnp.tan, lambda u: jnp.exp(1j * u), lambda u: jnp.sin(u + 1j)]
)
def test_sines_are_copied_into_each_loop(f: Callable[..., Any]) -> None:
    """Though they take longest: XLA counts them as cheap, those of a complex exponential included."""
    assert amounts(lambda u: (f(u)[1:] + 1, f(u)[:-1] + 1))["power"] == 2 * (N - 1) * N
    assert (
        str(jax.jit(lambda u: (f(u)[1:] + 1, f(u)[:-1] + 1)).lower(U).compile().as_text()).count("fused_")
        >= 2
    )


def test_places_are_found_one_by_one() -> None:
    rows = jax.ShapeDtypeStruct((N, 16), "float32")
    assert amounts(lambda u: jnp.argmin(u, 1))["place"] == N * N
    assert amounts(lambda u: jnp.argmax(u, 0), rows)["place"] == N * 16
    assert "place" not in amounts(lambda u: jnp.argmin(u, 1), rows)
    assert "place" not in amounts(lambda u: jnp.min(u, 1))


def test_what_is_put_on_a_device_costs_nothing() -> None:
    assert amounts(lambda u: jax.device_put(u) + 1) == amounts(lambda u: u + 1)


def test_a_square_by_a_power_is_a_product_and_so_is_its_slope() -> None:
    for power, dear in ((2.0, 0), (3.0, 0), (1.5, 2 * N * N)):
        assert amounts(jax.value_and_grad(lambda u, p=power: jnp.sum(u**p))).get("power", 0.0) == dear


@pytest.mark.parametrize("number", [jnp.float32, np.float32, jnp.asarray])
@pytest.mark.parametrize("call", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_a_number_from_outside_is_as_one_that_is_written(number: Any, call: Any) -> None:
    for value, dear in ((2.0, 0), (1.5, 2 * N * N)):
        outside = number(value)
        f = call(lambda u, own=outside: jnp.sum(u**own))
        assert amounts(jax.value_and_grad(f)).get("power", 0.0) == dear
        assert amounts(jax.value_and_grad(lambda u, p: jnp.sum(u**p)), U, outside)["power"] == 2 * N * N


def test_single_points_along_a_line_are_a_product() -> None:
    line, w = (jax.ShapeDtypeStruct(s, "float32") for s in ((4, 16, 300), (32, 16, 1)))
    found = amounts(lambda x, w: lax.conv(x, w, (1,), "VALID"), line, w)
    assert found["product"] == 2 * 4 * 300 * 32 * 16 and "convolution" not in found


def test_what_is_cheap_is_computed_again_for_each_place() -> None:
    found = amounts(lambda u: (u * u)[1:] + (u * u)[:-1])
    assert found["start"] == 1 and found["cheap"] == 3 * (N - 1) * N


def test_sums_of_shifts_of_sums_of_shifts_grow_until_they_are_arrays() -> None:
    """Each step of JAX's gradient costs a multiple of the first; those of te.grad cost the same."""
    large = jax.ShapeDtypeStruct((512, 512), "float32")
    ours, theirs = ([amounts(g(heat(n)), large) for n in (1, 2, 4)] for g in (te.grad, jax.grad))
    work = [[a.get("cheap", 0.0) + a.get("tested", 0.0) for a in found] for found in (ours, theirs)]
    assert work[1][2] > 6 * work[1][0]
    assert work[0][2] < 6 * work[0][0]
    assert seconds(theirs[2], CPU_PACES) > 5 * seconds(ours[2], CPU_PACES)


def test_what_is_read_through_an_array_too_is_computed_once() -> None:
    """A stack along the last axis is an array, so that ``u``, which is added to what is made of it, is one, too: each step costs the same."""

    def f(u: Any, steps: int) -> Any:
        for _ in range(steps):
            pair = jnp.stack([u[::-1], u[:, ::-1]], 2)
            u = u + jnp.max(pair, 2)
        return u

    found = [amounts(lambda u, n=n: f(u, n)) for n in (1, 2, 4)]
    work = [a.get("cheap", 0.0) + a.get("tested", 0.0) for a in found]
    assert work[2] - work[1] <= 2 * (work[1] - work[0])


def test_what_branches_of_a_loop_share_is_computed_for_every_way_to_it() -> None:
    """XLA writes what several functions of a loop read as a function of its own, which each of them calls: the links of a chain, of which each is
    read by the next two, are computed as often as there are ways to them.
    """

    def f(u: Any, links: int, length: int) -> Any:
        a, b = u, u * 2
        for _ in range(links):
            new = a + b
            for n in range(length):
                new = (new + n) * new
            a, b = b, new
        return jnp.stack([a, b, a - b], 2)

    work = [amounts(lambda u, links=links: f(u, links, 8))["cheap"] for links in (6, 12)]
    assert work[1] > 10 * work[0]
    short = amounts(lambda u: f(u, 1, 1))["cheap"]
    assert short == (1 + 4 + 5) * N * N, "what is short is written into each branch, where equal ones are one"


def test_slices_of_what_was_joined_are_of_its_operands() -> None:
    def f(u: Any) -> Any:
        a, b = jnp.split(jnp.concatenate([u * 2, u * 3], 1), 2, 1)
        c, d = jnp.unstack(jnp.stack([a, b], 2), axis=2)
        return c[1:] - d[:-1]

    found = amounts(f)
    assert found["start"] == 1 and found["moved"] == 4 * 2 * (N - 1) * N and "branch" not in found
    assert amounts(lambda u: jnp.concatenate([u, u], 1)[:, 3:70] + 1)["branch"] == 2 * N * N


def test_unstacked_arrays_are_slices() -> None:
    def f(u: Any) -> Any:
        a, b = jnp.unstack(u.reshape(2, N // 2, N))
        return a + b

    assert amounts(f)["start"] == 1


def test_a_call_apart_is_a_loop_of_its_own() -> None:
    two = te.source(te.grad(heat(2)), U)
    assert "_apart(" in two
    assert amounts(te.grad(heat(2)))["start"] >= two.count("_apart(")


def test_loops_count_their_turns() -> None:
    def f(u: Any) -> Any:
        return lax.scan(lambda h, x: (h + x, None), jnp.zeros(N), u)[0]

    found = amounts(f)
    assert found["turn"] == N and found["step"] == N and found["cheap"] == N * N


def test_branches_cost_as_the_dearest() -> None:
    found = amounts(lambda u: lax.cond(u[0, 0] > 0, jnp.exp, lambda v: v + 1, u))
    assert found["exponential"] == N * N


@pytest.mark.parametrize(
    ("f", "kind", "amount"),
    [
        (lambda u: u @ u, "product", 2 * N**3),
        (lambda u: jnp.einsum("bij,bjk->bik", *[u.reshape(-1, 2, 2)] * 2), "small_product", 2 * N * N * 2),
        (lambda u: jnp.einsum("bij,bjk->bik", *[u.reshape(-1, 4, 4)] * 2), "called", N * N / 16),
        (lambda u: jnp.einsum("bij,bjk->bik", *[u.reshape(-1, 8, 8)] * 2), "product_row", N * N / 8),
        (lambda u: u @ u[0], "vector_row", N),
        (lambda u: jnp.cumsum(u, 1), "scan", N * N * 6),
        (lambda u: jnp.sort(u), "sort", N * N * 6),
        (lambda u: u.at[jnp.array([3, 5])].add(1.0), "scattered", 2 * N),
        (lambda u: lax.reduce_window(u, 0.0, lax.add, (3, 3), (1, 1), "SAME"), "window", 9 * N * N),
        (lambda u: jnp.sum(u, 1), "row", N * N),
        (lambda u: jnp.sum(u, 0), "column", N * N),
    ],
)
def test_routines(f: Callable[..., Any], kind: str, amount: float) -> None:
    assert amounts(f)[kind] == pytest.approx(amount)


LARGE = jax.ShapeDtypeStruct((4 * N, N), "float32")


@pytest.mark.parametrize(
    ("f", "started", "arrays"),
    [
        (lambda u: jnp.sum(jnp.exp(u) * u, 1), 3, 0),
        (lambda u: jnp.sum(jnp.where(u > 0, u, 0.0), 1), 4, 1),
        (lambda u: jnp.sum((u > 0) * u, 1), 4, 1),
        (lambda u: (jnp.sum(u * u, 1), jnp.max(u * u, 0)), 7, 1),
        (lambda u: jnp.sum(2 * (u * u).reshape(N, 2, -1).transpose(2, 0, 1), (0, 1)), 4, 1),
        (lambda u: jnp.sum((2 * u * u).reshape(N, 2, -1).transpose(2, 0, 1), (0, 1)), 3, 0),
    ],
)
def test_large_sums_are_a_routine_that_takes_in_no_choices_and_turns_nothing(
    f: Callable[..., Any], started: int, arrays: int
) -> None:
    """What else it reads, or is read by others too, is an array: written once, and read by each."""
    found = amounts(f, LARGE)
    size = 4 * N * N
    assert found["start"] == started and found["reduced"] % size == 0
    assert found["moved"] >= 4 * size * (1 + 2 * arrays)


def test_runs_of_what_is_reduced_or_kept() -> None:
    assert amounts(lambda u: jnp.sum(u, 1), LARGE)["run"] == 4 * N
    assert amounts(lambda u: jnp.sum(u), LARGE)["run"] == 1
    assert amounts(lambda u: jnp.sum(u.reshape(N, N, 4), 1), LARGE)["run"] == N * N
    assert amounts(lambda u: jnp.sum(u, 0), jax.ShapeDtypeStruct((3, 20000), "float32"))["wide"] == 60000


def test_positions_cost_nothing() -> None:
    found = amounts(lambda u: jnp.where(jnp.arange(N)[:, None] * 2 > 7, u, 0.0))
    assert found["cheap"] == N * N
