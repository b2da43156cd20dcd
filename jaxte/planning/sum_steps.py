"""The steps of planning for one sum: each a row, with what it gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.lang.expr import TRUE, Axis, Expr, Reduce
from jaxte.lang.rules import Rule
from jaxte.planning.asked import Asked
from jaxte.planning.conditions.all_but_one import before_and_after
from jaxte.planning.conditions.counted_points import at_counted_points
from jaxte.planning.conditions.data_equations import with_data_equations
from jaxte.planning.conditions.masked_weights import with_masked_weights
from jaxte.planning.indices.fewer_elements import at_terms, with_elements
from jaxte.planning.indices.known import with_turned_factors
from jaxte.planning.indices.lines import with_lines
from jaxte.planning.indices.strides import with_frames
from jaxte.planning.indices.winners import by_doubling, one_axis_apart
from jaxte.planning.orders.contraction import planned_sum
from jaxte.planning.orders.distribution import distributed, with_tables_first, without_divisors
from jaxte.planning.orders.geometric import carried
from jaxte.planning.orders.powers import with_powers_of_factors
from jaxte.tensors.structure import PartialSum


@dataclass(frozen=True)
class Sum(Asked):
    """Where a step for one reduction is asked.

    Attributes:
        axes: those of the definition in which it stands.
        name: of that definition.
        guards: what holds where its value counts.
        parts: partial sums that exist.
    """

    axes: tuple[Axis, ...] = ()
    name: str = ""
    guards: tuple[Expr, ...] = ()
    parts: Sequence[PartialSum] = ()


# a condition and a value: the reduction is the value where the condition holds, and its identity elsewhere
Pending = tuple[Expr, Expr]

# a sum, and what it is divided by
Divided = tuple[Reduce, tuple[Expr, ...]]


def _solved(pending: Pending, at: Sum) -> Pending:
    node = pending[1]
    assert isinstance(node, Reduce)
    found = with_data_equations(node, at.axes)
    return pending if found[1] is node else found


def _counted(pending: Pending, at: Sum) -> Pending:
    node = pending[1]
    assert isinstance(node, Reduce)
    found = at_counted_points(node)
    return pending if found[1] is node and found[0] is TRUE else found


def _undivided(value: Divided, at: Sum) -> Divided:
    found = without_divisors(value[0])
    return found if found[1] else value


def _carried(node: Expr, at: Sum) -> Expr:
    assert isinstance(node, Reduce)
    found = carried(node, at.axes, at.name)
    return node if found is None else found


def _terms_apart(parts: tuple[Reduce, ...], at: Sum) -> tuple[Reduce, ...]:
    found = tuple(distributed(parts[0], at.axes))
    return parts if len(found) == 1 and found[0] is parts[0] else found


SOLVED = Rule("solved equations", _solved, "what an equation with data chooses is read there")
COUNTED = Rule("counted points", _counted, "only the points that count are reduced over")
DIVISORS = Rule("divisors outside", _undivided, "sums of what a sum divides do not wait for it")

CARRIED = Rule(
    "geometric sums", _carried, "geometric weights carry sums from step to step, or from block to block"
)

ALL_BUT_ONE = Rule[Expr, Sum](
    "all but one",
    lambda node, at: before_and_after(node, at.axes, at.name) if isinstance(node, Reduce) else node,
    "what all positions but one make is known of those before it and those behind it",
)

ELEMENTS = Rule[Expr, Sum](
    "elements of windows",
    lambda node, at: with_elements(node, at.axes, at.name) if isinstance(node, Reduce) else node,
    "what long windows are a maximum of is computed once for each position",
)

EXTREMA = Rule[Expr, Sum](
    "extrema one axis after the other",
    lambda node, at: one_axis_apart(node, at.axes, at.name) if isinstance(node, Reduce) else node,
    "which element of a window of several dimensions is the extremum is found along one after the other",
)

WINNERS = Rule[Expr, Sum](
    "winners by doubling",
    lambda node, at: by_doubling(node, at.axes, at.name) if isinstance(node, Reduce) else node,
    "sums of what attains the extremum of a long window are known of its halves",
)

POWERS = Rule[Reduce, Sum](
    "powers of factors",
    lambda node, at: with_powers_of_factors(node),
    "powers of products are products of matrices where each factor has axes of its own",
)

LINES = Rule[Reduce, Sum](
    "lines of weights",
    lambda node, at: with_lines(node, at.axes, at.name),
    "expensive weights that one number decides are computed once for each of its values",
)

TABLES = Rule[Expr, Sum](
    "tables first",
    lambda node, at: with_tables_first(node, at.name) if isinstance(node, Reduce) else node,
    "sums over the row of a table that data choose are computed once for each row",
)

TURNED = Rule[Reduce, Sum](
    "turned factors",
    lambda node, at: with_turned_factors(node, at.axes, at.name),
    "small factors at positions that wrap are laid out, and read as they lie",
)

MASKED = Rule[Reduce, Sum](
    "masked weights",
    lambda node, at: with_masked_weights(node, at.name),
    "a condition on the taps of a convolution is a mask on its weights",
)

TERMS_APART = Rule(
    "terms apart", _terms_apart, "factors that are sums are multiplied out where each term is a product of matrices"
)  # fmt: skip

FRAMES = Rule[Reduce, Sum](
    "frames", lambda node, at: with_frames(node, at.axes), "a strided window is a few slices side by side"
)

PARTIAL_SUMS = Rule[Expr, Sum](
    "partial sums",
    lambda node, at: (
        planned_sum(node, at.axes, at.guards, at.name, at.parts) if isinstance(node, Reduce) else node
    ),
    "sums are taken one axis after the other, in the order of the least work",
)

WHOLE_TERMS = Rule[Expr, Sum](
    "one for each term",
    lambda node, at: at_terms(node, at.axes, at.guards, at.name) if isinstance(node, Reduce) else node,
    "a reduction is found once for each value of the terms of its indices",
)

SUMS: tuple[Rule, ...] = (
    SOLVED,
    COUNTED,
    DIVISORS,
    ALL_BUT_ONE,
    ELEMENTS,
    EXTREMA,
    WINNERS,
    CARRIED,
    TABLES,
    POWERS,
    LINES,
    TURNED,
    MASKED,
    TERMS_APART,
    FRAMES,
    PARTIAL_SUMS,
    WHOLE_TERMS,
)
