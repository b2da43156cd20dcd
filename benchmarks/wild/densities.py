"""Densities, kernels, ranks and transports: numpyro, tinygp, gpjax, distrax, flowjax, ott and rax."""

from __future__ import annotations

import distrax
import equinox as eqx
import flowjax.bijections as bijections
import flowjax.distributions as densities
import flowjax.flows as flows
import gpjax
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import rax
import tinygp
from numpyro.infer.util import log_density
from ott.geometry import costs, pointcloud
from ott.solvers import linear
from ott.tools.soft_sort import ranks

from wild.registry import Call, integers, loss, normal, uniform

KEY = jax.random.key(0)


@loss("numpyro", "a hierarchical regression")
def numpyro_hierarchical() -> Call:
    groups, x, y = integers(20, 2000), normal(2000), normal(2000, seed=1)

    def model(groups, x, y):
        mean, spread = (
            numpyro.sample("mean", dist.Normal(0, 1)),
            numpyro.sample("spread", dist.LogNormal(0, 1)),
        )
        with numpyro.plate("groups", 20):
            slope = numpyro.sample("slope", dist.Normal(mean, spread))
        numpyro.sample("y", dist.Normal(slope[groups] * x, 1.0), obs=y)

    values = {"mean": jnp.float32(0.1), "spread": jnp.float32(0.9), "slope": normal(20)}
    return lambda values, x, y: -log_density(model, (groups, x, y), {}, values)[0], (values, x, y)


@loss("numpyro", "stochastic volatility as a random walk")
def numpyro_volatility() -> Call:
    def f(steps, returns):
        walk = dist.GaussianRandomWalk(0.1, num_steps=2000)
        return -walk.log_prob(steps) - jnp.sum(dist.StudentT(5.0, 0.0, jnp.exp(steps)).log_prob(returns))

    return f, (jnp.cumsum(normal(2000, scale=0.1)), normal(2000))


@loss("numpyro", "a mixture of normals")
def numpyro_mixture() -> Call:
    def f(logits, means, x):
        own = dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(means, 1.0))
        return -jnp.sum(own.log_prob(x))

    return f, (normal(8), normal(8, seed=1), normal(4000))


@loss("numpyro", "a Markov chain of hidden states, by forward sums")
def numpyro_hidden() -> Call:
    def f(transitions, emissions):
        def step(alpha, own):
            return jax.nn.logsumexp(alpha[:, None] + jax.nn.log_softmax(transitions, 1), 0) + own, None

        scores = dist.Normal(jnp.arange(16.0), 1.0).log_prob(emissions[:, None])
        return -jax.nn.logsumexp(jax.lax.scan(step, jnp.zeros(16), scores)[0])

    return f, (normal(16, 16), uniform(300, high=16.0))


@loss("tinygp", "the evidence of a Gaussian process")
def tinygp_evidence() -> Call:
    def f(scale, x, y):
        kernel = jnp.exp(scale[0]) * tinygp.kernels.ExpSquared(jnp.exp(scale[1]))
        return -tinygp.GaussianProcess(kernel, x, diag=0.1).log_probability(y)

    return f, (jnp.zeros(2), jnp.sort(normal(200)), normal(200, seed=1))


@loss("tinygp", "a Matern kernel of points in three dimensions")
def tinygp_matern() -> Call:
    def f(x, y):
        kernel = tinygp.kernels.Matern32(1.5, distance=tinygp.kernels.distance.L2Distance())
        return y @ kernel(x, x) @ y

    return f, (normal(300, 3), normal(300))


@loss("gpjax", "the Gram matrix of a radial kernel, its marginal likelihood")
def gpjax_radial() -> Call:
    def f(x, y):
        gram = gpjax.kernels.RBF(lengthscale=jnp.float32(0.8)).gram(x).as_matrix() + 0.1 * jnp.eye(len(x))
        lower = jnp.linalg.cholesky(gram)
        rest = jax.scipy.linalg.solve_triangular(lower, y, lower=True)
        return jnp.sum(rest**2) / 2 + jnp.sum(jnp.log(jnp.diag(lower)))

    return f, (normal(150, 2), normal(150, 1))


