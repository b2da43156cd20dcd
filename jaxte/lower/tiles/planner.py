"""Which tensors are computed in tiles: for a block of positions of an axis at a time, with all that only these need.

The tensors that are too large to exist in whole are left out of the program. Each tensor that reads them, a *reader*, is
computed block by block along an axis, with the blocks of the large tensors inside: memory is that of a block. Either each
position of the reader needs one position of each large tensor (see ``tile_blocks``), or the reader is a reduction to which
each block adds its part (see ``tile_sums``):

    K[i] = sum over j of exp(-D[i, j]) * b[j]           tiles of i make blocks of K
    db[j] = sum over i of h[i] * exp(-D[i, j])          the same tiles of i add to all of db

Readers that need the same blocks share one pass, in the order in which they read each other. What several passes need is
computed again in each, as long as that costs less than to write it to memory and to read it back, or where a budget asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxte.autodiff.terms.beside import Held
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Axis, Const
from jaxte.lang.graphs import Members, among, reached
from jaxte.lang.walk import depends_on, outermost, reads_of
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import bytes_of
from jaxte.lower.tiles.blocked import Division
from jaxte.lower.tiles.carried_sums import least_positions, runnings
from jaxte.lower.tiles.passes import Pass, apart, make_pass, passes_in_steps
from jaxte.lower.tiles.sizes import KERNEL, TILES, Large, block_bytes, has_large_operand, wanted
from jaxte.lower.tiles.slices import NoBlock
from jaxte.lower.tiles.split_products import split_products
from jaxte.lower.tiles.tiling import Tiling, inputs_of, ordered
from jaxte.lower.tiles.write_kernel import is_for_kernel, verify_named, why_no_kernel
from jaxte.tensors.tensor import Compute, Tensor


def tiling(
    order: Sequence[Tensor],
    given: Members[Tensor],
    results: Members[Tensor],
    policy: Policy,
    tiled: frozenset[Axis] = frozenset(),
) -> Tiling:
    """``order`` with what is too large to exist computed in tiles.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
        policy: the budget, the rates, and the forms that the user named.
        tiled: axes that are those of a block already.

    Raises:
        LoweringError: a tensor above the memory budget has no tiles, or one position of it is above the budget and has none.
    """
    own = [t for t in order if t not in given]
    large = Large(own, given, policy)
    before = own
    free = [t for t in large.tensors if t not in results and wanted(large.policy, [t.name]) in _IN_TILES]
    own, renewed = split_products(own, free)
    if renewed:
        results = {renewed.get(t, t) for t in before if t in results}
        large = Large(own, given, policy)
    planner = _Planner(own, results, large, tiled)
    while not planner.attempt():
        pass
    found = planner.finished()
    verify_named(policy, found.order, planner.no_kernel)
    return replace(found, renewed=renewed)


_IN_TILES = (None, TILES, KERNEL)


class _Planner:
    """Attributes:
    inside: the large tensors that are to exist by blocks only.
    passes: those found so far.
    stand_ins: tensors in terms of reductions that a pass makes.
    no_kernel: why tensors that were asked for as kernels are none.
    """

    def __init__(
        self, order: Sequence[Tensor], results: Members[Tensor], large: Large, tiled: frozenset[Axis]
    ) -> None:
        self.order = order
        self.tiled = tiled
        self.large = large
        self.policy = large.policy
        self.limit = block_bytes(self.policy)
        self.inside: dict[Tensor, None] = {t: None for t in large.tensors if t not in results}
        self.refused: dict[Tensor, str] = {}
        self.passes: list[Pass] = []
        self.stand_ins: dict[Tensor, Compute] = {}
        self.no_kernel: dict[Tensor, str] = {}

    def attempt(self) -> bool:
        """Finds passes for all readers; False where a large tensor has to exist after all."""
        self.passes, self.stand_ins = [], {}
        for tensor in self.order:
            if tensor in self.inside:
                continue
            read = [t for t in tensor.inputs if t in self.inside]
            if not isinstance(tensor, Compute):  # a loop, or a function of arrays, is handed whole arrays
                for source in read:
                    self._keep(source, f"{tensor.name} needs all of it")
                if read:
                    return False
                continue
            if not read and not self.tiled and (steps := passes_in_steps(tensor, self.policy)) is not None:
                own, whole = steps
                self.passes += own
                if whole is not tensor:
                    self.stand_ins[tensor] = whole
                continue
            if not read and not has_large_operand(tensor, self.policy, bool(self.tiled)):
                continue
            reason = self._add_kernel(tensor) if is_for_kernel(self.policy, tensor) else self._add(tensor)
            if reason is None:
                continue
            for source in read:
                self._keep(source, f"{tensor.name} needs all of it ({reason})")
            if read:
                return False
        return self._each_worth_it()

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
        rows, reason = self._row_passes(tensor)
        if self._joined(rows):
            return None
        split = self._split(tensor)
        if split is not None and self._with_sums(tensor, *split, new=False):
            return None  # in blocks of some length: what is carried is read and written once for each
        small = [p for p in rows if p.largest <= self.limit]
        if not small and split is not None and self._with_sums(tensor, *split, new=True):
            return None
        if not rows:
            return reason
        self.passes.append(small[0] if small else min(rows, key=lambda p: p.largest))
        return None

    def _add_kernel(self, tensor: Compute) -> str | None:
        """The same as a kernel."""
        rows, reason = self._row_passes(tensor)
        reasons = [why_no_kernel(p, self.policy) for p in rows]
        own = [p for p, why in zip(rows, reasons, strict=True) if not why]
        if self._joined(own):
            return None
        if own:
            self.passes.append(own[0])
            return None
        self.no_kernel[tensor] = next(iter(reasons), reason)
        return self.no_kernel[tensor]

    def _row_passes(self, tensor: Compute) -> tuple[list[Pass], str]:
        """A pass of its own for each axis of which ``tensor`` has blocks; or why there is none."""
        reason = "it has no axis"
        found: list[Pass] = []
        for position, axis in enumerate(tensor.axes):
            if not isinstance(axis.extent, Const):
                reason = f"the extent of {axis.name} is symbolic"
                continue
            if int(axis.hi) < 2 or axis in self.tiled:
                continue
            try:
                own = make_pass(self.inside, [(tensor, position)], [], int(axis.hi))
            except NoBlock as refusal:
                reason = str(refusal)
                continue
            if any(s.windows for s in own.blocks.slices.values()) or own.blocks.start in {
                t for b in own.blocks.tensors.values() for t in b.inputs
            }:
                found.append(own)
            else:
                reason = f"it is the same for each {axis.name}"
        return found, reason

    def _split(self, tensor: Compute) -> tuple[Compute, list[tuple[Compute, ...]]] | None:
        """``tensor`` in terms of its reductions, each a tensor of its own, that read what is inside."""
        whole, reductions = tensor, []
        for node in outermost(tensor.body):
            if any(r.tensor in self.inside for r in reads_of(node)) or has_large_operand(
                tensor, self.policy, bool(self.tiled)
            ):
                wholes, whole = apart(whole, node)
                reductions.append(wholes)
        if not reductions or (whole is not tensor and any(t in self.inside for t in whole.inputs)):
            return None
        return whole, reductions

    def _with_sums(
        self, tensor: Compute, whole: Compute, reductions: Sequence[tuple[Compute, ...]], new: bool
    ) -> bool:
        """Puts each of ``reductions`` into a pass: one that is known, or, if ``new``, one of its own."""
        before = list(self.passes)
        for wholes in reductions:
            options: list[Pass] = []
            for running in runnings(wholes, self.inside):
                if running.axis in self.tiled or depends_on(running.position, [*self.tiled]):
                    continue
                try:
                    options.append(make_pass(self.inside, [], [running], running.extent))
                except NoBlock:
                    continue
            if self._joined(options, carried=not new):
                continue
            small = [p for p in options if p.largest <= self.limit] or options
            if not new or not small:
                self.passes = before
                return False
            self.passes.append(small[0])
        if whole is not tensor:
            self.stand_ins[tensor] = whole
        return True

    def _joined(self, options: Sequence[Pass], carried: bool = False) -> bool:
        """Puts a pass of one tensor into one that has blocks in common with it, long ones if it is ``carried``."""
        for own in options:
            least = max(map(least_positions, own.sums)) if carried else 0
            for number, known in reversed(list(enumerate(self.passes))):
                both = self._both(known, own)
                if both is not None and self.limit >= least * both.largest:
                    self.passes[number] = both
                    return True
        return False

    def _both(self, known: Pass, own: Pass) -> Pass | None:
        if known.extent != own.extent:
            return None
        try:
            both = known.with_others(own)
        except NoBlock:
            return None
        made = [both.blocks.tensors[m] for m in own.members]
        made += [u.new for u in both.updates if among(u.whole, own.wholes)]
        if not any(key in known.blocks.tensors for key in both.reached(made)):
            return None
        needed = self._above(inputs_of(both.blocks, both.updates))
        return None if any(w in needed for w in both.wholes) else both

    def _above(self, tensors: Iterable[Tensor]) -> set[Tensor]:
        """All that ``tensors`` need, themselves too. A pass makes its members all at once, so it needs what any needs."""
        together: dict[Tensor, list[Compute]] = {w: p.wholes for p in self.passes for w in p.wholes}

        def below(tensor: Tensor) -> Sequence[Tensor]:
            return (*self.stand_ins.get(tensor, tensor).inputs, *together.get(tensor, ()))

        return set(reached(tensors, below))

    def _each_worth_it(self) -> bool:
        """Takes out large tensors that cost more to compute once more in each pass than to write and read."""
        for tensor in list(self.inside):
            passes = sum(any(t is tensor for t, _ in p.blocks.tensors) for p in self.passes)
            if passes > 1 and isinstance(tensor, Held):
                self._keep(tensor, f"{passes} passes would each round its elements in another way")
                return False
            forced = self.large.has_to_be_tiled(tensor)
            if passes == 0 or (passes > 1 and not forced and self.large.again(tensor, passes - 1) > 0):
                self._keep(tensor, f"{passes} passes would each compute it")
                return False
        return True

    def finished(self) -> Tiling:
        """What was found, each pass divided into tiles."""
        division = Division(self.inside, self.policy, self.tiled, tiling)
        tiles = [division.tiles(p) for p in self.passes]
        return Tiling(ordered(self.order, self.inside, tiles, self.stand_ins), self.stand_ins, self.refused)
