"""Threads in which users ask why a gradient is slow, or NaN: each boiled down to a loss."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import signal

from wild.registry import Call, integers, loss, normal, uniform


def thread(number: int, what: str) -> Any:
    """A thread of JAX's own repository."""
    return loss(f"jax-ml/jax#{number}", what)


@thread(13800, "a stack of depthwise convolutions in one dimension")
def depthwise_stack() -> Call:
    def f(weights, x):
        for w in weights:
            x = lax.conv_general_dilated(
                x, w, (1,), "SAME", dimension_numbers=("NCW", "OIW", "NCW"), feature_group_count=x.shape[1]
            )
        return jnp.mean(x**2)

    return f, ([normal(64, 1, 5, seed=n) for n in range(4)], normal(4, 64, 256))


@thread(26266, "a depthwise convolution with a dilated kernel")
def dilated_depthwise() -> Call:
    def f(w, x):
        y = lax.conv_general_dilated(
            x,
            w,
            (1,),
            "SAME",
            rhs_dilation=(16,),
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=32,
        )
        return jnp.mean(y**2)

    return f, (normal(9, 1, 32), normal(8, 1024, 32))


@thread(17640, "rows of a carried array that are shifted and set in each step of a scan")
def rows_in_a_scan() -> Call:
    def f(state, values):
        def step(state, value):
            row, number = value
            shifted = jnp.concatenate([number[None], lax.dynamic_slice(state, (row, 0), (1, 63))[0]])
            return lax.dynamic_update_slice(state, shifted[None], (row, 0)), None

        return jnp.sum(lax.scan(step, state, (integers(32, 200), values))[0] ** 2)

    return f, (normal(32, 64), normal(200))


@thread(15906, "results written into a carried array at the counter")
def written_at_the_counter() -> Call:
    def f(x, w):
        def step(n, both):
            h, out = both
            h = jnp.tanh(h * w + x[n])
            return h, out.at[n].set(h)

        start = jnp.zeros(16), jnp.zeros((400, 16))
        return jnp.sum(lax.fori_loop(0, 400, step, start)[1] ** 2)

    return f, (normal(400, 16), normal(16))


@thread(17845, "an element taken out of a carried array in each step")
def popped_in_a_scan() -> Call:
    def f(x):
        def step(carry, n):
            value = carry[n]
            rest = lax.dynamic_slice(carry, (n + 1,), (255,))
            return lax.dynamic_update_slice(carry, rest, (n,)), value

        return jnp.sum(lax.scan(step, x, integers(200, 200))[1] ** 2)

    return f, (normal(512),)


@thread(6872, "a wave equation by slices of advanced indices")
def wave_by_slices() -> Call:
    def f(u):
        v = u
        for _ in range(8):
            inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            u, v = 2 * u - v + 0.1 * jnp.pad(inner, 1), u
        return jnp.sum(u**2)

    return f, (normal(256, 256),)


@thread(24373, "Euler's equations by finite volumes and rolls")
def euler_by_rolls() -> Call:
    def slopes(q):
        return [(jnp.roll(q, -1, a) - jnp.roll(q, 1, a)) / 2 for a in (0, 1)]

    def faces(q, axis):
        slope = slopes(q)[axis]
        return q + slope / 2, jnp.roll(q - slope / 2, -1, axis)

    def f(density, momentum, energy):
        for axis in (0, 1):
            (left, right), (in_left, in_right), (e_left, e_right) = (
                faces(q, axis) for q in (density, momentum, energy)
            )
            mean, flux = (left + right) / 2, (in_left + in_right) / 2
            fluxes = flux, flux**2 / mean + (e_left + e_right) / 2, (e_left + e_right) * flux / mean
            jumps = left - right, in_left - in_right, e_left - e_right
            density, momentum, energy = (
                q - 0.1 * ((g - 0.5 * j) - jnp.roll(g - 0.5 * j, 1, axis))
                for q, g, j in zip((density, momentum, energy), fluxes, jumps, strict=True)
            )
        return jnp.sum(density**2 + momentum**2 + energy**2)

    return f, (uniform(256, 256, low=1, high=2), normal(256, 256, seed=1), uniform(256, 256, seed=2))


@thread(15773, "twenty steps of diffusion by jnp.roll")
def rolled_diffusion() -> Call:
    def f(u, k):
        for _ in range(20):
            u = u + k * (
                jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
            )
        return jnp.sum(u**2)

    return f, (normal(128, 128), jnp.float32(0.1))


@thread(11617, "a stencil over patches of rolled copies")
def stacked_patches() -> Call:
    def f(x):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        patches = jnp.stack([jnp.roll(x, s, (0, 1)) for s in shifts])
        return jnp.sum((patches.max(0) - patches.mean(0)) ** 2)

    return f, (normal(256, 256),)


