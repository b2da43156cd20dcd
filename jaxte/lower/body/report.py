"""What is noted while a tensor is lowered, for ``te.explain``: forms taken and refused, estimates, rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxte.lower.code.vocabulary import Choice, Estimate


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
