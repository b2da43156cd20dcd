"""The types of functions of Tensors that take arrays, too: of operators, and of what :func:`jaxte.function` makes of a builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import jax
from jax.typing import ArrayLike

from jaxte.tensors.tensor import Compute, Tensor

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Array: TypeAlias = jax.Array
Given: TypeAlias = ArrayLike | str | Sequence[ArrayLike] | Mapping[str, ArrayLike] | None


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


class OfArrays(Generic[P, R_co]):
    """The call of a builder's function. Its parameters may be annotated as Tensors or as arrays, or not at all, so what it is called with decides.

    Calls with arrays and numbers come first and give arrays, those with a Tensor among them what the builder returns. Of other pytrees a
    checker does not see whether they hold Tensors; they are taken to hold arrays.
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self: OfArrays[P, Tensor], *args: Given, **kwargs: Given) -> Array: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, Tensor]], *args: Given, **kwargs: Given
        ) -> tuple[Array, Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, Tensor, Tensor]], *args: Given, **kwargs: Given
        ) -> tuple[Array, Array, Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, ...]], *args: Given, **kwargs: Given
        ) -> tuple[Array, ...]: ...
        @overload
        def __call__(
            self: OfArrays[P, list[Tensor] | list[Compute]], *args: Given, **kwargs: Given
        ) -> list[Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, Mapping[str, Tensor]], *args: Given, **kwargs: Given
        ) -> dict[str, Array]: ...
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self, *args: Tensor | Given, **kwargs: Tensor | Given
        ) -> R_co: ...
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self, first: Tensor, *args: object, **kwargs: object
        ) -> R_co: ...
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self, first: object, second: Tensor, *args: object, **kwargs: object
        ) -> R_co: ...
        @overload
        def __call__(self: OfArrays[P, Tensor], *args: object, **kwargs: object) -> Array: ...
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        @overload
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
