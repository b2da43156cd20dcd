"""What a body is told about the tensor that it lowers and the function that this is part of, and what it notes for ``te.explain``: forms taken and refused, estimates, rewrites."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxte.lang.expr import Axis, Expr
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.choice import Choice, Estimate
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import Policy
from jaxte.lower.printing.printer import Printer
from jaxte.lower.views.scope import Scope, Widths
from jaxte.tensors.tensor import Tensor

Task = Generator[tuple[Expr, Scope], Value, Value]
Rule = Callable[[Any, Expr, Scope], Task]


@dataclass(frozen=True)
class Rules:
    """What gives the value of each kind of compound node: functions of a body, the node and its scope.

    Attributes:
        select: of choices.
        reduce: of reductions.
        gather: of reads at positions that are data.
        power: of powers; it returns None where the general power is as good.
        total: of a sum of several terms which is a whole body; it returns None where there is nothing to gain.
    """

    select: Rule
    reduce: Rule
    gather: Rule
    power: Callable[[Any, Any, Scope], Generator[tuple[Expr, Scope], Value, Value | None]]
    total: Callable[[Any, Expr, Scope], Generator[tuple[Expr, Scope], Value, Value | None]]


@dataclass(frozen=True)
class Shared:
    """What the bodies of one function share.

    Attributes:
        names: gives new ones.
        printer: writes nodes.
        policy: how forms are chosen.
        rules: for compound nodes.
        written: names of nodes that are computed already.
    """

    names: Names
    printer: Printer
    policy: Policy
    rules: Rules
    written: dict[Node, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Assignment:
    """One tensor to lower.

    Attributes:
        label: the named scope of its statements.
        target: what it is called.
        name: what the user calls it.
        tensors: names of the tensors that exist.
        axes: its own.
        in_tiles: whether this is a row that is computed together with others.
        wide: whether it is of 64-bit floats, or reads such.
        padded: the tensors that are read with zeros around them.
        sliced: the tensors that are read as slices without zeros around them.
        unread: conditions on its positions that hold wherever it is read.
        faces: axes of one position that are summed over like longer ones.
    """

    label: str
    target: str
    name: str
    tensors: Mapping[Tensor, str]
    axes: tuple[Axis, ...] = ()
    in_tiles: bool = False
    wide: bool = False
    padded: Mapping[Tensor, Widths] = field(default_factory=dict)
    sliced: tuple[Tensor, ...] = ()
    unread: tuple[Expr, ...] = ()
    faces: tuple[Axis, ...] = ()


class Report:
    """The notes on one tensor, in the order in which they are made, each once."""

    def __init__(self) -> None:
        self.forms: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.estimates: list[Estimate] = []
        self.rewrites: list[str] = []  # the names of those that changed something
        self.reason = ""

    def note(self, form: str) -> None:
        """``form`` was written."""
        if form not in self.forms:
            self.forms.append(form)

    def refuse(self, form: str, reason: str) -> None:
        """``form`` was considered, and why it is not taken."""
        if (form, reason) not in self.refused:
            self.refused.append((form, reason))

    def estimate(self, estimates: Iterable[Estimate]) -> None:
        """What the forms cost that one was chosen among."""
        self.estimates += estimates

    def because(self, reason: str) -> None:
        """Why a gather or a scatter is left; the last reason counts."""
        self.reason = reason

    def fired(self, names: Sequence[str]) -> None:
        """The rewrites of these names changed something."""
        self.rewrites += [name for name in names if name not in self.rewrites]

    def choice(self, tensor: str) -> Choice:
        """What became of the tensor of this name."""
        form = " + ".join(self.forms) or "elementwise"
        return Choice(
            tensor,
            form,
            tuple(self.refused),
            self.reason,
            tuple(self.estimates),
            rewrites=tuple(self.rewrites),
        )
