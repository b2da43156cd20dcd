"""Functions of te.function under the transformations of JAX, beside the same in plain JAX: ratios of interleaved runs.

    python benchmarks/transformed.py

A ratio above 1 says that jaxte is faster. Mflop and MB are what XLA counts for the compiled program, which has no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from timing import interleaved, markdown, seconds

ROUNDS, MOST_ROUNDS = 15, 1000
LAYERS = 20
_SCATTERED = ("scatter", "gather", "select_and_scatter")


def random(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape, "float32"))


@te.function
def stencil(x: te.Tensor) -> te.Tensor:
    n, m = x.shape

    def at(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select((i >= 0) & (i < n) & (j >= 0) & (j < m), x[i, j], 0.0)

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        return at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * x[i, j]

    return te.compute((n, m), element, "y")


def stencil_jax(x: jax.Array) -> jax.Array:
    p = jnp.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def conv2d_jax(x: jax.Array, w: jax.Array) -> jax.Array:
    numbers = ("NCHW", "OIHW", "NCHW")
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)


def max_pool_jax(x: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


@te.function
def dense(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), "k")
    y = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
    return te.compute(y.shape, lambda i, j: te.tanh(y[i, j] + b[j]), "z")


def dense_jax(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w + b)


CASES = {
    "conv2d 3x3": (
        te.function(lambda x, w: te.ops.conv2d(x, w, padding=1)),
        conv2d_jax,
        (random(8, 16, 32, 32), random(32, 16, 3, 3)),
    ),
    "max-pool 2x2": (te.function(lambda x: te.ops.max_pool2d(x, 2)), max_pool_jax, (random(16, 32, 56, 56),)),
    "5-point stencil": (stencil, stencil_jax, (random(512, 512),)),
    "softmax": (te.function(lambda x: te.ops.softmax(x)), jax.nn.softmax, (random(512, 1000),)),
}


def jvp(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Of tangents that are given, as the arguments are."""
    count = len(args)
    pushed = lambda *given: jax.jvp(f, given[:count], given[count:])  # noqa: E731
    return pushed, (*args, *(a * 0.5 for a in args))


def jvp_inside(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Of tangents that the same program makes of the arguments."""
    return lambda *args: jax.jvp(f, args, tuple(a * 0.5 for a in args)), args


def vmap_of_grad(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient for each of four examples; weights are shared, and differentiated for each."""
    numbers = tuple(range(len(args)))
    axes = (0, *(None,) * (len(args) - 1))
    gradient = jax.grad(lambda *args: jnp.sum(f(*args) ** 2), numbers)
    return jax.vmap(gradient, axes), (jnp.stack([args[0]] * 4), *args[1:])


TRANSFORMED = {"jvp": jvp, "jvp, tangents made inside,": jvp_inside, "vmap(grad)": vmap_of_grad}


def hessians() -> tuple[Callable[[Any], Any], Callable[[Any], Any], jax.Array]:
    """Of a loss of 64 parameters, those of a layer of 7 x 8 and 8."""
    x = random(32, 7)

    def of(f: Callable[..., Any]) -> Callable[[Any], Any]:
        return jax.jit(jax.hessian(lambda p: jnp.sum(f(x, p[:56].reshape(7, 8), p[56:]) ** 2)))

    return of(dense), of(dense_jax), random(64)


def tracing(f: Callable[..., Any]) -> Callable[[], Any]:
    """The trace of the gradient of a network of twenty layers, which JAX has not seen before but whose layers it has."""
    params, x = [(random(8, 8), random(8))] * LAYERS, random(8, 8)

    def trace() -> Any:
        def loss(params: Any, x: jax.Array) -> jax.Array:
            for w, b in params:
                x = f(x, w, b)
            return jnp.sum(x**2)

        jax.jit(jax.grad(loss)).trace(params, x)
        return 0

    return trace


def medians(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Of a second of calls: one that takes a tenth of a millisecond is timed hundreds of times."""
    total = sum(min(seconds(call) for _ in range(3)) for call in calls.values())
    return interleaved(calls, max(ROUNDS, min(MOST_ROUNDS, int(1 / total))))


def eager() -> tuple[float, float]:
    """Seconds of a call that is not in a jit, of jaxte and of a jitted function."""
    plain, args = jax.jit(dense_jax), (random(8, 8), random(8, 8), random(8))
    many = range(500)
    calls = {
        "jaxte": lambda: [dense(*args) for _ in many][-1],
        "jax": lambda: [plain(*args) for _ in many][-1],
    }
    found = interleaved(calls, ROUNDS)
    return found["jaxte"] / len(many), found["jax"] / len(many)


def rows() -> Iterator[list[str]]:
    for name, (f, reference, args) in CASES.items():
        for what, transform in TRANSFORMED.items():
            transformed = {"jaxte": transform(f, args), "jax": transform(reference, args)}
            compiled = {
                side: jax.jit(g).lower(*values).compile() for side, (g, values) in transformed.items()
            }
            texts = {side: jax.jit(g).lower(*values).as_text() for side, (g, values) in transformed.items()}
            values = transformed["jaxte"][1]
            times = medians({side: partial(c, *values) for side, c in compiled.items()})
            flops = [f"{c.cost_analysis().get('flops', 0) / 1e6:,.1f}" for c in compiled.values()]
            moved = [f"{c.cost_analysis().get('bytes accessed', 0) / 1e6:,.1f}" for c in compiled.values()]
            bad = [
                ", ".join(w for w in _SCATTERED if f"stablehlo.{w}" in t) or "none" for t in texts.values()
            ]
            yield [f"{what} of {name}", *_ratio(times["jaxte"], times["jax"]), *flops, *moved, *bad]
    ours, theirs, p = hessians()
    times = medians({"jaxte": lambda: ours(p), "jax": lambda: theirs(p)})
    yield ["Hessian of 64 parameters", *_ratio(times["jaxte"], times["jax"]), *[""] * 6]
    times = interleaved({"jaxte": tracing(dense), "jax": tracing(dense_jax)}, ROUNDS)
    yield [f"tracing the gradient of {LAYERS} layers", *_ratio(times["jaxte"], times["jax"]), *[""] * 6]
    yield ["a call outside of jit", *_ratio(*eager()), *[""] * 6]


def _ratio(own: float, plain: float) -> list[str]:
    return [f"{own * 1e3:.3g}", f"{plain * 1e3:.3g}", f"{plain / own:.2f}"]


HEADER = (
    "transformation",
    "jaxte ms",
    "jax ms",
    "ratio",
    "jaxte Mflop",
    "jax Mflop",
    "jaxte MB",
    "jax MB",
    "jaxte scatters",
    "jax scatters",
)


if __name__ == "__main__":
    print(
        f"float32, {jax.default_backend()}, jax {jax.__version__}, medians of {ROUNDS} or more interleaved calls\n"
    )
    print(markdown(HEADER, list(rows())))
