"""What a derivative of a JAX function is, and which functions are raised for it.

What a function is, its type says: an object that ``te.function`` made is one of Tensors, every other callable is called with arrays as
JAX calls it, and is raised. Nothing is tried out.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.functions.builder_function import Array, BuilderFunction
from jaxte.bridge.functions.evaluate import Explained
from jaxte.bridge.functions.function import GraphFunction
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import PickledByName
from jaxte.frontends.jaxpr.adjoint import adjoint
from jaxte.frontends.jaxpr.explain import RaisedReport
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.lang.checks import described, for_users
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
PyTree: TypeAlias = Any  # whose structure no type checker knows, as in the annotations of JAX
OwnFunction: TypeAlias = BuilderFunction[..., Tensor] | BuilderFunction[..., Array] | GraphFunction[Array]


class Transformed(PickledByName, Explained[RaisedReport], Generic[P, R_co]):
    """A derivative of a raised function, which ``te.source`` and ``te.explain`` look into."""

    def __init__(
        self, raised: Raised[..., Any], transform: Callable[..., Any], options: Mapping[str, Any], what: str
    ) -> None:
        functools.update_wrapper(
            self, raised.f, assigned=("__module__", "__name__", "__qualname__"), updated=()
        )
        self.raised, self._transform, self._options = raised, transform, dict(options)
        self._call = transform(raised, **options)
        self.__doc__ = f"{what} of {raised.__name__}, raised by jaxte."

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_call", "__wrapped__")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._call = self._transform(self.raised, **self._options)
        self.__dict__["__wrapped__"] = self.raised.f

    @for_users
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if has_tensor(tree_leaves((args, kwargs))):
            raise DefinitionError(
                f"{self.raised.__name__} is differentiated as a function of arrays, called with Tensors here; differentiate Tensors "
                "with te.differentiate"
            )
        self.raised.tune_once(*self._as_traced(args), **kwargs)
        result: R_co = self._call(*args, **kwargs)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def source(self, *args: Any, **kwargs: Any) -> str:
        """See :meth:`Raised.source`."""
        return self.raised.source(*self._as_traced(args), **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> RaisedReport:
        """See :meth:`Raised.explain`."""
        return self.raised.explain(*self._as_traced(args), **kwargs)

    def _as_traced(self, args: Sequence[Any]) -> list[Any]:
        """The arguments as a call has them, with those that are differentiated as arrays of JAX, whatever they are."""
        argnums = self._options.get("argnums", 0)
        listed = argnums if isinstance(argnums, Sequence) else (argnums,)
        chosen = {n % len(args) for n in listed} if args else set()
        return [jax.tree.map(_as_array, a) if n in chosen else a for n, a in enumerate(args)]


def _as_array(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic, float, complex)) else leaf


def is_jax(f: Any) -> bool:
    return callable(f) and not isinstance(f, Tensor)


def own_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`adjoint` among those of a transformation, taken out."""
    return {name: options.pop(name) for name in ("safe", "platform") if name in options}


def raised_for(f: Any, who: str, safe: bool = True, platform: str | None = None) -> Raised[..., Any]:
    if isinstance(f, Function):
        of_arrays_only(f, platform)
        return Raised(f, safe=safe)
    if isinstance(f, Tensor) or not callable(f):
        raise DefinitionError(
            f"{who} takes a JAX function, or te.function over a builder of Tensors, not {described(f)}"
        )
    return adjoint(f, safe=safe, platform=platform)


def not_measured(f: Function, tune: Any) -> None:
    if tune is not None:
        raise ArgumentError(
            f"tune= is for JAX functions; {f.__name__} is a jaxte function, whose forms te.autotune measures: leave tune= out"
        )


def of_arrays_only(f: Function, platform: str | None, **options: bool) -> None:
    if platform is not None:
        raise ArgumentError(
            f"platform={platform!r} is for JAX functions; {f.__name__} is a jaxte function, whose forms te.function chooses: give platform= there"
        )
    for name, value in options.items():
        if value:
            raise ArgumentError(
                f"{name}=True is for JAX functions; {f.__name__} is a jaxte function, whose complex and integer inputs are as "
                "te.differentiate has them; leave it out"
            )


class Options(TypedDict, total=False):
    """The keywords of :func:`grad`."""

    holomorphic: bool
    allow_int: bool
    safe: bool
    platform: str | None
    tune: tuple[object, ...] | Literal["first call"] | None
    tuning_file: str | os.PathLike[str] | None
