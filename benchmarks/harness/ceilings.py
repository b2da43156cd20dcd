"""What the machine can do at best: the rate of a large copy, and of a large matrix product."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from harness.clock import seconds


def bandwidth(megabytes: int, rounds: int) -> float:
    """Bytes a second, read and written, of ``x + 1`` into the buffer of ``x``.

    The buffer is donated: one that is allocated afresh at every call costs page faults, which are no property of the form.
    """
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    held = [step(jnp.zeros(megabytes * 2**18, "float32"))]

    def call() -> None:
        held[0] = jax.block_until_ready(step(held[0]))

    return 2 * megabytes * 2**20 / min(seconds(call) for _ in range(rounds))


def matmul_rate(n: int, rounds: int) -> float:
    """Floating point operations a second of a float32 product of two n x n matrices, at JAX's default precision."""
    a = jnp.ones((n, n), "float32")
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    return 2 * n**3 / min(seconds(lambda: jax.block_until_ready(product(a))) for _ in range(rounds))


def ceilings(quick: bool) -> dict[str, float]:
    """Both rates; ``quick`` takes smaller arrays."""
    return {
        "bytes_per_second": bandwidth(64 if quick else 256, 7),
        "flops_per_second": matmul_rate(1024 if quick else 2048, 7),
    }
