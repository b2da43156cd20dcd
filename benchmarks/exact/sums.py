"""Sums and products of 2^16 terms: long enough for their order to show.

The functions of the other groups are short where they are quick. ``SUMS`` are definitions, ``LOSSES`` functions of JAX for te.grad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te
from harness.case import IDIOMATIC, JAXTE, Case
from harness.inputs import Input, given, integers, normal, uniform
from raised.registry import Example

N, BITS, BLOCK = 2**16, 16, 1000
ROWS = 4
SUMS: list[Case] = []
LOSSES: list[Example] = []


def _sum(idiomatic: Callable[..., Any], *inputs: Input) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a definition beside plain JAX."""

    def enter(expression: Callable[..., Any]) -> Callable[..., Any]:
        name = expression.__name__
        sides = {JAXTE: expression, IDIOMATIC: idiomatic}
        SUMS.append(Case(name, name, str(expression.__doc__), {"full": {}}, lambda: inputs, sides))
        return expression

    return enter


def _loss(*inputs: Input) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function of JAX, the sum of whose squares is differentiated."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        make = lambda rng: tuple(x.make(rng) for x in inputs)  # noqa: E731
        LOSSES.append(Example(function.__name__, "sum", function, make))
        return function

    return enter


def _k(extent: int = N) -> Any:
    return te.reduce_axis((0, extent), "k")


@_sum(jnp.sum, uniform(N))
def one_sum(x):
    """sum_k x[k]"""
    k = _k()
    return te.compute((), lambda: te.sum(x[k], axis=k), "y")


@_sum(lambda x, y: jnp.sum(jnp.exp(x) * y), normal(N), uniform(N))
def sum_of_products(x, y):
    """sum_k exp(x[k]) y[k]"""
    k = _k()
    return te.compute((), lambda: te.sum(te.exp(x[k]) * y[k], axis=k), "y")


@_sum(lambda x, y: x @ y, uniform(ROWS, N), uniform(N))
def matrix_vector(x, y):
    """z[i] = sum_k x[i, k] y[k]"""
    k = _k()
    return te.compute((ROWS,), lambda i: te.sum(x[i, k] * y[k], axis=k), "z")


@_sum(lambda x, b: jnp.tanh(x + b), normal(N, ROWS), normal(ROWS))
def bias(x, b):
    """y[i, c] = tanh(x[i, c] + b[c]): the gradient of b is a sum over all i"""
    return te.compute((N, ROWS), lambda i, c: te.tanh(x[i, c] + b[c]), "y")


@_sum(lambda x: jax.nn.logsumexp(x, -1), normal(ROWS, N))
def logarithm_of_sum(x):
    """log sum_k exp(x[i, k])"""
    k = _k()
    return te.compute((ROWS,), lambda i: te.log(te.sum(te.exp(x[i, k]), axis=k)), "y")


@_sum(lambda x: jax.nn.softmax(x, -1), normal(ROWS, N))
def long_softmax(x):
    """exp(x[i, j]) / sum_k exp(x[i, k])"""
    return te.ops.softmax(x)


@_sum(lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), normal(ROWS, N))
def long_norm(x):
    """(x - mean) / sqrt(var + 1e-5) of each row"""
    k = _k()
    m = te.compute((ROWS,), lambda i: te.sum(x[i, k], axis=k) / N, "m")
    v = te.compute((ROWS,), lambda i: te.sum((x[i, k] - m[i]) ** 2, axis=k) / N, "v")
    return te.compute((ROWS, N), lambda i, j: (x[i, j] - m[i]) * te.rsqrt(v[i] + 1e-5), "y")


@_sum(jnp.prod, uniform(N, low=0.9999, high=1.0001))
def one_product(x):
    """prod_k x[k]"""
    k = _k()
    return te.compute((), lambda: te.prod(x[k], axis=k), "y")


@_sum(lambda x: jnp.cumsum(x, -1), uniform(ROWS, N))
def running_sum(x):
    """y[i, j] = sum over k <= j of x[i, k]"""
    k = _k()
    return te.compute((ROWS, N), lambda i, j: te.sum(x[i, k], axis=k, where=k <= j), "y")


@_sum(lambda x: jnp.cumsum(x, 0), uniform(N, ROWS))
def running_sum_down(x):
    """y[j, i] = sum over k <= j of x[k, i]"""
    k = _k()
    return te.compute((N, ROWS), lambda j, i: te.sum(x[k, i], axis=k, where=k <= j), "y")


@_sum(jnp.cumsum, uniform(N))
def one_running_sum(x):
    """y[j] = sum over k <= j of x[k]"""
    k = _k()
    return te.compute((N,), lambda j: te.sum(x[k], axis=k, where=k <= j), "y")


@_sum(lambda x: lax.cumsum(x, 1, reverse=True), uniform(ROWS, N))
def sum_of_the_rest(x):
    """y[i, j] = sum over k >= j of x[i, k]"""
    k = _k()
    return te.compute((ROWS, N), lambda i, j: te.sum(x[i, k], axis=k, where=k >= j), "y")


