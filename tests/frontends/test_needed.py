"""What is read on all sides of a choice is needed wherever the choice is: no guard twice, none where a choice around already takes harmless numbers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.guards.rewrite import guarded
from jaxte.frontends.jaxpr.guards.uses import WHOLE, Conditions
from jaxte.frontends.jaxpr.plan.plan import steps_of


def hue(x: Any, twice: bool) -> Any:
    """The hue of colours, of which each case reads the same quotient, which is infinite for grey."""
    red, green, blue = x
    top = jnp.maximum(jnp.maximum(red, green), blue)
    gap = top - jnp.minimum(jnp.minimum(red, green), blue)
    scale = 1 / (6 * (jnp.where(gap > 0, gap, 1.0) if twice else gap))
    found = jnp.where(top == green, scale * (blue - red) + 2 / 6, scale * (red - green) + 4 / 6)
    found = jnp.where(top == red, scale * (green - blue), found)
    found = jnp.where(gap > 0, found, 0.0)
    return jnp.sum(jnp.where(found < 0, found + 1, found) ** 2)


COLOURS = jnp.float32([[0.5, 0.2, 0.7, 0.0], [0.5, 0.4, 0.1, 0.0], [0.5, 0.9, 0.3, 0.0]])


def test_colours_that_choose_twice_are_the_same_program() -> None:
    ours, theirs = (jax.make_jaxpr(grad(lambda x: hue(x, True)))(COLOURS) for grad in (te.grad, jax.grad))
    assert te.explain(te.grad(lambda x: hue(x, True)), COLOURS).guarded == ()
    assert [e.primitive for e in ours.eqns] == [e.primitive for e in theirs.eqns]


def test_a_guard_computes_nothing_twice() -> None:
    """A comparison reads what is guarded too: where the choice before it has taken the harmless numbers out, it reads the guarded one."""
    closed = jax.make_jaxpr(lambda x: hue(x, False))(COLOURS)
    slots, found = steps_of(closed)
    made = guarded(closed, [step for _, steps in found for step in steps], slots)
    assert made is not None
    names = [eqn.primitive.name for eqn in made.closed.jaxpr.eqns]
    assert names.count("div") == 1 and names.count("eq") == 2 and "and" not in names and "or" not in names
    ours, theirs = te.grad(lambda x: hue(x, False))(COLOURS), jax.grad(lambda x: hue(x, True))(COLOURS)
    assert np.isfinite(theirs).all() and np.isnan(jax.grad(lambda x: hue(x, False))(COLOURS)).any()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_alternatives_mean_what_they_did() -> None:
    """Random alternatives of cases of choices by two and by three, beside all that the choices can be."""
    for seed in range(200):
        rng, own = random.Random(seed), Conditions()
        extents = [2, 2, 2, 3]
        cases = [[own.case([(d, n) for n in range(e)], k) for k in range(e)] for d, e in enumerate(extents)]
        needs = []
        for _ in range(rng.randrange(1, 7)):
            need = WHOLE
            for d in rng.sample(range(4), rng.randrange(1, 4)):
                need = own.both(need, rng.choice(cases[d]))
            needs.append(need)
        found = own.either(needs)
        for taken in itertools.product(*map(range, extents)):
            holding = {cases[d][n] for d, n in enumerate(taken)}
            before = any(all(n in holding for n in each) for need in needs for each in need)
            assert any(all(n in holding for n in each) for each in found) == before


def _two(y: Any) -> Any:
    return y[1:3] * y[2:]


SLICES = {
    "a root": (lambda x: jnp.sqrt(x)[1:], 1),
    "norms": (lambda x: jnp.linalg.norm(jnp.stack([x, 2 * x]), axis=0)[1:], 1),
    "a quotient": (lambda x: (1 / x)[2], 1),
    "two slices": (lambda x: _two(jnp.log(x)), 1),
    "all of it": (lambda x: jnp.diff(jnp.sqrt(x + 1)), 0),
}


@pytest.mark.parametrize("name", SLICES)
def test_elements_that_no_slice_reads(name: str) -> None:
    f, guards = SLICES[name]
    x = jnp.float32([0, 1, 2, 3])
    loss = lambda x: jnp.sum(f(x))  # noqa: E731
    assert len(te.explain(te.grad(loss), x).guarded) == guards
    assert np.isnan(jax.grad(loss)(x)).any() == bool(guards)
    for grad in (te.grad(loss), jax.jit(te.grad(loss))):
        np.testing.assert_allclose(grad(x)[1:], jax.grad(loss)(x)[1:], rtol=1e-6)
        assert np.isfinite(grad(x)).all()
    assert np.isfinite(jax.jacrev(te.grad(loss))(x)).all()
