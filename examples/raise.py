"""Recover a conductivity field from where heat went: a solver in plain JAX, optimised with jax.grad and with te.grad.

    python examples/raise.py [--size 96] [--steps 40] [--figure conductivity.png]

The solver does not know jaxte. Both optimisations make the same iterates, up to rounding.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import trange

import jaxte as te

RATE = 0.02


def diffuse(k, u):
    """Ten explicit steps of heat in a periodic medium with conductivity ``k``."""
    for _ in range(10):
        across = 0.5 * (k + jnp.roll(k, -1, 0)) * (jnp.roll(u, -1, 0) - u)
        along = 0.5 * (k + jnp.roll(k, -1, 1)) * (jnp.roll(u, -1, 1) - u)
        u = u + 0.2 * (across - jnp.roll(across, 1, 0) + along - jnp.roll(along, 1, 1))
    return u


def misfit(k, u, observed):
    smooth = jnp.sum((k - jnp.roll(k, 1, 0)) ** 2 + (k - jnp.roll(k, 1, 1)) ** 2)
    return jnp.sum((diffuse(k, u) - observed) ** 2) + 1e-3 * smooth


def optimise(value_and_grad, start, u, observed, steps, name):
    """Adam from ``start``, damped where gradients are small, which are of rounding alone; the last field, the misfits and the seconds, compiling left out."""

    @jax.jit
    def step(state, n):
        k, m, v = state
        value, g = value_and_grad(k, u, observed)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        k = k - RATE * (m / (1 - 0.9**n)) / (jnp.sqrt(v / (1 - 0.999**n)) + 1e-2)
        return (jnp.clip(k, 0.05, 1.0), m, v), value

    state = (start, jnp.zeros_like(start), jnp.zeros_like(start))
    jax.block_until_ready(step(state, 1.0))
    begin, values = time.perf_counter(), []
    for n in trange(steps, desc=name):
        state, value = step(state, float(n + 1))
        values.append(float(value))
    return np.asarray(state[0]), values, time.perf_counter() - begin


def problem(size, rng):
    """A medium with two inclusions, and random heat that spreads in it."""
    x, y = np.meshgrid(*(np.linspace(0, 1, size),) * 2, indexing="ij")
    k = (
        0.3
        + 0.4 * np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.02)
        - 0.2 * ((x - 0.7) ** 2 + (y - 0.65) ** 2 < 0.03)
    )
    u = jnp.asarray(rng.normal(size=(size, size)), "float32")
    truth = jnp.asarray(k, "float32")
    return truth, u, diffuse(truth, u)


def figure(path, truth, found, misfits):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4))
    for axes, field, title in ((left, truth, "conductivity"), (middle, found, "recovered with te.grad")):
        axes.imshow(field, vmin=0.05, vmax=0.75)
        axes.set_title(title)
        axes.set_axis_off()
    for name, values in misfits.items():
        right.semilogy(values, label=name, linestyle="-" if name == "jax.grad" else "--")
    right.set_title("misfit")
    right.legend()
    drawn.tight_layout()
    drawn.savefig(path, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--figure", default="conductivity.png")
    options = parser.parse_args(arguments)
    truth, u, observed = problem(options.size, np.random.default_rng(0))
    start = jnp.full_like(truth, 0.3)
    found, misfits, seconds = {}, {}, {}
    for name, transform in (("jax.grad", jax.value_and_grad), ("te.grad", te.value_and_grad)):
        found[name], misfits[name], seconds[name] = optimise(
            transform(misfit), start, u, observed, options.steps, name
        )
    difference = np.abs(found["jax.grad"] - found["te.grad"]).max()
    figure(options.figure, truth, found["te.grad"], misfits)
    print(
        f"misfit {misfits['te.grad'][0]:.3f} -> {misfits['te.grad'][-1]:.3f}; largest difference of the fields {difference:.1e}"
    )
    print(
        f"jax.grad {seconds['jax.grad']:.2f} s, te.grad {seconds['te.grad']:.2f} s; figure in {options.figure}"
    )
    return difference


if __name__ == "__main__":
    main()
