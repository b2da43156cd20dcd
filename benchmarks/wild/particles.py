"""Particles, bodies and graphs: jax_md, mjx, jraph and e3nn."""

from __future__ import annotations

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import jraph
import mujoco
from jax_md import energy, space
from mujoco import mjx

from wild.registry import Call, integers, loss, normal, uniform


def crystal(count: int, dimensions: int = 3) -> jax.Array:
    """Particles near a lattice of unit length."""
    side = round(count ** (1 / dimensions))
    points = jnp.stack(jnp.meshgrid(*[jnp.arange(side, dtype="float32")] * dimensions), -1)
    return points.reshape(-1, dimensions) * 1.1 + normal(side**dimensions, dimensions, scale=0.05)


@loss("jax_md", "Lennard-Jones energies of all pairs in a periodic box")
def md_lennard_jones() -> Call:
    displacement, _ = space.periodic(7.0)
    return energy.lennard_jones_pair(displacement), (crystal(216),)


@loss("jax_md", "Morse energies of all pairs in free space")
def md_morse() -> Call:
    displacement, _ = space.free()
    return energy.morse_pair(displacement), (crystal(216),)


@loss("jax_md", "soft spheres in two dimensions")
def md_soft_spheres() -> Call:
    displacement, _ = space.periodic(22.0)
    return energy.soft_sphere_pair(displacement), (crystal(400, 2),)


@loss("jax_md", "springs between neighbours of a chain")
def md_chain() -> Call:
    displacement, _ = space.free()
    bonds = jnp.stack([jnp.arange(1999), jnp.arange(1, 2000)], 1)
    return energy.simple_spring_bond(displacement, bonds), (normal(2000, 3),)


@loss("jax_md", "Stillinger and Weber's energies of triples")
def md_triples() -> Call:
    displacement, _ = space.periodic(12.0)
    return energy.stillinger_weber(displacement, sigma=1.0), (1.5 * crystal(64),)


PENDULUM = """
<mujoco><option timestep="0.01" solver="CG" iterations="4"/><worldbody>
<body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/>
<body pos="0 0 -0.5"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/>
</body></body></worldbody></mujoco>
"""


@loss("mjx", "two steps of a double pendulum")
def mjx_pendulum() -> Call:
    model = mjx.put_model(mujoco.MjModel.from_xml_string(PENDULUM))

    def f(qpos, qvel):
        data = mjx.make_data(model).replace(qpos=qpos, qvel=qvel)
        for _ in range(2):
            data = mjx.step(model, data)
        return jnp.sum(data.qpos**2) + jnp.sum(data.qvel**2)

    return f, (normal(2), normal(2, seed=1))


@loss("mjx", "positions of a chain of bodies")
def mjx_kinematics() -> Call:
    model = mjx.put_model(mujoco.MjModel.from_xml_string(PENDULUM))

    def f(qpos):
        own = lambda q: mjx.kinematics(model, mjx.make_data(model).replace(qpos=q)).xpos
        return jnp.sum(jax.vmap(own)(qpos) ** 2)

    return f, (normal(256, 2),)


def graph(nodes: int, edges: int, features: int) -> jraph.GraphsTuple:
    return jraph.GraphsTuple(
        nodes=normal(nodes, features),
        edges=normal(edges, features, seed=1),
        senders=integers(nodes, edges),
        receivers=integers(nodes, edges, seed=1),
        globals=None,
        n_node=jnp.array([nodes]),
        n_edge=jnp.array([edges]),
    )


@loss("jraph", "a layer of a graph convolution")
def jraph_convolution() -> Call:
    own = graph(500, 3000, 32)

    def f(w, x):
        layer = jraph.GraphConvolution(lambda n: jax.nn.relu(n @ w), add_self_edges=True)
        return jnp.mean(layer(own._replace(nodes=x)).nodes ** 2)

    return f, (normal(32, 32), own.nodes)


@loss("jraph", "a graph network with attention on edges")
def jraph_attention() -> Call:
    own = graph(400, 2400, 16)

    def f(w, v, x):
        layer = jraph.GAT(lambda n: n @ w, lambda s, r, e: jnp.concatenate([s, r], -1) @ v, None)
        return jnp.mean(layer(own._replace(nodes=x)).nodes ** 2)

    return f, (normal(16, 16), normal(32, 1), own.nodes)


@loss("jraph", "a network of edges and nodes")
def jraph_network() -> Call:
    own = graph(400, 2400, 16)

    def f(w, v, x):
        net = jraph.GraphNetwork(
            lambda e, s, r, g: jnp.tanh(jnp.concatenate([e, s, r], -1) @ w),
            lambda n, s, r, g: jnp.tanh(jnp.concatenate([n, s, r], -1) @ v),
        )
        return jnp.mean(net(own._replace(nodes=x)).nodes ** 2)

    return f, (normal(48, 16, scale=0.1), normal(48, 16, scale=0.1), own.nodes)


@loss("e3nn", "spherical harmonics of points")
def e3nn_harmonics() -> Call:
    def f(x):
        return jnp.mean(e3nn.spherical_harmonics("0e + 1o + 2e + 3o", x, normalize=True).array ** 4)

    return f, (normal(2000, 3),)


@loss("e3nn", "a tensor square and a linear map")
def e3nn_square() -> Call:
    irreps = e3nn.Irreps("8x0e + 8x1o")

    def f(x):
        return jnp.mean(e3nn.tensor_square(e3nn.IrrepsArray(irreps, x)).array ** 2)

    return f, (normal(100, irreps.dim),)


@loss("e3nn", "gated features")
def e3nn_gate() -> Call:
    irreps = e3nn.Irreps("16x0e + 8x0e + 8x1o")

    def f(x):
        return jnp.mean(e3nn.gate(e3nn.IrrepsArray(irreps, x)).array ** 2)

    return f, (normal(2000, irreps.dim),)


@loss("e3nn", "a basis of Bessel functions with an envelope")
def e3nn_bessel() -> Call:
    def f(r):
        return jnp.mean((e3nn.bessel(r, 8, 5.0) * e3nn.poly_envelope(5, 2, 5.0)(r)[:, None]) ** 2)

    return f, (uniform(4000, low=0.2, high=4.8),)


@loss("e3nn", "messages of neighbours by tensor products, summed at nodes")
def e3nn_messages() -> Call:
    senders, receivers = integers(200, 2000), integers(200, 2000, seed=1)

    def f(x, weights):
        features = e3nn.IrrepsArray("8x0e+4x1o", x)
        edges = x[senders][:, 8:11] - x[receivers][:, 8:11]
        harmonics = e3nn.spherical_harmonics("0e+1o", edges + 0.1, False)
        messages = e3nn.tensor_product(features[senders], harmonics).array
        return jnp.mean(jax.ops.segment_sum(messages * weights, receivers, 200) ** 2)

    return f, (normal(200, 20), normal(80, seed=1))
