"""Which tensors are computed in tiles: for a few positions of an axis at a time, with all that only these need.

The tensors that are too large to exist in whole are left out of the program. Each tensor that reads them, a *reader*, is
computed row by row along one of its axes, with the rows of the large tensors inside (see ``tile_rows``): memory is that
of a few rows. That is possible where the reader needs, for one position of its axis, one row of each large tensor:

    K[i] = sum over j of exp(-D[i, j]) * b[j]           tiles of i read rows of D
    db[j] = sum over i of h[i] * exp(-D[i, j])          tiles of j read columns of D

A reader without such an axis that reduces over one is split: ``s = sum over i of K[i]`` with ``K`` in tiles. Readers that
need the same rows share one pass, in the order in which they read each other. What several passes need is computed
again in each, as long as that costs less than to write it to memory and to read it back, or where a budget asks for it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from jaxte.errors import LoweringError
from jaxte.expr import ZERO, Const, Reduce
from jaxte.lower.policy import Policy
from jaxte.lower.specs import Refusal
from jaxte.lower.tile_passes import Tiles, ordered
from jaxte.lower.tile_rows import Rows, rows_or_refusal
from jaxte.lower.tile_sizes import (
    GENERAL,
    RATIO,
    TILES,
    Large,
    bytes_of,
    inner_bytes,
    overlaps,
    reduced_bytes,
    wanted,
)
from jaxte.lower.tile_splits import outermost, split_over
from jaxte.tensor import Compute, Tensor
from jaxte.walk import reads_of

_SPLIT = ("sum", "prod", "max", "min", "any", "all")


@dataclass(frozen=True)
class Tiling:
    """The program in tiles.

    Attributes:
        order: what to compute, in order.
        stand_ins: tensors that are computed under another definition.
        refused: large tensors that exist in whole, with the reason.
    """

    order: tuple[Tensor | Tiles, ...]
    stand_ins: dict[Tensor, Compute]
    refused: dict[Tensor, str]


def tiling(
    order: Sequence[Tensor], given: Container[Tensor], results: Container[Tensor], policy: Policy
) -> Tiling:
    """``order`` with what is too large to exist computed in tiles.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
        policy: the budget, the rates, and the forms that the user named.

    Raises:
        LoweringError: a tensor above the memory budget has no tiles, or one row of it is above the budget.
    """
    own = [t for t in order if t not in given]
    planner = _Planner(own, results, Large(own, given, policy))
    while not planner.attempt():
        pass
    return planner.finished()


@dataclass
class _Pass:
    """A pass under way."""

    members: list[tuple[Compute, int]]
    rows: Rows


class _Planner:
    """Attributes:
    inside: the large tensors that are to exist by rows only.
    above: all tensors that each tensor needs.
    """

    def __init__(self, order: Sequence[Tensor], results: Container[Tensor], large: Large) -> None:
        self.order = order
        self.large = large
        self.policy = large.policy
        self.inside: dict[Tensor, None] = {t: None for t in large.tensors if t not in results}
        self.results = results
        self.refused: dict[Tensor, str] = {}
        self.passes: list[_Pass] = []
        self.stand_ins: dict[Tensor, Compute] = {}

    def attempt(self) -> bool:
        """Finds passes for all readers; False where a large tensor has to exist after all."""
        self.passes, self.stand_ins = [], {}
        for tensor in self.order:
            if not isinstance(tensor, Compute) or tensor in self.inside:
                continue
            read = [t for t in tensor.inputs if t in self.inside]
            if not read and not self._has_large_operand(tensor):
                continue
            reason = self._add(tensor)
            if reason is None:
                continue
            for source in read:
                self._keep(source, f"{tensor.name} needs all of it ({reason})")
            if read:
                return False
        return self._each_worth_it()

    def _has_large_operand(self, tensor: Compute) -> bool:
        """Whether a sum of ``tensor`` would evaluate an operand that is too large to exist."""
        form = wanted(self.policy, [tensor.name])
        if overlaps(tensor) or form == GENERAL or TILES in self.policy.without:
            return False
        size, budget = inner_bytes(tensor.body), self.policy.max_memory
        if budget is not None and size > budget:
            return True
        if form == TILES:
            return bool(tensor.axes)
        sources = max(bytes_of(t) or 0 for t in (*tensor.inputs, tensor))
        return size > self.policy.rates.cache and size >= RATIO * sources

    def _keep(self, tensor: Tensor, reason: str) -> None:
        if self.large.is_over_budget(tensor):
            size = bytes_of(tensor)
            raise LoweringError(
                f"{tensor.name} takes {size:,} bytes, more than max_memory={self.policy.max_memory:,}, and cannot be "
                f"computed in tiles: {reason}; give max_memory={size} or more, or define what reads {tensor.name} so "
                "that each of its elements needs one row"
            )
        self.inside.pop(tensor, None)
        self.refused[tensor] = reason

    # --- passes

    def _add(self, tensor: Compute) -> str | None:
        """Puts ``tensor`` into a pass; or says why it has none."""
        reason = self._join(tensor)
        if reason is None:
            return None
        before = [_Pass(list(p.members), p.rows) for p in self.passes]
        nodes = [n for n in outermost(tensor.body) if any(r.tensor in self.inside for r in reads_of(n))]
        whole = tensor
        for node in nodes:
            split = self._add_parts(whole, node)
            if split is None:
                self.passes = before
                return reason
            whole = split
        if any(t in self.inside for t in whole.inputs):
            self.passes = before
            return reason
        self.stand_ins[tensor] = whole
        return None

    def _add_parts(self, tensor: Compute, node: Reduce) -> Compute | None:
        """``tensor`` with ``node`` as the last step of a reduction whose first steps are in a pass."""
        limit = self.policy.max_memory or self.policy.rates.cache
        for axis in node.axes if node.reducer.name in _SPLIT else ():
            parts, whole = split_over(tensor, node, axis)
            if (bytes_of(parts) or limit + 1) <= limit and self._join(parts) is None:
                return whole
        return None

    def _join(self, tensor: Compute) -> str | None:
        """Puts ``tensor`` into a pass that has the rows which it needs, or into one of its own."""
        reason = "it has no axis"
        options: list[tuple[int, int, Rows]] = []
        for position, axis in enumerate(tensor.axes):
            if not isinstance(axis.extent, Const) or axis.extent is ZERO:
                continue
            rows = Rows({*self.inside, tensor}, axis.hi)
            found = rows_or_refusal(rows, tensor, position)
            if isinstance(found, Refusal):
                reason = found.reason
            elif not rows.handed:
                reason = f"it is the same for each {axis.name}"
            else:
                options.append((position, _row_bytes(rows), rows))
        if not options:
            return reason
        for position, _, rows in options:
            for known in reversed(self.passes):
                joined = self._joined(known, tensor, position, rows)
                if joined is not None:
                    known.members.append((tensor, position))
                    known.rows = joined
                    return None
        small = [o for o in options if o[1] <= self._tile_bytes]
        position, _, rows = small[0] if small else min(options, key=lambda o: o[1])
        self.passes.append(_Pass([(tensor, position)], rows))
        return None

    def _joined(self, known: _Pass, tensor: Compute, position: int, own: Rows) -> Rows | None:
        """The rows of a pass with ``tensor`` as one more member, if they have rows in common."""
        first, at = known.members[0]
        if first.axes[at].hi is not tensor.axes[position].hi:
            return None
        members = [*known.members, (tensor, position)]
        rows = Rows({*self.inside, *(m for m, _ in members)}, first.axes[at].hi)
        for member, place in members:
            if isinstance(rows_or_refusal(rows, member, place), Refusal):
                return None
        shared = [
            k for k in rows.tensors if k in known.rows.tensors and k in _reached(rows, tensor, position)
        ]
        if not shared:
            return None
        needed = self._above(_pass_inputs(rows))
        return None if any(m in needed for m, _ in members) else rows

    def _above(self, tensors: Iterable[Tensor]) -> set[Tensor]:
        """All that ``tensors`` need, themselves too. A pass makes its members all at once, so it needs what any needs."""
        together: dict[Tensor, list[Compute]] = {
            m: [t for t, _ in p.members] for p in self.passes for m, _ in p.members
        }
        found: set[Tensor] = set()
        stack = list(tensors)
        while stack:
            tensor = stack.pop()
            if tensor not in found:
                found.add(tensor)
                stack.extend((*self.stand_ins.get(tensor, tensor).inputs, *together.get(tensor, ())))
        return found

    # --- sizes

    @property
    def _tile_bytes(self) -> float:
        """What the rows of a tile may take: little enough for the cache, enough to be worth starting the operations."""
        rates = self.policy.rates
        return max(rates.cache / 4, 10 * rates.spill / rates.kernel)

    def _count(self, known: _Pass, extent: int) -> int:
        """How many rows are computed together: a power of two."""
        each = max(1, _row_bytes(known.rows))
        count = max(1.0, self._tile_bytes / each)
        budget = self.policy.max_memory
        if budget is not None:
            single, tensor = _largest_row(known.rows)
            if single > budget:
                raise LoweringError(
                    f"{' and '.join(m.name for m, _ in known.members)}: one row of {tensor.name} takes {single:,} bytes, "
                    f"more than max_memory={budget:,}; give max_memory={single} or more"
                )
            count = min(count, budget / max(1, single))
        return min(
            1 << max(0, int(count * 1.4).bit_length() - 1) if budget is None else _power_below(count), extent
        )

    def _each_worth_it(self) -> bool:
        """Takes out large tensors that cost more to compute once more in each pass than to write and read."""
        for tensor in list(self.inside):
            passes = sum(any(t is tensor for t, _ in p.rows.tensors) for p in self.passes)
            forced = self.large.has_to_be_tiled(tensor)
            if passes == 0 or (passes > 1 and not forced and self.large.again(tensor, passes - 1) > 0):
                self._keep(tensor, f"{passes} passes would each compute it")
                return False
        return True

    def finished(self) -> Tiling:
        tiles = [self._tiles(p) for p in self.passes]
        return Tiling(ordered(self.order, self.inside, tiles, self.stand_ins), self.stand_ins, self.refused)

    def _tiles(self, known: _Pass) -> Tiles:
        first, at = known.members[0]
        extent = int(first.axes[at].hi)
        rows = known.rows
        results = tuple(rows.tensors[m] for m in known.members)
        inside = tuple(dict.fromkeys(t for t, _ in rows.tensors if t in self.inside))
        own = tuple(rows.tensors.values())
        handed = tuple(rows.handed.values())
        return Tiles(tuple(known.members), results, own, inside, handed, extent, self._count(known, extent))


def _power_below(count: float) -> int:
    return 1 << (max(1, int(count)).bit_length() - 1)


def _row_bytes(rows: Rows) -> int:
    return sum(max(bytes_of(row) or 0, reduced_bytes(row.body)) for row in rows.tensors.values())


def _largest_row(rows: Rows) -> tuple[int, Compute]:
    sizes = [
        (max(bytes_of(row) or 0, inner_bytes(row.body)), tensor) for (tensor, _), row in rows.tensors.items()
    ]
    return max(sizes, key=lambda s: s[0])


def _reached(rows: Rows, tensor: Compute, position: int) -> set[tuple[Compute, int]]:
    """The rows that the row of ``tensor`` reads, directly or through others."""
    keys = {row: key for key, row in rows.tensors.items()}
    found: set[tuple[Compute, int]] = set()
    stack: list[Tensor] = list(rows.tensors[tensor, position].inputs)
    while stack:
        row = stack.pop()
        if isinstance(row, Compute) and row in keys and keys[row] not in found:
            found.add(keys[row])
            stack.extend(row.inputs)
    return found


def _pass_inputs(rows: Rows) -> list[Tensor]:
    own: set[Tensor] = {*rows.tensors.values(), *(h.row for h in rows.handed.values())}
    read = [t for row in rows.tensors.values() for t in row.inputs if t not in own]
    return [*read, *(r.tensor for h in rows.handed.values() for r in reads_of(h.array.body))]
