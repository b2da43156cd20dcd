"""Fields that are made of each other in a loop of Python: a step looks back one, however the chain is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.planning.chains.found import chains_in
from jaxte.planning.chains.nearer import of_nearer_steps
from jaxte.tensors.structure import topological_order

N, STEPS = 12, 14
Fields = Sequence[Any]
Step = Callable[[Fields, Any], list[Any]]
Value = Callable[..., Any]


def excitable(read: Value, f: Any) -> list[Any]:
    """A medium with recovery, on a ring."""
    u, v = (lambda k: read(0, k)), read(1, 0)
    first = u(0) + 0.1 * (u(-1) - 2 * u(0) + u(1)) + 0.1 * (u(0) - u(0) ** 3 - v)
    return [first, v + 0.05 * (f.exp(-v * v) * u(0) - 0.3 * v)]


def species(read: Value, f: Any) -> list[Any]:
    """Three that eat each other."""
    x, y, z = (read(n, 0) for n in range(3))
    first = x + 0.05 * x * (1 - f.tanh(x) - y)
    return [first, y + 0.05 * y * (f.tanh(x) - z), z + 0.05 * (f.tanh(y) - z)]


def envelope(read: Value, f: Any) -> list[Any]:
    """The two parts of a complex envelope."""
    a, b = read(0, 0), read(1, 0)
    turn = f.sin(a * a + b * b)
    return [
        a - 0.05 * (read(1, -1) - 2 * b + read(1, 1) + turn * b),
        b + 0.05 * (read(0, -1) - 2 * a + read(0, 1) + turn * a),
    ]


CASES: dict[str, tuple[Callable[[Value, Any], list[Any]], int]] = {
    "excitable": (excitable, 2),
    "species": (species, 3),
    "envelope": (envelope, 2),
}


def _built(name: str, *start: te.Tensor) -> te.Tensor:
    step, count = CASES[name]
    fields = list(start)
    for t in range(STEPS):
        old = fields

        def element(i: te.Axis, n: int, old: Any = old) -> Any:
            return step(lambda m, k: old[m][(i + k) % N], te)[n]

        fields = [
            te.compute((N,), lambda i, n=n, element=element: element(i, n), f"{'xyz'[n]}{t + 1}")
            for n in range(count)
        ]
    return fields[0]


def _by_rolls(name: str, *start: Any) -> Any:
    step, _ = CASES[name]

    def once(fields: Any, _: None) -> tuple[Any, None]:
        return tuple(step(lambda m, k: jnp.roll(fields[m], -k), jnp)), None

    return lax.scan(once, start, None, length=STEPS)[0][0]


@pytest.mark.parametrize("name", CASES)
def test_a_step_looks_back_one(name: str) -> None:
    start = [te.placeholder((N,), name=letter) for letter in "uvw"[: CASES[name][1]]]
    order = topological_order([_built(name, *start)])
    (found,) = chains_in(order)
    assert found.furthest == 2
    nearer = of_nearer_steps(found, order)
    assert (nearer.furthest, nearer.length) == (1, STEPS)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(0.2, 1.0, N).astype("float32") for _ in range(CASES[name][1])]
    function = te.function(lambda *start: _built(name, *start))
    weights = rng.standard_normal(N).astype("float32")

    def both(f: Any) -> Any:
        loss = lambda *start: (f(*start) * weights).sum()  # noqa: E731
        return jax.jit(jax.value_and_grad(loss, argnums=tuple(range(len(arrays)))))(*arrays)

    found, expected = both(function), both(lambda *start: _by_rolls(name, *start))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_what_looks_back_two_steps_stays() -> None:
    u, v = (te.placeholder((N,), name=name) for name in "uv")
    before, now = u, v
    for t in range(STEPS):
        after = te.compute(
            (N,),
            lambda i, p=before, c=now: 2 * c[i] - p[i] + 0.1 * te.sin(c[(i + 1) % N] - c[i]),
            f"u{t + 2}",
        )
        before, now = now, after
    order = topological_order([now])
    (found,) = chains_in(order)
    assert of_nearer_steps(found, order) is found
    assert found.furthest == 2
