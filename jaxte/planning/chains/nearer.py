"""Chains whose steps look back more than one, with each tensor in the first step that has all it is made of.

Of two fields that are made of each other,

    u[t] = f(u[t - 1], v[t - 1]),   v[t] = g(u[t - 1], v[t - 1])

a step that consists of what its end ``u[t]`` needs has ``v[t - 1]`` beside it, which reads ``u[t - 2]``: what flows back then keeps slopes of two positions, and
takes twice as long. With ``v[t]`` in the step of ``u[t]`` all reads are of the step before. The last step has no ``v`` that anything needs; it is computed all the
same, as whoever writes the loop does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from jaxte.lang.expr import Const, Expr, Read
from jaxte.lang.graphs import identical
from jaxte.lang.limits import CASES
from jaxte.lang.walk import substitute
from jaxte.planning.chains.found import Chain, Comparison
from jaxte.tensors.structure import Unlike, rows_of, topological_order
from jaxte.tensors.tensor import Compute, Tensor


def of_nearer_steps(chain: Chain, order: Sequence[Tensor]) -> Chain:
    """``chain``, or the same in steps that look back fewer.

    Args:
        chain: what was found.
        order: the tensors of the graph, in which what the last step lacks may be.
    """
    if chain.furthest < 2:
        return chain
    for first in dict.fromkeys((0, len(chain.path) - chain.length)):
        made = _compared(chain.path, first, order)
        if made is not None and made.furthest < chain.furthest:
            return made
    return chain


def _compared(path: Sequence[Compute], first: int, order: Sequence[Tensor]) -> Chain | None:
    following = _Following(path, order)
    others: list[tuple[Tensor, ...]] = []
    for _ in range(CASES):
        comparison = Comparison(path, _first_steps(path, first, others), first)
        try:
            return comparison.chain(others)
        except Unlike:
            missing = comparison.missing
        ends = [following.after(*read[-2:]) for read in missing]
        added = [(*read[1:], end) for read, end in zip(missing, ends, strict=True) if end is not None]
        if not added or len(added) < len(missing):
            return None
        others += added
    return None


def _first_steps(
    path: Sequence[Compute], first: int, others: Sequence[tuple[Tensor, ...]]
) -> dict[Tensor, int]:
    """Of each tensor that the steps need, the first one that has all it is made of: the one behind the last tensor of the path, or of ``others``, among that."""
    number: dict[Tensor, int] = {t: n for n, t in enumerate(path)}
    for own in others:
        number |= {t: first + n for n, t in enumerate(own)}
    found: dict[Tensor, int] = {}
    for tensor in topological_order([path[-1], *(own[-1] for own in others)]):
        behind = max((number[t] if t in number else found[t] - 1 for t in tensor.inputs), default=-1)
        found[tensor] = number[tensor] if tensor in number else behind + 1
    return found


class _Following:
    """What comes after a tensor of a step, in the graph or made: its definition over what comes after what that reads."""

    def __init__(self, path: Sequence[Compute], order: Sequence[Tensor]) -> None:
        self._after: dict[Tensor, Tensor] = dict(pairwise(path))
        self._known = [t for t in order if type(t) is Compute]

    def after(self, before: Tensor, last: Tensor) -> Tensor | None:
        """The tensor after ``last``, which comes after ``before``; None where numbers differ from step to step, too."""
        if self._after.setdefault(before, last) is not last:
            return None
        if last not in self._after and (made := self._made(before, last)) is not None:
            self._after[last] = made
        return self._after.get(last)

    def _made(self, before: Tensor, last: Tensor) -> Compute | None:
        if type(before) is not Compute or type(last) is not Compute:
            return None
        try:
            rows = rows_of((before.body, last.body), list(zip(before.axes, last.axes, strict=True)))
        except Unlike:
            return None
        table: dict[Expr, Expr] = {}
        for old, own in rows:
            if isinstance(own, Const) and old is not own:
                return None
            if isinstance(old, Read) and isinstance(own, Read) and old.tensor is not own.tensor:
                follower = self.after(old.tensor, own.tensor)
                if follower is None:
                    return None
                table[own] = Read(follower, own.indices)
        body = substitute(last.body, table)
        found = next((t for t in self._known if _is_equal(t, last, body)), None)
        if found is None:
            found = last.alike(_next_name(last.name), last.axes, body)
            self._known.append(found)
        return found


def _is_equal(tensor: Compute, like: Compute, body: Expr) -> bool:
    """Whether ``tensor`` is defined by ``body``, which is over the axes of ``like``."""
    if tensor.dtype != like.dtype or not identical(tensor.shape, like.shape):
        return False
    return substitute(tensor.body, dict(zip(tensor.axes, like.axes, strict=True))) is body


def _next_name(name: str) -> str:
    """``v20`` after ``v19``."""
    number = re.search(r"\d+$", name)
    return name if number is None else name[: number.start()] + str(int(number.group()) + 1)
