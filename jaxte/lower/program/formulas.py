"""The formulas in the docstring of an emitted function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from jaxte.lang.text import definition_text
from jaxte.lower.code.identifiers import docstring_text
from jaxte.tensors.recurrences.node import Recurrent, definitions_in
from jaxte.tensors.tensor import Tensor

_LONGEST = 600  # characters of a formula in a docstring


def formulas(
    order: Sequence[Tensor], params: Sequence[Tensor], idents: Mapping[Tensor, str]
) -> Iterator[str]:
    """The definition of each tensor of ``order`` that is computed, as text that is safe in a docstring.

    Tensors of one label are called as in the code, by ``idents``, which tells them apart.
    """
    given = frozenset(params)
    computed = [t for t in order if t not in given]
    own = definitions_in(computed)
    whole = _states(computed)
    read = (t for tensor in own for t in tensor.inputs)
    shown = dict.fromkeys(whole.get(t, t) for t in (*params, *own, *read))
    labels = Counter(t.name for t in shown)
    written = {idents[t]: t for t in shown if t in idents}
    called: dict[Tensor, str] = {}
    for tensor in shown:
        if labels[tensor.name] > 1 or written.get(tensor.name, tensor) is not tensor:
            called[tensor] = idents.get(tensor) or _free_name(tensor, {*labels, *written, *called.values()})
    called |= {part: called[t] for part, t in whole.items() if t in called}
    for tensor in own:
        safe = docstring_text(
            definition_text(called.get(tensor, tensor.name), tensor.axes, tensor.body, called)
        )
        yield safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


def _states(tensors: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """What stands for a tensor of a recurrence in its definition, and the definition itself, by that tensor."""
    found: dict[Tensor, Tensor] = {}
    for tensor in tensors:
        if isinstance(tensor, Recurrent):
            own = tensor.group
            for state, definition, whole in zip(own.states, own.definitions, own.tensors, strict=True):
                found |= {state: whole, definition: whole}
            found |= _states(own.inside)
    return found


def _free_name(tensor: Tensor, taken: set[str]) -> str:
    """A name for what is no variable of the code, as it is part of what reads it."""
    return next(name for n in count(1) if (name := f"{tensor.name}_{n}") not in taken)
