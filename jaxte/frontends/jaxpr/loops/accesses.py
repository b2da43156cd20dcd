"""Equations of a loop's body that read or write a box of an array, in one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.loops.counters import Counters, Position, constant


@dataclass(frozen=True, eq=False)
class Access:
    """A box of an array that an equation reads or writes.

    Attributes:
        eqn: the equation.
        array: what it reads, or what it writes into.
        starts: where the box begins in each dimension; None where that is not known.
        atoms: the same as they stand in the body, or a number.
        sizes: of the box.
        value: of a write: what is written, ``sizes`` with dimensions left out.
        combine: of a write: what becomes of the box as it was and of the value.
    """

    eqn: Any
    array: Any
    starts: tuple[Position | None, ...]
    atoms: tuple[Any, ...]
    sizes: tuple[int, ...]
    value: Any = None
    combine: Callable[[Any, Any], Any] | None = None

    @property
    def result(self) -> Any:
        return self.eqn.outvars[0]

    @property
    def sets(self) -> bool:
        """Whether nothing remains of the box as it was."""
        return self.combine is None


def read_of(eqn: Any, counters: Counters) -> Access | None:
    """The box that ``eqn`` reads, if that is what it does."""
    name, p = eqn.primitive.name, eqn.params
    if name == "dynamic_slice":
        array, *atoms = eqn.invars
        return _access(eqn, array, atoms, p["slice_sizes"], counters, clamps=True)
    if name == "slice" and set(p["strides"] or (1,)) == {1}:
        sizes = [b - a for a, b in zip(p["start_indices"], p["limit_indices"], strict=True)]
        return _access(eqn, eqn.invars[0], p["start_indices"], sizes, counters, clamps=True)
    return None


def write_of(eqn: Any, counters: Counters, makers: Mapping[Any, Any]) -> Access | None:
    """The box that ``eqn`` writes, if that is what it does."""
    name = eqn.primitive.name
    if name == "dynamic_update_slice":
        array, value, *atoms = eqn.invars
        found = _access(eqn, array, atoms, value.aval.shape, counters, clamps=True)
        return None if found is None else _writing(found, value, None)
    if name in _SCATTERS:
        return _scatter(eqn, counters, makers)
    return None


_SCATTERS: dict[str, Callable[[Any, Any], Any] | None] = {
    "scatter": None,
    "scatter-add": jnp.add,
    "scatter_add": jnp.add,
    "scatter-mul": jnp.multiply,
    "scatter_mul": jnp.multiply,
}


def _scatter(eqn: Any, counters: Counters, makers: Mapping[Any, Any]) -> Access | None:
    """A ``scatter`` of one box: ``x.at[i, 1:5].set(v)``."""
    array, indices, value = eqn.invars
    numbers = eqn.params["dimension_numbers"]
    batched = numbers.operand_batching_dims or numbers.scatter_indices_batching_dims
    if batched or len(indices.aval.shape) != 1 or eqn.params.get("update_consts"):
        return None
    if len(numbers.update_window_dims) != len(value.aval.shape):
        return None
    entries = _entries(indices, makers)
    if entries is None:
        return None
    rank = len(array.aval.shape)
    windows = iter(value.aval.shape)
    sizes = [1 if d in numbers.inserted_window_dims else next(windows) for d in range(rank)]
    atoms: list[Any] = [0] * rank
    for d, atom in zip(numbers.scatter_dims_to_operand_dims, entries, strict=True):
        atoms[d] = atom
    found = _access(eqn, array, atoms, sizes, counters, clamps=False)
    return None if found is None else _writing(found, value, _SCATTERS[eqn.primitive.name])


def _entries(indices: Any, makers: Mapping[Any, Any]) -> list[Any] | None:
    """The numbers that a short array of positions is joined of."""
    if indices.aval.shape == (1,):
        return [indices]
    eqn = None if isinstance(indices, Literal) else makers.get(indices)
    if eqn is None or eqn.primitive.name not in ("concatenate", "stack"):
        return None
    joined = [_entries(a, makers) for a in eqn.invars]
    return None if any(j is None for j in joined) else [a for j in joined if j is not None for a in j]


def _writing(found: Access, value: Any, combine: Callable[[Any, Any], Any] | None) -> Access:
    return Access(found.eqn, found.array, found.starts, found.atoms, found.sizes, value, combine)


def _access(eqn: Any, array: Any, atoms: Any, sizes: Any, counters: Counters, clamps: bool) -> Access | None:
    """A box within its array in all steps: moved into it where the equation does so, None where it would be dropped."""
    starts: list[Position | None] = []
    for atom, size, extent in zip(atoms, sizes, array.aval.shape, strict=True):
        own = constant(atom, counters.steps) if isinstance(atom, (int, np.integer)) else counters.of(atom)
        if own is None and size == extent:
            own = constant(0, counters.steps) if clamps else None
        moved = None if own is None else own.within(0, extent - size)
        if moved is not own and not clamps:
            return None
        starts.append(moved)
    return Access(eqn, array, tuple(starts), tuple(atoms), tuple(map(int, sizes)))


@dataclass(frozen=True, eq=False)
class Box:
    """What a row is made of in the dimensions that are not counted: in each the first position, as of the access ``of``, and the size."""

    starts: tuple[Position, ...]
    sizes: tuple[int, ...]
