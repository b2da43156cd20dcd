"""The type of a function of Tensors that takes arrays, too."""

from __future__ import annotations

from typing import Any, ParamSpec, Protocol, TypeVar, overload

import jax

from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Lifted(Protocol[P, R_co]):
    """Called with Tensors, it returns what it was written to return; called with arrays, the same with arrays for Tensors.

    Type checkers compare the arguments with the parameters where these are Tensors; a call with arrays takes any.
    """

    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self: Lifted[P, Tensor], *args: Any, **kwargs: Any) -> jax.Array: ...
    @overload
    def __call__(
        self: Lifted[P, tuple[Tensor, Tensor]], *args: Any, **kwargs: Any
    ) -> tuple[jax.Array, jax.Array]: ...
    @overload
    def __call__(self: Lifted[P, tuple[Tensor, ...]], *args: Any, **kwargs: Any) -> tuple[jax.Array, ...]: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
