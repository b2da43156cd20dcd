"""The pattern of a jaxpr: what each equation passes on of what its operands depend on.

A primitive that only moves elements is run on their positions; one that maps element by element unites its operands; a reduction unites along
its axes. Loops are followed step by step. What is not in the table passes on everything to everything, which is right and wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxte.bridge.jaxprs import CALLS, literal_array, scan_counts, walked
from jaxte.frontends.jaxpr.equations.dimensions import Dimensions, dimensions
from jaxte.frontends.jaxpr.equations.known import folded
from jaxte.frontends.jaxpr.equations.stands import as_it_stands
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, known_array
from jaxte.frontends.sparse.pattern import Pattern, mixed_along, mixed_by_batch, nothing, union
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import LARGE_TABLE

State = tuple[Pattern, Any]
"""What an array depends on, and what it holds where that is known."""

_MOVES = frozenset(
    [
        "reshape", "transpose", "broadcast_in_dim", "squeeze", "expand_dims", "rev", "slice", "gather",
        "dynamic_slice", "copy", "concatenate", "pad", "split", "tile", "unstack", "stack",
    ]
)  # fmt: skip
_OF_MATRICES = frozenset(
    ["lu", "cholesky", "triangular_solve", "qr", "householder_product", "eigh", "svd", "tridiagonal_solve"]
)
_PREFIXES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")


@dataclass(frozen=True)
class Asked:
    """What is asked of a jaxpr.

    Attributes:
        columns: elements of the input.
        values: whether it is what values are made of, through integers and stopped gradients too: of a function with a derivative of its own.
    """

    columns: int
    values: bool = False

    def nothing(self, shape: Sequence[int]) -> Pattern:
        return nothing(shape, self.columns)


def propagated(closed: Any, given: Sequence[State], asked: Asked) -> list[State]:
    """What the results of ``closed`` depend on."""
    constants = [(asked.nothing(np.shape(c)), known_array(c)) for c in closed.consts]

    def number(literal: Any) -> State:
        value = literal_array(literal)
        return asked.nothing(value.shape), value

    def results(eqn: Any, operands: Sequence[State]) -> list[State]:
        return _passed_on(eqn, operands, asked)

    return walked(closed.jaxpr, [*constants, *given], results, number)


def _passed_on(eqn: Any, operands: Sequence[State], asked: Asked) -> list[State]:
    """What the results of one equation depend on, and hold."""
    name = eqn.primitive.name
    if name in CALLS:
        own = replace(asked, values=True) if name in OWN_DERIVATIVES else asked
        return propagated(_closed(eqn.params[CALLS[name]]), operands, own)
    if name == "scan":
        return _scanned(eqn, operands, asked)
    if name == "cond":
        return _chosen(eqn, operands[1:], asked)
    if name == "custom_linear_solve":
        return _solved(eqn, operands, asked)
    known = _known(eqn, operands)
    found = _patterns(eqn, operands, asked)
    results = []
    for var, pattern, value in zip(eqn.outvars, found, known, strict=True):
        moves = (asked.values or is_inexact(str(var.aval.dtype))) and value is None
        results.append((pattern if moves else asked.nothing(var.aval.shape), value))
    return results


def _patterns(eqn: Any, operands: Sequence[State], asked: Asked) -> list[Pattern]:
    name = eqn.primitive.name
    shapes = [tuple(v.aval.shape) for v in eqn.outvars]
    moving = [p for p, _ in operands if not p.is_empty]
    if not moving or (name == "stop_gradient" and not asked.values):
        return [asked.nothing(s) for s in shapes]
    if name in _MOVES and (moved := _moved(eqn, operands)) is not None:
        return moved
    if name.startswith("scatter") and (written := _scattered(eqn, operands)) is not None:
        return [written]
    if name in _PREFIXES:
        return [_along(eqn, operands[0][0])]
    if (places := dimensions(eqn)) is not None:
        parts = zip(operands, places, strict=True)
        return [union([_at_dimensions(p, own, shapes[0]) for (p, _), own in parts])]
    if name == "dynamic_update_slice" and all(k is not None for _, k in operands[2:]):
        return [_updated(operands, shapes[0])]
    if name == "sort":
        return [mixed_along(eqn.params["dimension"], moving, s) for s in shapes]
    if name == "triangular_solve" and operands[0][0].is_empty:
        return [mixed_along(-2 if eqn.params["left_side"] else -1, moving, s) for s in shapes]
    own = 2 if name in _OF_MATRICES else len(eqn.params["fft_lengths"]) if name == "fft" else 0
    if own and len({p.shape[:-own] for p in moving}) == 1:
        return [mixed_by_batch(moving, s, own) for s in shapes]
    return [union([p.everywhere(s) for p, _ in operands]) for s in shapes]


def _at_dimensions(pattern: Pattern, own: Dimensions, shape: tuple[int, ...]) -> Pattern:
    """Of an operand whose dimensions are ``own`` of the result: each element depends on what stands at its position, all along those that are none."""
    if pattern.shape == shape and own == tuple(range(len(shape))):
        return pattern
    kept = sorted((d, n) for n, d in enumerate(own) if d is not None)
    order = [n for _, n in kept] + [n for n, d in enumerate(own) if d is None]
    at = dict(kept)
    extents = [pattern.shape[at[d]] if d in at else 1 for d in range(len(shape))]
    place = np.arange(pattern.size).reshape(pattern.shape).transpose(order).reshape(*extents, -1)
    source = np.broadcast_to(place, (*shape, place.shape[-1]))
    to = np.broadcast_to(np.arange(prod(shape)).reshape(*shape, 1), source.shape)
    return pattern.moved(shape, to.reshape(-1), source.reshape(-1))


def _moved(eqn: Any, operands: Sequence[State]) -> list[Pattern] | None:
    """Of a primitive that only moves elements: what it does to their positions; None where these are data."""
    moving = [n for n, (_, known) in enumerate(operands) if known is None]
    if any(not _is_element(eqn, n) for n in moving):
        return None
    starts = dict(zip(moving, np.cumsum([0, *(operands[n][0].size for n in moving)]), strict=False))
    given: list[Any] = []
    for n, (pattern, known) in enumerate(operands):
        if n in starts:
            given.append(starts[n] + np.arange(pattern.size).reshape(pattern.shape))
        else:
            given.append(np.full(pattern.shape, -1) if _is_element(eqn, n) else known)
    with jax.ensure_compile_time_eval():
        ready = [jnp.asarray(g, "int32" if _is_element(eqn, n) else None) for n, g in enumerate(given)]
        made = as_it_stands(_with_fill(eqn), ready)
    found = []
    for array in map(np.asarray, made):
        ends = {n: start + operands[n][0].size for n, start in starts.items()}
        inside = {n: (array >= start) & (array < ends[n]) for n, start in starts.items()}
        parts = [operands[n][0].read_at(np.where(inside[n], array - starts[n], -1)) for n in starts]
        found.append(union(parts))
    return found


def _is_element(eqn: Any, number: int) -> bool:
    """Whether operand ``number`` holds what is moved, not positions."""
    return number == 0 or eqn.primitive.name in ("concatenate", "pad", "stack")


def _with_fill(eqn: Any) -> Any:
    """The equation, which fills with -1 what a gather reads outside."""
    if eqn.primitive.name != "gather":
        return eqn
    return eqn.replace(params={**eqn.params, "fill_value": -1})


def _scattered(eqn: Any, operands: Sequence[State]) -> Pattern | None:
    """Of updates at known positions: each element depends on what stood there, and on the updates that come to it."""
    (base, _), (_, at), (updates, _) = operands
    if at is None:
        return None
    with jax.ensure_compile_time_eval():
        zeros = jnp.zeros(updates.shape), jnp.zeros(base.shape)
        adding = {**eqn.params, "update_jaxpr": None, "update_consts": ()}
        put = jax.vjp(lambda u: jax.lax.scatter_add_p.bind(zeros[1], jnp.asarray(at), u, **adding), zeros[0])[
            1
        ]
        place = np.asarray(put(1 + jnp.arange(base.size, dtype=zeros[0].dtype).reshape(base.shape))[0])
    place = place.reshape(-1).astype(np.int64) - 1
    source = np.flatnonzero(place >= 0)
    return union([base, updates.moved(base.shape, place[source], source)])


def _updated(operands: Sequence[State], shape: tuple[int, ...]) -> Pattern:
    (base, _), (update, _), *starts = operands
    place = np.full(shape, -1)
    kept = np.arange(base.size).reshape(shape).copy()
    low = [min(max(int(k), 0), e - s) for (_, k), e, s in zip(starts, shape, update.shape, strict=True)]
    where = tuple(slice(a, a + s) for a, s in zip(low, update.shape, strict=True))
    place[where] = np.arange(update.size).reshape(update.shape)
    kept[where] = -1
    return union([base.read_at(kept), update.read_at(place)])


def _along(eqn: Any, pattern: Pattern) -> Pattern:
    """Of a reduction over all elements before or after each."""
    axis, extent = eqn.params["axis"], pattern.shape[eqn.params["axis"]]
    lines = np.moveaxis(np.arange(pattern.size).reshape(pattern.shape), axis, 0).reshape(extent, -1)
    to, source = np.tril_indices(extent) if not eqn.params["reverse"] else np.triu_indices(extent)
    return pattern.moved(pattern.shape, lines[to].reshape(-1), lines[source].reshape(-1))


def _scanned(eqn: Any, operands: Sequence[State], asked: Asked) -> list[State]:
    """Of a loop, one step after the other."""
    p = eqn.params
    body = _closed(p["jaxpr"])
    consts, carried = scan_counts(p)
    fixed, state, rows = (
        operands[:consts],
        list(operands[consts : consts + carried]),
        operands[consts + carried :],
    )
    order = range(p["length"])[:: -1 if p["reverse"] else 1]
    made: dict[int, list[Pattern]] = {}
    for n in order:
        given = [*fixed, *((s, None) for s, _ in state), *(_row(r, n) for r in rows)]
        found = propagated(body, given, asked)
        state = found[:carried]
        made[n] = [pattern for pattern, _ in found[carried:]]
    stacked = [
        _stacked([made[n][k] for n in sorted(made)], tuple(v.aval.shape), asked.columns)
        for k, v in enumerate(eqn.outvars[carried:])
    ]
    return [*((s, None) for s, _ in state), *((s, None) for s in stacked)]


def _row(state: State, n: int) -> State:
    pattern, known = state
    place = np.arange(pattern.size).reshape(pattern.shape)[n]
    return pattern.read_at(place), None if known is None else known[n]


def _stacked(rows: Sequence[Pattern], shape: tuple[int, ...], columns: int) -> Pattern:
    size = prod(shape[1:])
    keys = [row.keys + n * size * columns for n, row in enumerate(rows)]
    return Pattern(shape, columns, np.concatenate(keys) if keys else np.zeros(0, np.int64))


def _solved(eqn: Any, operands: Sequence[State], asked: Asked) -> list[State]:
    """Of a solution ``x`` of ``A x = b``: its tangent solves the same system with ``db - dA x``, whatever the program that solves it is made of."""
    lengths, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    still = [(asked.nothing(v.aval.shape), None) for v in eqn.outvars]
    changes = propagated(_closed(programs.matvec), [*operands[: lengths.matvec], *still], asked)
    right = [
        (union([b, own]), None) for (b, _), (own, _) in zip(operands[sum(lengths) :], changes, strict=True)
    ]
    solver = [(asked.nothing(p.shape), known) for p, known in operands[before : before + lengths.solve]]
    return propagated(_closed(programs.solve), [*solver, *right], asked)


def _chosen(eqn: Any, operands: Sequence[State], asked: Asked) -> list[State]:
    """Of a choice between branches: what any of them depends on."""
    found = [propagated(_closed(branch), operands, asked) for branch in eqn.params["branches"]]
    return [(union([p for p, _ in same]), None) for same in zip(*found, strict=True)]


def _known(eqn: Any, operands: Sequence[State]) -> list[Any]:
    """The results of an equation over known arrays of positions and conditions, by which other equations move elements."""
    values = [k for _, k in operands]
    small = all(prod(v.aval.shape) <= LARGE_TABLE for v in eqn.outvars)
    if any(v is None for v in values) or not small or eqn.effects or eqn.primitive.name == "while":
        return [None] * len(eqn.outvars)
    found = folded(eqn, values)
    if all(v is not None for v in found):
        return found
    with jax.ensure_compile_time_eval():
        made = as_it_stands(eqn, [jnp.asarray(v) for v in values])
    return [known_array(m) for m in made]


def _closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, ())
