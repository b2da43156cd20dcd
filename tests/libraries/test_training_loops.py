"""Training loops of libraries that take gradients themselves, given a raised loss: the same gradients as of the loss.

Without a library its test is skipped; `make test-libraries` installs those that are missing.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

import jaxte as te

pytestmark = pytest.mark.filterwarnings("default")

X = jnp.asarray(np.random.default_rng(0).normal(size=(32, 32)).astype("float32"))


def smooth(u: Any) -> Any:
    for _ in range(2):
        u = u + 0.1 * (
            jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        )
    return u


def loss(p: Any) -> Any:
    return jnp.mean((smooth(p * X) - 1) ** 2) + 0.1 * jnp.sum(p**2)


def close(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


def both(run: Callable[[Callable[..., Any]], Any], f: Callable[..., Any] = loss) -> None:
    """The same result with the raised function as with the function."""
    close(run(te.adjoint(f)), run(f))


def test_the_loss_is_raised() -> None:
    assert te.explain(te.grad(loss), X).regions


def test_flax_nnx() -> None:
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(32, 32, rngs=nnx.Rngs(0))

    def of_model(model: Any) -> Any:
        return jnp.mean(smooth(model(X)) ** 2)

    found, expected = (nnx.state(nnx.grad(f)(model)) for f in (te.adjoint(of_model), of_model))
    close(jax.tree.leaves(found), jax.tree.leaves(expected))


def test_haiku() -> None:
    haiku = pytest.importorskip("haiku")
    net = haiku.without_apply_rng(haiku.transform(lambda x: smooth(haiku.Linear(32)(x))))
    params = net.init(jax.random.key(0), X)
    both(lambda f: jax.grad(f)(params), lambda params: jnp.mean(net.apply(params, X) ** 2))


def test_jaxopt() -> None:
    jaxopt = pytest.importorskip("jaxopt")
    both(lambda f: jaxopt.LBFGS(f, maxiter=3).run(jnp.ones_like(X)).params)


def test_optimistix() -> None:
    optimistix = pytest.importorskip("optimistix")
    solver = optimistix.BFGS(rtol=1e-3, atol=1e-3)

    def run(f: Callable[..., Any]) -> Any:
        return optimistix.minimise(
            lambda p, _: f(p), solver, jnp.ones((32, 1)), max_steps=64, throw=False
        ).value

    both(run)


def test_diffrax_vector_field() -> None:
    diffrax = pytest.importorskip("diffrax")

    def run(f: Callable[..., Any]) -> Any:
        def end(u: Any) -> Any:
            term = diffrax.ODETerm(lambda t, u, args: f(u) - u)
            return jnp.sum(diffrax.diffeqsolve(term, diffrax.Heun(), 0.0, 0.5, 0.1, u).ys[-1] ** 2)

        return jax.grad(end)(X)

    both(run, smooth)


def test_numpyro() -> None:
    infer = pytest.importorskip("numpyro.infer")

    def run(f: Callable[..., Any]) -> Any:
        kernel = infer.HMC(potential_fn=lambda p: f(p), num_steps=3, step_size=0.01, adapt_step_size=False)
        chain = infer.MCMC(kernel, num_warmup=1, num_samples=2, progress_bar=False)
        chain.run(jax.random.key(0), init_params=0.1 * jnp.ones((32, 1)))
        return chain.get_samples()

    both(run)


def test_blackjax() -> None:
    blackjax = pytest.importorskip("blackjax")

    def run(f: Callable[..., Any]) -> Any:
        sampler = blackjax.hmc(lambda p: -f(p), 0.01, jnp.ones(32), 3)
        state = sampler.init(0.1 * jnp.ones((32, 1)))
        return sampler.step(jax.random.key(0), state)[0].position

    both(run, lambda p: loss(p.reshape(32, 1)))


def test_losses_over_devices() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    spec = PartitionSpec("data")

    def run(f: Callable[..., Any]) -> Any:
        def of_part(u: Any) -> Any:
            return lax.pmean(jnp.mean(f(u) ** 2), "data")

        return jax.grad(jax.shard_map(of_part, mesh=mesh, in_specs=spec, out_specs=PartitionSpec()))(X)

    both(run, smooth)


def test_what_jax_does_around_a_loss() -> None:
    def of_state(state: dict[str, Any], count: int, scale: float = 1.0) -> Any:
        u = state["u"]
        for _ in range(count):
            u = smooth(u)
        return scale * jnp.mean(u**2), {"last": u, "none": state["none"]}

    state = {"u": X, "none": None}
    for wrap in (
        lambda f: jax.jit(f, static_argnums=1),
        lambda f: lambda s, n: jax.jit(f, static_argnums=1, donate_argnums=0)(jax.tree.map(jnp.array, s), n),
        lambda f: jax.checkpoint(f, static_argnums=1),
    ):
        found = wrap(te.grad(of_state, has_aux=True))(state, 2)
        expected = wrap(jax.grad(of_state, has_aux=True))(state, 2)
        assert found[0]["none"] is None and found[1]["none"] is None
        close(found, expected)
