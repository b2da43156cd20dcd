"""Where arrays are: the devices that divide them among themselves, as the types of JAX say it.

Inside ``jax.shard_map`` an array varies over axes of a mesh. On a mesh of explicit axes its type says which of them divide each dimension,
and a program has to say so of its results: they are divided as the inputs are that they run along, and an adjoint as what it is the adjoint of.
``Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o]`` runs along the batch of X, along its time and along the last dimension of W. An index
follows the axis that moves it furthest: of ``4 * i + j`` that is ``i``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxte.bridge.primitive.program import Program
from jaxte.lang.divisions import division
from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Dimension = tuple[Tensor, int]
"""A tensor and the position of one of its dimensions."""


def alignment(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[tuple[tuple[Dimension, ...], ...]]:
    """For each dimension of each output, the dimensions of ``inputs`` that it runs along, in order of appearance."""
    known: dict[Tensor, tuple[tuple[Dimension, ...], ...]] = {
        t: tuple(((t, n),) for n in range(t.ndim)) for t in inputs
    }
    for tensor in topological_order(outputs):
        if tensor not in known:
            known[tensor] = _of_compute(tensor, known) if isinstance(tensor, Compute) else ((),) * tensor.ndim
    return [known[t] for t in outputs]


def _of_compute(
    tensor: Compute, known: Mapping[Tensor, tuple[tuple[Dimension, ...], ...]]
) -> tuple[tuple[Dimension, ...], ...]:
    found: dict[Axis, dict[Dimension, None]] = {a: {} for a in tensor.axes}
    for read in reads_of(tensor.body):
        for index, dimensions in zip(read.indices, known.get(read.tensor, ()), strict=False):
            axis = _leading(index)
            if axis in found:
                found[axis].update(dict.fromkeys(dimensions))
    return tuple(tuple(found[a]) for a in tensor.axes)


def _leading(index: Expr) -> Axis | None:
    """The axis that moves ``index`` furthest at each step; None if it holds data, or no axis."""
    while (divided := division(index)) is not None:
        index = divided.number
    axes = free_axes(index)
    if len(axes) == 1 and not any(isinstance(r, Read) for r in reads_of(index)):
        return next(iter(axes))
    form = linear_or_none(index)
    if form is None:
        return None
    steps = {a: abs(form.coefficient(a)) for a in axes if a in form.terms}
    return max(steps, key=lambda a: (steps[a], not a.reduction), default=None)


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


def unvarying(aval: Any) -> Any:
    """The type of the part of an array that one device has: loops begin with numbers, which are the same on every device, and go on with what is not."""
    if not varying_axes(aval):
        return aval
    plain = jax.core.ShapedArray((), aval.dtype)
    if hasattr(aval, "manual_axis_type"):
        return aval.update(manual_axis_type=plain.manual_axis_type)
    return aval.update(vma=varying_axes(plain))


def is_divided(context: Any) -> bool:
    """Whether a module is compiled for several devices, among which XLA divides the arrays."""
    if isinstance(context, mlir.ShardingContext):
        return context.num_devices > 1
    mesh = getattr(context, "mesh", None)
    return mesh is not None and set(mesh.axis_names) != set(context.manual_axes)
