"""What sums over pairs are functions of, as tensors: which there are, that slopes are made once, and values and gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.limits import MOST_HELD
from jaxte.planning.graph import planned
from jaxte.planning.indices import pairs
from jaxte.tensors.structure import topological_order

N, M, D = 22, 20, 3


def summed(**extents: int) -> list[te.Axis]:
    return [te.reduce_axis((0, extent), name) for name, extent in extents.items()]


def bins(x: te.Tensor, c: te.Tensor) -> te.Tensor:
    (i,) = summed(i=N)
    return te.compute((M,), lambda j: te.sum(te.maximum(1 - te.abs(x[i] - c[j]) * 4, 0.0), axis=i), "h")


def additive(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
    (d,) = summed(d=D)
    return te.compute((N, M), lambda i, j: te.sum(te.tanh(q[i, d] + k[j, d]) * v[d], axis=d), "s")


def ranked(s: te.Tensor, y: te.Tensor) -> te.Tensor:
    i, j = summed(i=M, j=M)
    wrong = lambda b: te.logical_and(j < i, y[b, i] > y[b, j])  # noqa: E731
    loss = lambda b: te.select(wrong(b), te.log1p(te.exp(s[b, j] - s[b, i])), 0.0)  # noqa: E731
    return te.compute((D,), lambda b: te.sum(loss(b), axis=(i, j)), "l")


def ranked_by_jax(s: Any, y: Any) -> Any:
    wrong = jnp.tril(jnp.ones((M, M), bool), -1) & (y[:, :, None] > y[:, None])
    return jnp.sum(jnp.where(wrong, jnp.log1p(jnp.exp(s[:, None] - s[:, :, None])), 0.0), axis=(1, 2))


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "bins": (
        bins,
        lambda x, c: jnp.sum(jnp.maximum(1 - jnp.abs(x[:, None] - c) * 4, 0.0), axis=0),
        ((N,), (M,)),
    ),
    "additive": (additive, lambda q, k, v: jnp.tanh(q[:, None] + k) @ v, ((N, D), (M, D), (D,))),
    "ranked": (ranked, ranked_by_jax, ((D, M), (D, M))),
}


def pairs_of(tensor: te.Tensor) -> list[pairs.Pairs]:
    return [t for t in topological_order(planned([tensor])) if isinstance(t, pairs.Pairs)]


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_made_once(name: str, rng: np.random.Generator) -> None:
    build, reference, shapes = CASES[name]
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    fn = te.function(build)
    (made,) = pairs_of(build(*(te.placeholder(s, name=f"a{n}") for n, s in enumerate(shapes))))
    text = fn.source(*arrays)
    assert text.count(f"d{made.name} = ") == 1
    backward = text[text.index("def backward") :]
    sides = re.findall(rf"jnp.sum\(d{made.name}, axis", backward)
    assert len(sides) == 2  # one over each side, of nothing but the slopes
    assert "_apart(" not in text  # what is summed is written once anyway
    for expected, found in zip(*(jax.vjp(f, *arrays) for f in (reference, fn)), strict=True):
        if callable(found):
            head = rng.standard_normal(jax.eval_shape(reference, *arrays).shape).astype("float32")
            for ours, theirs in zip(found(head), expected(head), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_axes_are_in_the_order_of_the_reads() -> None:
    q, k, v = (
        te.placeholder((N, D), name="q"),
        te.placeholder((M, D), name="k"),
        te.placeholder((D,), name="v"),
    )
    (made,) = pairs_of(additive(q, k, v))
    assert [axis.name for axis in made.axes] == ["i", "j", "d"]


@pytest.mark.parametrize(
    "element",
    [
        lambda x, y, i, j: te.exp(x[i]) * y[j],  # one side each
        lambda x, y, i, j: (x[i] - y[j]) * (x[i] - y[j]),  # a product of two, or three sums
        lambda x, y, i, j: te.exp(te.abs(x[i] * 2.0) + 1.0) * y[j],
        lambda x, y, i, j: (
            te.exp(te.abs(x[j] * y[j] + 2.0)) + te.cast(i, "float32")
        ),  # a value for each point of one axis
    ],
)
def test_left_alone(element: Callable[..., Any]) -> None:
    x, y = te.placeholder((N,), name="x"), te.placeholder((N,), name="y")
    (j,) = summed(j=N)
    assert not pairs_of(te.compute((N,), lambda i: te.sum(element(x, y, i, j), axis=j), "z"))


def test_sums_over_few_pairs_hold_nothing() -> None:
    x, c = te.placeholder((50,), name="x"), te.placeholder((pairs._FEWEST - 1,), name="c")
    (j,) = summed(j=pairs._FEWEST - 1)
    body = lambda i: te.sum(te.exp(te.abs(x[i] - c[j]) + 1.0), axis=j)  # noqa: E731
    assert not pairs_of(te.compute((50,), body, "z"))


def test_sums_over_many_pairs_are_left_to_tiles() -> None:
    long = 2 * MOST_HELD // 4 // M
    x, c = te.placeholder((long,), name="x"), te.placeholder((M,), name="c")
    (j,) = summed(j=M)
    body = lambda i: te.sum(te.exp(te.abs(x[i] - c[j]) + 1.0), axis=j)  # noqa: E731
    assert not pairs_of(te.compute((long,), body, "z"))


def test_the_branch_not_taken_passes_nothing_on() -> None:
    """The slope of a square root at 0 is infinite, where the condition leaves it out."""
    x, y = te.placeholder((N,), name="x"), te.placeholder((N,), name="y")
    (j,) = summed(j=N)
    far = lambda i: te.select(x[i] > y[j], te.log(te.sqrt(x[i] - y[j])), 0.0)  # noqa: E731
    tensor = te.compute((N,), lambda i: te.sum(far(i), axis=j), "z")
    assert pairs_of(tensor)
    fn = te.function([x, y], tensor)
    at = np.repeat(np.arange(N // 2), 2).astype("float32")
    distance = at[:, None] - at
    expected = np.where(distance > 0, 0.5 / np.maximum(distance, 1), 0)  # d log sqrt(x - y) = 1 / (2 (x - y))
    own = jax.jacrev(fn, argnums=(0, 1))(at, at)
    np.testing.assert_allclose(own[0], np.diag(expected.sum(1)), rtol=1e-5)
    np.testing.assert_allclose(own[1], -expected, rtol=1e-5)


def rates(b: te.Tensor, t: te.Tensor) -> te.Tensor:
    at = lambda i, j: 10 * t[j] / b[i, 2]  # noqa: E731
    rise = lambda i, j: (1 - te.exp(-at(i, j))) / at(i, j)  # noqa: E731
    return te.compute((N, 2 * M), lambda i, j: b[i, 0] + b[i, 1] * (rise(i, j) - te.exp(-at(i, j))), "y")


def rates_by_jax(b: Any, t: Any) -> Any:
    at = 10 * t / b[:, 2:]
    return b[:, :1] + b[:, 1:2] * ((1 - jnp.exp(-at)) / at - jnp.exp(-at))


def rounded(x: te.Tensor, q: te.Tensor) -> te.Tensor:
    z = lambda i, j: 8.0 * x[i, j] * te.exp(-q[i % 2, j % 2])  # noqa: E731
    return te.compute((32, M), lambda i, j: (z(i, j) - te.sin(z(i, j))) * te.exp(q[i % 2, j % 2]), "y")


def rounded_by_jax(x: Any, q: Any) -> Any:
    step = jnp.tile(q, (16, M // 2))
    z = 8.0 * x * jnp.exp(-step)
    return (z - jnp.sin(z)) * jnp.exp(step)


def damped(x: te.Tensor, k: te.Tensor, f: te.Tensor) -> te.Tensor:
    return te.compute(
        (N, 2 * M), lambda i, j: x[i] * te.tanh(k[i] * f[j] + x[i]) * te.cos(k[i] * f[j] + x[i]), "y"
    )


def damped_by_jax(x: Any, k: Any, f: Any) -> Any:
    phase = k[:, None] * f + x[:, None]
    return x[:, None] * jnp.tanh(phase) * jnp.cos(phase)


EACH: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "rates": (rates, rates_by_jax, ((N, 3), (2 * M,))),
    "rounded": (rounded, rounded_by_jax, ((32, M), (2, 2))),
    "damped": (damped, damped_by_jax, ((N,), (N,), (2 * M,))),
}


@pytest.mark.parametrize("name", EACH)
def test_what_several_tensors_flow_into_has_one_adjoint(name: str, rng: np.random.Generator) -> None:
    build, reference, shapes = EACH[name]
    arrays = [rng.uniform(0.5, 2, size=s).astype("float32") for s in shapes]
    (made,) = pairs_of(build(*(te.placeholder(s, name=f"a{n}") for n, s in enumerate(shapes))))
    fn = te.function(build)
    backward = fn.source(*arrays).partition("def backward")[2]
    assert made.name == "y_of" and f"d{made.name} = " in backward
    ours, theirs = (jax.vjp(f, *arrays) for f in (fn, reference))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=2e-5, atol=1e-5)
    for own, other in zip(ours[1](theirs[0]), theirs[1](theirs[0]), strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "element",
    [
        lambda x, y, i, j: te.tanh(x[i] * y[j]),  # whose slope is that of its result
        lambda x, y, i, j: te.select(x[i] > 1, te.exp(x[i] * y[j]) + 1, 0.0),  # where a choice leaves it out
        lambda x, y, i, j: te.exp(x[i]) * te.exp(y[j]) + 1,  # of one element each
        lambda x, y, i, j: te.abs(x[i] - y[j]) + 1,  # no function
    ],
)
def test_elements_left_alone(element: Callable[..., Any]) -> None:
    x, y = te.placeholder((N,), name="x"), te.placeholder((N,), name="y")
    assert not pairs_of(te.compute((N, N), lambda i, j: element(x, y, i, j), "z"))


def test_pairs_of_one_sum_are_laid_out_alike(rng: np.random.Generator) -> None:
    """Distances that are written from either side would be read turned by each other, and summed turned."""
    s, t = te.placeholder((M,), name="s"), te.placeholder((M,), name="t")
    (j,) = summed(j=M)
    loss = lambda i: te.log(1.0 + te.exp(s[j] - s[i])) * te.exp(-te.abs(t[i] - t[j]))  # noqa: E731
    tensor = te.compute((M,), lambda i: te.sum(loss(i), axis=j, where=t[i] > t[j]), "l")
    first, second = pairs_of(tensor)
    assert [a.name for a in first.axes] == [a.name for a in second.axes]
    fn = te.function([s, t], tensor)
    arrays = [rng.standard_normal(M).astype("float32") for _ in range(2)]
    assert "_pairs.T" not in fn.source(*arrays) and "_pairs_1.T" not in fn.source(*arrays)


@pytest.mark.parametrize("power", [1, 2])
def test_quotients_by_a_scale_are_no_slopes(power: int) -> None:
    """A square over what a feature is divided by is a polynomial of the difference: an array of all features at each pair would be longer than all else."""
    (c,) = summed(c=D)
    x, y, s = (
        te.placeholder((N, D), name="x"),
        te.placeholder((M, D), name="y"),
        te.placeholder((D,), name="s"),
    )
    square = lambda i, j: ((x[i, c] - y[j, c]) / s[c]) ** 2 / s[c] ** power  # noqa: E731
    assert not pairs_of(te.compute((N, M), lambda i, j: te.sum(square(i, j), axis=c), "d"))
    sharp = te.compute((N, M), lambda i, j: te.sum(te.tanh((x[i, c] - y[j, c]) / s[c]), axis=c), "d")
    assert len(pairs_of(sharp)) == 1
