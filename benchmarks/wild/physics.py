"""Fields: exponax, phiflow and fdtdx's kind of steps through their own functions."""

from __future__ import annotations

import exponax as ex
import jax
import jax.numpy as jnp
from phi.jax import flow

from wild.registry import Call, loss, normal

jax.config.update("jax_enable_x64", False)  # which phiflow switches on


def rolled_out(stepper: object, steps: int, u: jax.Array) -> Call:
    """The mean square at the end of several steps."""
    return lambda u: jnp.mean(ex.repeat(stepper, steps)(u) ** 2), (u,)


@loss("exponax", "Burgers' equation by a spectral stepper")
def exponax_burgers() -> Call:
    return rolled_out(ex.stepper.Burgers(1, 1.0, 256, 1e-3), 10, normal(1, 256))


@loss("exponax", "Kuramoto and Sivashinsky's equation")
def exponax_kuramoto() -> Call:
    return rolled_out(
        ex.stepper.KuramotoSivashinskyConservative(1, 60.0, 256, 0.1), 10, normal(1, 256, scale=0.1)
    )


@loss("exponax", "Fisher's reactions and diffusion in two dimensions")
def exponax_fisher() -> Call:
    own = ex.stepper.reaction.FisherKPP(2, 10.0, 64, 0.01)
    return rolled_out(own, 5, normal(1, 64, 64, scale=0.1))


@loss("exponax", "vorticity of decaying turbulence")
def exponax_vorticity() -> Call:
    own = ex.stepper.NavierStokesVorticity(2, 1.0, 64, 1e-3, diffusivity=1e-3)
    return rolled_out(own, 5, normal(1, 64, 64))


def grid(values: jax.Array) -> object:
    """A field with periodic ends."""
    own = flow.tensor(values, flow.spatial("x,y"))
    return flow.CenteredGrid(own, flow.extrapolation.PERIODIC, flow.Box(x=1.0, y=1.0))


@loss("phiflow", "diffusion of a field with periodic ends")
def phiflow_diffusion() -> Call:
    def f(u):
        field = grid(u)
        for _ in range(5):
            field = flow.diffuse.explicit(field, 1e-5, 0.1)
        return jnp.mean(field.values.native("x,y") ** 2)

    return f, (normal(128, 128),)


@loss("phiflow", "the Laplacian and gradients of a field")
def phiflow_laplacian() -> Call:
    def f(u):
        field = grid(u)
        own = flow.field.laplace(field).values.native("x,y")
        slope = flow.field.spatial_gradient(field).values.native("x,y,vector")
        return jnp.mean(own**2) + jnp.mean(slope**2)

    return f, (normal(128, 128),)


@loss("phiflow", "semi-Lagrangian advection by a fixed wind")
def phiflow_advection() -> Call:
    def f(u, wind):
        velocity = flow.CenteredGrid(
            flow.tensor(wind, flow.spatial("x,y"), flow.channel(vector="x,y")),
            flow.extrapolation.PERIODIC,
            flow.Box(x=1.0, y=1.0),
        )
        field = grid(u)
        for _ in range(2):
            field = flow.advect.semi_lagrangian(field, velocity, 0.01)
        return jnp.mean(field.values.native("x,y") ** 2)

    return f, (normal(48, 48), normal(48, 48, 2, seed=1))
