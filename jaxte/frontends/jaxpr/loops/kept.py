"""A ``scan`` that keeps a few of its states, and whose derivative in reverse computes the others again, by the binomial schedule.

``kept_scan`` is the loop, which returns the kept states beside its results; ``kept_scan_slope`` is its tangent, linear, whose transpose goes back over the steps.
Both are primitives: forward mode is a loop like any other, and what they are under ``jax.vmap`` keeps as few states. The transpose itself, differentiated once
more, is that of the same loop with each state kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxte.bridge.jaxprs import scan_counts
from jaxte.lang.dtypes import is_inexact
from jaxte.lower.arrays.binomial import restarts

Arrays = Sequence[Any]
KEPT_SCAN = "kept_scan"


@dataclass(frozen=True)
class Kept:
    """A loop, and how many of its states are kept.

    Attributes:
        closed: the step: of ``consts`` arrays that are the same for all, of ``carried`` ones, and of a row of each other one.
        length: how many steps.
        reverse: whether the last row comes first.
        slots: for states.
    """

    closed: Any
    consts: int
    carried: int
    length: int
    reverse: bool
    slots: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Kept:
        """The loop of an equation with these parameters."""
        return cls(
            params["jaxpr"], *scan_counts(params), params["length"], params["reverse"], params["slots"]
        )

    @property
    def params(self) -> dict[str, Any]:
        """Those of an equation, with the names that a ``scan`` has for them."""
        names = "jaxpr", "num_consts", "num_carry", "length", "reverse", "slots"
        return dict(zip(names, (getattr(self, f.name) for f in fields(self)), strict=True))

    @property
    def rows(self) -> int:
        """How many arrays steps return a row of."""
        return len(self.closed.jaxpr.outvars) - self.carried

    @property
    def inputs(self) -> int:
        return len(self.closed.jaxpr.invars)

    def split(self, args: Arrays) -> tuple[list[Any], list[Any], list[Any]]:
        """What is the same in all steps, what the first one is handed, and the rows."""
        end = self.consts + self.carried
        return list(args[: self.consts]), list(args[self.consts : end]), list(args[end : self.inputs])

    def step(self, fixed: Arrays, carry: Arrays, row: Arrays) -> tuple[list[Any], list[Any]]:
        made = jax.core.eval_jaxpr(self.closed.jaxpr, self.closed.consts, *fixed, *carry, *row)
        return made[: self.carried], made[self.carried :]

    def scan(self, step: Callable[[Any, Any], Any], carry: Any, rows: Any) -> Any:
        return lax.scan(step, carry, rows, self.length, self.reverse)

    def in_order(self, table: Sequence[int]) -> np.ndarray[Any, Any]:
        """Numbers of the steps, the first to be computed first, as rows of the loop."""
        found = np.asarray(table, "int32")
        return found[::-1] if self.reverse else found

    def row(self, xs: Arrays, step: Any) -> list[Any]:
        """The rows of the step that is the ``step``-th to be computed."""
        at = self.length - 1 - step if self.reverse else step
        return [lax.dynamic_index_in_dim(x, at, 0, keepdims=False) for x in xs]


def kept_scan(own: Kept, args: Arrays) -> list[Any]:
    """The results of the loop."""
    return with_states(own, args)[: own.carried + own.rows]


def with_states(own: Kept, args: Arrays) -> list[Any]:
    """The results, and the states that are kept."""
    return list(_LOOP.bind(*args, **own.params))


def _loop(*args: Any, **params: Any) -> list[Any]:
    own = Kept.of(params)
    fixed, init, xs = own.split(args)
    forward = own.in_order(restarts(own.length, own.slots)[0])
    room = [jax.numpy.broadcast_to(a, (own.slots + 1, *np.shape(a))) for a in init]

    def step(state: Any, given: Any) -> Any:
        carry, kept = state
        slot, row = given
        kept = put(kept, carry, slot)
        carry, made = own.step(fixed, carry, row)
        return (carry, kept), made

    (carry, kept), ys = own.scan(step, (init, room), (forward, xs))
    return [*carry, *ys, *kept]


def put(kept: Arrays, state: Arrays, slot: Any) -> list[Any]:
    return [lax.dynamic_update_index_in_dim(k, s, slot, 0) for k, s in zip(kept, state, strict=True)]


@dataclass(frozen=True)
class _Slope:
    """The derivative of a loop by the arguments ``moving``, all states of floats among them."""

    own: Kept
    moving: tuple[int, ...]

    def split(self, args: Arrays) -> tuple[list[Any], list[Any], list[Any]]:
        """Values by the arguments that are moving: what is the same in all steps, what the first one is handed, rows."""
        ends = self.own.consts, self.own.consts + self.own.carried
        found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for place, value in zip(self.moving, args, strict=True):
            found[sum(place >= end for end in ends)].append(value)
        return found

    def at(self, fixed: Arrays, carry: Arrays, row: Arrays) -> tuple[Callable[..., Any], Any]:
        """One step as a function of what moves, which returns floats, and the state beside; and what moves."""
        every = [*fixed, *carry, *row]

        def function(fixed: Arrays, carry: Arrays, row: Arrays) -> Any:
            filled = [*every]
            for place, value in zip(self.moving, [*fixed, *carry, *row], strict=True):
                filled[place] = value
            state, made = self.own.step(*self.own.split(filled))
            return (_floats(state), _floats(made)), state

        return function, self.split([every[n] for n in self.moving])

    def forward(self, *args: Any) -> list[Any]:
        """The tangents of results, of floats."""
        own = self.own
        fixed, init, xs = own.split(args)
        by_fixed, by_init, by_rows = self.split(args[own.inputs + own.carried :])

        def step(state: Any, given: Any) -> Any:
            (carry, moved), (row, by_row) = state, given
            function, at = self.at(fixed, carry, row)
            _, (moved, made), carry = jax.jvp(function, at, (by_fixed, moved, by_row), has_aux=True)
            return (carry, moved), made

        (_, moved), made = own.scan(step, (init, by_init), (xs, by_rows))
        return [*moved, *made]

    def back(self, args: Arrays, heads: Arrays) -> list[Any]:
        """The adjoints of what moves; states are those that are kept, and computed again from them."""
        again = jax.custom_jvp(self._again)
        again.defjvp(lambda primals, tangents: jax.jvp(self._whole, primals, tangents))
        return list(again(list(args), list(heads)))

    def _whole(self, args: Arrays, heads: Arrays) -> list[Any]:
        """The same with each state kept, differentiated by JAX."""
        own = self.own

        def results(*moved: Any) -> list[Any]:
            filled = [*args]
            for place, value in zip(self.moving, moved, strict=True):
                filled[place] = value
            fixed, init, xs = own.split(filled)
            step = jax.checkpoint(lambda carry, row: own.step(fixed, carry, row), prevent_cse=False)
            carry, ys = own.scan(step, init, xs)
            return [*_floats(carry), *_floats(ys)]

        _, pull = jax.vjp(results, *(args[n] for n in self.moving))
        return list(pull(list(heads)))

    def _again(self, args: Arrays, heads: Arrays) -> list[Any]:
        own = self.own
        fixed, _, xs = own.split(args)
        kept = list(args[own.inputs : own.inputs + own.carried])
        count = len(heads) - len(self._made_floats)
        _, taken, first, offset, into = restarts(own.length, own.slots)
        places = jax.numpy.asarray(into or [0], "int32")
        tables = tuple(np.asarray(t, "int32") for t in (range(own.length), taken, first, offset))

        def step(state: Any, given: Any) -> Any:
            (heads_of_state, sums, kept), (now, slot, begin, shift) = state, given

            def forward(n: Any, own_state: Any) -> Any:
                carry, kept = own_state
                kept = put(kept, carry, places[shift + n - begin])
                return own.step(fixed, carry, own.row(xs, n))[0], kept

            carry = [lax.dynamic_index_in_dim(k, slot, 0, keepdims=False) for k in kept]
            carry, kept = lax.fori_loop(begin, now, forward, (carry, kept))
            function, at = self.at(fixed, carry, own.row(xs, now))
            _, pull, _ = jax.vjp(function, *at, has_aux=True)
            by_fixed, by_state, by_row = pull((heads_of_state, own.row(heads[count:], now)))
            sums = [a + b for a, b in zip(sums, by_fixed, strict=True)]
            return (by_state, sums, kept), by_row

        none = [jax.numpy.zeros_like(a) for a in self.split([args[n] for n in self.moving])[0]]
        begin = (list(heads[:count]), none, kept)
        (by_init, sums, _), by_rows = lax.scan(step, begin, tables, own.length, reverse=True)
        return [*sums, *by_init, *(lax.rev(r, (0,)) if own.reverse else r for r in by_rows)]

    @property
    def _made_floats(self) -> list[int]:
        outs = self.own.closed.out_avals[self.own.carried :]
        return [n for n, a in enumerate(outs) if is_inexact(str(a.dtype))]


def _floats(values: Arrays) -> list[Any]:
    return [v for v in values if is_inexact(str(jax.typeof(v).dtype))]


# --- the primitives

_LOOP = Primitive(KEPT_SCAN)
_TANGENT = Primitive("kept_scan_slope")
_LOOP.multiple_results = _TANGENT.multiple_results = True


def _slope(*args: Any, own: _Slope) -> list[Any]:
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
    slope = _Slope(own, moving)
    given = [ad.instantiate_zeros(tangents[n]) for n in moving]
    kept = [lax.stop_gradient(k) for k in made[own.carried + own.rows :]]
    found = iter(_TANGENT.bind(*primals, *kept, *given, own=slope))
    results = made[: own.carried + own.rows]
    moved = [next(found) if is_inexact(str(r.dtype)) else still(r) for r in results]
    return made, [*moved, *map(still, kept)]


def still(result: Any) -> Any:
    """The tangent of what does not move."""
    return ad.Zero(jax.typeof(result).to_tangent_aval())


def _slope_jvp(primals: Arrays, tangents: Arrays, *, own: _Slope) -> tuple[list[Any], list[Any]]:
    """By its linear arguments it is its own tangent; by the others it is differentiated as the loop that it is."""
    made = _TANGENT.bind(*primals, own=own)
    first = own.own.inputs + own.own.carried
    found = [still(m) for m in made]
    if any(not isinstance(t, ad.Zero) for t in tangents[first:]):
        given = [ad.instantiate_zeros(t) for t in tangents[first:]]
        found = _TANGENT.bind(*primals[:first], *given, own=own)
    moved = [n for n, t in enumerate(tangents[: own.own.inputs]) if not isinstance(t, ad.Zero)]
    if moved:

        def of_moved(*values: Any) -> list[Any]:
            filled = [*primals]
            for n, value in zip(moved, values, strict=True):
                filled[n] = value
            return own.forward(*filled)

        _, more = jax.jvp(of_moved, [primals[n] for n in moved], [tangents[n] for n in moved])
        found = [ad.add_tangents(a, b) for a, b in zip(found, more, strict=True)]
    return made, found


def _slope_transpose(heads: Arrays, *args: Any, own: _Slope) -> list[Any]:
    first = own.own.inputs + own.own.carried
    made = own.back(args[:first], [ad.instantiate_zeros(h) for h in heads])
    wanted = [d if ad.is_undefined_primal(a) else None for d, a in zip(made, args[first:], strict=True)]
    return [*[None] * first, *wanted]


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


def _slope_batch(args: Arrays, dims: Arrays, *, own: _Slope) -> tuple[Any, list[int]]:
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
    made = _TANGENT.bind(*given, own=_Slope(_batched(loop, size, has), own.moving))
    states_made = len(made) - len(own._made_floats)
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


register(_LOOP, _loop)
register(_TANGENT, _slope)
ad.primitive_jvps[_LOOP] = _loop_jvp
ad.primitive_jvps[_TANGENT] = _slope_jvp
ad.primitive_transposes[_TANGENT] = _slope_transpose
batching.primitive_batchers[_LOOP] = _loop_batch
batching.primitive_batchers[_TANGENT] = _slope_batch
