"""Structured Jacobians as arrays: ``BCOO``, values and indices, diagonals."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.bridge.compiled.compile import Compiled
from jaxte.bridge.primitive.lazy import lazy
from jaxte.bridge.primitive.primitive import bind
from jaxte.bridge.primitive.program import Program, program
from jaxte.derivatives import linear_maps
from jaxte.derivatives.reverse import differentiate
from jaxte.derivatives.structured import StructuredJacobian, structured_jacobian
from jaxte.lang.checks import several, wants_arguments
from jaxte.lang.errors import ArgumentError, FeedError, ShapeError
from jaxte.lower.cost.policy import DEFAULT, Policy
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO

VALUES = "values"


@dataclass(frozen=True, eq=False)
class SparseJacobian:
    """A Jacobian (or Hessian) whose pattern is known: an array for the indices, a function for the values; see ``te.jacobian``.

    Attributes:
        structure: its terms; ``shape``, ``indices``, ``nnz`` and ``diagonals`` are those of it.
        inputs: the placeholders that the values are computed from.
    """

    structure: StructuredJacobian
    inputs: tuple[Placeholder, ...]
    policy: Policy = DEFAULT

    @property
    def shape(self) -> tuple[int, ...]:
        return self.structure.shape

    @property
    def nnz(self) -> int:
        return self.structure.nnz

    @property
    def indices(self) -> np.ndarray:
        """The positions that are not zero by structure, sorted and different, of shape ``(nnz, len(shape))``."""
        return self.structure.indices

    @property
    def diagonals(self) -> list[tuple[int, Tensor]] | None:
        """Offsets ``column - row`` and the Tensor along each, where the Jacobian is banded; else None."""
        found = self.structure.diagonals
        return None if found is None else [(offset, tensor) for offset, tensor in found]

    @lazy
    def program(self) -> Program:
        return program(VALUES, self.structure.output.name, self.inputs, self.structure.values, self.policy)

    def values(self, *arrays: Any) -> Any:
        """The elements at ``indices``, of shape ``(nnz,)``, from the arrays of ``inputs``; for use under ``jax.jit`` too."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(t.name for t in self.inputs)
            raise FeedError(
                f"the values of {self!r} take {len(self.inputs)} arrays ({names}), but {len(arrays)} were given"
            )
        own = self.structure
        if not own.nnz:
            return jnp.zeros((0,), own.input.dtype)
        strong = [
            jax.lax.convert_element_type(jnp.asarray(a), t.dtype)
            for a, t in zip(arrays, self.inputs, strict=True)
        ]
        parts = bind(self.program, *strong)
        if own.is_whole:
            rows = own.matrix_shape[0]
            return jnp.concatenate([jnp.reshape(p, (rows, -1)) for p in parts], axis=1).reshape(-1)
        every = jnp.concatenate([jnp.ravel(p) for p in parts])
        held = every.at[own.order].get(mode="promise_in_bounds", unique_indices=True)
        if own.segments is None:
            return held
        return jax.ops.segment_sum(held, own.segments, own.nnz, indices_are_sorted=True)

    def bcoo(self, *arrays: Any, flat: bool = False) -> BCOO:
        """The matrix at ``arrays``: of shape ``shape``, or as rows and columns where it is ``flat``."""
        return self.of_values(self.values(*arrays), flat)

    def of_values(self, values: Any, flat: bool = False) -> BCOO:
        """The matrix whose elements at ``indices`` are ``values``."""
        shape = self.structure.matrix_shape if flat else self.shape
        indices = self._flat_indices if flat else self._indices
        # imported when it is first asked for, since it imports scipy, which takes long
        bcoo: type[BCOO] = importlib.import_module("jax.experimental.sparse").BCOO
        return bcoo((values, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @lazy
    def _indices(self) -> jax.Array:
        return _on_device(self.structure.indices)

    @lazy
    def _flat_indices(self) -> jax.Array:
        return _on_device(self.structure.flat_indices)

    def __repr__(self) -> str:
        return repr(self.structure)


def _on_device(indices: np.ndarray) -> jax.Array:
    """An array that is there, also while a function that asks for it is traced."""
    with jax.ensure_compile_time_eval():
        return jnp.asarray(indices, "int32")


@wants_arguments
def jacobian(
    output: Tensor | Sequence[Tensor],
    input: Tensor | Sequence[Tensor],
    optimize: bool = True,
    sparse: bool = False,
) -> Any:
    if not sparse:
        return linear_maps.jacobian(output, input, optimize)
    rows = several(output, Tensor, "the output of te.jacobian", "a Tensor or several")
    columns = several(input, Tensor, "the input of te.jacobian", "a Tensor or several")
    found = [[sparse_jacobian(y, x) for x in columns] for y in rows]
    blocks: Any = [row[0] for row in found] if isinstance(input, Tensor) else found
    return blocks[0] if isinstance(output, Tensor) else blocks


def sparse_jacobian(output: Tensor, input: Tensor, policy: Policy = DEFAULT) -> SparseJacobian:
    """The Jacobian of one tensor by another one, with its pattern; raises as :func:`structured_jacobian` does."""
    structure = structured_jacobian(output, input)
    inputs = tuple(t for t in topological_order(structure.values) if isinstance(t, Placeholder))
    return SparseJacobian(structure, inputs, policy)


jacobian.__doc__ = (linear_maps.jacobian.__doc__ or "").replace(
    "    Returns:",
    """        sparse: a :class:`SparseJacobian`: its exact pattern, from positions alone, and a function for the values that forms no dense
            matrix. Sizes have to be known.

    Returns:""",
)


@wants_arguments
def hessian(output: Tensor, inputs: Tensor | Sequence[Tensor], sparse: bool = False) -> Any:
    if not sparse:
        return linear_maps.hessian(output, inputs)
    sources = several(inputs, Tensor, "the inputs of te.hessian", "Tensors")
    _check_scalar(output)
    rows = [[sparse_jacobian(g, x) for x in sources] for g in differentiate(output, sources)]
    return rows[0][0] if isinstance(inputs, Tensor) else rows


hessian.__doc__ = (linear_maps.hessian.__doc__ or "").replace(
    "    Returns:",
    """        sparse: of a scalar, :class:`SparseJacobian` objects: the Jacobians of the gradient, with their exact pattern.

    Returns:""",
)


def _check_scalar(output: Tensor) -> None:
    if output.ndim:
        raise ShapeError(
            f"a sparse Hessian is of a scalar, and {output.name} has the shape {shape_text(output.shape)}; sum the elements, or take the "
            "sparse Jacobian of an adjoint"
        )


# --- of a function of arrays


def sparse_of(
    compiled: Compiled, arrays: Sequence[Any], wanted: tuple[int, ...], second: bool, flat: bool
) -> list[list[BCOO]]:
    """A matrix for each output (of a Hessian: each wanted input) and each of the inputs at ``wanted``."""
    graph = compiled.graph

    def make() -> Callable[..., list[list[BCOO]]]:
        inputs = [graph.inputs[n] for n in wanted]
        outputs: list[Tensor] = [graph.outputs[n] for n in graph.with_head]
        if second:
            _check_scalar(outputs[0])
            outputs = list(differentiate(outputs[0], inputs))
        matrices = [[_whole(compiled, y, x) for x in inputs] for y in outputs]
        values = jax.jit(lambda *given: [[one.values(*given) for one in row] for row in matrices])

        def run(*given: Any) -> list[list[BCOO]]:
            return [
                [one.of_values(found, flat) for one, found in zip(row, own, strict=True)]
                for row, own in zip(matrices, values(*given), strict=True)
            ]

        return run

    run = graph.program.kept(("sparse", wanted, second, flat), make)
    return run(*arrays)


def places_of(
    label: str, args: Sequence[Any], arrays: Sequence[Any], argnums: int | Sequence[int]
) -> list[Any]:
    """For each of ``argnums`` where among ``arrays`` its argument stands; of a tree of arrays the tree of their places."""
    leaves = [jax.tree.leaves(arg) for arg in args]
    found = []
    for number in [argnums] if isinstance(argnums, int) else argnums:
        if not -len(args) <= number < len(args):
            raise _no_array(label, number, len(arrays))
        seen = [leaf for own in leaves[: number % len(args)] for leaf in own]
        places = []
        for leaf in leaves[number]:
            same = [n for n, a in enumerate(arrays) if a is leaf]
            if not same:
                raise _no_array(label, number, len(arrays))
            places.append(same[min(sum(s is leaf for s in seen), len(same) - 1)])
            seen.append(leaf)
        if not places:
            raise _no_array(label, number, len(arrays))
        found.append(jax.tree.unflatten(jax.tree.structure(args[number]), places))
    return found


def _no_array(label: str, number: int, count: int) -> ArgumentError:
    return ArgumentError(
        f"argument {number} of {label} is no array by position, nor a tree of arrays, of which there are {count}; argnums= names these"
    )


def by_argument(blocks: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """What is there for each of the ``places``, one after the other, in their trees."""
    rest = iter(blocks)
    return [jax.tree.map(lambda _: next(rest), tree) for tree in places]


def _whole(compiled: Compiled, output: Tensor, input: Tensor) -> SparseJacobian:
    """The Jacobian as a function of all inputs of the definition."""
    return SparseJacobian(structured_jacobian(output, input), compiled.graph.inputs, compiled.graph.policy)
