"""What primitives need of their operands for a part of their results, and how they compute it: one row for each that maps over dimensions.

The part is a box of positions, dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jax import lax

from jaxte.frontends.jaxpr.equations.dimensions import NAMES, dimensions
from jaxte.frontends.jaxpr.equations.stands import in_place_of
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.frontends.jaxpr.narrow.boxes import Box, Positions, is_whole, shape_of, whole
from jaxte.frontends.jaxpr.rules.shape import runs_of_equal_size

Needs = Callable[[Step, Box], Sequence[Box] | None]
Make = Callable[[Step, Box, Sequence[Any]], Any]


@dataclass(frozen=True)
class Row:
    """One primitive with one result.

    Attributes:
        needs: what of each operand a part of the result needs; None where it cannot be computed by itself.
        make: that part, from those parts of the operands.
    """

    needs: Needs
    make: Make


ROWS: dict[str, Row] = {}


def narrows(*names: str, make: Make) -> Callable[[Needs], Needs]:
    """Puts a row for the primitives ``names`` into the table."""

    def enter(needs: Needs) -> Needs:
        ROWS.update(dict.fromkeys(names, Row(needs, make)))
        return needs

    return enter


def bound(step: Step, operands: Sequence[Any], **changed: Any) -> Any:
    """The primitive of ``step`` on other operands."""
    eqn = step.eqn
    params = eqn.primitive.get_bind_params({**eqn.params, **changed})
    return in_place_of(eqn, lambda *xs: eqn.primitive.bind(*xs, **params), *operands)


def _as_it_is(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    return bound(step, operands)


def _of_shape(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    return bound(step, operands, shape=shape_of(box, step.outputs[0].shape))


@narrows("broadcast_in_dim", make=_of_shape)  # in place of the row of all
@narrows(*NAMES, make=_as_it_is)
def _by_dimension(step: Step, box: Box) -> Sequence[Box] | None:
    """One element is repeated along dimensions in which an operand has one, and all are needed along those that the result does not have."""
    found = dimensions(step.eqn)
    return None if found is None else [tuple(None if d is None else box[d] for d in own) for own in found]


def _reshaped(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    return bound(step, operands, new_sizes=shape_of(box, step.outputs[0].shape))


@narrows("reshape", make=_reshaped)
def _reshape(step: Step, box: Box) -> Sequence[Box] | None:
    source, *dynamic = step.inputs
    if dynamic or step.eqn.params.get("dimensions") is not None:
        return None
    old, new = source.shape, step.outputs[0].shape
    needed: list[Positions] = [None] * len(old)
    for own, made in runs_of_equal_size(old, new):
        if any(box[d] is not None for d in made):
            parts = _digits([box[d] for d in made], [new[d] for d in made], [old[d] for d in own])
            if parts is None:
                return None
            for d, part in zip(own, parts, strict=True):
                needed[d] = part
    return [tuple(needed)]


def _digits(read: Sequence[Positions], new: Sequence[int], old: Sequence[int]) -> list[Positions] | None:
    """The positions of dimensions ``new`` as those of ``old``, which hold the same elements; None where these are no product."""
    places = [np.arange(e) if p is None else p for p, e in zip(read, new, strict=True)]
    flat = np.ravel_multi_index(np.meshgrid(*places, indexing="ij"), tuple(new)).ravel()
    digits = [np.unique(part) for part in np.unravel_index(flat, tuple(old))]
    if prod(map(len, digits)) != len(flat):
        return None
    return [None if len(part) == e else part for part, e in zip(digits, old, strict=True)]


@narrows("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", make=_as_it_is)
def _cumulative(step: Step, box: Box) -> Sequence[Box] | None:
    return [box] if box[step.eqn.params["axis"]] is None else None


@narrows("conv_general_dilated", make=_as_it_is)
def _conv(step: Step, box: Box) -> Sequence[Box] | None:
    """Some images of the batch and, without groups, some output features."""
    p = step.eqn.params
    numbers = p["dimension_numbers"]
    image, features, *space = numbers.out_spec
    grouped = p["feature_group_count"] != 1 and box[features] is not None
    if p["batch_group_count"] != 1 or grouped or any(box[d] is not None for d in space):
        return None
    left, right = list(whole(len(box))), list(whole(len(box)))
    left[numbers.lhs_spec[0]], right[numbers.rhs_spec[0]] = box[image], box[features]
    return [tuple(left), tuple(right)]


def _is_taken(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    return operands[0]


@narrows("slice", make=_is_taken)
def _slice(step: Step, box: Box) -> Sequence[Box]:
    """A slice is its operand at its positions, with nothing more to do."""
    p, shape = step.eqn.params, step.inputs[0].shape
    steps = p["strides"] or (1,) * len(shape)
    lines = [np.arange(*line) for line in zip(p["start_indices"], p["limit_indices"], steps, strict=True)]
    return [tuple(_of(line, own, e) for line, own, e in zip(lines, box, shape, strict=True))]


def _of(line: np.ndarray, own: Positions, extent: int) -> Positions:
    found = line if own is None else line[own]
    return None if len(found) == extent else found


@narrows("concatenate", make=_as_it_is)
def _concatenate(step: Step, box: Box) -> Sequence[Box] | None:
    return [box] * len(step.inputs) if box[step.eqn.params["dimension"]] is None else None


@narrows("stack", make=_as_it_is)
def _stack(step: Step, box: Box) -> Sequence[Box] | None:
    axis = step.eqn.params["axis"] % len(box)
    return [(*box[:axis], *box[axis + 1 :])] * len(step.inputs) if box[axis] is None else None


@narrows("pad", make=_as_it_is)
def _pad(step: Step, box: Box) -> Sequence[Box] | None:
    config = [tuple(map(int, c)) for c in step.eqn.params["padding_config"]]
    return None if _any_cut(box, [c != (0, 0, 0) for c in config]) else [box, ()]


@narrows("reduce_window_sum", "reduce_window_max", "reduce_window_min", make=_as_it_is)
def _windows(step: Step, box: Box) -> Sequence[Box] | None:
    p = step.eqn.params
    rows = zip(p["window_dimensions"], p["window_strides"], p["padding"], p["base_dilation"], strict=True)
    return (
        None
        if _any_cut(box, [(w, s, tuple(pad), b) != (1, 1, (0, 0), 1) for w, s, pad, b in rows])
        else [box]
    )


@narrows("sort", make=_as_it_is)
def _sort(step: Step, box: Box) -> Sequence[Box] | None:
    return [box] if box[step.eqn.params["dimension"]] is None else None


def _any_cut(box: Box, mixed: Sequence[bool]) -> bool:
    """Whether a part is read along a dimension whose positions are mixed."""
    return any(m and p is not None for m, p in zip(mixed, box, strict=True))


def _positions(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    p = step.eqn.params
    d, shape = p["dimension"], shape_of(box, p["shape"])
    own = box[d]
    if own is None:
        return bound(step, operands, shape=shape)
    return lax.broadcast_in_dim(np.asarray(own, p["dtype"]), shape, (d,))


@narrows("iota", make=_positions)
def _iota(step: Step, box: Box) -> Sequence[Box]:
    return []


def _gathered(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    """Rows of the operand, of which those that are read at all are there."""
    x, _ = operands
    d, places = step.eqn.params["dimension_numbers"].start_index_map[0], np.asarray(step.inputs[1].known)
    sizes = tuple(1 if n == d else e for n, e in enumerate(x.shape))
    return bound(
        step, [x, np.searchsorted(np.unique(places), places).astype(places.dtype)], slice_sizes=sizes
    )


@narrows("gather", make=_gathered)
def _gather(step: Step, box: Box) -> Sequence[Box] | None:
    """Rows at known positions."""
    x, indices = step.inputs
    numbers, sizes = step.eqn.params["dimension_numbers"], step.eqn.params["slice_sizes"]
    if (
        indices.known is None
        or not is_whole(box)
        or numbers.operand_batching_dims
        or len(numbers.start_index_map) != 1
    ):
        return None
    (d,) = numbers.start_index_map
    places = np.unique(indices.known)
    inside = places.size and places[0] >= 0 and places[-1] < x.shape[d]
    if not inside or tuple(sizes) != tuple(1 if n == d else e for n, e in enumerate(x.shape)):
        return None
    return [tuple(places if n == d else None for n in range(len(sizes))), whole(len(indices.shape))]


def work(step: Step, shapes: Sequence[Sequence[int]], result: Sequence[int]) -> float:
    """Roughly how many operations a step takes with operands and a result of these shapes."""
    name, p = step.name, step.eqn.params
    if name == "dot_general":
        (contracted, _), _ = p["dimension_numbers"]
        return 2.0 * prod(result) * prod(shapes[0][d] for d in contracted)
    if name == "conv_general_dilated":
        return 2.0 * prod(result) * prod(shapes[1]) / max(shapes[1][p["dimension_numbers"].rhs_spec[0]], 1)
    return float(max(map(prod, [*shapes, result])))
