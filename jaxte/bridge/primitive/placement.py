"""Where arrays are: the devices that divide them among themselves, as the types of JAX say it.

Inside ``jax.shard_map`` an array varies over axes of a mesh. On a mesh of explicit axes its type says which of them divide each dimension,
and a program has to say so of its results: they are divided as the inputs are that they run along (``tensors.alignment``),
and an adjoint as what it is the adjoint of.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxte.bridge.primitive.program import Program
from jaxte.tensors.alignment import alignment

Places = tuple[NamedSharding | None, ...]
"""The sharding of each result; None where it follows from the inputs."""


def is_placed(aval: Any) -> bool:
    """Whether the type of an array says where it is."""
    return bool(varying_axes(aval)) or not aval.sharding.mesh.empty


def is_explicit(aval: Any) -> bool:
    """Whether the type of an array says which axes of a mesh divide it."""
    return AxisType.Explicit in (getattr(aval.sharding.mesh, "axis_types", None) or ())


def placed(shape: Sequence[Any], dtype: Any, like: Any, place: Any = None) -> Any:
    """The type of a result beside an input of type ``like``."""
    if place is None:
        place = NamedSharding(like.sharding.mesh, PartitionSpec(*[None] * len(shape)))
    return like.update(shape=tuple(shape), dtype=np.dtype(dtype), weak_type=False, sharding=place)


def places_of(
    program: Program, avals: Sequence[Any], shapes: Sequence[Sequence[Any]]
) -> tuple[NamedSharding, ...]:
    """How the results are divided for inputs of these types."""
    mesh = next(a.sharding.mesh for a in avals if is_explicit(a))
    specs = {
        (t, n): entry
        for t, a in zip(program.inputs, avals, strict=True)
        for n, entry in enumerate(a.sharding.spec)
    }
    aligned = program.kept("alignment", lambda: alignment(program.outputs, program.inputs))
    found = []
    for dimensions, shape in zip(aligned, shapes, strict=True):
        taken: set[Any] = set()
        entries: list[Any] = []
        for candidates, extent in zip(dimensions, shape, strict=True):
            entry = _first_that_fits([specs.get(d) for d in candidates], extent, taken, mesh)
            taken.update(_names(entry))
            entries.append(entry)
        found.append(NamedSharding(mesh, PartitionSpec(*entries)))
    return tuple(found)


def _first_that_fits(entries: Sequence[Any], extent: Any, taken: set[Any], mesh: Any) -> Any:
    for entry in entries:
        names = _names(entry)
        if names and not taken.intersection(names) and extent % prod(mesh.shape[name] for name in names) == 0:
            return entry
    return None


def _names(entry: Any) -> tuple[Any, ...]:
    """The axes of the mesh in one entry of a PartitionSpec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def with_axis(places: Places, at: Sequence[int | None], entry: Any) -> Places:
    """``places`` of results that have one more axis at the positions ``at``."""
    found: list[NamedSharding | None] = []
    for place, position in zip(places, at, strict=True):
        if place is None:
            found.append(None)
            continue
        entries = list(place.spec)
        if position is not None:
            entries.insert(position, entry)
        found.append(NamedSharding(place.mesh, PartitionSpec(*entries)))
    return tuple(found)


def equally_varying(arrays: Sequence[Any]) -> Sequence[Any]:
    """Inside ``jax.shard_map``, all arrays varying over the same mesh axes.

    The cotangents of an argument that is the same on every device are summed over the devices, which is the transpose of the cast.
    """
    own = [varying_axes(jax.typeof(a)) for a in arrays]
    every = frozenset().union(*own)
    if not every:
        return arrays
    missing = [tuple(sorted(every - axes, key=str)) for axes in own]
    return [jax.lax.pcast(a, m, to="varying") if m else a for a, m in zip(arrays, missing, strict=True)]


def varying_axes(aval: Any) -> frozenset[Any]:
    """The mesh axes that an array varies over, under the names that releases of JAX have for them."""
    manual = getattr(aval, "manual_axis_type", None)
    return manual.varying if manual is not None else getattr(aval, "vma", frozenset())