@thread(1944, "second derivatives by jnp.gradient of jnp.gradient")
def twice_gradient() -> Call:
    def f(u):
        gx, gy = jnp.gradient(u)
        return jnp.sum((jnp.gradient(gx, axis=0) + jnp.gradient(gy, axis=1)) ** 2)

    return f, (normal(512, 512),)


@thread(5227, "jax.scipy.signal.convolve of an image with a kernel of 21")
def scipy_convolve() -> Call:
    return lambda x, k: jnp.sum(signal.convolve(x, k, mode="same") ** 2), (normal(300, 300), normal(21, 21))


@thread(2542, "cumulative products")
def cumulative_products() -> Call:
    return lambda x: jnp.sum(jnp.cumprod(x, axis=1) ** 2), (uniform(64, 500, low=0.95, high=1.05),)


@thread(1832, "prefix sums written one by one, in a scan")
def sums_one_by_one() -> Call:
    def f(x):
        def step(total, own):
            total = total + own
            return total, total

        return jnp.sum(lax.scan(step, jnp.zeros(8), x)[1] ** 2)

    return f, (normal(1000, 8),)


@thread(1606, "gradients of each sample of a small convolutional network")
def per_sample_gradients() -> Call:
    def network(params, x):
        w, v = params
        h = lax.conv_general_dilated(x[None], w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(jnp.tanh(h) @ v)

    def f(params, xs):
        each = jax.vmap(jax.grad(network), (None, 0))(params, xs)
        return sum(jnp.mean(leaf**2) for leaf in jax.tree.leaves(each))

    return f, ((normal(3, 3, 1, 8), normal(8)), normal(32, 8, 8, 1))


@thread(1399, "6 functions of a number times a long vector, in a Python loop")
def many_small_products() -> Call:
    def f(arg, v):
        total = norm = 0.0
        for n in range(6):
            waves = jnp.sin(arg[n] * v) + jnp.cos(arg[n] * v)
            total, norm = total + jnp.sum(waves) ** 2, norm + jnp.sum(waves**2)
        return jnp.log(total / jnp.sqrt(norm))

    return f, (normal(6), uniform(1000))


@thread(4924, "a binned likelihood with interpolated templates")
def binned_likelihood() -> Call:
    def f(params, up, down, counts):
        size = jnp.abs(params)[:, None]
        shift = jnp.where(params[:, None] > 0, up**size, down**size)
        expected = 100 * jnp.prod(shift, 0)
        return jnp.sum(expected - counts * jnp.log(expected))

    bins = uniform(40, 2000, low=0.9, high=1.1)
    return f, (
        normal(40),
        bins,
        uniform(40, 2000, seed=1, low=0.9, high=1.1),
        uniform(2000, low=90, high=110),
    )


@thread(7949, "the Jacobian of a difference, summed")
def jacobian_of_slices() -> Call:
    def f(x):
        return jnp.sum(jax.jacrev(lambda v: v[1:] ** 3 - v[:-1] ** 2)(x) ** 2)

    return f, (normal(300),)


@thread(347, "norms of rows with zeros, chosen by jnp.where")
def norms_under_where() -> Call:
    def f(x):
        r = jnp.sqrt(jnp.sum(x**2, 1))
        return jnp.sum(jnp.where(r > 0.5, r, 1.0))

    return f, (normal(2000, 3).at[::7].set(0.0),)


@thread(654, "charges over distances of all pairs, with the diagonal masked")
def masked_pairs() -> Call:
    def f(x, q):
        mask = 1 - jnp.eye(len(x))
        r = jnp.linalg.norm(x[:, None] - x[None], axis=-1)
        return jnp.sum(jnp.where(mask > 0, q[:, None] * q[None] / r, 0.0))

    return f, (normal(200, 3), normal(200))


@thread(1052, "arctan2 of zeros under a mask")
def masked_arctan2() -> Call:
    def f(a, b):
        return jnp.sum(jnp.where(a**2 + b**2 > 0, jnp.arctan2(a, b), 0.0))

    return f, (normal(4000).at[::5].set(0.0), normal(4000, seed=1).at[::5].set(0.0))


@thread(5798, "the square root of a number that may be 0, chosen by jnp.where")
def root_under_where() -> Call:
    return lambda x: jnp.sum(jnp.where(x < 1, x, jnp.sqrt(x))), (uniform(4000, high=2.0).at[::3].set(0.0),)


@thread(2630, "infinity times a number that is not chosen")
def infinity_under_where() -> Call:
    return lambda x: jnp.sum(jnp.where(x > 0, x, x * jnp.inf)), (uniform(4000, low=0.1),)


@thread(3058, "edges of a cloth, of which some have no length")
def cloth_edges() -> Call:
    def f(x):
        edge = x[1:] - x[:-1]
        length = jnp.linalg.norm(edge, axis=-1)
        return jnp.sum(jnp.where(length > 0, (length - 1) ** 2, 0.0))

    return f, (jnp.repeat(normal(300, 3), 2, axis=0),)


@thread(4177, "the square of a norm at zero")
def squared_norm() -> Call:
    return lambda x: jnp.linalg.norm(x) ** 2, (jnp.zeros(100),)


@thread(6811, "logsumexp of rows that may hold nothing but -inf, chosen by jnp.where")
def empty_logsumexp() -> Call:
    def f(x, mask):
        filled = jnp.where(mask, x, -jnp.inf)
        return jnp.sum(jnp.where(mask.any(1), jax.nn.logsumexp(filled, axis=1), 0.0))

    return f, (normal(300, 20), (uniform(300, 20) > 0.5).at[::4].set(False))


@thread(17070, "the entropy of a masked softmax")
def masked_entropy() -> Call:
    def f(logits, mask):
        p = jax.nn.softmax(logits, axis=-1, where=mask)
        p = p / jnp.sum(p, -1, keepdims=True)
        return -jnp.sum(p * jnp.log2(p), where=mask)

    return f, (normal(200, 30), uniform(200, 30) > 0.4)


@thread(17117, "a softmax whose masked entries are large")
def large_masked() -> Call:
    def f(x, mask):
        return jnp.sum(jax.nn.softmax(x, axis=-1, where=mask) ** 2)

    mask = uniform(200, 30) > 0.4
    return f, (jnp.where(mask, normal(200, 30), 200.0), mask)


@thread(16208, "a masked log softmax, written out")
def masked_log_softmax() -> Call:
    def f(logits, mask):
        masked = jnp.where(mask, logits, jnp.finfo("float32").min)
        shifted = masked - lax.stop_gradient(masked.max(-1, keepdims=True))
        return jnp.sum(
            jnp.where(mask, shifted - jnp.log(jnp.sum(jnp.exp(shifted), -1, keepdims=True)), 0) ** 2
        )

    return f, (normal(300, 40), uniform(300, 40) > 0.4)


@thread(19490, "log softmax of vmapped rows, one entry of each")
def vmapped_log_softmax() -> Call:
    def f(x, mask, index):
        own = lambda x, mask, n: jax.nn.log_softmax(x, where=mask)[n]
        return -jnp.sum(jax.vmap(own)(x, mask, index))

    mask = (uniform(1000, 12) > 0.5).at[:, 3].set(True)
    return f, (100 * normal(1000, 12), mask, jnp.full(1000, 3))


@thread(21723, "the squared norm of residuals that are 0")
def residual_norms() -> Call:
    def f(w, x, y):
        r = jnp.linalg.norm(x @ w - y, axis=-1)
        return jnp.sum(jnp.where(r > 0, r, 0.0) ** 2)

    w, x = normal(16, 8), normal(400, 16)
    return f, (w, x, (x @ w).at[::2].add(1.0))


@loss("google-deepmind/optax#1762", "a cross-entropy with logits of -inf where labels are 0")
def infinite_logits() -> Call:
    def f(logits, labels):
        return -jnp.mean(jnp.sum(jnp.where(labels > 0, labels * jax.nn.log_softmax(logits), 0.0), -1))

    labels = jax.nn.one_hot(integers(10, 256), 10)
    return f, (jnp.where((uniform(256, 10) < 0.2) & (labels == 0), -jnp.inf, normal(256, 10)), labels)


@loss("climate-analytics-lab/jax-gcm#115", "a model that saves its state at intervals")
def saved_intervals() -> Call:
    def step(u, _):
        flux = u - 0.1 * (u**2 - jnp.roll(u, 1, -1) ** 2) / 2
        return flux + 0.05 * (jnp.roll(flux, 1, -1) + jnp.roll(flux, -1, -1) - 2 * flux), None

    def f(u):
        save = lambda u, _: (own := lax.scan(step, u, None, 10)[0], own)
        return jnp.mean(lax.scan(save, u, None, 10)[1] ** 2)

    return f, (normal(32, 256, scale=0.1),)


@thread(475, "normalised vectors, of which some are 0, times a mask")
def masked_directions() -> Call:
    def f(x):
        size = jnp.sqrt(jnp.sum(x**2, -1, keepdims=True))
        return jnp.sum(jnp.where(size > 0, x / size, 0.0) * x[..., :1])

    return f, (normal(2000, 3).at[::5].set(0.0),)