@_sum(lambda x: jnp.cumprod(x, -1), uniform(ROWS, N, low=0.9999, high=1.0001))
def running_product(x):
    """y[i, j] = product over k <= j of x[i, k]"""
    k = _k()
    return te.compute((ROWS, N), lambda i, j: te.prod(x[i, k], axis=k, where=k <= j), "y")


@_sum(lambda x: lax.cumlogsumexp(x, 1), normal(ROWS, N))
def running_logarithm_of_sum(x):
    """y[i, j] = log sum over k <= j of exp(x[i, k])"""
    k = _k()
    return te.compute((ROWS, N), lambda i, j: te.log(te.sum(te.exp(x[i, k]), axis=k, where=k <= j)), "y")


@_sum(lambda x, at: x[at], normal(8), integers(N, below=8))
def elements_of_few(x, at):
    """y[i] = x[at[i]], of eight elements: the gradient of each is a sum over some 8,192 positions"""
    return te.compute((N,), lambda i: x[at[i]], "y")


def _signs():
    s = np.arange(N)[:, None]
    return 2.0 * ((s >> np.arange(BITS)) & 1) - 1.0


def _sign(s, q):
    return te.cast(2 * ((s >> q) & 1) - 1, "float32")


@_sum(
    lambda a, b: jnp.sum(jnp.prod(a + b * _signs().astype(a.dtype), -1)),
    uniform(BITS, low=0.5),
    uniform(BITS, low=-0.5, high=0.5),
)
def products_of_signs(a, b):
    """sum over s of prod_q (a[q] + b[q] sign(s, q)), sign(s, q) the q-th bit of s as 1 or -1"""
    s = te.reduce_axis((0, N), "s")
    q = te.reduce_axis((0, BITS), "q")
    one = te.compute((N,), lambda s: te.prod(a[q] + b[q] * _sign(s, q), axis=q), "one")
    return te.compute((), lambda: te.sum(one[s], axis=s), "z")


def _ising(x):
    sign = _signs().astype(x.dtype)
    return jnp.sum(jnp.exp((sign * jnp.roll(sign, -1, 1)) @ x))


@_sum(_ising, normal(BITS, scale=0.2))
def ising_chain(x):
    """sum over s of exp(sum_q x[q] sign(s, q) sign(s, q + 1))"""
    s = te.reduce_axis((0, N), "s")
    q = te.reduce_axis((0, BITS), "q")
    energy = te.compute(
        (N,), lambda s: te.sum(x[q] * _sign(s, q) * _sign(s, (q + 1) % BITS), axis=q), "energy"
    )
    return te.compute((), lambda: te.sum(te.exp(energy[s]), axis=s), "z")


def _walsh(x):
    sign = jnp.asarray(np.prod(_signs(), -1), x.dtype)
    return jnp.sum(x * sign)


@_sum(_walsh, uniform(N))
def walsh_coefficient(x):
    """sum over s of x[s] prod_q sign(s, q)"""
    s = te.reduce_axis((0, N), "s")

    def signs(s):
        found = _sign(s, 0)
        for q in range(1, BITS):
            found = found * _sign(s, q)
        return found

    return te.compute((), lambda: te.sum(x[s] * signs(s), axis=s), "z")


@_loss(uniform(ROWS, N, low=100.0, high=400.0), normal(ROWS, N))
def oscillator(f, target):
    """sin(2 pi cumsum(f / 16000)) - target: the phase of a tone"""
    return jnp.sin(2 * jnp.pi * jnp.cumsum(f / 16000, -1)) - target


@_loss(uniform(ROWS, N))
def running_sums_of_squares(x):
    """cumsum(x * x) / N"""
    return jnp.cumsum(x * x, -1) / N


@_loss(uniform(N, ROWS))
def running_sums_down(x):
    """cumsum(x) / N along the first axis"""
    return jnp.cumsum(x, 0) / N


@_loss(uniform(ROWS, N))
def moving_average(x):
    """The mean of the last 1,000, by differences of running sums."""
    c = jnp.cumsum(x, -1)
    return (c[:, BLOCK:] - c[:, :-BLOCK]) / BLOCK


@_loss(normal(N), given(np.arange(N) * 7 % 64))
def segment_means(x, segments):
    """jax.ops.segment_sum over 64 segments, and what is off from it."""
    means = jax.ops.segment_sum(x, segments, 64) / (N // 64)
    return x - means[segments]


@_loss(normal(ROWS, N))
def standardised(x):
    """x less its mean, divided by its standard deviation, cubed."""
    return ((x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)) ** 3


@_loss(uniform(N, ROWS), normal(ROWS))
def regression(x, w):
    """tanh(x @ w), of many rows."""
    return jnp.tanh(x @ w)
