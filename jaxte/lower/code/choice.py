"""What became of tensors, for ``te.explain`` and for choosing again: forms with what they cost, passes in tiles, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from jaxte.lang.limits import FAR_FEWER, MOST_HELD, WORTH_MULTIPLYING


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one form of a reduction costs.

    Attributes:
        form: its name.
        seconds: estimated from the rates of the platform.
        temporaries: bytes of its largest intermediate.
        measured: seconds, where ``te.autotune`` measured it.
        chosen: whether it was taken.
        key: signature of the reduction, which its other forms share.
    """

    form: str
    seconds: float
    temporaries: float = 0
    measured: float | None = None
    chosen: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Estimates of what it takes to compute some tensors.

    Attributes:
        seconds: from the rates of the platform.
        flops: operations on floating point numbers.
        bytes: what each tensor reads and writes.
        temporaries: bytes of the largest intermediate.
    """

    seconds: float
    flops: int
    bytes: int
    temporaries: int


@dataclass(frozen=True, slots=True)
class TilePass:
    """What a pass in tiles costs, and what it would cost without them.

    Attributes:
        made: names of the tensors that the pass makes.
        axis: name of the axis that it runs over.
        count: blocks of the axis.
        size: positions of a block.
        tiles: ``count`` times the work of a block; the temporaries are those of one block.
        whole: the same tensors in whole, together with those that the tiles keep from existing.
        max_memory: the budget, in bytes, or None.
        cache: bytes that an intermediate may have before it is slow.
    """

    made: tuple[str, ...]
    axis: str
    count: int
    size: int
    tiles: Amounts
    whole: Amounts
    max_memory: int | None
    cache: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a tensor costs beside what it has to.

    Attributes:
        tensor: its name.
        over: extents of the largest loop that is emitted for it.
        counting: points of its definition at which conditions hold.
        flops: operations on elements that are emitted for it.
        asked: operations of its definition at the points that count.
        held: bytes of the largest array on the way to it.
        needed: bytes of what it reads and of itself.
        plain: bytes that the definition holds as JAX would compute it from whole arrays; 0 where it need not hold any.
        cause: the condition, or the read, that points are left out by; empty where there is none.
        remedy: another way to write that; empty where none is known.
    """

    tensor: str
    over: tuple[int, ...]
    counting: int
    flops: int
    asked: int
    held: int
    needed: int
    cause: str = ""
    remedy: str = ""
    plain: int = 0

    @property
    def computed(self) -> int:
        """Points of the largest loop."""
        return prod(self.over)

    @property
    def is_dense(self) -> bool:
        """Whether many more points are computed than count."""
        return self.computed > FAR_FEWER * self.counting and self.computed > WORTH_MULTIPLYING

    @property
    def is_large(self) -> bool:
        """Whether what is held is out of proportion to what is read and made, and more than plain JAX holds, or more than a gigabyte."""
        usual = max(FAR_FEWER * self.needed, MOST_HELD, self.plain)
        return self.held > min(LARGE, usual)

    def __str__(self) -> str:
        over = " x ".join(f"{extent:,}" for extent in self.over if extent > 1)
        times = f"{self.computed / self.counting:.0f} times the points that count"
        dense = f"dense over {over}, {times}: " if self.is_dense else ""
        large = " held, out of proportion," if self.is_large else " held"
        told = [
            f"{dense}{self.computed:,} points in the largest loop, {self.counting:,} count",
            f"{self.flops:,} flops beside {self.asked:,} of the definition",
            f"{self.held:,} bytes{large} beside {self.needed:,} read and made",
        ]
        if self.is_dense and self.cause:
            told.append(self.cause)
        if (self.is_dense or self.is_large) and self.remedy:
            told.append(f"what would help: {self.remedy}")
        return "; ".join(told)


LARGE = 10**9  # bytes that are told of whatever they are for


@dataclass(frozen=True, slots=True)
class Choice:
    """What a tensor was lowered to.

    Attributes:
        tensor: the tensor's own name.
        form: what was chosen, as "einsum", "convolution", "elementwise", "gather", "scatter".
        refused: forms that were considered and not taken, each with the reason.
        reason: why a gather or a scatter is left; empty where there is none.
        estimates: what the forms cost that could have been taken; those for one block, where the tensor is in tiles.
        tiles: gives what the pass costs that makes the tensor; None where it is computed in whole.
        rewrites: names of the rewrites that changed its body, in the order in which they did.
        verdict: what it computes and holds beside what it has to; None where it is made in tiles, or by a function.
        target: what it is called in the emitted code; empty where it is no variable there.
        part_of: the tensor that it was made for, by its name; empty where that is itself.
        beside: the tensor whose derivative needs it, as the places of its maxima, by its name; empty where there is none.
    """

    tensor: str
    form: str
    refused: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    estimates: tuple[Estimate, ...] = ()
    tiles: Callable[[], TilePass] | None = None
    rewrites: tuple[str, ...] = ()
    verdict: Verdict | None = None
    target: str = ""
    part_of: str = ""
    beside: str = ""

    @property
    def known_as(self) -> str:
        """It in words of the user, who has not named all tensors."""
        own = self.part_of or self.tensor
        return f"what the gradient of {self.beside} needs" if self.beside else own
