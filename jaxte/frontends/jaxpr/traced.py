"""The call of a JAX function as a jaxpr, and its result from that of the jaxpr.

The plans of a function, one for each program that it was traced to.

Whether two programs are the same, their texts say. A text takes a tenth of the time of tracing, so it is made where a program of as many
equations over the same arrays comes a second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_unflatten

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.calls.outputs import x64_enabled
from jaxte.frontends.jaxpr.equations.steps import known_array
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.plan.moving import Wanted
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lang.graphs import filled_in
from jaxte.lang.limits import REMEMBERED


@dataclass(frozen=True, eq=False)
class Traced:
    """A call as a jaxpr.

    Attributes:
        closed: the jaxpr.
        arrays: the arrays of the call, its arguments.
        rebuild: the result of the call from those of the jaxpr.
        rest: the other arguments as text, which rules of derivatives may depend on without being seen in the jaxpr.
    """

    closed: Any
    arrays: Sequence[Any]
    rebuild: Callable[[Sequence[Any]], Any]
    rest: str = ""


def call_as_jaxpr(
    f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], likely: bool = False
) -> Traced:
    """The call of ``f``, which errors tell by its ``name``, as a jaxpr.

    Arrays of NumPy are arguments where a derivative by them is ``likely``, else part of the function.

    Raises:
        ArgumentError: ``f`` is a builder of Tensors.
    """
    leaves, tree = tree_flatten((args, kwargs))
    if likely:
        leaves = [jnp.asarray(leaf) if is_floats(leaf) else leaf for leaf in leaves]
    places = [n for n, leaf in enumerate(leaves) if is_traced(leaf)]
    shape: list[Any] = []

    def flat(*arrays: Any) -> list[Any]:
        own_args, own_kwargs = tree_unflatten(tree, filled_in(leaves, places, arrays))
        results, out = tree_flatten(_called(f, name, own_args, own_kwargs))
        own = [n for n, r in enumerate(results) if is_traced(r)]
        shape[:] = [out, own, [None if n in set(own) else r for n, r in enumerate(results)]]
        return [results[n] for n in own]

    arrays = [leaves[n] for n in places]
    with as_it_is():
        closed = jax.make_jaxpr(flat)(*arrays)
    out, own, rest = shape
    if has_tensor(rest):
        raise _builder(name, "it returns Tensors")

    def rebuild(results: Sequence[Any]) -> Any:
        return tree_unflatten(out, filled_in(rest, own, results))

    still = [None if n in set(places) else leaf for n, leaf in enumerate(leaves)]
    return Traced(closed, arrays, rebuild, f"{tree} {still}")


def is_traced(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an array to be traced; all else is part of the function, as for ``jax.grad``."""
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)) and not jax.dtypes.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    )


def is_floats(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an array of NumPy of floats, those of 16 bits that NumPy itself has not among them."""
    return isinstance(leaf, np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.floating)


def _called(f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return f(*args, **kwargs)
    except DefinitionError as error:
        raise _builder(name, str(error)) from error


def _builder(name: str, error: str) -> ArgumentError:
    return ArgumentError(
        f"{name} is called with arrays, as every plain callable is here; a builder of Tensors is given to te.function first, as in "
        f"te.grad(te.function({name})). What went wrong with arrays: {error}"
    )


@dataclass(frozen=True)
class Fingerprint:
    """What the plan of a call depends on: its jaxpr, the constants in it that are known, and what may hide in rules.

    Attributes:
        rest: the other arguments as text, which rules of derivatives may depend on without being seen in the jaxpr.
    """

    jaxpr: Any
    constants: bytes
    rest: str
    x64: bool

    @cached_property
    def rough(self) -> Hashable:
        """Equal for equal programs."""
        own = self.jaxpr
        types = tuple(str(v.aval) for v in (*own.invars, *own.constvars, *own.outvars))
        return types, tuple(e.primitive for e in own.eqns), self.constants, self.rest, self.x64

    @cached_property
    def text(self) -> str:
        return str(self.jaxpr)


def fingerprint(closed: Any, rest: str) -> Fingerprint:
    """That of a call which was traced to ``closed``."""
    digest = hashlib.sha1(usedforsecurity=False)
    for const in closed.consts:
        known = known_array(const)
        digest.update(b"-" if known is None else known.tobytes())
    return Fingerprint(closed.jaxpr, digest.digest(), rest, x64_enabled())


class KeptPlans:
    """Plans by fingerprint and by the arguments that they are derived by; after many they are made anew."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[tuple[Fingerprint, Wanted, Plan]]] = {}

    def find(self, own: Fingerprint, wanted: Wanted = None) -> Plan | None:
        """The plan of a program by ``wanted``, or by all arguments."""
        found = dict(self._alike(own))
        return found.get(None) or found.get(wanted)

    def keep(self, own: Fingerprint, plan: Plan, wanted: Wanted = None) -> None:
        """From now on ``plan`` is that of the program."""
        if len(self._kept) >= REMEMBERED:
            self._kept.clear()
        others = [
            entry
            for entry in self._kept.get(own.rough, ())
            if (entry[0].text, entry[1]) != (own.text, wanted)
        ]
        self._kept[own.rough] = [*others, (own, wanted, plan)]

    def _alike(self, own: Fingerprint) -> Iterator[tuple[Wanted, Plan]]:
        for other, wanted, plan in self._kept.get(own.rough, ()):
            if other.text == own.text:
                yield wanted, plan
