"""Writes a loop anew: rows that a step reads come in with it, rows that it writes are stacked, and what is left is handed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.equations.stands import as_it_stands
from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body
from jaxte.frontends.jaxpr.loops.counters import Outer, Position
from jaxte.frontends.jaxpr.loops.given import Given, key_of
from jaxte.frontends.jaxpr.loops.places import Live, Place, boxed, joined, placed, updated
from jaxte.frontends.jaxpr.loops.tracked import Source, Tracked


class Loop:
    """One loop that is written anew.

    Args:
        body: its body, with carries told apart.
        params: of the ``scan``.
        consts: what the constants of the body are.
        operands: of the ``scan``.
        outer: the values of what counts around the loop.
        at_once: whether all steps are computed together; no step then needs what another one has made.
    """

    def __init__(
        self,
        body: Body,
        params: Any,
        consts: Sequence[Any],
        operands: Sequence[Any],
        outer: dict[Outer, Any],
        at_once: bool,
    ) -> None:
        self.body, self.params, self.at_once = body, params, at_once
        self.steps = body.counters.steps
        jaxpr = body.jaxpr
        ends = body.consts, body.consts + body.carried
        self.first = list(operands[ends[0] : ends[1]])
        self.fixed = dict(zip(jaxpr.constvars, consts, strict=True))
        self.fixed |= dict(zip(jaxpr.invars[: ends[0]], operands[: ends[0]], strict=True))
        self.fixed |= {body.taken[n]: self.first[n] for n in body.still}
        self.fixed |= {v: self.first[n] for n, a in body.arrays.items() for v in a.versions}
        self.states = sorted(body.states if at_once else [*body.states, *body.sums])
        self.writes = {id(w.eqn): (n, k) for n, a in body.arrays.items() for k, w in enumerate(a.writes)}
        self.given = Given(body, self.first, self.fixed, outer, params["reverse"])
        self.live = Live(body, self.states, self.fixed, at_once)
        self.given.take(operands[ends[1] :], self.live)

    def run(self) -> list[Any]:
        """The results of the ``scan``."""
        body = self.body
        if self.at_once:
            made = jax.vmap(lambda xs: self._step(([], []), xs)[1], axis_size=self.steps)(
                self.given.rows.arrays
            )
            last: list[Any] = []
        else:
            registers = [self.given.register(n, k) for n, k in self.live.handed]
            begin = [self.first[n] for n in self.states]

            p = self.params
            (last, _), made = lax.scan(
                self._step, (begin, registers), self.given.rows.arrays, self.steps, p["reverse"], p["unroll"]
            )
        stacked, terms, ys = made
        results: list[Any] = list(self.first)
        for n, value in zip(self.states, last, strict=True):
            results[n] = value
        for n in body.counts:
            results[n] = self._after(n)
        for n, array in body.arrays.items():
            for k in range(len(array.writes)):
                if (n, k) in self.live.stacked:
                    results[n] = self._assembled(
                        results[n], array, k, stacked[self.live.stacked.index((n, k))]
                    )
        for n, own in zip(body.sums if self.at_once else (), terms, strict=True):
            for term, (_, sign) in zip(own, body.sums[n].terms, strict=True):
                results[n] = results[n] + sign * jnp.sum(term, axis=0, dtype=term.dtype)
        return [*results, *ys]

    def _after(self, n: int) -> Any:
        """What a counter is behind the loop."""
        (aval, out) = self.body.taken[n].aval, self.body.returned[n]
        p = self.body.counters.of(out)
        assert p is not None
        return jnp.broadcast_to(jnp.asarray(self.given.number(p, -1), aval.dtype), aval.shape)

    def _assembled(self, value: Any, array: Tracked, k: int, stack: Any) -> Any:
        last = array.last[k][::-1] if self.params["reverse"] else array.last[k]
        write = array.writes[k]
        at = tuple(p for p in (write.starts[d] for d in array.axes) if p is not None)
        full = tuple(Position(np.broadcast_to(p.numbers, self.steps), p.outer) for p in at)
        place = self.given.place(array, full)
        if not last.all():
            stack = stack[np.flatnonzero(last)]
            place = Place(tuple((d, q[last], o) for d, q, o in place.moving), place.box)
        return placed(value, place, stack)

    def _step(self, carry: Any, xs: Sequence[Any]) -> Any:
        body, (states, registers) = self.body, carry
        env = dict(self.fixed)
        env |= {key: xs[n] for key, n in self.given.rows.places.items()}
        env |= {body.taken[n]: value for n, value in zip(self.states, states, strict=True)}
        handed = dict(zip(self.live.handed, registers, strict=True))
        made: dict[tuple[int, int], Any] = {}

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        def row(n: int, source: Source) -> Any:
            return self._row(n, source, env, handed, made)

        for eqn in body.jaxpr.eqns:
            e = id(eqn)
            if e in self.writes and self.writes[e] in self.live.writes:
                n, k = self.writes[e]
                made[n, k] = self._written(n, k, row, read)
            elif e not in self.live.equations:
                continue
            elif e in body.reads:
                n, access, sources = body.reads[e]
                env[eqn.outvars[0]] = self._read(n, access, [row(n, s) for s in sources], read)
            elif e in body.lifted:
                env[eqn.outvars[0]] = joined(
                    env[e], body.lifted[e].sizes, eqn.outvars[0].aval.shape, _moving(body.lifted[e])
                )
            else:
                env |= dict(zip(eqn.outvars, as_it_stands(eqn, [read(a) for a in eqn.invars]), strict=True))
        after = [read(body.returned[n]) for n in self.states]
        passed = [_passed(made[key], handed[key]) for key in self.live.handed]
        terms = [[read(t) for t, _ in body.sums[n].terms] for n in (body.sums if self.at_once else ())]
        stacked = [made[key] for key in self.live.stacked]
        return (after, passed), (stacked, terms, [read(v) for v in body.jaxpr.outvars[body.carried :]])

    def _row(self, n: int, source: Source, env: Any, handed: Any, made: Any) -> Any:
        """The row that a step reads."""
        found: Any = None
        if source.given.any() and not self.given.begins_with(n, source):
            found = env[key_of(n, source)]
        for k, lag, mask in source.written:
            own = made[n, k] if not lag else handed[n, k][lag - 1]
            found = own if found is None else jnp.where(env["mask", mask.tobytes()], own, found)
        return found

    def _read(self, n: int, access: Access, rows: Sequence[Any], read: Callable[[Any], Any]) -> Any:
        array = self.body.arrays[n]
        starts, sizes = self._within(array, access, read)
        cut = [boxed(r, starts, sizes) for r in rows]
        axis = array.axes[0]
        if len(cut) > 1:
            return jnp.stack(cut, axis)
        return jnp.expand_dims(cut[0], array.axes)

    def _written(self, n: int, k: int, row: Callable[[int, Source], Any], read: Callable[[Any], Any]) -> Any:
        array = self.body.arrays[n]
        write, source = array.writes[k], array.before[k]
        starts, sizes = self._within(array, write, read)
        value = jnp.reshape(read(write.value), sizes)
        dtype = array.first.aval.dtype
        if source is None:
            return jnp.asarray(value, dtype)
        before = row(n, source)
        if write.combine is not None:
            value = write.combine(boxed(before, starts, sizes), value)
        return updated(before, jnp.asarray(value, dtype), starts)

    def _within(
        self, array: Tracked, access: Access, read: Callable[[Any], Any]
    ) -> tuple[list[Any], tuple[int, ...]]:
        """Where in a row an access begins, and how much it is."""
        starts: list[Any] = []
        for d, start in zip(array.rest, array.box.starts, strict=True):
            own = access.starts[d]
            if own is not None and own.is_still and own.outer == start.outer:
                starts.append(int(own.numbers[0]) - int(start.numbers[0]))
            else:
                atom = access.atoms[d]
                starts.append(atom if isinstance(atom, int) else jnp.reshape(read(atom), ()))
        return starts, tuple(access.sizes[d] for d in array.rest)


def _moving(access: Access) -> list[int]:
    return [d for d, s in enumerate(access.starts) if s is not None and not s.is_still]


def _passed(row: Any, register: Any) -> Any:
    if isinstance(register, list):
        return [row, *register[:-1]]
    return jnp.concatenate([row[None], register[:-1]])