@loss("distrax", "a normal with a full covariance")
def distrax_normal() -> Call:
    def f(mean, scale, x):
        return -jnp.sum(distrax.MultivariateNormalTri(mean, jnp.tril(scale) + 3 * jnp.eye(16)).log_prob(x))

    return f, (normal(16), normal(16, 16), normal(500, 16, seed=1))


@loss("distrax", "a rational quadratic spline")
def distrax_spline() -> Call:
    def f(params, x):
        y, logdet = distrax.RationalQuadraticSpline(params, -3.0, 3.0).forward_and_log_det(x)
        return jnp.mean(y**2) - jnp.mean(logdet)

    return f, (normal(2000, 25), normal(2000, seed=1))


@loss("flowjax", "a masked autoregressive flow")
def flowjax_autoregressive() -> Call:
    own = flows.masked_autoregressive_flow(KEY, base_dist=densities.Normal(jnp.zeros(8)), flow_layers=2)
    params, static = eqx.partition(own, eqx.is_inexact_array)
    return lambda params, x: -jnp.mean(eqx.combine(params, static).log_prob(x)), (params, normal(256, 8))


@loss("flowjax", "splines of each feature")
def flowjax_splines() -> Call:
    own = bijections.RationalQuadraticSpline(knots=8, interval=4)
    params, static = eqx.partition(own, eqx.is_inexact_array)

    def f(params, x):
        y, logdet = jax.vmap(eqx.combine(params, static).transform_and_log_det)(x)
        return jnp.mean(y**2) - jnp.mean(logdet)

    return f, (params, normal(2000))


@loss("ott", "entropic transport between two clouds")
def ott_sinkhorn() -> Call:
    def f(x, y):
        geometry = pointcloud.PointCloud(x, y, epsilon=0.1)
        return linear.solve(geometry, max_iterations=20, min_iterations=20).reg_ot_cost

    return f, (uniform(128, 2), uniform(128, 2, seed=1))


@loss("ott", "soft ranks of a vector")
def ott_ranks() -> Call:
    return lambda x: jnp.mean(ranks(x, epsilon=0.1, max_iterations=10, min_iterations=10) ** 2), (
        normal(100),
    )


@loss("ott", "costs of all pairs of points")
def ott_costs() -> Call:
    def f(x, y):
        return jnp.mean(
            jax.nn.logsumexp(-pointcloud.PointCloud(x, y, cost_fn=costs.SqEuclidean()).cost_matrix, 1)
        )

    return f, (normal(400, 3), normal(400, 3, seed=1))


@loss("rax", "a loss of pairs of ranks")
def rax_pairs() -> Call:
    labels = integers(5, 32, 60).astype("float32")
    return lambda scores: rax.pairwise_logistic_loss(scores, labels), (normal(32, 60),)


@loss("rax", "squared errors of pairs, and of sorted lists")
def rax_lists() -> Call:
    labels = integers(5, 32, 60).astype("float32")

    def f(scores):
        return rax.pairwise_mse_loss(scores, labels) + rax.listmle_loss(scores, labels)

    return f, (normal(32, 60),)


@loss("rax", "softmax and hinges of pairs")
def rax_hinges() -> Call:
    labels = integers(2, 64, 40).astype("float32")

    def f(scores):
        return rax.softmax_loss(scores, labels) + rax.pairwise_hinge_loss(scores, labels)

    return f, (normal(64, 40),)


@loss("distrax", "the likelihood of a hidden Markov model")
def distrax_hidden() -> Call:
    observed = normal(200)

    def f(transitions, means):
        model = distrax.HMM(
            distrax.Categorical(logits=jnp.zeros(12)),
            distrax.Categorical(logits=transitions),
            distrax.Normal(means, 1.0),
        )
        return -model.forward(observed)[0]

    return f, (normal(12, 12), normal(12, seed=1))


@loss("tinygp", "the evidence by a quasiseparable kernel")
def tinygp_quasiseparable() -> Call:
    t = jnp.sort(uniform(300, high=10.0))
    y = jnp.sin(t)

    def f(p):
        kernel = jnp.exp(p[0]) * tinygp.kernels.quasisep.Matern32(jnp.exp(p[1]))
        return -tinygp.GaussianProcess(kernel, t, diag=jnp.exp(p[2])).log_probability(y)

    return f, (jnp.array([0.0, 0.1, -2.0]),)
