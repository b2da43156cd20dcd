"""The tiles of a pass: how many positions its blocks have, and what a block consists of, in tiles again where a budget asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Axis
from jaxte.lang.graphs import Members
from jaxte.lang.limits import FEW
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.steps import TOGETHER
from jaxte.lower.tiles.band_matrices import BLOCKS, with_matrices
from jaxte.lower.tiles.passes import Pass, largest_block, sized
from jaxte.lower.tiles.sizes import KERNEL, TILES, block_bytes, inner_bytes
from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.lower.tiles.write_kernel import is_for_kernel, kernel_sized
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class Division:
    """How passes are divided into tiles.

    Attributes:
        inside: the large tensors that exist by blocks only.
        policy: the budget, the rates, and the forms that the user named.
        tiled: axes that are those of a block already.
        plan: finds passes for the tensors of a block: ``plan(order, given, results, policy, tiled)``.
    """

    inside: Members[Tensor]
    policy: Policy
    tiled: frozenset[Axis]
    plan: Callable[..., Tiling]

    def tiles(self, known: Pass) -> Tiles:
        """The tiles of a pass: a kernel, steps, or blocks that the cache holds.

        Raises:
            LoweringError: one position of it is above the budget.
        """
        limit = block_bytes(self.policy)
        if not known.updates and any(is_for_kernel(self.policy, whole) for whole in known.wholes):
            own = kernel_sized(known, min(limit, self.policy.facts.kernel_memory))
            return self._made(known, own, Tiling(tuple(own.blocks.computed), {}, {}), is_kernel=True)
        if known.in_steps:
            return replace(self._made(known, known, self._inner(known, None)[0]), together=TOGETHER)
        budget = self.policy.max_memory
        chosen = sized(known, limit)
        inner, reason = self._inner(chosen, budget)
        # a row alone is 10 times as slow as squares
        if reason or (chosen.blocks.size == 1 and known.extent > 1):
            square = known.square(limit)
            parts, missing = self._inner(square, int(limit))
            if not missing and any(isinstance(t, Tiles) for t in parts.order):
                chosen, inner, reason = square, parts, ""
        if reason:
            size, tensor = largest_block(chosen.blocks, chosen.updates)
            raise LoweringError(
                f"{' and '.join(w.name for w in chosen.wholes)}: one row of {tensor.name} takes {size:,} bytes, more than "
                f"max_memory={self.policy.max_memory:,}, and cannot be computed in parts: {reason}; give max_memory={size} or more"
            )
        return self._made(known, chosen, inner)

    def _made(self, known: Pass, chosen: Pass, inner: Tiling, is_kernel: bool = False) -> Tiles:
        inside = tuple(dict.fromkeys(t for t, _ in chosen.blocks.tensors if t in self.inside))
        axis = known.members[0][0].axes[known.members[0][1]] if known.members else known.sums[0].axis
        return Tiles(known.members, chosen.updates, chosen.blocks, inside, axis.name, inner, is_kernel)

    def _inner(self, known: Pass, budget: int | None) -> tuple[Tiling, str]:
        """What a block consists of, in tiles again where a budget asks for it; and why it stays above the budget."""
        blocks, updates = known.blocks, known.updates
        own: list[Tensor] = [*blocks.computed, *(u.new for u in updates)]
        whole = Tiling(tuple(own), {}, {})
        results = {*(blocks.tensors[m] for m in known.members), *(u.new for u in updates)}
        if budget is None:
            as_blocks = self.policy.facts.divides_positions and BLOCKS not in self.policy.without
            return with_matrices(whole, results) if as_blocks else whole, ""
        forms = {name: form for name, form in self.policy.forms.items() if form not in (TILES, KERNEL)}
        policy = replace(self.policy, max_memory=budget, forms=forms, without=self.policy.without | {TILES})
        try:
            found = self.plan(own, frozenset(), results, policy, self.tiled | blocks.axes)
        except LoweringError as error:
            return whole, str(error)
        for tensor in found.order:
            if isinstance(tensor, Compute) and (size := inner_bytes(tensor.body, FEW)) > budget:
                return whole, f"the operands of {tensor.name} take {size:,} bytes"
        return found, ""
