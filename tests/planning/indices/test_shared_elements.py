"""Functions of elements that several places compute are computed once: XLA's count of functions, values beside JAX, and what is left as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.indices.shared_elements import Shared, with_shared_elements
from jaxte.tensors.structure import topological_order
from tests.xla_counts import Fused


def flux(s: te.Tensor) -> te.Tensor:
    """Rises of a spectrum from one frame to the next."""
    b, t, n = s.shape
    f = te.reduce_axis((0, n), "f")
    level = lambda b, t: te.log1p(te.abs(s[b, t, f]))  # noqa: E731
    return te.compute((b, t - 1), lambda b, t: te.sum(te.relu(level(b, t + 1) - level(b, t)), axis=f), "y")


def plain_flux(s: jax.Array) -> jax.Array:
    level = jnp.log1p(jnp.abs(s))
    return jax.nn.relu(level[:, 1:] - level[:, :-1]).sum(2)


def moments(at: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Means of values near positions: two sums with one weight."""
    j, k = te.reduce_axis((0, x.shape[0]), "j"), te.reduce_axis((0, x.shape[0]), "k")
    top = te.compute(at.shape, lambda i: te.sum(te.exp(-((at[i] - x[j]) ** 2)) * y[j], axis=j), "top")
    all_ = te.compute(at.shape, lambda i: te.sum(te.exp(-((at[i] - x[k]) ** 2)), axis=k), "all")
    return te.compute(at.shape, lambda i: top[i] / all_[i], "y")


def plain_moments(at: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    w = jnp.exp(-((at[:, None] - x) ** 2))
    return w @ y / w.sum(1)


def scheme(u: te.Tensor) -> te.Tensor:
    """A step of a conservation law on a circle, centred fluxes."""
    n = u.shape[1]
    return te.compute(
        u.shape, lambda b, i: u[b, i] - 0.1 * (te.tanh(u[b, (i + 1) % n]) - te.tanh(u[b, (i - 1) % n])), "y"
    )


def plain_scheme(u: jax.Array) -> jax.Array:
    f = jnp.tanh(u)
    return u - 0.1 * (jnp.roll(f, -1, 1) - jnp.roll(f, 1, 1))


def colours(x: te.Tensor) -> te.Tensor:
    """A weighted mean whose weights are found by reductions within two definitions."""
    n, m, _ = x.shape
    k, c = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 3), "c")
    w = lambda i, j: te.exp(-te.sum((x[i, j + k, c] - x[i, j + 2, c]) ** 2, axis=c))  # noqa: E731
    total = te.compute((n, m - 4), lambda i, j: te.sum(w(i, j), axis=k), "total")
    return te.compute(
        (n, m - 4, 3), lambda i, j, d: te.sum(w(i, j) * x[i, j + k, d], axis=k) / total[i, j], "y"
    )


def plain_colours(x: jax.Array) -> jax.Array:
    m = x.shape[1] - 4
    near = jnp.stack([x[:, k : k + m] for k in range(5)])
    w = jnp.exp(-jnp.sum((near - x[:, 2 : 2 + m]) ** 2, -1, keepdims=True))
    return (w * near).sum(0) / w.sum(0)


def layers(lam: te.Tensor, n: te.Tensor, d: te.Tensor) -> te.Tensor:
    """The modulus of a sum of phases: two functions of one argument, which is written twice."""
    j, k = te.reduce_axis((0, n.shape[0]), "j"), te.reduce_axis((0, n.shape[0]), "k")
    real = te.compute(lam.shape, lambda w: te.sum(n[j] * te.cos(n[j] * d[j] * lam[w]), axis=j), "real")
    imag = te.compute(lam.shape, lambda w: te.sum(n[k] * te.sin(n[k] * d[k] * lam[w]), axis=k), "imag")
    return te.compute(lam.shape, lambda w: real[w] ** 2 + imag[w] ** 2, "y")


def plain_layers(lam: jax.Array, n: jax.Array, d: jax.Array) -> jax.Array:
    a = n * d * lam[:, None]
    return (jnp.cos(a) @ n) ** 2 + (jnp.sin(a) @ n) ** 2


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...], str]] = {
    "flux": (flux, plain_flux, ((4, 20, 80),), "log1p"),
    "moments": (moments, plain_moments, ((64,), (128,), (128,)), "exp"),
    "scheme": (scheme, plain_scheme, ((8, 600),), "tanh"),
    "colours": (colours, plain_colours, ((40, 44, 3),), "exp"),
}


