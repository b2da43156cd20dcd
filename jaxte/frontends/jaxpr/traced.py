"""The call of a JAX function as a jaxpr, and its result from that of the jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_unflatten

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lang.identity import filled_in


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
        leaves = [_if_likely(leaf) for leaf in leaves]
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


def _if_likely(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f" else leaf


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
