"""Run by tests/bridge/primitive/test_sharding.py in a process that sees eight devices: prints what XLA makes of each case as JSON."""

import json
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxte as te

_COLLECTIVES = r" (all-reduce|all-gather|collective-permute|all-to-all|reduce-scatter)(?:-start)?\("


@te.function
def dense(x, w):
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")


def five_points(x):
    n, m = x.shape

    def at(i, j):
        return te.select((i >= 0) & (i < n) & (j >= 0) & (j < m), x[i, j], 0.0)

    return te.compute(
        (n, m), lambda i, j: at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * x[i, j]
    )


stencil = te.function(five_points)


def stencil_jax(x):
    p = jnp.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


@te.function
def ring(x):
    n = x.shape[0]
    return te.compute(x.shape, lambda i, j: x[(i + 1) % n, j] * x[(i - 2) % n, j] - x[i, j], "y")


def ring_jax(x):
    return jnp.roll(x, -1, 0) * jnp.roll(x, 2, 0) - x


def depthwise_jax(x, w):
    numbers = ("NCHW", "OIHW", "NCHW")
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=x.shape[1]
    )


def pool_jax(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, "float32")


CASES = {
    "dense": (dense, lambda x, w: x @ w, (random(16, 6), random(6, 4))),
    "pool": (te.function(lambda x: te.ops.max_pool2d(x, 2)), pool_jax, (random(8, 2, 4, 4),)),
    "depthwise": (
        te.function(lambda x, w: te.ops.depthwise_conv2d(x, w, padding=1)),
        depthwise_jax,
        (random(8, 4, 6, 6), random(4, 1, 3, 3)),
    ),
    "stencil": (stencil, stencil_jax, (random(256, 256),)),
    "ring": (ring, ring_jax, (random(64, 6),)),
    "shifts": (te.function(five_points, platform="tpu"), stencil_jax, (random(256, 256),)),
}


def squares(f):
    return lambda *args: (f(*args) ** 2).sum()


def gradients(f):
    return lambda *args: jax.grad(squares(f), tuple(range(len(args))))(*args)


TRANSFORMATIONS = {
    "forward": lambda f: f,
    "gradients": gradients,
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args)[1],
}


def collectives(compiled) -> dict[str, int]:
    return dict(Counter(re.findall(_COLLECTIVES, compiled.as_text())))


def measured(f, reference, args, mesh) -> dict:
    """What the compiled program holds, how its results are divided, and how far they are from those of one device."""
    put = lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec))  # noqa: E731
    placed = [put(args[0], P("d")), *(put(a, P()) for a in args[1:])]
    compiled = jax.jit(f).lower(*placed).compile()
    results = jax.tree.leaves(compiled(*placed))
    errors = [
        float(np.max(np.abs(np.asarray(a) - np.asarray(b)) / (1 + np.abs(b).max())))
        for a, b in zip(results, jax.tree.leaves(reference(*args)), strict=True)
    ]
    return {
        "collectives": collectives(compiled),
        "divided": [not r.sharding.is_fully_replicated for r in results],
        "error": max(errors),
    }


def indivisible(mesh) -> dict:
    """A size that the mesh does not divide: JAX's own error for an argument, and how a result is divided then."""
    narrower = te.function(lambda x: te.compute((x.shape[0] - 2,), lambda i: x[i] + x[i + 2]))
    place = NamedSharding(mesh, P("d"))
    try:
        jax.jit(narrower, in_shardings=place)(jnp.ones(10))
        message = ""
    except ValueError as error:
        message = str(error)
    whole = jax.jit(narrower)(jax.device_put(jnp.arange(16.0), place))
    return {"message": message, "result": whole.tolist(), "spec": str(jax.typeof(whole).sharding.spec)}


def main() -> None:
    found: dict[str, dict] = {}
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((8,), ("d",), axis_types=(kind,))
        with jax.set_mesh(mesh):
            for name, (f, reference, args) in CASES.items():
                for what, transform in TRANSFORMATIONS.items():
                    key = f"{kind.name} {name} {what}"
                    plain = jax.jit(transform(reference))
                    found[key] = measured(transform(f), plain, args, mesh)
            found[f"{kind.name} indivisible"] = indivisible(mesh)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
