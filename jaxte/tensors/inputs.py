"""What goes into a graph: sizes, input tensors, and what is known of their values.

Arrays of numbers in definitions: filters, tables, weights, masks. They have no gradient and are no argument of anything.

A short one is the choice of its numbers by position, which the emitted code holds as a literal; a long one is handed to the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.dtypes import DtypeLike
from jaxte.lang.errors import ArgumentError, DefinitionError, ShapeError
from jaxte.lang.expr import Axis, Expr, Read, Var
from jaxte.lang.nodes import AnnotatedArray
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.tensors.elementwise import of_array
from jaxte.tensors.facts import Fact, Finite, Permutation, SymmetricAdjacency, Within, find, listed
from jaxte.tensors.shapes import Extent, check_shape, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@wants_arguments
def var(name: str = "n", at_least: int = 1) -> Var:
    """A symbolic size: a positive integer that is known when the code runs.

    Args:
        name: label in formulas and in the emitted code; the same name with the same least value is the same size.
        at_least: the least value that it takes, at least 1. What is true of all sizes from there on is taken for granted:
            ``X[2]`` stays inside of ``n`` elements where ``n`` is at least 3.

    Raises:
        ArgumentError: ``name`` is no string, or ``at_least`` no integer of at least 1.

    Example:
        >>> n = te.var("n")
        >>> X = te.placeholder((n, 3), name="X")
        >>> m = te.var("m", at_least=2)
        >>> Y = te.placeholder((m,), name="Y")
        >>> step = te.compute((m,), lambda i: Y[i] - Y[1], "step")
    """
    known = one_of_type(name, str, "the name of a te.var", "a string")
    if isinstance(at_least, bool) or not isinstance(at_least, Integral) or at_least < 1:
        raise ArgumentError(
            f"at_least of te.var({known!r}) is {at_least!r}; give the least size, an integer of at least 1"
        )
    return Var(known, int(at_least))


@wants_arguments
def placeholder(
    shape: Extent | Iterable[Extent],
    dtype: DtypeLike = "float32",
    name: str | None = None,
    facts: Fact | Iterable[Fact] | None = None,
) -> Placeholder:
    """An input tensor.

    Args:
        shape: extents; an integer for one axis, ``()`` for a scalar.
        dtype: element type, by default float32.
        name: label used in printed formulas and in the emitted code.
        facts: what is known of the values, one fact of ``te.facts`` or several.

    Example:
        >>> X = te.placeholder((8, 32, 16), name="X")
        >>> Q = te.placeholder((8,), "int32", "Q")
        >>> P = te.placeholder((8,), "int32", "P", facts=te.facts.permutation(inverse=Q))
    """
    label = "X" if name is None else one_of_type(name, str, "the name of a te.placeholder", "a string")
    return assume(Placeholder(label, check_shape(shape, label), dtypes.dtype_name(dtype)), facts)


def _is_size(value: Any) -> bool:
    if isinstance(value, Expr):
        return not any(isinstance(node, (Axis, Read)) for node in postorder(value))
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


AnyTensor = TypeVar("AnyTensor", bound=Tensor | AnnotatedArray)


@wants_arguments
def assume(tensor: AnyTensor, facts: Fact | Iterable[Fact] | None) -> AnyTensor:
    """States ``facts`` about the values of ``tensor`` from now on, and returns it; for the arguments of a builder.

    Example:
        >>> @te.function
        ... def shuffled(x, p, q):
        ...     te.assume(p, te.facts.permutation(inverse=q))
        ...     return te.compute(x.shape, lambda i, j: x[p[i], j])

    Raises:
        DefinitionError: a fact that ``tensor`` cannot have.
        ShapeError: a tensor in a fact that has another shape.
    """
    own: Tensor = one_of_type(tensor, Tensor, "the first argument of te.assume", "a Tensor")
    for fact in listed(facts, own.name):
        _check_fact(own, fact)
        own.with_facts([*own.facts, fact])
        if (
            isinstance(fact, Permutation)
            and fact.inverse is not None
            and find(fact.inverse, Permutation) is None
        ):
            fact.inverse.with_facts([*fact.inverse.facts, Permutation(own)])
        if isinstance(fact, SymmetricAdjacency) and fact.slot is not None:
            fact.slot.with_facts([*fact.slot.facts, Within(own.shape[1])])
    return tensor


def _check_fact(tensor: Tensor, fact: Fact) -> None:
    what = f"{tensor.name} {tensor.dtype}{shape_text(tensor.shape)}"
    kind = type(fact).__name__
    rank = 2 if isinstance(fact, SymmetricAdjacency) else None
    if isinstance(fact, Finite):
        if not dtypes.is_inexact(tensor.dtype):
            raise DefinitionError(f"{what} cannot have the fact {kind}: integers are finite; leave it out")
        return
    if not dtypes.is_integer(tensor.dtype):
        raise DefinitionError(
            f"{what} cannot have the fact {kind}: facts are about integer tensors; use dtype int32"
        )
    if tensor.ndim != rank if rank else not (tensor.ndim or isinstance(fact, Within)):
        wanted = "two axes (rows, neighbours)" if rank else "at least one axis"
        raise DefinitionError(f"{what} cannot have the fact {kind}, which is about tensors with {wanted}")
    if isinstance(fact, Within) and not _is_size(fact.stop):
        stop = text(fact.stop) if isinstance(fact.stop, Expr) else repr(fact.stop)
        raise DefinitionError(
            f"{what} is stated to be within {stop}; give an integer of 0 or more, or a size"
        )
    other = fact.inverse if isinstance(fact, Permutation) else getattr(fact, "slot", None)
    if other is None:
        return
    if not isinstance(other, Tensor) or not dtypes.is_integer(other.dtype):
        raise DefinitionError(f"the fact {kind} of {what} refers to {other!r}; give an integer Tensor")
    if len(other.shape) != tensor.ndim or not all(map(same_extent, other.shape, tensor.shape)):
        raise ShapeError(
            f"the fact {kind} of {what} refers to {other.name} {shape_text(other.shape)}; give a tensor of the same shape"
        )


class AsArray(Protocol):
    """What NumPy makes an array of: those of JAX, NumPy and others."""

    def __array__(self) -> np.ndarray: ...


Numbers: TypeAlias = AsArray | bool | int | float | complex | Sequence["Numbers"]


@wants_arguments
def constant(array: Numbers, name: str = "constant", dtype: DtypeLike | None = None) -> Tensor:
    """An array of numbers as a Tensor, to be indexed in bodies and mixed with Tensors; without gradient.

    Args:
        array: NumPy or JAX array, or nested lists of numbers.
        name: label used in printed formulas and in the emitted code.
        dtype: element type; by default what JAX has for ``array``: 64-bit numbers are 32-bit ones unless ``jax_enable_x64`` is on.

    Returns:
        A Tensor of the shape of ``array``. Up to 64 elements are written into the emitted module, ``jnp.array([...])``; longer
        ones are handed to it.

    Raises:
        DefinitionError: lists of unequal lengths, or an array that is traced and has no values yet: make that an argument.
        DtypeError: elements that are no numbers.

    Example:
        >>> G = te.constant([0.25, 0.5, 0.25], "G")
        >>> X, k = te.placeholder((8,), name="X"), te.reduce_axis((0, 3), "k")
        >>> te.compute((6,), lambda i: te.sum(G[k] * X[i + k], axis=k), "y")
        y[i] = sum(G[k] * X[i + k] for k in [0, 3))
    """
    return of_array(array, one_of_type(name, str, "the name of a te.constant", "a string"), dtype)


class Placeholder(Tensor):
    """An input of a graph."""

    __slots__ = ()


class Head(Placeholder):
    """What flows back into an output: where that is a loss, the number 1, which is known when the program is compiled."""

    __slots__ = ()


class ResidualHead(Head):
    """What flows back into a residual that conditions on data leave elements out of: zero at these, whatever the residual is there."""

    __slots__ = ()


class Residual(Placeholder):
    """What another program computed, or the tangent of that, where it may be infinite or NaN although the inputs of that program are finite."""

    __slots__ = ()
