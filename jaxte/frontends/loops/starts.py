"""What the states of a recurrence begin with: arrays that are read in place of them in the first step."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr
from jaxte.lang.identity import among
from jaxte.lang.operators import GREATER_EQUAL, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.sets.index_forms import difference, linear_or_none
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.steps import guarded_read
from jaxte.tensors.tensor import Compute


def with_starts(bodies: Sequence[Expr], states: Sequence[State]) -> list[Expr]:
    """``bodies`` with each choice between a state one step ago and what it begins with as one between the state and a tensor of that."""
    choices = {}
    for node in dict.fromkeys(n for body in bodies for n in postorder(body)):
        read = _of_first(node, states)
        if read is not None:
            assert isinstance(node, Call)
            choices[node] = next(s for s in states if s is read.tensor), read, node.args[2]
    starts: dict[State, Compute] = {}
    for state, read, other in choices.values():
        start = None if state in starts else _start(state, read, other)
        if start is not None:
            starts[state] = start
    table: dict[Expr, Expr] = {}
    for node, (state, read, other) in choices.items():
        start = starts.get(state)
        if start is not None:
            place = dict(zip(start.axes[1:], read.indices[1:], strict=True))
            if substitute(start.body, place) is other:
                table[node] = guarded_read(state, 0, read, start, False)
    return [rewrite(body, lambda node: table.get(node, node)) for body in bodies] if table else list(bodies)


def _of_first(node: Expr, states: Sequence[State]) -> Read | None:
    """The read of a state one step ago, where ``node`` chooses between it and another value by whether there is such a step."""
    if not isinstance(node, Call) or node.op is not SELECT:
        return None
    test, taken, _ = node.args
    if not isinstance(taken, Read) or not among(taken.tensor, states):
        return None
    if not isinstance(test, Call) or test.op is not GREATER_EQUAL:
        return None
    own, found = linear_or_none(taken.indices[0]), difference(test)
    if own is None or found is None or own.constant != -1:
        return None
    rest = found - own
    return taken if rest.is_constant and not rest.constant else None


def _start(state: State, read: Read, other: Expr) -> Compute | None:
    """A tensor of what ``other`` is at each element of the state, where that is read at plain axes."""
    axes = [a for a in read.indices[1:] if isinstance(a, Axis)]
    if len(axes) < len(read.indices) - 1 or len(set(axes)) < len(axes):
        return None
    if any(isinstance(r.tensor, State) for r in reads_of(other)) or set(free_axes(other)) - set(axes):
        return None
    if isinstance(other, Const) or not reads_of(other):
        return None
    first = Axis("t", 0, as_expr(1))
    own = tuple(Axis(a.name, 0, as_expr(e)) for a, e in zip(axes, state.shape[1:], strict=True))
    body = substitute(other, dict(zip(axes, own, strict=True)))
    (made,) = defined([f"{state.name}_init"], (first, *own), [body])
    return made
