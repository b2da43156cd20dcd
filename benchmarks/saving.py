"""What is kept for the backward pass beside ``jax.checkpoint``: bytes of residuals, and what XLA counts for value and gradient.

    python benchmarks/saving.py

Two functions: a network of ten layers, and fifty steps of a stencil. For each choice the bytes that ``jax.vjp`` holds beside the
arguments, the temporaries and operations that XLA counts, and the time of a call, in interleaved runs. Of a loop XLA counts one step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves

import jaxte as te
from timing import interleaved

LAYERS, ROWS, WIDTH = 10, 256, 128
STEPS, POINTS = 50, 65536


def network(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Layers of products and tanh."""
    h = x
    for layer in range(LAYERS):
        k = te.reduce_axis((0, WIDTH), f"k{layer}")
        z = te.compute(
            h.shape, lambda i, j, h=h, k=k, n=layer: te.sum(h[i, k] * w[n, k, j], axis=k), f"z{layer}"
        )
        h = te.compute(h.shape, lambda i, j, z=z: te.tanh(z[i, j]), f"h{layer}")
    i, j = te.reduce_axis((0, ROWS), "i"), te.reduce_axis((0, WIDTH), "j")
    return te.compute((), lambda: te.sum(h[i, j] * h[i, j], axis=[i, j]), "loss")


def plain_network(x: Any, w: Any, layer: Callable[..., Any]) -> Any:
    for one in w:
        x = layer(x, one)
    return jnp.sum(x * x)


def stencil(x: te.Tensor) -> te.Tensor:
    """Steps of a nonlinear diffusion on a ring."""
    (n,) = x.shape
    for step in range(STEPS):
        x = te.compute(
            (n,),
            lambda i, x=x: x[i] + 0.1 * te.sin(x[(i + 1) % n] - 2 * x[i] + x[(i - 1) % n]),
            f"u{step}",
        )
    i = te.reduce_axis((0, n), "i")
    return te.compute((), lambda: te.sum(x[i] * x[i], axis=i), "energy")


def plain_stencil(x: Any, step: Callable[..., Any]) -> Any:
    # A loop: written out, XLA fuses the shifts and computes each step 3^50 times.
    x, _ = jax.lax.scan(lambda x, _: (step(x), None), x, length=STEPS)
    return jnp.sum(x * x)


def one_layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def one_step(x: Any) -> Any:
    return x + 0.1 * jnp.sin(jnp.roll(x, -1) - 2 * x + jnp.roll(x, 1))


def held(fn: Callable[..., Any], arrays: list[Any]) -> int:
    """Bytes of what ``jax.vjp`` keeps beside the arguments."""
    pull = jax.eval_shape(lambda *a: jax.vjp(fn, *a)[1], *arrays)
    given = sum(a.nbytes for a in arrays)
    return max(0, sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in tree_leaves(pull)) - given)


def compare(title: str, functions: dict[str, Callable[..., Any]], arrays: list[Any]) -> None:
    compiled = {
        name: jax.jit(jax.value_and_grad(fn)).lower(*arrays).compile() for name, fn in functions.items()
    }
    times = interleaved({name: (lambda c=c: c(*arrays)) for name, c in compiled.items()}, 15)
    print(f"\n{title}\n| choice | kept, kB | temporaries, kB | flops, M | ms |\n|---|---|---|---|---|")
    for name, fn in functions.items():
        flops = (compiled[name].cost_analysis() or {}).get("flops", 0) / 1e6
        temporaries = compiled[name].memory_analysis().temp_size_in_bytes / 1e3
        kept = held(fn, arrays) / 1e3
        print(f"| {name} | {kept:,.0f} | {temporaries:,.0f} | {flops:,.0f} | {1e3 * times[name]:.2f} |")


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, WIDTH)).astype("f")
    w = (rng.standard_normal((LAYERS, WIDTH, WIDTH)) / WIDTH**0.5).astype("f")
    policies = jax.checkpoint_policies
    layer = ROWS * WIDTH * 4
    choices: dict[str, Any] = {f"save={s!r}": s for s in ("all", "auto", "nothing")}
    choices |= {f"save={n} layers of bytes": n * layer for n in (3, 5)}
    functions: dict[str, Callable[..., Any]] = {k: te.function(network, save=s) for k, s in choices.items()}
    functions["plain JAX"] = lambda x, w: plain_network(x, w, one_layer)
    functions["jax.checkpoint of each layer"] = lambda x, w: plain_network(x, w, jax.checkpoint(one_layer))
    for name in ("dots_saveable", "nothing_saveable"):
        whole = jax.checkpoint(lambda x, w: plain_network(x, w, one_layer), policy=getattr(policies, name))
        functions[f"jax.checkpoint, {name}"] = whole
    compare(f"network of {LAYERS} layers, {layer:,} bytes an activation", functions, [x, w])

    u = rng.standard_normal(POINTS).astype("f")
    steps: dict[str, Any] = {f"save={s!r}": s for s in ("all", "auto", "nothing")}
    steps |= {f"save={n} steps of bytes": n * u.nbytes for n in (10, 25)}
    functions = {k: te.function(stencil, save=s) for k, s in steps.items()}
    functions["plain JAX"] = lambda x: plain_stencil(x, one_step)
    functions["jax.checkpoint of each step"] = lambda x: plain_stencil(x, jax.checkpoint(one_step))
    functions["jax.checkpoint, nothing_saveable"] = jax.checkpoint(
        lambda x: plain_stencil(x, one_step), policy=policies.nothing_saveable
    )
    compare(f"stencil of {STEPS} steps, {u.nbytes:,} bytes a state", functions, [u])


if __name__ == "__main__":
    main()
