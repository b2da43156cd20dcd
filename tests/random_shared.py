"""Random definitions whose factors are repeated and shared among neighbouring reads, beside the same functions of JAX arrays.

``d + d * sin(d)`` for differences ``d`` of elements at shifted, periodic, held and data positions; chosen branches that are not finite where they are
not taken, medians and quotients of them; in one step or in two with a sum over a window. Second derivatives of such functions need
each part to be counted once, also where a head is exactly zero and where two reads coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxte as te

Body = Callable[[Sequence[Any], Any], Any]  # of the elements that are read, in the functions of te or of jnp


class _InJax:
    """The functions that bodies call, on arrays."""

    sin, exp, sqrt, tanh = jnp.sin, jnp.exp, jnp.sqrt, jnp.tanh
    maximum, minimum, select = jnp.maximum, jnp.minimum, jnp.where


@dataclass(frozen=True)
class Shared:
    """A function of ``x`` (n,) and integer positions (n,): as a builder of tensors, and in plain JAX."""

    builder: Callable[[Any, Any], Any]
    plain: Callable[[Any, Any], Any]
    n: int

    def arrays(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=self.n), rng.integers(0, self.n, self.n).astype("int32")


def _positions(kind: str, shift: int, n: int) -> Callable[[Any, Any, Any], Any]:
    """``(i, positions, functions)`` to the position of an element."""

    def at(i: Any, data: Any, f: Any) -> Any:
        match kind:
            case "periodic":
                return (i + shift) % n
            case "held":
                return f.minimum(f.maximum(i + shift, 0), n - 1)
            case "data":
                return data[i]
        return i

    return at


def _term(rng: np.random.Generator, leaves: int) -> Body:
    """One term, of a difference ``d`` that it uses several times."""
    a, b, c = rng.integers(0, leaves, 3)
    kind = rng.integers(0, 8)

    def term(reads: Sequence[Any], f: Any) -> Any:
        u, v, w = reads[a], reads[b], reads[c]
        d = u - v if a != b else u
        match kind:
            case 0:
                return u + d * f.sin(d)
            case 1:
                return d * f.exp(-d * d) * w
            case 2:
                return f.select(d > 0.1, f.sqrt(d) * w, d * d)
            case 3:
                return d / (1.0 + d * d) + d * w
            case 4:
                return f.maximum(f.minimum(u, v), f.minimum(f.maximum(u, v), w)) * v
            case 5:
                return f.select(w > 0.0, d / w, w) * f.tanh(d)
            case 6:
                return d * d * w + f.tanh(d) * f.tanh(d) * u
        return f.maximum(d, w) * f.sin(d) + d

    return term


def _body(rng: np.random.Generator, leaves: int) -> Body:
    """Two or three terms, one of which may come twice, or multiply the others."""
    terms = [_term(rng, leaves) for _ in range(int(rng.integers(1, 3)))]
    again, way = int(rng.integers(0, len(terms))), int(rng.integers(0, 3))

    def body(reads: Sequence[Any], f: Any) -> Any:
        found = [t(reads, f) for t in terms]
        total = found[0]
        for other in found[1:]:
            total = total + other
        shared = found[again]
        return total + (shared * f.sin(shared) if way == 0 else shared * reads[0] if way == 1 else reads[-1])

    return body


def shared(seed: int) -> Shared:
    """The definition of ``seed``."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    kinds = ["here", *rng.choice(["periodic", "held", "data"], int(rng.integers(1, 4)))]
    at = [_positions(str(kind), int(rng.integers(-2, 3)), n) for kind in kinds]
    steps = [_body(rng, len(at)) for _ in range(int(rng.integers(1, 3)))]
    window = int(rng.integers(0, 3))  # summed over at the end, where it is not 0

    def builder(x: Any, data: Any) -> Any:
        for body in steps:
            x = te.compute((n,), lambda i, x=x, b=body: b([x[p(i, data, te)] for p in at], te), "y")  # type: ignore[misc]
        if not window:
            return x
        k = te.reduce_axis((0, window), "k")
        return te.compute((n - window + 1,), lambda i: te.sum(te.sin(x[i + k]) * x[i], axis=k), "z")

    def plain(x: Any, data: Any) -> Any:
        i = jnp.arange(n)
        for body in steps:
            x = body([x[p(i, data, jnp)] for p in at], _InJax)
        if not window:
            return x
        m = n - window + 1
        return sum((jnp.sin(x[k : k + m]) * x[:m] for k in range(window)), jnp.zeros(m))

    return Shared(builder, plain, n)
