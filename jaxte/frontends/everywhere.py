"""``everywhere``: derivatives that other people's code takes, raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxte.frontends.jaxpr.raised import Raised
from jaxte.frontends.jaxpr.taken import taken_by
from jaxte.lower.cost.platforms import platform_of


@contextmanager
def everywhere(*, everything: bool = False, safe: bool = True, platform: str | None = None) -> Iterator[None]:
    """Within the block, ``jax.grad``, ``jax.value_and_grad`` and ``jax.vjp`` are those of jaxte, in code that knows nothing of it.

    A training loop of a library takes its gradients by ``jax.value_and_grad(loss)``; within the block ``loss`` is raised as
    :func:`adjoint` raises it. It holds for what is called or traced in the block by this thread; after the block, and after an exception in it,
    everything is as before. Blocks can be nested; the innermost one counts.

    - A function that was compiled before keeps its program, and so does one that is compiled within the block afterwards.
    - Code that took ``jax.grad`` out of the module before, by ``from jax import grad``, does not see it, and so do ``jax.jacrev``, ``jax.hessian``
      and ``jax.linearize``.
    - While one thread is in a block, others call a function that asks whether they are, and then JAX's own.

    Args:
        everything: as in :func:`adjoint`.
        safe: as in :func:`adjoint`.
        platform: as in :func:`adjoint`.

    Raises:
        LoweringError: the platform is unknown.

    Example:
        >>> with te.everywhere():
        ...     jax.grad(lambda u: jnp.sum(jnp.roll(u, 1) * u))(jnp.arange(4.0))
        Array([4., 2., 4., 2.], dtype=float32)
    """
    if platform is not None:
        platform_of(platform)
    with taken_by(lambda f: Raised(f, everything, safe, platform)):
        yield
