"""What ``te.compare`` returns: how far values and gradients are apart, and what both functions take, as tables and as a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import jax

from jaxte.lang.errors import JaxteError

# what JAX raises where a function can be differentiated, but not compiled, since it asks for the values of its arguments
_NOT_COMPILED = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)


@dataclass(frozen=True)
class Side:
    """One of the two functions, measured.

    Attributes:
        name: "jaxte", or what it is compared with: "jax.grad", or "reference".
        value, gradient: the largest error beside the same in float64, in units of rounding of the largest element.
        higher: the same of the derivatives of order 2 and above, as far as they were asked for.
        seconds, spread: the median of the calls, and the distance between their quartiles.
        compile_seconds: tracing, deriving and compiling.
        flops, accessed, temporaries: XLA's counts of operations, and of bytes.
    """

    name: str
    value: float
    gradient: float
    seconds: float
    spread: float
    compile_seconds: float
    flops: float
    accessed: float
    temporaries: int
    higher: tuple[float, ...] = ()


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
class Comparison:
    """The result of ``te.compare``; it prints itself as a table.

    Attributes:
        name: of the function.
        differences: with a reference, one for each result and each argument; else none.
    """

    name: str
    _measure: Callable[[], tuple[Side, Side]] = field(compare=False, repr=False)
    differences: tuple[Difference, ...] = ()

    def __reduce__(self) -> Any:
        """As measured: functions are left out."""
        return _as_measured, (self.name, self.sides, self.differences)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """What both functions take, the reference first. With a reference it is measured when it is first asked for, or printed."""
        return self._measure()

    @property
    def agrees(self) -> bool:
        return all(d.agrees for d in self.differences)

    @property
    def max_error(self) -> float:
        """The largest relative difference from the reference, over values and gradients."""
        return max((d.error for d in self.differences), default=0.0)

    @property
    def gradient_errors(self) -> dict[str, float]:
        """The relative difference of each gradient from that of the reference, by the name of the argument."""
        return {d.name: d.error for d in self.differences if d.what == "gradient"}

    @property
    def speed(self) -> float:
        """How many times as fast jaxte is."""
        plain, own = self.sides
        return plain.seconds / own.seconds

    def rows(self) -> list[list[str]]:
        """The table, its head first."""
        head = [
            self.name,
            "value",
            "gradient",
            *(f"order {n + 2}" for n in range(len(self.sides[0].higher))),
            "time",
            "spread",
            "compile",
            "Mflop",
            "MB accessed",
            "MB temporaries",
        ]
        found = [head]
        for side in self.sides:
            found.append(
                [side.name, f"{side.value:.1f} ulp", f"{side.gradient:.1f} ulp", *(f"{e:.1f} ulp" for e in side.higher), f"{side.seconds * 1e3:.3g} ms", f"{side.spread * 1e3:.2g} ms",
                 f"{side.compile_seconds:.2f} s", *(_millions(n) for n in (side.flops, side.accessed, side.temporaries))]
            )  # fmt: skip
        return found

    def chart(self, ax: Any = None) -> Any:
        """What jaxte takes of what the other side takes, as bars: below 1 is less. Axes of matplotlib (the extra ``draw``).

        Example:
            >>> te.compare(loss, x).chart().figure.savefig("compared.png")
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise JaxteError("chart() needs matplotlib: pip install 'jaxte[draw]'") from error
        plain, own = self.sides
        names = ("seconds", "compile_seconds", "flops", "accessed", "temporaries")
        shares = [getattr(own, n) / getattr(plain, n) if getattr(plain, n) else 1.0 for n in names]
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 2.4))
        # bars begin at 1 on a logarithmic axis, where a half is as long as twice
        lengths = [max(share, 1e-3) - 1.0 for share in shares]
        bars = ax.barh(
            ["time", "compiling", "operations", "bytes accessed", "temporaries"], lengths, left=1.0
        )
        ax.set_xscale("log")
        ax.margins(x=0.15)
        ax.bar_label(bars, [f"{share:.2g}" for share in shares], padding=3)
        ax.axvline(1.0, color="gray", linestyle="--")
        ax.invert_yaxis()
        ax.set_title(f"{self.name}: {own.name} / {plain.name}")
        return ax

    def _tables(self) -> list[list[list[str]]]:
        """The differences, where there is a reference, and what was measured."""
        found = [difference_rows(self.differences)] if self.differences else []
        try:
            return [*found, self.rows()]
        except _NOT_COMPILED as error:
            reason = f"{str(error).splitlines()[0]}"
            return [*found, [[f"Times are not measured: jax.jit cannot compile both functions. {reason}"]]]

    def __str__(self) -> str:
        return "\n\n".join(map(text_table, self._tables()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(html_table, self._tables()))


def _millions(count: float) -> str:
    return f"{count / 1e6:,.1f}" if count >= 1e6 else f"{count / 1e6:.2g}"


def _as_measured(name: str, sides: tuple[Side, Side], differences: tuple[Difference, ...]) -> Comparison:
    return Comparison(name, lambda: sides, differences)


def difference_rows(differences: Sequence[Difference]) -> list[list[str]]:
    """Their table, its head first."""
    rows = [["", "", "relative", "largest", "allowed", ""]]
    for d in differences:
        numbers = [f"{n:.1e}" for n in (d.error, d.largest, d.allowed)]
        rows.append([d.what, d.name, *numbers, "" if d.agrees else "differs"])
    return rows


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows of a table, its head first, as a terminal shows them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows of a table, its head first, as a notebook shows them."""
    head, *rest = [[escape(cell) for cell in row] for row in rows]
    lines = ["".join(f"<th>{c}</th>" for c in head), *("".join(f"<td>{c}</td>" for c in row) for row in rest)]
    return f'<table class="jaxte">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'
