"""Statements about the values of a tensor. A fact about an index tensor turns scatters into gathers.

The adjoint of ``Y[i, j] = X[I[i], j]`` is a sum over the ``i`` with ``I[i] == a``. Nothing is known of integers that come
as data, so it is accumulated at positions that are data: a scatter. A fact says what is known::

    Q = te.placeholder((n,), "int32", "Q")
    P = te.placeholder((n,), "int32", "P", facts=te.facts.permutation(inverse=Q))

Then ``P[i] == a`` is ``i == Q[a]``, and the adjoint of ``X[P[i], j]`` is the gather ``H[Q[a], j]``. A fact is taken on
trust; :func:`check` tests it on arrays, as functions made with ``debug=True`` do on each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxte.lang.checks import no_attribute
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, TensorLike
from jaxte.lang.nodes import AnnotatedArray


@dataclass(frozen=True, eq=False)
class Permutation:
    """Along the last axis every position occurs once; ``inverse`` holds where."""

    inverse: Any = None


@dataclass(frozen=True, eq=False)
class Sorted:
    """Along the last axis no value is below the one before."""


@dataclass(frozen=True, eq=False)
class Unique:
    """Along the last axis no value occurs twice."""


@dataclass(frozen=True, eq=False)
class SymmetricAdjacency:
    """Rows list neighbours, and are listed by them; ``slot`` holds at which place."""

    slot: Any = None


@dataclass(frozen=True, eq=False)
class Within:
    """Every value is in ``[0, stop)``."""

    stop: Any


@dataclass(frozen=True, eq=False)
class Finite:
    """No element is infinite or NaN."""


Fact = Permutation | Sorted | Unique | SymmetricAdjacency | Within | Finite


def within(stop: int | Expr) -> Within:
    """``0 <= I[...] < stop``: reads at such positions need no test of their range.

    Args:
        stop: an integer or a size.
    """
    return Within(stop)


def finite() -> Finite:
    """No element of a float tensor is infinite or NaN: what is read from it at positions that are data may be a product.

    ``X[I[i], j]`` is then the product of a one-hot matrix with X where that is estimated to be faster than a gather.
    """
    return Finite()


def permutation(inverse: TensorLike | AnnotatedArray | None = None) -> Permutation:
    """``I[..., i]`` runs over 0, ..., n - 1 as ``i`` does, each value once.

    Args:
        inverse: an integer tensor of the same shape with ``inverse[..., I[..., i]] == i``; it is known to be a
            permutation with the inverse I from then on. Without it, the values are known to be unique and in range.
    """
    return Permutation(inverse)


def sorted() -> Sorted:
    """``I[..., i] <= I[..., i + 1]``: a scatter is told so, as ``indices_are_sorted``."""
    return Sorted()


def unique() -> Unique:
    """``I[..., i]`` differs from ``I[..., k]`` for ``i != k``: a scatter is told so, as ``unique_indices``, and adds nothing up."""
    return Unique()


def symmetric_adjacency(slot: TensorLike | AnnotatedArray | None = None) -> SymmetricAdjacency:
    """``A[i, p]`` are the neighbours of ``i``, all of them rows of A, and each lists ``i`` as often as ``i`` lists it.

    Args:
        slot: an integer tensor of the shape of A with ``A[A[i, p], slot[i, p]] == i``: the place of ``i`` among the
            neighbours of its p-th neighbour. It is needed for the adjoints of what depends on ``p`` in other ways than through
            ``A[i, p]``.
    """
    return SymmetricAdjacency(slot)


def listed(facts: Fact | Iterable[Fact] | None, name: str) -> tuple[Fact, ...]:
    """One fact, several or none, as a tuple."""
    if facts is None:
        return ()
    found = tuple(facts) if isinstance(facts, Iterable) and not isinstance(facts, str) else (facts,)
    for fact in found:
        if not isinstance(fact, Fact):
            raise DefinitionError(
                f"the facts of {name} hold {fact!r}; give te.facts.permutation(...), sorted(), unique(), "
                "within(...), finite() or symmetric_adjacency(...)"
            )
    return found


def find(tensor: Any, kind: type) -> Any:
    """The fact of this kind that ``tensor`` has, or None."""
    return next((fact for fact in tensor.facts if isinstance(fact, kind)), None)


def values_in(tensor: Any) -> int | Any | None:
    """``n`` if every value of ``tensor`` is known to be in ``[0, n)``."""
    for fact in tensor.facts:
        if isinstance(fact, Permutation):
            return tensor.shape[-1]
        if isinstance(fact, SymmetricAdjacency):
            return tensor.shape[0]
        if isinstance(fact, Within):
            return fact.stop
    return None


def companions(tensor: Any) -> Iterator[Any]:
    """The tensors that the facts of ``tensor`` refer to."""
    for fact in tensor.facts:
        if isinstance(fact, Permutation) and fact.inverse is not None:
            yield fact.inverse
        if isinstance(fact, SymmetricAdjacency) and fact.slot is not None:
            yield fact.slot


if not TYPE_CHECKING:  # to which every name that is not above is an error

    def __getattr__(name: str) -> Any:
        raise no_attribute(
            "jaxte.facts",
            name,
            ["within", "finite", "permutation", "sorted", "unique", "symmetric_adjacency"],
        )
