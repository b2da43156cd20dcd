"""Products with matrices that stay the same through a ``scan``: what of its body can be computed for all steps at once.

JAX's reverse pass adds what each step gives to the gradient of a matrix, one outer product of a few rows after the other. Here such a
product is a :class:`Site`: its rows and what flows back to it are kept for all steps, and the gradient is one contraction over them.
Products that do not depend on the carry are taken in front of the loop, where they are one product too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from jax.extend.core import Literal

from jaxte.bridge.jaxprs import GROUPS, scan_counts
from jaxte.frontends.jaxpr.equations.stands import opened
from jaxte.frontends.jaxpr.equations.steps import grouped
from jaxte.lang.dtypes import is_float
from jaxte.lang.limits import FEW_POSITIONS, MARGIN, MOST_KEPT
from jaxte.lower.cost.platform import Rates

_PRODUCT = "dot_general"


@dataclass(frozen=True)
class Site:
    """A sum of products of the state with matrices, and of what else is added to it.

    Attributes:
        result: the sum.
        products: its equations of the form state times matrix.
        sums: its other equations, which add.
        added: arrays that stay the same.
        carrier: an array of each step that is added too, if there is one, along which the tangents of the rest go.
    """

    result: Any
    products: tuple[Any, ...]
    sums: tuple[Any, ...] = ()
    added: tuple[Any, ...] = ()
    carrier: Any = None


@dataclass(frozen=True, eq=False)
class Loop:
    """The body of a ``scan`` in three parts.

    Attributes:
        body: the body as one list of equations.
        once: equations that are computed once, before the loop.
        ahead: those that are computed for all steps before the loop.
        inside: those that stay.
        lifted: what ``inside`` reads of ``ahead``.
        weights: what stays the same and is multiplied or added at sites.
        sites: the sums whose matrices have their gradients contracted over all steps.
        fixed: numbers of the constants that equations apart from sites read.
    """

    body: Any
    once: tuple[Any, ...]
    ahead: tuple[Any, ...]
    inside: tuple[Any, ...]
    lifted: tuple[Any, ...]
    weights: tuple[Any, ...]
    sites: tuple[Site, ...]
    fixed: frozenset[int]


def loop_of(eqn: Any, rates: Rates) -> Loop | None:
    """How a ``scan`` is computed with its products of all steps together; None where it has none that gain at these ``rates``."""
    p = eqn.params
    if eqn.primitive.name != "scan" or p["length"] < FEW_POSITIONS or eqn.effects:
        return None
    if not any(s.primitive.name == _PRODUCT for s in _all(p["jaxpr"].jaxpr.eqns)):
        return None
    return _Split(opened(p["jaxpr"], _with_product), *scan_counts(p), p["length"], rates).loop()


class _Split:
    def __init__(self, body: Any, consts: int, carried: int, length: int, rates: Rates) -> None:
        self.body, self.length, self.rates = body, length, rates
        jaxpr = body.jaxpr
        self.eqns: list[Any] = list(jaxpr.eqns)
        self.consts = [*jaxpr.constvars, *jaxpr.invars[:consts]]
        self.rows = jaxpr.invars[consts + carried :]
        # 0: the same in each step, 1: of the step alone, 2: of the state
        self.level = dict.fromkeys(self.consts, 0) | dict.fromkeys(self.rows, 1)
        self.level |= dict.fromkeys(jaxpr.invars[consts : consts + carried], 2)
        for eqn in self.eqns:
            own = 2 if eqn.effects else max(map(self._level, eqn.invars), default=0)
            self.level |= dict.fromkeys(eqn.outvars, own)
        self.makers = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        read = [a for eqn in self.eqns for a in eqn.invars if not isinstance(a, Literal)]
        self.uses = Counter([*read, *(v for v in jaxpr.outvars if not isinstance(v, Literal))])

    def loop(self) -> Loop | None:
        ahead = self._ahead()
        made = {v for e in ahead for v in e.outvars}
        sites = self._sites(made)
        recurrent = any(
            e.primitive.name == _PRODUCT and sorted(map(self._level, e.invars)) == [0, 2] for e in self.eqns
        )
        # of a recurrence whose rows are many, products ahead gain nothing either
        if not sites and (recurrent or not ahead):
            return None
        own = {id(e): e for s in sites for e in (*s.products, *s.sums)}
        weights = dict.fromkeys(w for s in sites for w in (*map(self._weight, s.products), *s.added))
        same = dict.fromkeys([*weights, *(a for e in ahead for a in self._read(e) if self._level(a) == 0)])
        returned = [v for v in self.body.jaxpr.outvars if not isinstance(v, Literal)]

        def elsewhere(eqn: Any) -> list[Any]:
            """What an equation of the loop reads of the loop: not the matrices of sites, nor what is made ahead."""
            return [a for a in self._read(eqn) if a not in made and not (id(eqn) in own and a in weights)]

        inside = self._slice([v for v in returned if v not in made], elsewhere)
        read = {a for e in inside for a in elsewhere(e)} | set(returned)
        lifted = dict.fromkeys([*(a for e in inside for a in self._read(e)), *returned])
        return Loop(
            self.body,
            tuple(self._slice([v for v in same if v in self.makers], self._read)),
            tuple(ahead),
            tuple(inside),
            tuple(v for v in lifted if v in made),
            tuple(weights),
            tuple(sites),
            frozenset(n for n, v in enumerate(self.consts) if v in read),
        )

    def _level(self, atom: Any) -> int:
        return 0 if isinstance(atom, Literal) else self.level[atom]

    def _read(self, eqn: Any) -> list[Any]:
        return [a for a in eqn.invars if not isinstance(a, Literal)]

    def _slice(self, wanted: Iterable[Any], read: Callable[[Any], list[Any]]) -> list[Any]:
        """The equations that ``wanted`` are computed by, in order; ``read`` says what an equation needs."""
        found: set[int] = set()
        stack = [self.makers[v] for v in wanted if v in self.makers]
        while stack:
            eqn = stack.pop()
            if id(eqn) not in found:
                found.add(id(eqn))
                stack += [self.makers[a] for a in read(eqn) if a in self.makers]
        return [e for e in self.eqns if id(e) in found]

    def _ahead(self) -> list[Any]:
        """Products of what is read in each step, what they are made of, and what is added to them."""
        products = [e for e in self.eqns if self._is_product(e, 1)]
        needed = self._slice([v for e in products for v in e.outvars], self._read)
        chosen = {id(e) for e in needed if self.level[e.outvars[0]] == 1}
        made = {v for e in self.eqns if id(e) in chosen for v in e.outvars}
        for eqn in self.eqns:
            if _adds(eqn) and self.level[eqn.outvars[0]] == 1 and any(a in made for a in self._read(eqn)):
                if all(self._level(a) == 0 or a in made for a in eqn.invars):
                    chosen.add(id(eqn))
                    made.update(eqn.outvars)
        return [e for e in self.eqns if id(e) in chosen]

    def _sites(self, lifted: set[Any]) -> list[Site]:
        """The sums of products of the state; sums of sums are one."""
        found: dict[Any, Site] = {}
        for eqn in self.eqns:
            (out, *_) = eqn.outvars
            if self._is_product(eqn, 2):
                found[out] = Site(out, (eqn,))
            elif _adds(eqn) and any(self._ends(a, found) for a in eqn.invars):
                sums = [a for a in eqn.invars if self._ends(a, found)]
                rest = [a for a in eqn.invars if a not in sums]
                merged = self._merged(eqn, [found[a] for a in sums], rest, lifted)
                if merged is not None:
                    for a in sums:
                        del found[a]
                    found[out] = merged
        return list(found.values())

    def _ends(self, atom: Any, found: dict[Any, Site]) -> bool:
        """Whether a sum so far is read here alone."""
        return not isinstance(atom, Literal) and atom in found and self.uses[atom] == 1

    def _merged(self, eqn: Any, sums: Sequence[Site], rest: Sequence[Any], lifted: set[Any]) -> Site | None:
        """A sum of sums and of the rest, which is the same in each step, or of the step and read here alone."""
        site = replace(sums[0], result=eqn.outvars[0], sums=(*sums[0].sums, eqn))
        for other in sums[1:]:
            if site.carrier is not None and other.carrier is not None:
                return None
            site = replace(
                site,
                products=site.products + other.products,
                sums=site.sums + other.sums,
                added=site.added + other.added,
                carrier=site.carrier if other.carrier is None else other.carrier,
            )
        for atom in rest:
            if isinstance(atom, Literal):
                return None
            if self.level[atom] == 0:
                site = replace(site, added=(*site.added, atom))
            elif site.carrier is None and self.uses[atom] == 1 and (atom in lifted or atom in self.rows):
                site = replace(site, carrier=atom)
            else:
                return None
        return site

    def _is_product(self, eqn: Any, level: int) -> bool:
        """Whether ``eqn`` is a product of rows of this level with a matrix that is large beside them."""
        if eqn.primitive.name != _PRODUCT or sorted(map(self._level, eqn.invars)) != [0, level]:
            return False
        rows, weight = self._rows(eqn), self._weight(eqn)
        (out,) = eqn.outvars
        if not is_float(str(out.aval.dtype)) or any(not _is_sized(v) for v in (rows, weight, out)):
            return False
        held = (_size(rows) + _size(out)) * out.aval.dtype.itemsize
        # The rows are kept for all steps.
        if self.length * held > MOST_KEPT or _size(weight) < _size(rows):
            return False
        return level == 1 or self._saves(_size(weight) * out.aval.dtype.itemsize, held)

    def _saves(self, weight: int, rows: int) -> bool:
        """Whether adding to the gradient of a matrix in each step takes longer than keeping the rows of a step, both in bytes.

        The gradient is read, what the step gives is written and the sum as well; rows and what flows back to them are written and read.
        """
        # Of 64 numbers, 16 rows a step took 1.2 to 1.6 times as long.
        return 3 * weight / self.rates.stream > MARGIN * 4 * rows / self.rates.spill

    def _weight(self, eqn: Any) -> Any:
        return next(a for a in eqn.invars if self._level(a) == 0)

    def _rows(self, eqn: Any) -> Any:
        return next(a for a in eqn.invars if self._level(a) > 0)


def _adds(eqn: Any) -> bool:
    """Whether ``eqn`` is a sum of two arrays of one shape and dtype."""
    if eqn.primitive.name not in ("add", "add_any"):
        return False
    (out,) = eqn.outvars
    return all(a.aval.shape == out.aval.shape and a.aval.dtype == out.aval.dtype for a in eqn.invars)


def _is_sized(atom: Any) -> bool:
    return not isinstance(atom, Literal) and all(isinstance(n, int) for n in atom.aval.shape)


def _size(atom: Any) -> int:
    return prod(atom.aval.shape)


def _all(eqns: Iterable[Any]) -> Iterable[Any]:
    """Equations, those of calls that only group others included."""
    for eqn in eqns:
        yield eqn
        if eqn.primitive.name in GROUPS:
            yield from _all(eqn.params[GROUPS[eqn.primitive.name]].jaxpr.eqns)


def _with_product(eqn: Any) -> Any | None:
    """The jaxpr of a call that holds products and says nothing but what its equations say."""
    return grouped(eqn) if any(s.primitive.name == _PRODUCT for s in _all([eqn])) else None
