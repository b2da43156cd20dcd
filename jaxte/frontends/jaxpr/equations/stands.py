"""Equations as they stand, and what is computed in place of some of them, with their names and their places in the user's source."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound, walked
from jaxte.frontends.jaxpr.equations.called import as_calls

Replacement = Callable[[Any, Sequence[Any]], Sequence[Any] | None]
_EMPTY = jax.make_jaxpr(lambda: [])().jaxpr


def as_it_stands(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation by itself."""
    with _place(eqn):
        return bound(eqn, operands)


def computed(closed: Any, args: Sequence[Any], instead: Replacement) -> list[Any]:
    """The results of a jaxpr, of whose equations some are computed in another way.

    Args:
        closed: the jaxpr.
        args: its arguments.
        instead: the results of an equation on operands; None for one that stays as it stands.
    """

    def results(eqn: Any, operands: Sequence[Any]) -> Sequence[Any]:
        made = instead(eqn, operands)
        return as_it_stands(eqn, operands) if made is None else made

    return walked(closed.jaxpr, [*closed.consts, *args], results, lambda literal: literal.val)


def traced(closed: Any, instead: Replacement) -> Any:
    """The jaxpr of what :func:`computed` computes."""
    return jax.make_jaxpr(lambda *args: computed(closed, args, instead))(*closed.in_avals)


def opened(closed: Any, opens: Callable[[Any], Any | None]) -> Any:
    """A jaxpr with the equations of calls in place of the calls; ``opens`` gives the jaxpr of a call, and None for what stays."""

    def inside(eqn: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
        inner = opens(eqn)
        return None if inner is None else computed(inner, operands, inside)

    return closed if all(opens(eqn) is None for eqn in closed.jaxpr.eqns) else traced(closed, inside)


def as_they_stand(eqns: Sequence[Any], read: Callable[[Any], Any], wanted: Container[Any]) -> dict[Any, Any]:
    """The variables in ``wanted`` that ``eqns`` make, one after the other; ``read`` has those from before.

    All of them are given to JAX at once, which forgets what is not read any more.
    """
    free: dict[Any, None] = {}
    made: dict[Any, None] = {}
    for eqn in eqns:
        free |= dict.fromkeys(a for a in eqn.invars if not isinstance(a, Literal) and a not in made)
        made |= dict.fromkeys(eqn.outvars)
    outs = [v for v in made if v in wanted]
    alone = _EMPTY.replace(
        constvars=[],
        invars=list(free),
        outvars=outs,
        eqns=as_calls(eqns, wanted),
        effects=frozenset().union(*(e.effects for e in eqns)),
        debug_info=_EMPTY.debug_info._replace(arg_names=None, result_paths=None),
    )
    return dict(zip(outs, jax.core.eval_jaxpr(alone, [], *map(read, free)), strict=True))


def in_place_of(eqn: Any, function: Callable[..., Any], *operands: Any) -> Any:
    """The one result of ``function``, whose equations stand where ``eqn`` stands in the user's source."""
    with _place(eqn):
        return jax.tree.leaves(function(*operands))[0]


@contextmanager
def _place(eqn: Any) -> Iterator[None]:
    """Equations that are made within have the place and the context of ``eqn``."""
    info = eqn.source_info
    names = source_info_util.current_name_stack() + info.name_stack
    with source_info_util.user_context(info.traceback, name_stack=names), eqn.ctx.manager:
        yield


@dataclass(frozen=True)
class Instead:
    """A jaxpr with the results of another one.

    Attributes:
        closed: the jaxpr.
        parts: equations of the function as it was of which a part is computed, and what part.
        guarded: equations of the function as it was whose slopes are kept finite, and how.
        loops: loops of the function as it was that are written anew, or not, and why.
    """

    closed: Any
    parts: tuple[tuple[Any, str], ...] = ()
    guarded: tuple[tuple[Any, str], ...] = ()
    loops: tuple[tuple[Any, str], ...] = ()

    def after(self, earlier: Instead | None) -> Instead:
        """This one, made of ``earlier``, with what is told of both."""
        if earlier is None:
            return self
        return Instead(
            self.closed,
            earlier.parts + self.parts,
            earlier.guarded + self.guarded,
            earlier.loops + self.loops,
        )
