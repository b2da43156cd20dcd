"""A ``scan`` that keeps a few of its states, and whose derivative in reverse computes the others again, by the binomial schedule.

Forward mode is a loop like any other. The way back, differentiated once more, is that of the same loop with each state kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxte.bridge.jaxprs import scan_counts
from jaxte.lang.dtypes import is_inexact
from jaxte.lower.recurrences.replays import restarts

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


def loop(*args: Any, **params: Any) -> list[Any]:
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
class Slope:
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
            return (floats(state), floats(made)), state

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
            return [*floats(carry), *floats(ys)]

        _, pull = jax.vjp(results, *(args[n] for n in self.moving))
        return list(pull(list(heads)))

    def _again(self, args: Arrays, heads: Arrays) -> list[Any]:
        own = self.own
        fixed, _, xs = own.split(args)
        kept = list(args[own.inputs : own.inputs + own.carried])
        count = len(heads) - len(self.made_floats)
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
    def made_floats(self) -> list[int]:
        outs = self.own.closed.out_avals[self.own.carried :]
        return [n for n, a in enumerate(outs) if is_inexact(str(a.dtype))]


def floats(values: Arrays) -> list[Any]:
    return [v for v in values if is_inexact(str(jax.typeof(v).dtype))]
