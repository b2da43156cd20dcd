"""Derivatives that other code takes: within ``te.everywhere``, and in rules of ``jax.custom_vjp`` and under ``jax.shard_map``."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equinox.internal import while_loop
from jax.sharding import AxisType, PartitionSpec

import jaxte as te


def heat(u: Any) -> Any:
    for _ in range(3):
        u = u + 0.1 * (
            jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        )
    return u


def energy(u: Any) -> Any:
    return jnp.sum(heat(u) ** 2)


def is_raised(f: Any, *args: Any) -> bool:
    """Whether a program has emitted code in it."""
    return "jaxte[" in str(jax.make_jaxpr(f)(*args))


@pytest.fixture
def u(rng: np.random.Generator) -> Any:
    return jnp.asarray(rng.normal(size=(32, 32)).astype("float32"))


def library_step(u: Any, loss: Any = energy) -> Any:
    """What a training loop of a library does, which knows nothing of jaxte."""
    (value, aux), gradient = jax.value_and_grad(lambda u: (loss(u), 7.0), has_aux=True)(u)
    (pulled,) = jax.vjp(loss, u)[1](value)
    return gradient, pulled, jax.grad(loss)(u), aux


def test_derivatives_of_other_code_are_raised_within_the_block_only(u: Any) -> None:
    expected = library_step(u)
    own = jax.grad
    with te.everywhere():
        found = library_step(u)
        later = jax.grad(energy)  # traced after the block only: JAX keeps what it has traced
        assert is_raised(jax.grad(energy), u)
        assert is_raised(lambda u: jax.vjp(energy, u)[1](1.0), u)
    assert jax.grad is own
    assert not is_raised(library_step, u)
    assert not is_raised(later, u)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_blocks_are_nested_and_end_with_exceptions(u: Any) -> None:
    own = jax.grad
    with te.everywhere():
        with pytest.raises(ZeroDivisionError), te.everywhere(everything=True):
            assert is_raised(jax.grad(lambda u: jnp.sum(u**2)), u)
            raise ZeroDivisionError
        assert not is_raised(jax.grad(lambda u: jnp.sum(u**2)), u)
        assert is_raised(jax.grad(energy), u)
    assert jax.grad is own


def test_other_threads_are_left_alone(u: Any) -> None:
    seen: list[bool] = []
    with te.everywhere():
        other = threading.Thread(target=lambda: seen.append(is_raised(jax.grad(energy), u)))
        other.start()
        other.join()
    assert seen == [False]


@jax.custom_vjp
def kept_apart(u: Any) -> Any:
    """A function whose rule differentiates the function itself, as checkpoints written by hand do."""
    return heat(u)


kept_apart.defvjp(lambda u: (heat(u), u), lambda u, g: jax.vjp(heat, u)[1](g))


def checkpointed(u: Any) -> Any:
    """A loop of equinox whose backward pass computes the steps again."""
    body = lambda state: (state[0] + 1, heat(state[1]))  # noqa: E731
    return while_loop(lambda state: state[0] < 3, body, (0, u), max_steps=4, kind="checkpointed")[1]


def divided(u: Any) -> Any:
    mesh = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
    rows = PartitionSpec("d")
    return jax.shard_map(
        lambda v: jax.lax.psum(heat(v), "d"), mesh=mesh, in_specs=rows, out_specs=PartitionSpec()
    )(u)


@pytest.mark.parametrize("step", [kept_apart, checkpointed, divided])
def test_bodies_are_entered(step: Any, u: Any) -> None:
    loss = lambda u: jnp.sum(jnp.sin(step(u)))  # noqa: E731
    own = jax.jit(te.grad(loss))
    assert is_raised(own, u)
    assert not is_raised(jax.grad(loss), u)
    np.testing.assert_allclose(own(u), jax.grad(loss)(u), rtol=1e-4, atol=1e-4)


def test_rules_that_differentiate_nothing_stay(u: Any) -> None:
    clipped = jax.custom_vjp(lambda x: x * 2)
    clipped.defvjp(lambda x: (x * 2, None), lambda _, g: (jnp.clip(g, -1, 1),))
    report = te.explain(te.grad(lambda x: jnp.sum(clipped(x) @ x)), u)
    assert not report.regions
    assert not is_raised(te.grad(lambda x: jnp.sum(clipped(x) @ x)), u)


@jax.custom_vjp
def halted(x: Any) -> Any:
    """The identity of single elements with a rule of its own."""
    return x * 1.0


halted.defvjp(lambda x: (halted(x), None), lambda _, g: (jnp.where(g > 1e-30, g, 0.5 * g),))


@jax.custom_vjp
def with_halts(u: Any) -> Any:
    return heat(halted(jnp.sin(u)))


def _halts(u: Any) -> Any:
    return heat(halted(jnp.sin(u)))


with_halts.defvjp(lambda u: (_halts(u), u), lambda u, g: jax.vjp(_halts, u)[1](g))


@pytest.mark.parametrize("everything", [False, True])
def test_a_rule_within_a_rule_is_jax_own(everything: bool, u: Any) -> None:
    """Planning what a rule differentiates asks for rules of calls in it by JAX's derivative, which was raised in turn without end."""
    loss = lambda u: jnp.sum(jnp.sin(with_halts(u)))  # noqa: E731
    own = jax.grad(te.adjoint(loss, everything=everything))
    np.testing.assert_allclose(own(u), jax.grad(loss)(u), rtol=1e-4, atol=1e-4)
    with te.everywhere():
        inside = jax.jit(jax.grad(lambda u: jnp.sum(_halts(u) ** 2)))(u)
    np.testing.assert_allclose(inside, jax.grad(lambda u: jnp.sum(_halts(u) ** 2))(u), rtol=1e-4, atol=1e-4)
