"""A ``while_loop`` whose length is data, with a derivative in reverse: states are kept at a distance that doubles whenever their slots are full.

However many steps there are, every ``stride``-th state is there at the end. The way back takes one stretch of so many steps after the other, computes its states once
more and keeps some of them in as many slots again, and each step begins at the nearest one: two levels of an online schedule.

    P. Stumm, A. Walther: New algorithms for optimal online checkpointing. SIAM J. Sci. Comput. 32 (2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax import lax
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching

from jaxte.bridge.primitive.primitive import still
from jaxte.frontends.jaxpr.loops.kept import put
from jaxte.frontends.jaxpr.loops.kept_rules import register, register_slope
from jaxte.lang.dtypes import is_inexact

Arrays = Sequence[Any]


@dataclass(frozen=True)
class Until:
    """A loop, and how many of its states are kept.

    Attributes:
        test: whether there is another step, of ``tested`` arrays and the state.
        body: the next state, of ``consts`` arrays and this one.
        slots: for states, an even number of them.
    """

    test: Any
    body: Any
    tested: int
    consts: int
    slots: int

    @property
    def inputs(self) -> int:
        return self.tested + len(self.body.in_avals)

    def split(self, args: Arrays) -> tuple[list[Any], list[Any], list[Any]]:
        """What the test reads, what all steps read, and the first state."""
        end = self.tested + self.consts
        return list(args[: self.tested]), list(args[self.tested : end]), list(args[end : self.inputs])

    def goes_on(self, tests: Arrays, state: Arrays) -> Any:
        return jaxpr_as_fun(self.test)(*tests, *state)[0]

    def step(self, consts: Arrays, state: Arrays) -> list[Any]:
        return list(jaxpr_as_fun(self.body)(*consts, *state))


def until(own: Until, args: Arrays) -> list[Any]:
    """What the loop ends with."""
    return list(_LOOP.bind(*args, own=own)[: len(own.body.out_avals)])


def _loop(*args: Any, own: Until) -> list[Any]:
    """The last state, those that are kept, the number of steps and the distance of what is kept."""
    tests, consts, init = own.split(args)
    slots = own.slots
    half = jax.numpy.minimum(2 * jax.numpy.arange(slots + 1), slots)

    def body(carry: Any) -> Any:
        state, kept, count, stride = carry
        full = count >= slots * stride
        kept = lax.cond(full, lambda kept: [k[half] for k in kept], list, kept)
        stride = jax.numpy.where(full, 2 * stride, stride)
        kept = put(kept, state, jax.numpy.where(count % stride == 0, count // stride, slots))
        return own.step(consts, state), kept, count + 1, stride

    one = jax.numpy.int32(1)
    begin = list(init), _room(init, slots), 0 * one, one
    state, kept, count, stride = lax.while_loop(lambda carry: own.goes_on(tests, carry[0]), body, begin)
    return [*state, *kept, count, stride]


def _room(state: Arrays, slots: int) -> list[Any]:
    """Slots, and one that takes what is not kept."""
    return [jax.numpy.broadcast_to(a, (slots + 1, *jax.numpy.shape(a))) for a in state]


@dataclass(frozen=True)
class _Slope:
    """The derivative of a loop by the arguments ``moving``, all states of floats among them."""

    own: Until
    moving: tuple[int, ...]

    def split(self, args: Arrays) -> tuple[list[Any], list[Any]]:
        """Values by the arguments that are moving: what all steps read, and states."""
        count = sum(n < self.own.tested + self.own.consts for n in self.moving)
        return list(args[:count]), list(args[count:])

    def at(self, consts: Arrays, state: Arrays) -> tuple[Callable[..., Any], Any]:
        """One step as a function of what moves, which returns floats, and the state beside; and what moves."""
        every = [*[None] * self.own.tested, *consts, *state]

        def function(consts: Arrays, state: Arrays) -> Any:
            filled = [*every]
            for place, value in zip(self.moving, [*consts, *state], strict=True):
                filled[place] = value
            _, consts, state = self.own.split(filled)
            made = self.own.step(consts, state)
            return [m for m in made if is_inexact(str(jax.typeof(m).dtype))], made

        return function, self.split([every[n] for n in self.moving])

    def forward(self, *args: Any) -> list[Any]:
        """The tangents of the last state, of floats."""
        tests, consts, init = self.own.split(args)
        by_consts, by_init = self.split(args[len(args) - len(self.moving) :])

        def body(carry: Any) -> Any:
            state, moved = carry
            function, at = self.at(consts, state)
            _, moved, state = jax.jvp(function, at, (by_consts, moved), has_aux=True)
            return state, moved

        return list(lax.while_loop(lambda c: self.own.goes_on(tests, c[0]), body, (list(init), by_init))[1])

    def back(self, args: Arrays, heads: Arrays) -> list[Any]:
        """The adjoints of what moves; differentiated forward, the states that are kept move with what they are made of."""
        own, states = self.own, len(self.own.body.out_avals)

        def whole(inputs: Arrays, heads: Arrays) -> list[Any]:
            return self._again([*inputs, *_loop(*inputs, own=own)[states:]], heads)

        again = jax.custom_jvp(self._again)
        again.defjvp(
            lambda primals, tangents: jax.jvp(
                whole, (primals[0][: own.inputs], primals[1]), (tangents[0][: own.inputs], tangents[1])
            )
        )
        return list(again(list(args), list(heads)))

    def _again(self, args: Arrays, heads: Arrays) -> list[Any]:
        own = self.own
        _, consts, init = own.split(args)
        *kept, count, stride = args[own.inputs :]
        near = (stride + own.slots - 1) // own.slots  # the distance of the states of one stretch

        def stretch(number: Any, room: Any) -> Any:
            """The states of the stretch at ``number`` in ``room``."""

            def forward(n: Any, carry: Any) -> Any:
                state, room = carry
                room = put(room, state, jax.numpy.where(n % near == 0, n // near, own.slots))
                return own.step(consts, state), room

            steps = jax.numpy.minimum(stride, count - number * stride)
            return lax.fori_loop(0, steps, forward, (_taken(kept, number), room))[1]

        def body(carry: Any) -> Any:
            now, by_state, sums, room, held = carry
            number = now // stride
            room = lax.cond(number == held, lambda _, room: room, stretch, number, room)
            begin = (now - number * stride) // near
            state = _taken(room, begin)
            first = number * stride + begin * near
            state = lax.fori_loop(first, now, lambda _, state: own.step(consts, state), state)
            function, at = self.at(consts, state)
            _, pull, _ = jax.vjp(function, *at, has_aux=True)
            by_consts, by_state = pull(by_state)
            sums = [a + b for a, b in zip(sums, by_consts, strict=True)]
            return now - 1, by_state, sums, room, number

        none = [jax.numpy.zeros_like(a) for a in self.split([args[n] for n in self.moving])[0]]
        begin = count - 1, list(heads), none, _room(init, own.slots), -jax.numpy.ones_like(count)
        _, by_init, sums, *_ = lax.while_loop(lambda carry: carry[0] >= 0, body, begin)
        return [*sums, *by_init]


def _taken(kept: Arrays, slot: Any) -> list[Any]:
    return [lax.dynamic_index_in_dim(k, slot, 0, keepdims=False) for k in kept]


# --- the primitives

_LOOP = Primitive("kept_while")
_TANGENT = Primitive("kept_while_slope")
_LOOP.multiple_results = _TANGENT.multiple_results = True


def _slope(*args: Any, own: _Slope) -> list[Any]:
    return own.forward(*args)


def _loop_jvp(primals: Arrays, tangents: Arrays, *, own: Until) -> tuple[list[Any], list[Any]]:
    made = _LOOP.bind(*primals, own=own)
    first = own.tested + own.consts
    avals = [*[None] * own.tested, *own.body.in_avals]
    moving = tuple(
        n
        for n, (aval, t) in enumerate(zip(avals, tangents, strict=True))
        if aval is not None and is_inexact(str(aval.dtype)) and (n >= first or not isinstance(t, ad.Zero))
    )
    states = len(own.body.out_avals)
    beside = [lax.stop_gradient(k) for k in made[states:]]
    given = [ad.instantiate_zeros(tangents[n]) for n in moving]
    found = iter(_TANGENT.bind(*primals, *beside, *given, own=_Slope(own, moving)))
    moved = [next(found) if is_inexact(str(m.dtype)) else still(m) for m in made[:states]]
    return made, [*moved, *map(still, beside)]


def _batch(function: Callable[..., list[Any]], args: Arrays, dims: Arrays, own: Any) -> tuple[Any, list[int]]:
    """All at once, as JAX does with a ``while_loop``; there is no reverse of that."""
    made = jax.vmap(partial(function, own=own), list(dims))(*args)
    return made, [0] * len(made)


register(_LOOP, _loop)
register(_TANGENT, _slope)
ad.primitive_jvps[_LOOP] = _loop_jvp
register_slope(_TANGENT)
batching.primitive_batchers[_LOOP] = lambda args, dims, *, own: _batch(_loop, args, dims, own)
batching.primitive_batchers[_TANGENT] = lambda args, dims, *, own: _batch(_slope, args, dims, own)
