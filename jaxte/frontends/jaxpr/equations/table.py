"""The table of primitives: how an equation becomes index notation, and how it reads its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from jaxte.frontends.jaxpr.values.value import Value, defined

Element = Callable[..., Any]


class Reads(Enum):
    """What becomes of the operands before an equation reads them.

    VIEW: views and numbers are composed, everything else becomes a tensor. LINEAR: sums of views are composed. POINTWISE: what
    reads at the same position is composed, shifted views and sums of them become tensors. REDUCE: as POINTWISE. WINDOW: views
    are composed, everything else becomes a tensor. PRODUCT: transposed and broadcast tensors are composed.
    """

    VIEW = "view"
    LINEAR = "linear"
    POINTWISE = "pointwise"
    REDUCE = "reduce"
    WINDOW = "window"
    PRODUCT = "product"


class Unraised(Exception):
    """Why an equation has no index notation; it is kept as it is, and ``te.explain`` shows the reason."""


@dataclass(frozen=True)
class Site:
    """An equation being raised.

    Attributes:
        shapes, dtypes: those of its results.
        label: name of the tensors that come of it.
        params: parameters of the primitive.
    """

    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[str]
    label: str
    params: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    @property
    def dtype(self) -> str:
        return self.dtypes[0]

    def define(self, element: Element, result: int = 0) -> Value:
        """The result whose element at the indices is ``element(*indices)``."""
        return defined(self.shapes[result], self.dtypes[result], self.label, element)


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    Attributes:
        reads: how operands are read.
        raise_: the results of an equation, from its site and its operands.
        notation: the row in words, for docs/results/primitives.md.
    """

    reads: Reads
    raise_: Callable[..., Any]
    notation: str


RULES: dict[str, Rule] = {}


def raises(*names: str, reads: Reads, notation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Puts a rule for the primitives ``names`` into the table."""

    def enter(rule: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = Rule(reads, rule, notation)
        return rule

    return enter
