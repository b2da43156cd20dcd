"""Steps of a loop that was written out, where they stay as they are, are calls of one function of all their equations."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.equations import stands
from jaxte.frontends.jaxpr.equations.called import as_calls, repeated_blocks
from jaxte.frontends.jaxpr.equations.stands import as_they_stand
from jaxte.frontends.jaxpr.guards import slopes

STEPS = 12


def logarithms(x, a):
    for _ in range(STEPS):
        x = jnp.where(x > 0, jnp.log(x) * a, x * 0.9) + 0.1
    return jnp.sum(x**2)


def roots(x, a):
    for _ in range(STEPS):
        x = jnp.where(x > 0.5, jnp.sqrt(x), a / x) - 0.2
    return jnp.sum(x)


def two_fields(x, a):
    y = a
    for _ in range(STEPS):
        x, y = x - 0.1 * jnp.sin(y), y + jnp.where(x > 0, jnp.log(x), 0.1)
    return jnp.sum(x * y)


def norms(x, a):
    for _ in range(STEPS):
        r = jnp.sqrt(x * x + a * a)  # compared as well: a rule for the slope of each
        x = jnp.where(r > 0.5, x / r, 0.9 * x) + 0.1
    return jnp.sum(x)


LOOPS = [logarithms, roots, two_fields]


def equations(f, *args):
    return jax.make_jaxpr(f)(*args)


@pytest.mark.parametrize("f", LOOPS)
def test_each_step_is_a_call(f):
    jaxpr = equations(f, jnp.ones(3), jnp.ones(3)).jaxpr
    made = as_calls(jaxpr.eqns, set(jaxpr.outvars))
    functions = {id(e.params["jaxpr"]) for e in made if e.primitive.name == "jit"}
    assert len(made) <= STEPS + 4 < len(jaxpr.eqns) and len(functions) <= 4


@pytest.mark.parametrize("f", [*LOOPS, norms])
def test_gradients(f, rng, monkeypatch):
    x, a = (jnp.asarray(rng.uniform(-1.0, 2.0, size=9), "float32") for _ in range(2))
    sizes = []
    monkeypatch.setattr(
        stands, "as_calls", lambda e, w: sizes.append((len(e), len(as_calls(e, w)))) or as_calls(e, w)
    )
    got = te.grad(f, (0, 1))(x, a)
    assert all(3 * after <= before for before, after in sizes) and sizes
    expected = te.grad(f, (0, 1), safe=False)(x, a)
    for one, other in zip(got, expected, strict=True):
        known = ~np.isnan(other)
        np.testing.assert_allclose(one[known], other[known], rtol=2e-4, atol=1e-6)
        assert np.isfinite(one).all() and known.any()


def test_rules_of_equal_guards_are_followed_once(monkeypatch):
    followed = []
    own = slopes.filled
    monkeypatch.setattr(slopes, "filled", lambda *a: followed.append(1) or own(*a))
    jax.make_jaxpr(te.grad(norms, (0, 1)))(jnp.ones(5), jnp.ones(5))
    assert 0 < len(followed) <= 8


def test_second_derivatives_and_maps(rng):
    x, a = (jnp.asarray(rng.uniform(0.6, 1.2, size=(2, 3)), "float32") for _ in range(2))
    got = jax.jit(jax.vmap(te.hessian(two_fields)))(x, a)
    np.testing.assert_allclose(got, jax.vmap(jax.hessian(two_fields))(x, a), rtol=2e-3, atol=1e-3)


def test_wiring_tells_steps_apart():
    def f(x, y):
        for n in range(6):
            x, y = (jnp.sin(x) * y, x) if n % 2 else (jnp.sin(x) * x, y)
        return x + y

    jaxpr = equations(f, 1.0, 2.0).jaxpr
    kinds = [e.primitive.name for e in jaxpr.eqns]
    assert not any(len(blocks) == 6 for blocks in repeated_blocks(jaxpr.eqns, kinds))


def test_what_is_left_alone_ends_a_block():
    jaxpr = equations(logarithms, jnp.ones(3), jnp.ones(3)).jaxpr
    kinds = [None if e.primitive.name == "log" else e.primitive.name for e in jaxpr.eqns]
    for blocks in repeated_blocks(jaxpr.eqns, kinds):
        assert not any(kinds[n] is None for own in blocks for n in range(own.start, own.end))


def random_steps(seed):
    """Steps of two to five operations on four arrays, in one order, several times, with others between."""
    rng = np.random.default_rng(seed)
    ops = [jnp.add, jnp.multiply, jnp.subtract, lambda a, b: jnp.sin(a), lambda a, b: jnp.where(a > b, a, b)]
    step = [(ops[rng.integers(5)], *rng.integers(4, size=3)) for _ in range(rng.integers(2, 6))]
    others = [(ops[rng.integers(5)], *rng.integers(4, size=3)) for _ in range(2)]

    def f(*arrays):
        values = list(arrays)
        for n in range(7):
            for op, a, b, out in step + (others if n == rng.integers(7) else []):
                values[out] = op(values[a], values[b]) * 0.7
        return sum(values)

    return f


@pytest.mark.parametrize("seed", range(8))
def test_random_steps(seed, rng):
    f, arrays = random_steps(seed), [jnp.asarray(own) for own in rng.normal(size=(4, 3))]
    closed = equations(f, *arrays)
    jaxpr = closed.jaxpr

    def as_called(*args):
        known = dict(zip(jaxpr.invars, args, strict=True))
        (result,) = as_they_stand(jaxpr.eqns, known.__getitem__, set(jaxpr.outvars)).values()
        return jnp.sum(result)

    def as_it_is(*args):
        return jnp.sum(jax.core.eval_jaxpr(jaxpr, closed.consts, *args)[0])

    got, expected = (jax.value_and_grad(g, (0, 1, 2, 3))(*arrays) for g in (as_called, as_it_is))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, expected)
    counts = Counter(e.primitive.name for e in as_calls(jaxpr.eqns, set(jaxpr.outvars)))
    assert counts.total() <= len(jaxpr.eqns)
