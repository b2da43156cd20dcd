"""The heat equation that the README opens with: ``jax.grad`` and ``te.grad`` of it, in turn, by processor time and by the clock.

python benchmarks/heat.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from raising import interleaved


def energy(u):
    for _ in range(10):
        u = u + 0.1 * (
            jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        )
    return jnp.sum(u**2)


def main() -> None:
    u = jnp.asarray(np.random.default_rng(0).normal(size=(512, 512)), "float32")
    made = {
        name: jax.jit(grad(energy)).lower(u).compile() for name, grad in (("jax", jax.grad), ("te", te.grad))
    }
    found = {name: call(u) for name, call in made.items()}
    np.testing.assert_allclose(found["te"], found["jax"], rtol=1e-4, atol=1e-5)
    calls = {name: lambda call=call: jax.block_until_ready(call(u)) for name, call in made.items()}
    work, clock = (dict(zip(calls, taken, strict=True)) for taken in interleaved(list(calls.values())))
    for name, call in made.items():
        temporaries = call.memory_analysis().temp_size_in_bytes / 1e6
        print(
            f"{name}.grad  {1e3 * work[name]:7.2f} ms of processor time, {1e3 * clock[name]:7.2f} ms, {temporaries:5.1f} MB"
        )
    print(
        f"factor    {work['jax'] / work['te']:.0f} by processor time, {clock['jax'] / clock['te']:.0f} by the clock"
    )


if __name__ == "__main__":
    main()
