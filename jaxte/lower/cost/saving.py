"""What the user says about residuals: which forward tensors the backward pass gets, and which it computes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxte.lang.checks import described
from jaxte.lang.errors import LoweringError
from jaxte.tensors.tensor import Tensor

MODES = ("auto", "all", "nothing", "single_use")
_REMEDY = (
    'give "auto", "all", "nothing", "single_use", a number of bytes, the tensors to keep (or their names), or '
    "{tensor: True or False} for some of them"
)


@dataclass(frozen=True)
class Save:
    """The option ``save=`` of ``te.function``; see there.

    Attributes:
        mode: one of ``MODES``, "these" or "budget".
        chosen: tensors, or names of tensors, that are kept (True) or computed again (False).
        budget: bytes of all residuals together that are neither inputs nor outputs.
    """

    mode: str = "auto"
    chosen: tuple[tuple[Tensor | str, bool], ...] = field(default=(), compare=False)
    budget: int | None = None

    @property
    def is_default(self) -> bool:
        return self.mode == "auto" and not self.chosen

    def check(self, tensors: Sequence[Tensor]) -> None:
        """Raises unless each tensor that something was said of is among ``tensors``, those of a definition as it was written.

        Raises:
            LoweringError: something was said of a tensor that is not there.
        """
        names = dict.fromkeys(t.name for t in tensors)
        for key, _ in self.chosen:
            name = key if isinstance(key, str) else key.name
            if name not in names:
                raise LoweringError(
                    f"save= has {name}, which is no tensor of this definition; it has {', '.join(names)}"
                )

    def of(self, tensors: Sequence[Tensor]) -> dict[Tensor, bool]:
        """What was said of each of ``tensors``: some of those that were named may be computed within their readers, and be none of these."""
        found: dict[Tensor, bool] = {}
        for key, kept in self.chosen:
            name = key if isinstance(key, str) else key.name
            # A definition that was rebuilt, for a batch for instance, has other tensors under the same names.
            own = [t for t in tensors if t is key] or [t for t in tensors if t.name == name]
            found |= dict.fromkeys(own, kept)
        return found


AUTO = Save()


def check_save(save: Any) -> Save:
    """``save=`` as it was given.

    Raises:
        LoweringError: it is none of the choices.
    """
    if isinstance(save, Save):
        return save
    if isinstance(save, str):
        if save not in MODES:
            raise LoweringError(f"save is {save!r}; {_REMEDY}")
        return Save(save)
    if isinstance(save, (int, float)) and not isinstance(save, bool):
        if save < 0 or save != int(save):
            raise LoweringError(f"save is {save!r}, which is no number of bytes; {_REMEDY}")
        return Save("budget", budget=int(save))
    if isinstance(save, Tensor):
        save = [save]
    if isinstance(save, Mapping):
        pairs = tuple(save.items())
        mode = "auto"
    elif isinstance(save, (list, tuple)):
        pairs, mode = tuple((t, True) for t in save), "these"
    else:
        raise LoweringError(f"save is {described(save)}; {_REMEDY}")
    for key, kept in pairs:
        if not isinstance(key, (Tensor, str)) or not isinstance(kept, bool):
            raise LoweringError(f"save has {described(key)}: {described(kept)}; {_REMEDY}")
    return Save(mode, pairs)
