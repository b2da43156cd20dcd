"""Equations that follow each other again and again, the steps of a loop that was written out, as calls of one function of all of them.

JAX finds the derivative of a call that it met before in the time that it takes for one equation, and puts its equations in place of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

from jaxte.lang.limits import BEHIND, SEVERAL

Place = tuple[int, int]
"""A result of an equation of a block: the number of the equation, and that of the result."""


@dataclass(frozen=True)
class Block:
    """Equations from ``start`` on, as many as there are in ``wiring``.

    Attributes:
        wiring: where each equation takes its operands from: a result within, or a number among ``given``.
        given: what is read from before, in order of appearance.
    """

    start: int
    wiring: tuple[tuple[Place | int, ...], ...]
    given: tuple[Any, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.wiring)


def repeated_blocks(eqns: Sequence[Any], kinds: Sequence[Hashable]) -> list[list[Block]]:
    """Blocks of ``eqns`` that are alike, of which there are several; ``kinds`` are equal for equal equations, and None for what is left alone."""
    alike: dict[Hashable, list[Block]] = defaultdict(list)
    for first, length, count in _repetitions(kinds):
        for start in range(first, first + length * count, length):
            block = _block(eqns, start, length)
            alike[tuple(kinds[start : start + length]), block.wiring].append(block)
    return [blocks for blocks in alike.values() if len(blocks) >= SEVERAL]


def read_after(
    blocks: Sequence[Block], eqns: Sequence[Any], last_read: dict[Any, int], wanted: Container[Any]
) -> list[Place]:
    """The results that are read after one of ``blocks``: at equations up to those of ``last_read``, or as what is ``wanted``."""
    return [
        (n, m)
        for n in range(len(blocks[0].wiring))
        for m in range(len(eqns[blocks[0].start + n].outvars))
        if any(
            (v := eqns[own.start + n].outvars[m]) in wanted or last_read.get(v, -1) >= own.end
            for own in blocks
        )
    ]


def _repetitions(kinds: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """Where something is repeated at once, how many equations it has and how often it is there: the shortest such, from the front."""
    at = 0
    while at < len(kinds):
        length = next((n for n in range(2, BEHIND) if _alike(kinds, at, n) >= (SEVERAL - 1) * n), None)
        if length is None:
            at += 1
            continue
        count = _alike(kinds, at, length) // length + 1
        yield at, length, count
        at += length * count


def _alike(kinds: Sequence[Hashable], at: int, length: int) -> int:
    """How many equations from ``at`` on are of the kind of that which is ``length`` behind it."""
    n = at
    while n + length < len(kinds) and kinds[n] is not None and kinds[n] == kinds[n + length]:
        n += 1
    return n - at


def _block(eqns: Sequence[Any], start: int, length: int) -> Block:
    inside: dict[Any, Place] = {}
    given: dict[Any, int] = {}
    wiring: list[tuple[Place | int, ...]] = []
    for n in range(length):
        eqn = eqns[start + n]
        atoms = [a for a in eqn.invars if not isinstance(a, Literal)]
        wiring.append(tuple(inside[a] if a in inside else given.setdefault(a, len(given)) for a in atoms))
        inside |= {v: (n, m) for m, v in enumerate(eqn.outvars)}
    return Block(start, tuple(wiring), tuple(given))
