"""What of a loop's body is needed, where rows take the place of arrays."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from jax.extend.core import Literal

from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body
from jaxte.frontends.jaxpr.loops.tracked import Source


class Live:
    """What of a body is needed.

    Attributes:
        equations: those that are computed, read rows or take lifted ones.
        writes: rows that are made.
        stacked: rows that the array behind the loop is made of.
        handed: rows that later steps read.
        sources: of the rows that are read.
        read: variables that are read.

    Args:
        body: the body.
        states: the carries that are handed on.
        fixed: what is there before the loop.
        sums: whether sums are taken behind the loop.
    """

    def __init__(self, body: Body, states: Sequence[int], fixed: Container[Any], sums: bool) -> None:
        self._body, self._fixed = body, fixed
        self._makers = {v: eqn for eqn in body.jaxpr.eqns for v in eqn.outvars}
        self.equations: set[int] = set()
        self.writes: set[tuple[int, int]] = set()
        self.sources: list[tuple[int, Source]] = []
        self.read: set[Any] = set()
        every = [(n, k) for n, a in body.arrays.items() for k in range(len(a.writes))]
        self.stacked = [(n, k) for n, k in every if body.arrays[n].last[k].any()]
        self._stack: list[Any] = [body.returned[n] for n in states]
        self._stack += body.jaxpr.outvars[body.carried :]
        self._stack += [t for s in (body.sums.values() if sums else ()) for t, _ in s.terms]
        for key in self.stacked:
            self._write(*key)
        self._follow()
        self.handed = [(n, k) for n, k in every if body.arrays[n].lags[k] and (n, k) in self.writes]

    def _follow(self) -> None:
        while self._stack:
            var = self._stack.pop()
            if isinstance(var, Literal) or var in self.read:
                continue
            self.read.add(var)
            eqn = self._makers.get(var)
            if eqn is None or var in self._fixed or id(eqn) in self.equations:
                continue
            self.equations.add(id(eqn))
            if id(eqn) in self._body.reads:
                n, access, sources = self._body.reads[id(eqn)]
                self._atoms(n, access)
                for source in sources:
                    self._source(n, source)
            elif id(eqn) not in self._body.lifted:
                self._stack += eqn.invars

    def _write(self, n: int, k: int) -> None:
        if (n, k) in self.writes:
            return
        self.writes.add((n, k))
        array = self._body.arrays[n]
        self._stack.append(array.writes[k].value)
        self._atoms(n, array.writes[k])
        source = array.before[k]
        if source is not None:
            self._source(n, source)

    def _source(self, n: int, source: Source) -> None:
        self.sources.append((n, source))
        for k, _, _ in source.written:
            self._write(n, k)

    def _atoms(self, n: int, access: Access) -> None:
        self._stack += [
            access.atoms[d] for d in self._body.arrays[n].rest if not isinstance(access.atoms[d], int)
        ]
