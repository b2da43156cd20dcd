"""A :class:`Kept` loop as primitives of JAX: ``kept_scan``, which returns the kept states beside its results, and ``kept_scan_slope``, its tangent.

The tangent is linear, and its transpose goes back over the steps. What they are under ``jax.vmap`` keeps as few states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxte.bridge.primitive.primitive import still
from jaxte.frontends.jaxpr.loops.kept import KEPT_SCAN, Arrays, Kept, Slope, loop
from jaxte.lang.dtypes import is_inexact


def kept_scan(own: Kept, args: Arrays) -> list[Any]:
    """The results of the loop."""
    return with_states(own, args)[: own.carried + own.rows]


def with_states(own: Kept, args: Arrays) -> list[Any]:
    """The results, and the states that are kept."""
    return list(_LOOP.bind(*args, **own.params))


_LOOP = Primitive(KEPT_SCAN)
_TANGENT = Primitive("kept_scan_slope")
_LOOP.multiple_results = _TANGENT.multiple_results = True


def _slope(*args: Any, own: Slope) -> list[Any]:
    return own.forward(*args)


def register(primitive: Primitive, function: Callable[..., list[Any]]) -> None:
    """``function`` is what ``primitive`` computes."""

    def run(*args: Any, **params: Any) -> list[Any]:
        return list(jax.jit(partial(function, **params))(*args))

    def avals(*given: Any, **params: Any) -> list[Any]:
        made = jax.eval_shape(partial(function, **params), *given)
        return [jax.core.ShapedArray(a.shape, a.dtype) for a in made]

    primitive.def_impl(run)
    primitive.def_abstract_eval(avals)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=True))


def _loop_jvp(primals: Arrays, tangents: Arrays, **params: Any) -> tuple[list[Any], list[Any]]:
    own = Kept.of(params)
    made = _LOOP.bind(*primals, **params)
    states = range(own.consts, own.consts + own.carried)
    moving = tuple(
        n
        for n, (aval, t) in enumerate(zip(own.closed.in_avals, tangents, strict=True))
        if is_inexact(str(aval.dtype)) and (n in states or not isinstance(t, ad.Zero))
    )
    slope = Slope(own, moving)
    given = [ad.instantiate_zeros(tangents[n]) for n in moving]
    kept = [lax.stop_gradient(k) for k in made[own.carried + own.rows :]]
    found = iter(_TANGENT.bind(*primals, *kept, *given, own=slope))
    results = made[: own.carried + own.rows]
    moved = [next(found) if is_inexact(str(r.dtype)) else still(r) for r in results]
    return made, [*moved, *map(still, kept)]


def register_slope(primitive: Primitive) -> None:
    """The derivatives of ``primitive``, which is ``own.forward``, linear in its last arguments, those of ``own.moving``; ``own.back`` is its transpose."""

    def jvp(primals: Arrays, tangents: Arrays, *, own: Any) -> tuple[list[Any], list[Any]]:
        """By its linear arguments it is its own tangent; by the others it is differentiated as the loop that it is."""
        made = primitive.bind(*primals, own=own)
        first = len(primals) - len(own.moving)
        found: list[Any] = [still(m) for m in made]
        if any(not isinstance(t, ad.Zero) for t in tangents[first:]):
            given = [ad.instantiate_zeros(t) for t in tangents[first:]]
            found = list(primitive.bind(*primals[:first], *given, own=own))
        moved = [n for n, t in enumerate(tangents[: own.own.inputs]) if not isinstance(t, ad.Zero)]
        if moved:

            def of_moved(*values: Any) -> list[Any]:
                filled = [*primals]
                for n, value in zip(moved, values, strict=True):
                    filled[n] = value
                made: list[Any] = own.forward(*filled)
                return made

            _, more = jax.jvp(of_moved, [primals[n] for n in moved], [tangents[n] for n in moved])
            found = [ad.add_tangents(a, b) for a, b in zip(found, more, strict=True)]
        return made, found

    def transpose(heads: Arrays, *args: Any, own: Any) -> list[Any]:
        first = len(args) - len(own.moving)
        made = own.back(args[:first], [ad.instantiate_zeros(h) for h in heads])
        pairs = zip(made, args[first:], strict=True)
        return [*[None] * first, *(d if ad.is_undefined_primal(a) else None for d, a in pairs)]

    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose


def _batched(own: Kept, size: int, has: Sequence[bool]) -> Kept:
    """The loop of ``size`` at once; ``has`` says which arguments have the axis, all states among them."""
    p = own.closed

    def step(*args: Any) -> list[Any]:
        return jax.core.eval_jaxpr(p.jaxpr, p.consts, *args)

    avals = [
        jax.ShapeDtypeStruct((size, *a.shape) if h else a.shape, a.dtype)
        for a, h in zip(p.in_avals, has, strict=True)
    ]
    axes = [0 if h else None for h in has]
    return replace(own, closed=jax.make_jaxpr(jax.vmap(step, axes, axis_size=size))(*avals))


def _loop_batch(args: Arrays, dims: Arrays, **params: Any) -> tuple[Any, list[int]]:
    own = Kept.of(params)
    size = _size(args, dims)
    has = [own.consts <= n < own.consts + own.carried or d is not None for n, d in enumerate(dims)]
    given = [_moved(a, d, size, _axis(own, n)) if h else a for n, (a, d, h) in _each(args, dims, has)]
    made = _LOOP.bind(*given, **_batched(own, size, has).params)
    return made, [*[0] * own.carried, *[1] * (own.rows + own.carried)]


def _slope_batch(args: Arrays, dims: Arrays, *, own: Slope) -> tuple[Any, list[int]]:
    loop, size = own.own, _size(args, dims)
    first = loop.inputs + loop.carried
    if all(d is None for d in dims[:first]):
        made = jax.vmap(own.forward, list(dims), axis_size=size)(*args)
        return made, [0] * len(made)
    by_tangent = {n for n, d in zip(own.moving, dims[first:], strict=True) if d is not None}
    states = range(loop.consts, loop.consts + loop.carried)
    has = [n in states or n in by_tangent or d is not None for n, d in enumerate(dims[: loop.inputs])]
    every = [*has, *[True] * loop.carried, *(has[n] for n in own.moving)]
    axes = [*(_axis(loop, n) for n in range(loop.inputs)), *[1] * loop.carried]
    axes += [_axis(loop, n) for n in own.moving]
    given = [_moved(a, d, size, axes[n]) if h else a for n, (a, d, h) in _each(args, dims, every)]
    made = _TANGENT.bind(*given, own=Slope(_batched(loop, size, has), own.moving))
    states_made = len(made) - len(own.made_floats)
    return made, [*[0] * states_made, *[1] * (len(made) - states_made)]


def _each(args: Arrays, dims: Arrays, has: Sequence[bool]) -> Any:
    return enumerate(zip(args, dims, has, strict=True))


def _size(args: Arrays, dims: Arrays) -> int:
    return next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)


def _axis(own: Kept, place: int) -> int:
    """Where rows and other arguments have the axis of a batch."""
    return int(place >= own.consts + own.carried)


def _moved(x: Any, dim: int | None, size: int, axis: int) -> Any:
    if dim is not None:
        return jax.numpy.moveaxis(x, dim, axis)
    own = np.shape(x)
    return jax.numpy.broadcast_to(jax.numpy.expand_dims(x, axis), (*own[:axis], size, *own[axis:]))


register(_LOOP, loop)
register(_TANGENT, _slope)
ad.primitive_jvps[_LOOP] = _loop_jvp
register_slope(_TANGENT)
batching.primitive_batchers[_LOOP] = _loop_batch
batching.primitive_batchers[_TANGENT] = _slope_batch
