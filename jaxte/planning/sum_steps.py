"""The steps of planning for one sum: each a row, with what it gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.expr import Axis, Expr, Reduce
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
from jaxte.planning.orders.distribution import (
    distributed,
    with_powers_of_factors,
    without_divisors,
)
from jaxte.planning.orders.geometric import carried
from jaxte.planning.orders.tables_first import with_tables_first
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


def _value(name: str, apply: Callable[[Reduce, Sum], Expr], reason: str) -> Rule[Expr, Sum]:
    """A row for reductions, in place of which there may be another value."""
    return Rule(name, lambda node, at: apply(node, at) if isinstance(node, Reduce) else node, reason)


def _pending(name: str, apply: Callable[[Reduce, Sum], Pending], reason: str) -> Rule[Pending, Sum]:
    """A row for reductions, which may be another value under a condition."""
    return Rule(name, lambda own, at: apply(own[1], at) if isinstance(own[1], Reduce) else own, reason)


SOLVED = _pending(
    "solved equations",
    lambda node, at: with_data_equations(node, at.axes),
    "what an equation with data chooses is read there",
)
COUNTED = _pending(
    "counted points",
    lambda node, at: at_counted_points(node),
    "only the points that count are reduced over",
)
DIVISORS = Rule[Divided, Sum](
    "divisors outside",
    lambda own, at: without_divisors(own[0]),
    "sums of what a sum divides do not wait for it",
)
# in place of a whole reduction; the first that applies is taken
WHOLE_VALUES = (
    _value(
        "all but one",
        lambda node, at: before_and_after(node, at.axes, at.name),
        "what all positions but one make is known of those before it and those behind it",
    ),
    _value(
        "elements of windows",
        lambda node, at: with_elements(node, at.axes, at.name),
        "what long windows are a maximum of is computed once for each position",
    ),
    _value(
        "extrema one axis after the other",
        lambda node, at: one_axis_apart(node, at.axes, at.name),
        "which element of a window of several dimensions is the extremum is found along one after the other",
    ),
    _value(
        "winners by doubling",
        lambda node, at: by_doubling(node, at.axes, at.name),
        "sums of what attains the extremum of a long window are known of its halves",
    ),
    _value(
        "geometric sums",
        lambda node, at: carried(node, at.axes, at.name),
        "geometric weights carry sums from step to step, or from block to block",
    ),
    _value(
        "tables first",
        lambda node, at: with_tables_first(node, at.name),
        "sums over the row of a table that data choose are computed once for each row",
    ),
)
# of the factors of a product that is summed, one row after the other
FACTORS = (
    Rule[Reduce, Sum](
        "powers of factors",
        lambda node, at: with_powers_of_factors(node),
        "powers of products are products of matrices where each factor has axes of its own",
    ),
    Rule[Reduce, Sum](
        "lines of weights",
        lambda node, at: with_lines(node, at.axes, at.name),
        "expensive weights that one number decides are computed once for each of its values",
    ),
    Rule[Reduce, Sum](
        "turned factors",
        lambda node, at: with_turned_factors(node, at.axes, at.name),
        "small factors at positions that wrap are laid out, and read as they lie",
    ),
    Rule[Reduce, Sum](
        "masked weights",
        lambda node, at: with_masked_weights(node, at.name),
        "a condition on the taps of a convolution is a mask on its weights",
    ),
)
TERMS_APART = Rule[tuple[Reduce, ...], Sum](
    "terms apart",
    lambda parts, at: tuple(distributed(parts[0], at.axes)),
    "factors that are sums are multiplied out where each term is a product of matrices",
)
# of each term, one row after the other
TERMS: tuple[Rule[Any, Sum], ...] = (
    Rule[Reduce, Sum](
        "frames",
        lambda node, at: with_frames(node, at.axes),
        "a strided window is a few slices side by side",
    ),
    _value(
        "partial sums",
        lambda node, at: planned_sum(node, at.axes, at.guards, at.name, at.parts),
        "sums are taken one axis after the other, in the order of the least work",
    ),
)
WHOLE_TERMS = _value(
    "one for each term",
    lambda node, at: at_terms(node, at.axes, at.guards, at.name),
    "a reduction is found once for each value of the terms of its indices",
)
SUMS: tuple[Rule, ...] = (
    SOLVED,
    COUNTED,
    DIVISORS,
    *WHOLE_VALUES,
    *FACTORS,
    TERMS_APART,
    *TERMS,
    WHOLE_TERMS,
)
