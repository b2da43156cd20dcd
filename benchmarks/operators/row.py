"""What a row of the table of operators states: its level, the operator at some arguments, and the same in plain JAX."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jaxte as te
from harness.case import IDIOMATIC, JAXTE, Case
from harness.inputs import Input

LEVELS = {
    "1": "elementwise functions and what a perceptron needs",
    "2": "images",
    "3": "shapes, constants, parts",
    "4": "comparisons, choices, reductions",
    "5": "resizing and detection",
    "10": "shapes of other tensors, layouts, losses",
    "+": "beyond the table",
}


@dataclass(frozen=True)
class Row:
    """An operator, measured.

    Attributes:
        name: of the operator, with what is measured of it behind a dot.
        run, reference: of Tensors or arrays, and of arrays.
        inputs: recipes of the arguments.
        target: the least ratio of the times that the row is to reach.
        note: why the row is slower, or holds more, than the reference; shown where it is.
    """

    level: str
    name: str
    run: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[Input, ...]
    target: float = 0.95
    note: str = ""
    with_respect_to: tuple[int, ...] | None = None

    @property
    def operator(self) -> str:
        return self.name.partition(".")[0]

    @property
    def case(self) -> Case:
        """The row as the harness of the benchmarks takes it."""
        return Case(
            self.name,
            self.name,
            formula(self.operator),
            {"full": {}},
            lambda: self.inputs,
            {JAXTE: self.run, IDIOMATIC: self.reference},
            with_respect_to=self.with_respect_to,
        )


ROWS: dict[str, Row] = {}


def row(
    level: str, name: str, run: Callable[..., Any], reference: Callable[..., Any], *inputs: Input, **more: Any
) -> None:
    """Registers a row."""
    assert name not in ROWS and level in LEVELS and hasattr(te.ops, name.partition(".")[0]), name
    ROWS[name] = Row(level, name, run, reference, inputs, **more)


def formula(name: str) -> str:
    """The formula in the documentation of an operator."""
    found = re.search(r"Formula: ``(.+?)``", getattr(te.ops, name).__doc__, re.DOTALL)
    assert found, name
    return " ".join(found[1].split())


def signature(name: str) -> str:
    """The parameters of an operator with their defaults."""
    given = inspect.signature(getattr(te.ops, name)).parameters.values()
    bare = [p.replace(annotation=p.empty) for p in given]
    return f"{name}{inspect.Signature(bare)}"
