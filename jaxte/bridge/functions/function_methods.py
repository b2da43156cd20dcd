"""What every function of arrays with a derived gradient can be asked: its text, its forms, its Jacobians, its two passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from jax.tree_util import tree_leaves

from jaxte.bridge.compiled.compile import Compiled, Graph
from jaxte.bridge.compiled.explain import Explanation, explain_graph
from jaxte.bridge.compiled.sparse import by_argument, places_of, sparse_of
from jaxte.bridge.compiled.two_passes import GradientNames, Residuals, TwoPasses
from jaxte.lang.checks import for_users, one_of_type
from jaxte.meaning.cost import Cost, cost


class Function(ABC):
    """A function of arrays whose gradient is derived as index expressions; see :func:`function`."""

    __name__: str
    has_aux = False
    with_aux: Any

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @abstractmethod
    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, list[Any]]:
        """The code for these arguments, and their arrays in the order in which it takes them."""

    def _graph(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        return self._compiled(args, kwargs)[0].graph

    @abstractmethod
    def recompile(self) -> None:
        """Forgets the code that was made so far, so that later measurements count."""

    @for_users
    def source(self, *args: Any, **kwargs: Any) -> str:
        """The text of the module that runs for these arguments (arrays or ``jax.ShapeDtypeStruct``)."""
        return self._graph(args, kwargs).module.text

    @for_users
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What each tensor was lowered to and why, scatters, residuals, and what XLA counts."""
        return explain_graph(self._graph(args, kwargs))

    @for_users
    def cost(self, *args: Any, **kwargs: Any) -> Cost:
        """``te.cost`` of the forward definition."""
        return cost(self._graph(args, kwargs).outputs)

    @for_users
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """``jax.jit(self).lower(...)``."""
        compiled, arrays = self._compiled(args, kwargs)
        return compiled.run.lower(*arrays)

    @for_users
    def forward_with_residuals(self, *args: Any, **kwargs: Any) -> tuple[Any, Residuals]:
        """The outputs, and what the forward pass keeps for :meth:`backward`: arrays by the names of their tensors.

        Example:
            >>> y, kept = fn.forward_with_residuals(x)
            >>> fn.backward(kept, jnp.ones_like(y))["dx"]
        """
        compiled, arrays = self._compiled(args, kwargs)
        return TwoPasses(compiled).forward(arrays)

    @for_users
    def backward(self, residuals: Residuals, cotangents: Any) -> dict[str, Any]:
        """The gradients by name (see :meth:`gradient_names`), from what :meth:`forward_with_residuals` kept.

        Args:
            residuals: from the forward pass.
            cotangents: in the form of the outputs, or ``{name: array}`` by the names of their gradients.
        """
        one_of_type(
            residuals, Residuals, f"the residuals of {self.__name__}", "what fn.forward_with_residuals kept"
        )
        return residuals.passes.backward(residuals, cotangents)

    @for_users
    def gradient_names(self, *args: Any, **kwargs: Any) -> GradientNames:
        """From the names of inputs and outputs to the names of their gradients."""
        return TwoPasses(self._compiled(args, kwargs)[0]).names

    @for_users
    def intermediates(self, *args: Any, names: Sequence[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """The values of tensors on the way to the outputs, and of these, by name; all of them if no ``names`` are given."""
        compiled, arrays = self._compiled(args, kwargs)
        return TwoPasses(compiled).values(arrays, names)

    @for_users
    def sparse_jacobian(
        self, *args: Any, argnums: int | Sequence[int] = 0, flat: bool = False, **kwargs: Any
    ) -> Any:
        """The Jacobian as ``jax.experimental.sparse.BCOO``, sorted and unique, its pattern known from the definition.

        Args:
            args: of the call; the Jacobian is with respect to those at ``argnums``, arrays or trees of arrays.
            argnums: one position, or several.
            flat: whether the matrix has rows and columns, for ``scipy.sparse`` for instance, and not the shape ``output.shape + input.shape``.

        Returns:
            One matrix, a tree of them for a tree of arrays; a tuple of these for several ``argnums``, in a list if there are several outputs.
        """
        return self._sparse(args, kwargs, argnums, False, flat)

    @for_users
    def sparse_hessian(
        self, *args: Any, argnums: int | Sequence[int] = 0, flat: bool = False, **kwargs: Any
    ) -> Any:
        """The Hessian of a scalar as ``BCOO``; for several ``argnums`` a tuple of rows of them, for a tree a tree of trees. See :meth:`sparse_jacobian`."""
        return self._sparse(args, kwargs, argnums, True, flat)

    def _sparse(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        second: bool,
        flat: bool,
    ) -> Any:
        compiled, arrays = self._compiled(args, kwargs)
        places = places_of(self.__name__, args, arrays, argnums)
        rows = [
            by_argument(row, places)
            for row in sparse_of(compiled, arrays, tuple(tree_leaves(places)), second, flat)
        ]
        chosen = [row[0] if isinstance(argnums, int) else tuple(row) for row in rows]
        if not second:
            return chosen[0] if len(chosen) == 1 else chosen
        columns = by_argument(chosen, places)
        return columns[0] if isinstance(argnums, int) else tuple(columns)

    def custom_vjp_for(self, *args: Any, **kwargs: Any) -> Any:
        """The plain ``jax.custom_vjp`` object of the emitted module, a function of the arrays among the arguments."""
        return self._graph(args, kwargs).module["fn"]

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: object) -> Function:
        """Itself, as for every function: what it keeps is code."""
        return self

    def __repr__(self) -> str:
        return f"<jaxte.function {self.__name__}>"
