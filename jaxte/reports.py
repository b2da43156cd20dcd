"""What te.compare of two functions returns: how far values and gradients are apart, as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jaxte.comparing import Comparison, html_table


@dataclass(frozen=True)
class Difference:
    """How far two arrays are apart.

    Attributes:
        what: "value" or "gradient".
        name: of the output or of the argument.
        error: norm of the difference over the norm of the reference.
        largest: the largest difference of two elements.
        allowed: the greatest ``error`` that passes.
    """

    what: str
    name: str
    error: float
    largest: float
    allowed: float

    @property
    def agrees(self) -> bool:
        return self.error <= self.allowed


@dataclass(frozen=True)
class Report:
    """The result of :func:`compare`; it prints itself as a table."""

    rows: tuple[Difference, ...]
    _measure: Callable[[int], Comparison] = field(compare=False, repr=False)

    def timed(self, order: int = 1) -> Comparison:
        """Both functions with their derivatives up to an order, measured now: errors in units of rounding, times, what XLA counts.

        Example:
            >>> te.compare(te.ops.softmax, jax.nn.softmax, x).timed().chart()
        """
        return self._measure(order)

    @property
    def agrees(self) -> bool:
        return all(row.agrees for row in self.rows)

    @property
    def max_error(self) -> float:
        """The largest relative difference, over values and gradients."""
        return max((row.error for row in self.rows), default=0.0)

    @property
    def gradient_errors(self) -> dict[str, float]:
        """The relative difference of each gradient by the name of the argument."""
        return {row.name: row.error for row in self.rows if row.what == "gradient"}

    def _repr_html_(self) -> str:
        head = ["", "", "relative", "largest", "allowed", ""]
        rows = [
            [
                r.what,
                r.name,
                f"{r.error:.1e}",
                f"{r.largest:.1e}",
                f"{r.allowed:.1e}",
                "" if r.agrees else "differs",
            ]
            for r in self.rows
        ]
        return html_table([head, *rows])

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [f"{'':8}  {'':{width}}  relative  largest  allowed"]
        for row in self.rows:
            mark = "" if row.agrees else "  differs"
            numbers = f"{row.error:8.1e}  {row.largest:7.1e}  {row.allowed:7.1e}"
            lines.append(f"{row.what:8}  {row.name:{width}}  {numbers}{mark}")
        return "\n".join(lines)

    __repr__ = __str__
