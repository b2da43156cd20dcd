"""Runs a ``scan`` whose products with matrices are taken for all steps together; see :mod:`jaxte.frontends.jaxpr.plan.loops`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound, scan_counts
from jaxte.frontends.jaxpr.plan.loops import Loop, Site
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in


def run_loop(loop: Loop, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of the ``scan`` that ``loop`` is made of."""
    jaxpr, p = loop.body.jaxpr, eqn.params
    consts, carried = scan_counts(p)
    fixed = [*loop.body.consts, *operands[:consts]]
    init, xs = operands[consts : consts + carried], operands[consts + carried :]
    same = dict(zip([*jaxpr.constvars, *jaxpr.invars[:consts]], fixed, strict=True))
    rows = jaxpr.invars[consts + carried :]
    _compute(loop.once, same)

    def ahead(*x: Any) -> list[Any]:
        env = same | dict(zip(rows, x, strict=True))
        _compute(loop.ahead, env)
        return [env[v] for v in loop.lifted]

    lifted = jax.vmap(ahead)(*xs) if loop.lifted else []
    run = _Run(loop, eqn, [len(loop.weights), len(fixed), len(init), len(xs), len(lifted)])
    return list(run.with_rule()([same[v] for v in loop.weights], fixed, init, xs, lifted))


