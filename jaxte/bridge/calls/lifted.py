"""The types of functions of Tensors that take arrays, too: of operators, and of what :func:`jaxte.function` makes of a builder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import jax
import numpy as np
from jax.typing import ArrayLike

from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor

P = ParamSpec("P")
Q = ParamSpec("Q")
A = TypeVar("A")
R = TypeVar("R")
F_co = TypeVar("F_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
Array: TypeAlias = jax.Array
# Arrays, numbers and pytrees of them; text is none.
Values: TypeAlias = ArrayLike | list[Any] | tuple[Any, ...] | Mapping[Any, Any] | None


class Named(Protocol):
    """A function; Tensors, which are called too, have another name."""

    __name__: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


# What a parameter beside the arrays is given, and no Tensor.
Others: TypeAlias = Values | str | type[Any] | Named | functools.partial[Any]


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


class Built(Protocol[F_co]):
    """A function of a builder, by the type of the builder: of a callable, type checkers infer the first parameters, too."""

    @property
    def builder(self) -> F_co: ...


# A placeholder is a Tensor, so that builders whose first parameter takes Tensors are among the functions of placeholders.
OfTensor: TypeAlias = Built[Callable[Concatenate[Placeholder, ...], R]]
OfNumPy: TypeAlias = Built[Callable[Concatenate[np.ndarray[Any, Any], ...], R]]
OfArray: TypeAlias = Built[Callable[Concatenate[Array, ...], object]] | OfNumPy[object]
SecondTensor: TypeAlias = Built[Callable[Concatenate[A, Placeholder, ...], R]]
# Their annotations do not say whether an array of JAX may be given.
OfOthers: TypeAlias = (
    OfTensor[R]
    | SecondTensor[A, R]
    | Built[Callable[Concatenate[dict[str, Tensor], ...], R]]
    | Built[Callable[Concatenate[dict[str, dict[str, Tensor]], ...], R]]
    | Built[Callable[Concatenate[list[Tensor], ...], R]]
    | Built[Callable[Concatenate[list[dict[str, Tensor]], ...], R]]
    | Built[Callable[Concatenate[tuple[Tensor, ...], ...], R]]
    | Built[Callable[Concatenate[tuple[Tensor, Tensor], ...], R]]
    | OfNumPy[R]
)


class OfArrays(Generic[P, R_co]):
    """The call of a builder's function. Of Tensors it gives what the builder returns, of arrays the same with arrays for Tensors.

    A builder's parameters may be annotated as arrays or as Tensors, or not at all. Type checkers compare the arguments with the parameters where
    the annotations speak of what is given: calls with arrays where they are arrays, calls with Tensors where they are Tensors. Other calls are
    checked by what an argument can be at all. Of other pytrees a checker does not see whether they hold Tensors; they are taken to hold arrays.
    Where a checker knows nothing of an argument, the call is one with arrays.
    """

    def __init__(self, builder: Callable[P, R_co]) -> None:
        self.builder = builder

    # That not every builder is one of these, mypy calls a mistake in the type of self ("misc").
    if TYPE_CHECKING:
        # calls with Tensors by name
        @overload
        def __call__(self: OfTensor[object] | OfArray, **kwargs: Tensor) -> R_co: ...  # type: ignore[misc, overload-overlap]

        # Calls with arrays of builders whose annotations are those of Tensors or of NumPy.
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[Tensor, A], first: Values = ..., *args: Others, **kwargs: object
        ) -> Array: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[tuple[Tensor, Tensor], A], first: Values = ..., *args: Others, **kwargs: object
        ) -> tuple[Array, Array]: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[tuple[Tensor, Tensor, Tensor], A],
            first: Values = ...,
            *args: Others,
            **kwargs: object,
        ) -> tuple[Array, Array, Array]: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[tuple[Tensor, ...], A], first: Values = ..., *args: Others, **kwargs: object
        ) -> tuple[Array, ...]: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[list[Tensor] | list[Compute], A],
            first: Values = ...,
            *args: Others,
            **kwargs: object,
        ) -> list[Array]: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[Mapping[str, Tensor], A], first: Values = ..., *args: Others, **kwargs: object
        ) -> dict[str, Array]: ...
        @overload
        def __call__(  # type: ignore[misc]
            self: OfOthers[object, A], first: Values = ..., *args: Others, **kwargs: object
        ) -> R_co: ...
        @overload
        def __call__(
            self: SecondTensor[A, Tensor], first: A, second: Values, *args: Others, **kwargs: object
        ) -> Array: ...
        @overload
        def __call__(
            self: SecondTensor[A, tuple[Tensor, Tensor]],
            first: A,
            second: Values,
            *args: Others,
            **kwargs: object,
        ) -> tuple[Array, Array]: ...
        @overload
        def __call__(
            self: SecondTensor[A, tuple[Tensor, ...]],
            first: A,
            second: Values,
            *args: Others,
            **kwargs: object,
        ) -> tuple[Array, ...]: ...
        @overload
        def __call__(
            self: SecondTensor[A, Mapping[str, Tensor]],
            first: A,
            second: Values,
            *args: Others,
            **kwargs: object,
        ) -> dict[str, Array]: ...
        @overload
        def __call__(
            self: SecondTensor[A, object], first: A, second: Values, *args: Others, **kwargs: object
        ) -> R_co: ...

        # calls with Tensors of builders of Tensors
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self: Built[Callable[Concatenate[Placeholder, Q], R]],
            first: Tensor,
            *args: Q.args,
            **kwargs: Q.kwargs,
        ) -> R: ...
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self: Built[Callable[Concatenate[A, Placeholder, Q], R]],
            first: A,
            second: Tensor,
            *args: Q.args,
            **kwargs: Q.kwargs,
        ) -> R: ...

        # calls by the builder's own parameters
        @overload
        def __call__(self: OfArrays[P, Tensor], *args: P.args, **kwargs: P.kwargs) -> Array: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, Tensor]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Array, Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, Tensor, Tensor]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Array, Array, Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, tuple[Tensor, ...]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Array, ...]: ...
        @overload
        def __call__(
            self: OfArrays[P, list[Tensor] | list[Compute]], *args: P.args, **kwargs: P.kwargs
        ) -> list[Array]: ...
        @overload
        def __call__(
            self: OfArrays[P, Mapping[str, Tensor]], *args: P.args, **kwargs: P.kwargs
        ) -> dict[str, Array]: ...
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

        # calls with Tensors of builders of arrays
        @overload
        def __call__(self: OfArray, first: Tensor, *args: object, **kwargs: object) -> R_co: ...  # type: ignore[misc]
        @overload
        def __call__(
            self: Built[Callable[Concatenate[A, Array, ...], object]],
            first: object,
            second: Tensor,
            *args: object,
            **kwargs: object,
        ) -> R_co: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
