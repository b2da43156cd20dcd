"""Losses of sounds, filters and series."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, normal, uniform


@case(normal(4, 8192), normal(4, 8192))
def several_spectra(x, y):
    def spectrum(a, size, hop):
        start = jnp.arange(0, a.shape[1] - size + 1, hop)
        frames = a[:, start[:, None] + jnp.arange(size)]
        return jnp.abs(jnp.fft.rfft(frames * jnp.hanning(size))) + 1e-5

    loss = 0.0
    for size in (256, 512, 1024):
        a, b = spectrum(x, size, size // 4), spectrum(y, size, size // 4)
        loss += jnp.mean(jnp.abs(jnp.log(a) - jnp.log(b))) + jnp.linalg.norm(a - b) / jnp.linalg.norm(b)
    return loss


@case(normal(8, 4000), uniform(3, low=0.1, high=0.9))
def compressor(x, p):
    attack, release, ratio = p

    def step(e, a):
        k = jnp.where(a > e, attack, release)
        e = k * e + (1 - k) * a
        return e, e

    env = lax.scan(step, jnp.zeros(8), jnp.abs(x).T)[1].T
    gain = jnp.where(env > 0.5, (env / 0.5 + 1e-6) ** (ratio - 1), 1.0)
    return jnp.mean((gain * x) ** 2)


@case(uniform(4, 64, low=0.01, high=0.05), uniform(4, 64, 16))
def harmonic_synthesis(pitch, amplitudes):
    n = 4096
    t = jnp.linspace(0, 63, n)
    up = jax.vmap(lambda p: jnp.interp(t, jnp.arange(64.0), p))
    f = up(pitch)
    phase = jnp.cumsum(f, -1)
    amp = jax.vmap(lambda a: jax.vmap(lambda c: jnp.interp(t, jnp.arange(64.0), c), 1, 1)(a))(amplitudes)
    y = jnp.sum(amp * jnp.sin(phase[..., None] * jnp.arange(1.0, 17)), -1)
    return jnp.mean((y[:, 1:] - y[:, :-1]) ** 2)


@case(normal(16, 3000), uniform(4, 5, low=-0.3, high=0.3))
def biquad_cascade(x, coefficients):
    def section(x, c):
        def step(s, a):
            z1, z2 = s
            y = c[0] * a + z1
            return (c[1] * a - c[3] * y + z2, c[2] * a - c[4] * y), y

        z = jnp.zeros(x.shape[0])
        return lax.scan(step, (z, z), x.T)[1].T

    for k in range(4):
        x = section(x, coefficients[k])
    return jnp.sum(x**2)


@case(normal(8, 6000), normal(33))
def polyphase_resampler(x, h):
    up = jnp.zeros((8, 12000)).at[:, ::2].set(x)
    y = jax.vmap(lambda r: jnp.convolve(r, h, mode="same"))(up)
    return jnp.mean(jnp.abs(y[:, ::3]))


@case(normal(32, 2048), normal(16))
def prediction_error(x, a):
    past = jnp.stack([x[:, 16 - k - 1 : -k - 1] for k in range(16)], -1)
    e = x[:, 16:] - past @ a
    return jnp.mean(jnp.log1p(e**2))


@case(normal(16, 2000))
def autocorrelation_peaks(x):
    x = x - x.mean(1, keepdims=True)
    r = jnp.stack([jnp.sum(x[:, : 2000 - k] * x[:, k:], 1) for k in range(1, 33)], 1)
    return jnp.sum(jax.nn.softmax(r / jnp.sum(x**2, 1, keepdims=True), -1)[:, :4] ** 2)


@case(normal(8, 4096), uniform(8, 4096))
def moving_statistics(x, w):
    frames = jnp.stack([x[:, k : k + 4096 - 31] for k in range(32)], -1)
    weights = jnp.stack([w[:, k : k + 4096 - 31] for k in range(32)], -1)
    m = jnp.sum(frames * weights, -1) / jnp.sum(weights, -1)
    s = jnp.sqrt(jnp.sum(weights * (frames - m[..., None]) ** 2, -1) + 1e-6)
    return jnp.mean(m / s)


@case(normal(4, 6, 4096), normal(6, 6, 64, scale=0.1))
def mixing_filters(x, h):
    y = lax.conv_general_dilated(x, h, (1,), "SAME")
    c = jnp.einsum("bit,bjt->bij", y, y) / 4096
    return jnp.mean(jnp.linalg.slogdet(c + 0.1 * jnp.eye(6))[1])


@case(normal(64, 1024))
def haar_shrinkage(x):
    loss, a = 0.0, x
    for _ in range(6):
        d = (a[:, ::2] - a[:, 1::2]) / jnp.sqrt(2.0)
        a = (a[:, ::2] + a[:, 1::2]) / jnp.sqrt(2.0)
        loss += jnp.sum(jnp.sqrt(d**2 + 1e-2))
    return loss + jnp.sum(a**2)


@case(normal(8, 30, 100), normal(8, 40, 100))
def soft_warping(a, b):
    d = jnp.sum((a[:, :, None] - b[:, None]) ** 2, -1) / 100

    def row(prev, cost):
        def cell(left, z):
            up, diagonal, c = z
            best = -jax.nn.logsumexp(jnp.stack([-left, -up, -diagonal]), 0)
            return c + best, c + best

        diagonal = jnp.concatenate([jnp.full((8, 1), 1e3), prev[:, :-1]], 1)
        _, new = lax.scan(cell, jnp.full(8, 1e3), (prev.T, diagonal.T, cost.T))
        return new.T, None

    first = jnp.cumsum(d[:, 0], 1)
    last, _ = lax.scan(row, first, jnp.swapaxes(d[:, 1:], 0, 1))
    return jnp.sum(last[:, -1])