class _Run:
    """The loop as a function of weights, constants, first state, rows and lifted rows, with its derivative."""

    def __init__(self, loop: Loop, eqn: Any, counts: Sequence[int]) -> None:
        self.loop, self.p = loop, eqn.params
        self.ends = list(np.cumsum(counts))
        jaxpr = loop.body.jaxpr
        consts, carried = scan_counts(self.p)
        self.fixed = [*jaxpr.constvars, *jaxpr.invars[:consts]]
        self.state = jaxpr.invars[consts : consts + carried]
        self.each = [*jaxpr.invars[consts + carried :], *loop.lifted]
        own = (e for site in loop.sites for e in (*site.products, *site.sums))
        self.own = {id(e) for e in own}
        self.results = {site.result: n for n, site in enumerate(loop.sites)}

    def with_rule(self) -> Any:
        """The function of five lists; its tangent is linear in products of all steps."""

        @jax.custom_jvp
        def run(*flat: Any) -> tuple[Any, ...]:
            return tuple(self.scan(flat)[0])

        run.defjvp(lambda primals, tangents: self.jvp(primals, tangents), symbolic_zeros=True)
        return lambda *lists: run(*(x for own in lists for x in own))

    def scan(
        self, flat: Sequence[Any], moved: Mapping[int, Any] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """The results, and the rows of the products of each site; ``moved`` is added at sites, by number."""
        weights, fixed, init, *each = self._lists(flat)
        same = dict(zip(self.fixed, fixed, strict=True))
        held = dict(zip(self.loop.weights, weights, strict=True))
        extra = {} if moved is None else dict(moved)

        def step(state: Any, x: Any) -> Any:
            rows, added = x
            env = same | dict(zip(self.state, state, strict=True)) | dict(zip(self.each, rows, strict=True))
            for eqn in self.loop.inside:
                local = env | held if id(eqn) in self.own else env
                results = bound(eqn, [a.val if isinstance(a, Literal) else local[a] for a in eqn.invars])
                number = self.results.get(eqn.outvars[0])
                if number in added:
                    results = [results[0] + added[number]]
                env |= dict(zip(eqn.outvars, results, strict=True))
            outs = [a.val if isinstance(a, Literal) else env[a] for a in self.loop.body.jaxpr.outvars]
            kept = [] if moved is None else [[env[a] for a in self._rows(site)] for site in self.loop.sites]
            _, carried = scan_counts(self.p)
            return tuple(outs[:carried]), (tuple(outs[carried:]), kept)

        xs = tuple(a for own in each for a in own), extra
        state, (ys, kept) = jax.lax.scan(
            step, tuple(init), xs, self.p["length"], self.p["reverse"], self.p["unroll"]
        )
        return [*state, *ys], kept

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The rule of the loop: what weights change goes into the loop as rows, computed for all steps at once."""
        weights, *_ = self._lists(tangents)
        dots = dict(zip(self.loop.weights, weights, strict=True))
        active = {
            n: s for n, s in enumerate(self.loop.sites) if any(_moves(dots[w]) for w in self._weights(s))
        }
        carriers = {
            n: self.ends[2] + self.each.index(s.carrier) for n, s in active.items() if s.carrier is not None
        }
        moving = [n for n, t in enumerate(tangents) if _moves(t) and self._reads(n)]
        moving = sorted({*moving, *carriers.values()})
        zeros = {n: self._zeros(s) for n, s in active.items() if n not in carriers}

        def moved(*own: Any) -> Any:
            results, kept = self.scan(
                filled_in(primals, moving, own[: len(moving)]),
                dict(zip(zeros, own[len(moving) :], strict=True)),
            )
            floats = [r for r in results if is_inexact(str(r.dtype))]
            return floats, ([r for r in results if not is_inexact(str(r.dtype))], kept)

        start = [primals[n] for n in moving]
        floats, linear, (others, kept) = jax.linearize(moved, *start, *zeros.values(), has_aux=True)
        pushed = {n: self._pushed(s, kept[n], dots) for n, s in active.items()}
        given = [_dense(tangents[n]) for n in moving]
        for n, place in carriers.items():
            given[moving.index(place)] += pushed[n]
        moved_floats = linear(*given, *(pushed[n] for n in zeros))
        return self._in_order(floats, others), self._in_order(moved_floats, [_no_tangent(r) for r in others])

    def _pushed(self, site: Site, rows: Sequence[Any], dots: Mapping[Any, Any]) -> Any:
        """The tangent of a site by those of its weights, for all steps: one product for each of its products."""
        found: list[Any] = []
        for eqn, row in zip(site.products, rows, strict=True):
            (weight,) = [a for a in eqn.invars if a in dots and a not in self.state][:1]
            if _moves(dots[weight]):
                left = eqn.invars[0] is weight
                both = (
                    (lambda r, d=dots[weight], e=eqn: bound(e, [d, r])[0])
                    if left
                    else (lambda r, d=dots[weight], e=eqn: bound(e, [r, d])[0])
                )
                found.append(jax.vmap(both)(row))
        shape = (self.p["length"], *site.result.aval.shape)
        found += [jax.numpy.broadcast_to(dots[v], shape) for v in site.added if _moves(dots[v])]
        return sum(found[1:], found[0])

    def _lists(self, flat: Sequence[Any]) -> list[list[Any]]:
        return [list(flat[a:b]) for a, b in zip([0, *self.ends], self.ends, strict=False)]

    def _reads(self, place: int) -> bool:
        """Whether the argument at ``place`` moves the loop: not the weights, nor constants that sites alone read."""
        return place >= self.ends[1] or (place >= self.ends[0] and place - self.ends[0] in self.loop.fixed)

    def _weights(self, site: Site) -> list[Any]:
        return [a for e in (*site.products, *site.sums) for a in e.invars if a in self.loop.weights]

    def _rows(self, site: Site) -> list[Any]:
        return [next(a for a in e.invars if a not in self.loop.weights) for e in site.products]

    def _zeros(self, site: Site) -> Any:
        aval = site.result.aval
        return jax.numpy.zeros((self.p["length"], *aval.shape), aval.dtype)

    def _in_order(self, floats: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """The results, of which ``floats`` are those of floats."""
        left, right = iter(floats), iter(others)
        avals = [v.aval for v in self.loop.body.jaxpr.outvars]
        return tuple(next(left) if is_inexact(str(a.dtype)) else next(right) for a in avals)


def _compute(eqns: Sequence[Any], env: dict[Any, Any]) -> None:
    for eqn in eqns:
        operands = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
        env |= dict(zip(eqn.outvars, bound(eqn, operands), strict=True))


def _moves(tangent: Any) -> bool:
    return not isinstance(tangent, SymbolicZero) and tangent.dtype != jax.dtypes.float0


def _dense(tangent: Any) -> Any:
    if isinstance(tangent, SymbolicZero):
        aval: Any = tangent.aval
        return jax.numpy.zeros(aval.shape, aval.dtype)
    return tangent


def _no_tangent(result: Any) -> Any:
    return np.zeros(result.shape, jax.dtypes.float0)
