"""Few large parts of an array at known positions that no index expression follows, as ``jax.vmap`` of ``jnp.roll`` takes them: slices side by side.

XLA computes the position of each element that it gathers, and adds what flows back part by part. Slices are parts of the loops around them, and
of an array that is beside itself a slice is a roll.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.frontends.jaxpr.values.positions import positions_in
from jaxte.frontends.jaxpr.values.value import axes_of
from jaxte.lang.limits import MANY_ELEMENTS, MOST_LARGER, MOST_TERMS


@dataclass(frozen=True)
class _Parts:
    """What a gather takes.

    Attributes:
        starts: where each part begins in each dimension of the operand, parts by their own dimensions first.
        sizes: of a part in each dimension of the operand.
        twice: the array that the operand has beside itself, along which dimension; the operand itself, and None, where it has none.
    """

    starts: np.ndarray
    sizes: tuple[int, ...]
    twice: tuple[Slot, int | None]

    def taken(self, operand: Any, start: Sequence[int]) -> Any:
        """The part that begins at ``start``."""
        _, d = self.twice
        stop = [s + n for s, n in zip(start, self.sizes, strict=True)]
        if d is None:
            return lax.slice(operand, start, stop)
        period = operand.shape[d]

        def piece(first: int, last: int) -> Any:
            low, high = (
                [at if n == d else s for n, s in enumerate(own)] for own, at in ((start, first), (stop, last))
            )
            return lax.slice(operand, low, high)

        first = start[d] % period
        beyond = first + self.sizes[d] - period
        if beyond <= 0:
            return piece(first, first + self.sizes[d])
        return lax.concatenate([piece(first, period), piece(0, beyond)], d)


def sliced(closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot]) -> Instead | None:
    """``closed``, whose equations are ``steps``, with slices in place of such gathers; None where there are none."""
    found = {step: parts for step in steps if (parts := _parts_of(step)) is not None}
    if not found:
        return None
    jaxpr = closed.jaxpr
    results = [slot_of(v, slots) for v in jaxpr.outvars]
    read_at_all = {*results}
    for step in reversed(steps):  # what an array is twice in is read no more
        if step.eqn.effects or not read_at_all.isdisjoint(step.outputs):
            read_at_all.update([found[step].twice[0]] if step in found else step.inputs)

    def run(*args: Any) -> list[Any]:
        env = {slots[v]: const for v, const in zip(jaxpr.constvars, closed.consts, strict=True)}
        env |= {slots[v]: arg for v, arg in zip(jaxpr.invars, args, strict=True)}

        def read(slot: Slot) -> Any:
            return env.get(slot, slot.known)

        for step in steps:
            if step not in found and not step.eqn.effects and read_at_all.isdisjoint(step.outputs):
                continue
            if step in found:
                made = [in_place_of(step.place, _side_by_side(step, found[step]), read(found[step].twice[0]))]
            else:
                made = as_it_stands(step.eqn, list(map(read, step.inputs)))
            env.update(zip(step.outputs, made, strict=True))
        return [read(slot) for slot in results]

    return Instead(jax.make_jaxpr(run)(*closed.in_avals))


def _side_by_side(step: Step, parts: _Parts) -> Any:
    """The function of the operand that makes what ``step`` makes."""
    numbers, shape = step.eqn.params["dimension_numbers"], step.outputs[0].shape
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    batch = [d for d in range(len(shape)) if d not in numbers.offset_dims]

    def make(operand: Any) -> Any:
        rows = parts.starts.reshape(-1, parts.starts.shape[-1])
        taken = [lax.squeeze(parts.taken(operand, list(map(int, row))), dropped) for row in rows]
        beside = jnp.stack(taken)
        whole = jnp.reshape(beside, (*parts.starts.shape[:-1], *beside.shape[1:]))
        return jnp.moveaxis(whole, range(len(batch)), batch)

    return make


def _parts_of(step: Step) -> _Parts | None:
    """The parts that a gather takes; None of one that stays."""
    if step.name != "gather" or step.has_symbols or step.is_known or step.inputs[1].known is None:
        return None
    operand, params = step.inputs[0], step.eqn.params
    numbers, sizes = params["dimension_numbers"], tuple(params["slice_sizes"])
    positions = np.asarray(step.inputs[1].known, np.int64)
    twice = _beside_itself(operand, sizes)
    batch, size = positions.shape[:-1], prod(sizes)
    # One part is a slice already; each of many is text, and a loop to compile; and of small ones, or of large arrays, the pads that flow back take as long.
    if (
        not 1 < prod(batch) <= MOST_TERMS
        or size < MANY_ELEMENTS
        or elements(twice[0]) > MOST_LARGER * size * _rows(step)
    ):
        return None
    starts = _inside(
        positions, [operand.shape[d] - sizes[d] for d in numbers.start_index_map], params["mode"]
    )
    if starts is None or _follow(starts, batch, step, twice):
        return None
    whole = np.zeros((*batch, len(sizes)), np.int64)
    for d, along in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        whole[..., d] = np.arange(batch[along]).reshape([-1 if n == along else 1 for n in range(len(batch))])
    whole[..., list(numbers.start_index_map)] = starts
    return _Parts(whole, sizes, twice)


def _rows(step: Step) -> int:
    """How many rows of the operand are gathered from, each by itself."""
    return prod(step.inputs[0].shape[d] for d in step.eqn.params["dimension_numbers"].operand_batching_dims)


def _inside(starts: np.ndarray, last: Sequence[int], mode: Any) -> np.ndarray | None:
    """Where parts begin, held inside if a gather does so; None where one is outside."""
    if str(mode).endswith("CLIP"):
        return np.clip(starts, 0, last)
    return None if np.any(starts < 0) or np.any(starts > last) else starts


def _follow(starts: np.ndarray, batch: Sequence[int], step: Step, twice: tuple[Slot, int | None]) -> bool:
    """Whether positions follow index expressions, which are raised as they are."""
    array, around = twice
    axes, into = axes_of(batch), step.eqn.params["dimension_numbers"].start_index_map
    periods = [array.shape[d] if d == around else None for d in into]
    extents = [step.inputs[0].shape[d] for d in into]
    columns = np.moveaxis(starts, -1, 0)
    return all(
        positions_in(c, axes, e, p) is not None for c, e, p in zip(columns, extents, periods, strict=True)
    )


def _beside_itself(slot: Slot, sizes: Sequence[int]) -> tuple[Slot, int | None]:
    """The array that ``slot`` has twice, one beside the other, and along which dimension, where parts of ``sizes`` are no longer than it."""
    step = slot.origin
    if (
        step is None
        or step.name != "concatenate"
        or len(step.inputs) != 2
        or step.inputs[0] is not step.inputs[1]
    ):
        return slot, None
    d = step.eqn.params["dimension"]
    return (step.inputs[0], d) if sizes[d] <= step.inputs[0].shape[d] else (slot, None)
