"""Equal equations as calls of one function, whose derivative JAX makes once.

What is written in ``jax.numpy`` consists of small functions under ``jax.jit``, each of which JAX linearizes once for equal operands and puts in
place of its call. The equations of a jaxpr are without these functions, and to linearize one takes JAX five times as long as to find what it made.

Equations that follow each other again and again, the steps of a loop that was written out, as calls of one function of all of them.

JAX finds the derivative of a call that it met before in the time that it takes for one equation, and puts its equations in place of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound, literal_array
from jaxte.bridge.primitive.placement import is_placed
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import BEHIND, SEVERAL

_REMEMBERED = 4096  # calls, the oldest of which is forgotten: a program has some hundred kinds of equations


@dataclass(frozen=True)
class Kind:
    """What equal equations have in common, and one of them."""

    key: Hashable
    eqn: Any = field(compare=False)


def as_calls(eqns: Sequence[Any], wanted: Container[Any] = ()) -> list[Any]:
    """``eqns`` with a call in place of each of several equal ones, or of several that follow each other, that derivatives flow through.

    Args:
        wanted: variables that are read when all equations are computed.
    """
    kinds = [kind_of(eqn) for eqn in eqns]
    steps = _calls_of_steps(eqns, kinds, wanted)
    many = Counter(kind for kind in kinds if kind is not None)
    found: list[Any] = []
    n = 0
    while n < len(eqns):
        eqn, kind = eqns[n], kinds[n]
        single = kind is not None and many[kind] >= SEVERAL and _moves(eqn) and not _is_call(eqn)
        call, end = steps.get(n, (_call(eqn, kind) if single and kind is not None else eqn, n + 1))
        found.append(call)
        n = end
    return found


def _calls_of_steps(
    eqns: Sequence[Any], kinds: Sequence[Kind | None], wanted: Container[Any]
) -> dict[int, tuple[Any, int]]:
    """By the number of the first equation of a step, the call in place of it, and the equation behind it."""
    numbers: dict[Kind, int] = {}
    numbered = [None if kind is None else numbers.setdefault(kind, len(numbers)) for kind in kinds]
    last = {a: n for n, eqn in enumerate(eqns) for a in eqn.invars if not isinstance(a, Literal)}
    found: dict[int, tuple[Any, int]] = {}
    for blocks in repeated_blocks(eqns, numbered):
        own = range(blocks[0].start, blocks[0].end)
        if any(_moves(eqns[n]) for n in own):
            results = tuple(read_after(blocks, eqns, last, wanted))
            steps = _Steps(tuple(kinds[n] for n in own), blocks[0].wiring, results)
            found |= {b.start: (_call_of_steps(eqns, b, steps), b.end) for b in blocks}
    return found


def _is_call(eqn: Any) -> bool:
    """Whether an equation is a call of a function under ``jax.jit``, which is one object for equal calls."""
    return eqn.primitive.name in ("jit", "pjit")


def _is_function(parameter: Any) -> bool:
    return callable(parameter) or hasattr(parameter, "eqns") or hasattr(parameter, "jaxpr")


def _moves(eqn: Any) -> bool:
    """Whether something that an equation makes may be differentiated."""
    return any(is_inexact(str(v.aval.dtype)) for v in eqn.outvars)


def kind_of(eqn: Any) -> Kind | None:
    """The kind of an equation; None where it has functions within, but for a call, has effects, or is placed on devices."""
    avals = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
    if eqn.effects or not all(isinstance(a, jax.core.ShapedArray) for a in avals):
        return None
    if any(map(is_placed, avals)):
        return None
    if not _is_call(eqn) and (eqn.primitive.call_primitive or any(map(_is_function, eqn.params.values()))):
        return None
    numbers = tuple(literal_array(a).tobytes() if isinstance(a, Literal) else None for a in eqn.invars)
    key = eqn.primitive, tuple(eqn.params.items()), tuple(avals), numbers, eqn.ctx
    try:
        hash(key)
    except TypeError:
        return None
    return Kind(key, eqn)


def _call(eqn: Any, kind: Kind) -> Any:
    """``eqn`` as a call of the function that is one equation of its kind."""
    call = _called(kind)
    invars = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
    return eqn.replace(primitive=call.primitive, params=call.params, invars=invars)


@dataclass(frozen=True)
class _Steps:
    """What blocks of equations have in common: the kinds of these, where they take their operands from, and which results are read."""

    kinds: tuple[Kind | None, ...]
    wiring: tuple[tuple[Place | int, ...], ...]
    results: tuple[Place, ...]


def _call_of_steps(eqns: Sequence[Any], block: Block, steps: _Steps) -> Any:
    """The equations of ``block`` as a call of the function that those of its kind are."""
    call = _called_steps(steps, tuple(a.aval for a in block.given))
    outvars = [eqns[block.start + n].outvars[m] for n, m in steps.results]
    return eqns[block.start].replace(
        primitive=call.primitive, params=call.params, invars=list(block.given), outvars=outvars
    )


@lru_cache(_REMEMBERED)
def _called_steps(steps: _Steps, avals: Sequence[Any]) -> Any:
    """A call of the function that these equations are, to be put in place of the call."""

    def together(*arrays: Any) -> list[Any]:
        made: dict[Place, Any] = {}
        for n, (kind, own) in enumerate(zip(steps.kinds, steps.wiring, strict=True)):
            assert kind is not None
            given = iter([arrays[a] if isinstance(a, int) else made[a] for a in own])
            made |= {(n, m): value for m, value in enumerate(_bound(kind.eqn, given))}
        return [made[place] for place in steps.results]

    (call,) = jax.make_jaxpr(jax.jit(together))(*avals).eqns
    return call.replace(params={**call.params, "inline": True})


@lru_cache(_REMEMBERED)
def _called(kind: Kind) -> Any:
    """A call of the function that is one equation, to be put in place of the call."""
    eqn = kind.eqn

    def alone(*arrays: Any) -> Any:
        return _bound(eqn, iter(arrays))

    avals = [atom.aval for atom in eqn.invars if not isinstance(atom, Literal)]
    (call,) = jax.make_jaxpr(jax.jit(alone))(*avals).eqns
    return call.replace(params={**call.params, "inline": True})


def _bound(eqn: Any, given: Iterator[Any]) -> list[Any]:
    """The results of an equation on what is ``given`` in place of its variables."""
    operands = [a.val if isinstance(a, Literal) else next(given) for a in eqn.invars]
    with source_info_util.reset_name_stack(), eqn.ctx.manager:
        return bound(eqn, operands)


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
    numbers: dict[Hashable, int] = {}
    listed = [-1 if kind is None else numbers.setdefault(kind, len(numbers)) for kind in kinds]
    while at < len(listed):
        length = _repeated_length(listed, at)
        if length is None:
            at += 1
            continue
        count = _alike(listed, at, length) // length + 1
        yield at, length, count
        at += length * count


def _repeated_length(kinds: Sequence[int], at: int) -> int | None:
    """The least number of equations from ``at`` on that are there several times, one after the other."""
    own, end = kinds[at], min(at + BEHIND, len(kinds))
    if own < 0:
        return None
    for n in range(at + 2, end):
        if kinds[n] == own and _alike(kinds, at, n - at) >= (SEVERAL - 1) * (n - at):
            return n - at
    return None


def _alike(kinds: Sequence[int], at: int, length: int) -> int:
    """How many equations from ``at`` on are of the kind of that which is ``length`` behind it; those of no kind, which are negative, are not."""
    n = at
    while n + length < len(kinds) and kinds[n] >= 0 and kinds[n] == kinds[n + length]:
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
