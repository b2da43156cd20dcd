"""``jacobian``, ``hessian`` and ``diagonal`` of JAX functions, whose zeros are neither computed nor kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves

from jaxte.bridge.primitive.lazy import PickledByName
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.frontends.jaxpr.traced import Fingerprint, Traced, fingerprint, is_floats, is_traced
from jaxte.frontends.sparse.pattern import coloured, defined, identity, is_pulled, nothing
from jaxte.frontends.sparse.propagation import Asked, propagated
from jaxte.lang.errors import ArgumentError
from jaxte.lang.limits import REMEMBERED

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Made:
    """A derivative of one program.

    Attributes:
        shape: of the result and the argument, one after the other.
        rows, columns: of the elements that are not zero by structure, sorted.
        values: these elements, from the arrays of a call.
        way: "definition", or how many vectors are pushed or pulled.
    """

    shape: tuple[int, ...]
    rows: np.ndarray
    columns: np.ndarray
    values: Callable[[Any], Any]
    way: str
    split: int

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return prod(self.shape[: self.split]), prod(self.shape[self.split :])


class SparseDerivative(PickledByName, Generic[R_co]):
    """The Jacobian (or Hessian) of a JAX function, as :func:`jaxte.jacobian` makes it."""

    def __init__(
        self, f: Callable[..., Any], argnums: int, second: bool, finish: Callable[..., R_co]
    ) -> None:
        self.raised = f if isinstance(f, Raised) else Raised(f)
        functools.update_wrapper(self, self.raised.f, updated=())
        if not isinstance(argnums, int):
            raise ArgumentError(
                f"a sparse derivative of {self.raised.__name__} is to one argument, and argnums is {argnums!r}; ask for each of them by itself"
            )
        self._argnum, self._second, self._finish = argnums, second, finish
        self._kept: list[tuple[Fingerprint, Made]] = []

    def __getstate__(self) -> dict[str, Any]:
        """Without the programs, which are made again."""
        return self.__dict__ | {"_kept": [], "__wrapped__": self.raised}

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        made, arrays = self._made(args, kwargs)
        return self._finish(made, made.values(arrays))

    def way(self, *args: Any, **kwargs: Any) -> str:
        """How the elements are found for these arguments: from the definition, or by how many vectors."""
        return self._made(args, kwargs)[0].way

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Made, Any]:
        traced = self.raised.traced(args, kwargs, likely=True)
        number = self._number(args)
        self._check(traced, number)
        own = fingerprint(traced.closed, f"{traced.rest} {number}")
        found = next(
            (made for key, made in self._kept if key.rough == own.rough and key.text == own.text), None
        )
        if found is None:
            found = _derivative(traced, number, self._second)
            self._kept = [*self._kept[-REMEMBERED:], (own, found)]
        return found, (*traced.arrays, *traced.closed.consts)

    def _number(self, args: tuple[Any, ...]) -> int:
        """Where the argument that is differentiated stands among the arrays."""
        name, n = self.raised.__name__, self._argnum
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"the derivative of {name} to argument {n}: it is called with {len(args)} arguments by position"
            )
        before = [leaf for arg in args[: n % len(args)] for leaf in tree_leaves(arg)]
        (leaf, *more) = tree_leaves(args[n]) or [None]
        of_jax = is_traced(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
        if more or not (of_jax or is_floats(leaf)):
            raise ArgumentError(
                f"a sparse derivative of {name} is by one array of floats, and argument {n} is none; name another with argnums=, or "
                "ravel a tree of arrays with jax.flatten_util.ravel_pytree"
            )
        return sum(is_traced(x) or is_floats(x) for x in before)

    def _check(self, traced: Traced, number: int) -> None:
        avals = [v.aval for v in traced.closed.jaxpr.outvars]
        if len(avals) != 1 or not jnp.issubdtype(avals[0].dtype, jnp.floating):
            raise ArgumentError(
                f"a sparse derivative is of a function that returns one array of floats; {self.raised.__name__} returns "
                f"{[str(a) for a in avals]}"
            )
        if self._second and avals[0].shape:
            raise ArgumentError(
                f"a sparse Hessian is of a scalar, and {self.raised.__name__} returns {avals[0]}; sum its elements"
            )


def _derivative(traced: Traced, number: int, second: bool) -> Made:
    """From the definition where the function is one, else from its pattern and colours."""
    closed = traced.closed
    source = closed.jaxpr.invars[number].aval
    out = source if second else closed.jaxpr.outvars[0].aval
    shape, split = (*out.shape, *source.shape), len(out.shape)
    found = defined(closed, number, second)
    if found is not None:
        matrix, fed = found
        at = matrix.structure.flat_indices
        count = len(traced.arrays)
        return Made(shape, at[:, 0], at[:, 1], lambda a: matrix.values(*fed(a[:count])), "definition", split)

    def along(arrays: Any) -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            given = [x if n == number else a for n, a in enumerate(arrays[: len(traced.arrays)])]
            return jax.core.eval_jaxpr(closed.jaxpr, arrays[len(traced.arrays) :], *given)[0]

        return jax.grad(f) if second else f

    given = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype)
        for v in (*closed.jaxpr.invars, *closed.jaxpr.constvars)
    ]
    whole = jax.make_jaxpr(lambda *a: along(a)(a[number]))(*given)
    states = [
        (identity(v.aval.shape) if n == number else nothing(v.aval.shape, prod(source.shape)), None)
        for n, v in enumerate(closed.jaxpr.invars)
    ]
    states += [(nothing(np.shape(c), prod(source.shape)), _known(c)) for c in closed.consts]
    colours = coloured(propagated(whole, states, Asked(prod(source.shape)))[0][0], is_pulled(whole))
    way = f"{colours.count} vectors {'forward' if colours.pushes else 'back'}"
    values = lambda a: colours.values(along(a), a[number])  # noqa: E731
    return Made(shape, colours.rows, colours.columns, values, way, split)


def _known(const: Any) -> Any:
    return None if isinstance(const, jax.core.Tracer) else np.asarray(const)