def agrees(build: Any, plain: Any, arrays: list[np.ndarray], rng: np.random.Generator) -> None:
    expected, pull = jax.vjp(plain, *arrays)
    head = rng.normal(size=expected.shape).astype("float32")
    run = te.function(build)
    both = Fused(jax.jit(with_gradients(run, tuple(range(len(arrays))))).lower([head], *arrays))
    found = jax.tree.leaves(both([head], *arrays))
    for own, other in zip(found, [expected, *pull(head)], strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_computed_once_beside_jax(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, function = CASES[name]
    agrees(build, plain, [rng.normal(size=s).astype("float32") for s in shapes], rng)
    inputs = [te.placeholder(s, name=f"x{n}") for n, s in enumerate(shapes)]
    assert of_forward(te.function(inputs, build(*inputs))).count(f"jnp.{function}(") == 1
    apart = of_forward(te.function(inputs, build(*inputs), without=("shared elements",)))
    assert apart.count(f"jnp.{function}(") > 1


def filtered(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A convolution of a function of each element."""
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "c")
    n, m = (extent - 2 for extent in x.shape)
    return te.compute((n, m), lambda i, j: te.sum(te.tanh(x[i + k, j + c]) * w[k, c], axis=[k, c]))


def plain_filtered(x: jax.Array, w: jax.Array) -> jax.Array:
    n, m = (extent - 2 for extent in x.shape)
    return sum(w[k, c] * jnp.tanh(x)[k : k + n, c : c + m] for k in range(3) for c in range(3))  # type: ignore[return-value]


CHAINS: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...], str]] = {
    "filters": (filtered, plain_filtered, ((76, 76), (3, 3)), "tanh"),
    "schemes": (lambda u, _: scheme(u), lambda u, _: plain_scheme(u), ((8, 600), (1,)), "tanh"),
    "rises": (
        lambda x, _: difference(te.exp, x),
        lambda x, _: jnp.exp(x[:, 1:]) - jnp.exp(x[:, :-1]),
        ((32, 160), (1,)),
        "exp",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_each_step_of_a_chain_computes_them_once(name: str, rng: np.random.Generator) -> None:
    step, plain, shapes, function = CHAINS[name]

    def build(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        for _ in range(3):
            x = step(x, w)
        return x

    def steps(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(3):
            x = plain(x, w)
        return x

    agrees(build, steps, [0.2 * rng.normal(size=s).astype("float32") for s in shapes], rng)
    inputs = [te.placeholder(s, name=f"x{n}") for n, s in enumerate(shapes)]
    assert of_forward(te.function(inputs, build(*inputs))).count(f"jnp.{function}(") == 3


def of_forward(function: Any) -> str:
    """The text of the pass that keeps what gradients read, or of the one without gradients where that keeps nothing more."""
    text = str(function.source())
    name = "forward_with_residuals" if "def forward_with_residuals(" in text else "forward"
    return text.split(f"def {name}(")[1].split("\ndef ")[0]


def shared(y: te.Tensor) -> list[Shared]:
    return [t for t in topological_order(with_shared_elements((y,))) if isinstance(t, Shared)]


def difference(f: Any, x: te.Tensor) -> te.Tensor:
    return te.compute((x.shape[0], x.shape[1] - 1), lambda b, i: f(x[b, i + 1]) - f(x[b, i]), "y")


def of_differences(f: Any, shape: tuple[int, int]) -> list[Shared]:
    return shared(difference(f, te.placeholder(shape, name="x")))


def test_what_is_shared() -> None:
    (found,) = of_differences(te.exp, (64, 256))
    assert tuple(found.shape) == (64, 256)
    assert not of_differences(te.relu, (64, 256))  # cheap
    assert not of_differences(te.exp, (4, 16))  # small
    assert not of_differences(te.exp, (4096, 4096))  # larger than caches


def test_elements_that_only_a_choice_reads() -> None:
    """The first element has no left neighbour, and the square root of what is not read is not taken."""
    x = te.placeholder((64, 256), name="x")
    y = te.compute(x.shape, lambda b, i: te.exp(x[b, i]) - te.select(i > 0, te.exp(x[b, i - 1]), 0.0), "y")
    (found,) = shared(y)
    assert tuple(found.shape) == (64, 256)


def test_data_and_overrides_are_left() -> None:
    x, at = te.placeholder((64, 256), name="x"), te.placeholder((256,), "int32", name="at")
    y = te.compute((64, 255), lambda b, i: te.exp(x[b, at[i + 1]]) - te.exp(x[b, at[i]]), "y")
    (rows,) = shared(y)  # gathered once, and no function
    assert rows.name == "y_rows"


def test_what_a_choice_excludes_stays_excluded(rng: np.random.Generator) -> None:
    """Logarithms of zeros, which no element counts: not computed by themselves, so that second derivatives have no NaN either."""
    x = rng.normal(size=(64, 256)).astype("float32")
    x.flat[::7] = 0

    def kept(x: te.Tensor) -> te.Tensor:
        def safe(b: te.Expr, i: te.Expr) -> te.Expr:
            return te.select(x[b, i] > 0, te.log(x[b, i]), 0.0)

        k = te.reduce_axis((0, 3), "k")
        s = te.compute((64, 254), lambda b, i: te.sum(safe(b, i + k), axis=k), "s")
        return te.compute(
            (64, 254), lambda b, i: s[b, i] * safe(b, i + 1) * te.select(i > 3, safe(b, i), 1.0), "y"
        )

    assert not shared(kept(te.placeholder(x.shape, name="x")))
    run = te.function(kept)
    (_, second) = jax.jvp(lambda x: jax.vjp(run, x)[1](jnp.ones((64, 254)))[0], (x,), (x,))
    assert np.isfinite(np.asarray(second)).all()


def test_two_functions_of_one_argument(rng: np.random.Generator) -> None:
    arrays = [rng.normal(size=s).astype("float32") for s in ((300,), (20,), (20,))]
    agrees(layers, plain_layers, arrays, rng)


def modulus(phase: Any, q: te.Expr, terms: int) -> te.Expr:
    j = te.reduce_axis((0, terms), "j")
    return te.sum(te.cos(phase(q, j)), axis=j) ** 2 + te.sum(te.sin(phase(q, j)), axis=j) ** 2


X, H = te.placeholder((40, 3), name="x"), te.placeholder((200, 3), name="h")
J = te.reduce_axis((0, 40), "j")
ARGUMENTS: dict[str, tuple[Any, str]] = {
    "structure factors": (
        lambda q: modulus(lambda q, j: H[q, 0] * X[j, 0] + H[q, 1] * X[j, 1] + H[q, 2] * X[j, 2], q, 40),
        "cos",
    ),
    "directions of an array": (lambda q: modulus(lambda q, j: X[j, 0] * te.tanh(H[q, 0]), q, 40), "cos"),
    "two saturations": (
        lambda q: te.sum(te.tanh(X[J, 0] - H[q, 1]) * te.exp(X[J, 0] - H[q, 1]), axis=J),
        "exp",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_two_functions_is_a_tensor(name: str) -> None:
    """What flows back to it is one tensor, of which each input takes a sum: slopes stand once, and not once for each input."""
    body, function = ARGUMENTS[name]
    y = te.compute((200,), body, "y")
    assert [sorted(t.shape) for t in shared(y)] == [[40, 200]]

    def times(without: tuple[str, ...]) -> int:
        text = str(te.function([X, H], y, without=without).source())
        return text.split("\ndef backward(")[1].count(f"jnp.{function}(")

    # slopes that are alike in one layout are written once in any case
    assert times(()) == 1 <= times(("shared elements",)) <= 6


def test_an_argument_of_one_function_is_left() -> None:
    """Its function is computed for each input: less than what is kept costs, where there is only one."""
    assert not shared(te.compute((200,), lambda q: te.sum(te.exp(X[J, 0] - H[q, 1]), axis=J), "y"))


def test_what_is_shared_is_kept_and_laid_out_alike() -> None:
    """The backward pass reads the argument, so XLA finds the functions of the forward pass again; axes of a result stand before those of its sum."""
    lam, n = te.placeholder((200,), name="lam"), te.placeholder((40,), name="n")
    j, k = te.reduce_axis((0, 40), "j"), te.reduce_axis((0, 40), "k")
    a = lambda w, j: n[j] / lam[w]  # noqa: E731
    weight = lambda w, j: te.exp(-n[j] * lam[w])  # noqa: E731
    real = te.compute((200,), lambda w: te.sum(weight(w, j) * te.cos(a(w, j)), axis=j), "real")
    imag = te.compute((200,), lambda w: te.sum(weight(w, k) * te.sin(a(w, k)), axis=k), "imag")
    y = te.compute((200,), lambda w: real[w] * imag[w], "y")
    found = shared(y)
    assert [tuple(t.shape) for t in found] == [(200, 40)] * 2
    text = str(te.function([lam, n], y).source())
    kept = text.split("\ndef backward(")[1].split(")")[0]
    assert all(t.name in kept for t in found)


OF_A_MATRIX = {
    "structure factors": ((te.cos, te.sin), (jnp.cos, jnp.sin)),
    "saturating": ((te.exp, te.tanh), (jnp.exp, jnp.tanh)),
    "features": ((te.cos, te.exp), (jnp.cos, jnp.exp)),
}


@pytest.mark.parametrize("kind", OF_A_MATRIX)
def test_the_matrix_of_a_product_is_kept_for_what_flows_back_to_the_other_one(
    kind: str, rng: np.random.Generator
) -> None:
    """It exists in the forward pass: functions are computed as often as in JAX's program, not once more for each gradient."""
    arrays = [0.5 * rng.standard_normal(shape).astype("float32") for shape in ((96, 2), (80, 3), (80,))]
    h = rng.standard_normal(96).astype("float32")
    functions, of_jax = OF_A_MATRIX[kind]

    def build(p: te.Tensor, q: te.Tensor, v: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, 80), "j")
        z = te.compute((96, 80), lambda i, j: p[i, 0] * q[j, 0] + p[i, 1] * q[j, 1] + q[j, 2], "z")
        a, b = (te.compute((96,), lambda i, f=f: te.sum(v[j] * f(z[i, j]), axis=j)) for f in functions)
        return te.compute((96,), lambda i: a[i] ** 2 + b[i] ** 2, "y")

    def plain(p: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        a, b = (f(p @ q[:, :2].T + q[:, 2]) @ v for f in of_jax)
        return a**2 + b**2

    def both(f: Callable[..., Any]) -> Any:
        return Fused(jax.jit(lambda *a: jax.vjp(f, *a)[1](h)).lower(*arrays))

    ours, theirs = both(te.function(build)), both(plain)
    counts = [own.cost_analysis()["transcendentals"] for own in (ours, theirs)]
    assert counts[0] <= counts[1] * 1.01
    for found, right in zip(ours(*arrays), theirs(*arrays), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-3 * np.abs(right).max())


def waves(p: te.Tensor, w: te.Tensor) -> te.Tensor:
    i, j = te.reduce_axis((0, p.shape[0]), "i"), te.reduce_axis((0, p.shape[0]), "j")
    even = te.compute((p.shape[1],), lambda k: te.sum(w[i] * te.cos(p[i, k]), axis=i), "even")
    odd = te.compute((p.shape[1],), lambda k: te.sum(w[j] * te.sin(p[j, k]), axis=j), "odd")
    return te.compute((p.shape[1],), lambda k: even[k] + 2.0 * odd[k], "y")


def columns(p: te.Tensor, w: te.Tensor) -> te.Tensor:
    i = te.reduce_axis((0, p.shape[0]), "i")
    return te.compute((p.shape[1],), lambda k: te.sum(te.exp(p[i, k]) * te.exp(w[i]), axis=i), "y")


def counts(p: te.Tensor, w: te.Tensor) -> te.Tensor:
    i, j = te.reduce_axis((0, p.shape[0]), "i"), te.reduce_axis((0, p.shape[0]), "j")
    return te.compute(
        (p.shape[1], 8),
        lambda k, b: te.sum(te.tanh(p[i, k]) * p[i, b], axis=i) + w[b] * te.sum(te.tanh(p[j, k]), axis=j),
        "y",
    )


@pytest.mark.parametrize(("build", "functions"), [(waves, 4), (columns, 1), (counts, 1)])
def test_a_function_of_an_array_lies_as_that_does(
    build: Callable[..., te.Tensor], functions: int, rng: np.random.Generator
) -> None:
    """However it is summed: in another order it is copied, or computed again for what flows back."""
    p, w = rng.normal(size=(300, 200)).astype(np.float32), rng.normal(size=300).astype(np.float32)
    own = te.function(build)
    both = jax.jit(jax.value_and_grad(lambda p, w: (own(p, w) ** 2).sum(), argnums=(0, 1)))
    compiled = Fused(both.lower(p, w))
    assert compiled.cost_analysis()["transcendentals"] <= functions * p.size + w.size
    assert "p.T" not in str(te.source(own, p, w))
