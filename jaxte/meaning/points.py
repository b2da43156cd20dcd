"""The points that tensors are computed at, beside which plans and adjoints are judged, and how many points of a box count.

They are the iterations of ``te.cost``, but a reduction counts at the positions at which choices by position ask for it, as far as a sample tells, and
once for all positions along axes that it does not depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from jaxte.lang.expr import Axis, Call, Expr, Reduce, Var, call, conjuncts
from jaxte.lang.graphs import components
from jaxte.lang.limits import FEW, PLACES
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.meaning.cost import told_by_data
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import axis_bounds, extent
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import values_at
from jaxte.tensors.tensor import Compute


def points(tensor: Compute) -> float:
    """The points at which ``tensor`` alone is computed; sizes that are not known are guessed."""
    return max(prod(map(extent, tensor.axes)), sum(_reductions(tensor.body, tensor.axes)))


def _reductions(body: Expr, axes: Sequence[Axis]) -> Iterator[float]:
    """For each reduction in ``body``, the positions of ``axes`` that it is asked for at, times its own points."""
    seen: set[tuple[object, ...]] = set()
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(body, ())]
    while stack:
        node, guards = stack.pop()
        # Nodes and guards that are told apart: choices within choices are many.
        guards = guards if len(seen) < PLACES else ()
        # the results of a tuple reduction are found in one pass
        key = (node.reducer, node.exprs, node.axes, node.where) if isinstance(node, Reduce) else (node,)
        if (*key, guards) in seen:
            continue
        seen.add((*key, guards))
        if not node.reduces:
            continue
        if isinstance(node, Call) and node.op is SELECT:
            test, taken, other = node.args
            stack += [(test, guards), (taken, (*guards, *conjuncts(test)))]
            stack.append((other, (*guards, call(NOT, test))))
        elif isinstance(node, Reduce):
            outer = set(axes).intersection(free_axes(node)).difference(told_by_data(node, axes))
            asked = [g for g in guards if outer.issuperset(free_axes(g))]
            own = prod(map(extent, node.axes))
            inner = sum(_reductions(node.exprs[0], node.axes)) / max(own, 1)
            yield prod(map(extent, outer)) * share(asked) * own * max(inner, 1)
        else:
            stack += [(child, guards) for child in node.children]


_SAMPLES = 64  # points at which conditions are tried for the share that they leave
# Fractions of multiples of these are spread evenly, in each pair of dimensions too, and fall on even and odd positions alike.
_STEPS = (0.6180339887, 0.7548776662, 0.8191725134, 0.8566748839, 0.8812714616)


def share(conditions: Iterable[Expr]) -> float:
    """The part of the points at which all of ``conditions`` hold, as if they were independent of each other."""
    return prod(_share((condition,)) for condition in conditions)


def share_together(conditions: Iterable[Expr]) -> float:
    """The same where those that are about the same axes hold at once: a range is two conditions."""
    return prod(_share(tuple(group)) for group in components(conditions, free_axes))


@lru_cache(maxsize=4096)
def _share(conditions: tuple[Expr, ...]) -> float:
    """Of the points of all axes that ``conditions`` are about; those that nothing is known of leave all."""
    stated = [nonnegative_forms(c) if not reads_of(c) else [] for c in conditions]
    known = [c for c, forms in zip(conditions, stated, strict=True) if forms]
    forms = [form for own in stated for form in own]
    axes = tuple(dict.fromkeys(axis for c in known for axis in free_axes(c)))
    bounds = axis_bounds(axes)
    if (
        not forms
        or not axes
        or len(bounds) < len(axes)
        or len(axes) > len(_STEPS)
        or any(isinstance(node, Var) for form in forms for node in postorder(*form.terms))
    ):
        return 1.0
    held, points = _held(forms, _sample(axes, _SAMPLES))
    # Hits of a sample that are too few to tell by.
    if held < FEW and points == _SAMPLES:
        held, points = _held(forms, _sample(axes, _SAMPLES * _SAMPLES // 2))
    return max(held, 1) / points


def _held(forms: Sequence[Linear], points: Mapping[Expr, np.ndarray]) -> tuple[int, int]:
    """At how many of ``points`` all of ``forms`` are at least 0, and how many there are."""
    least = np.minimum.reduce([_values(form, points) for form in forms])
    return int((least >= 0).sum()), len(least)


def _sample(axes: Sequence[Axis], count: int) -> dict[Expr, np.ndarray]:
    bounds = axis_bounds(axes)
    lengths = [high - low + 1 for low, high in bounds.values()]
    if prod(lengths) <= count:
        places = np.indices(lengths).reshape(len(lengths), -1)
    else:
        steps = np.array(_STEPS[: len(lengths)])[:, None]
        places = (np.arange(1, count + 1) * steps % 1 * np.array(lengths)[:, None]).astype(int)
    return {axis: low + own for (axis, (low, _)), own in zip(bounds.items(), places, strict=True)}


def _values(form: Linear, points: Mapping[Expr, np.ndarray]) -> np.ndarray:
    parts = [coefficient * values_at(atom, points) for atom, coefficient in form.terms.items()]
    return sum(parts, np.full(len(next(iter(points.values()))), form.constant))
