"""What guides the choice among forms: the platform, a memory budget, measurements, and the user's word.

A key for each definition that does not depend on the names in it, under which measurements are kept.

What the user says about residuals: which forward tensors the backward pass gets, and which it computes again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

from jaxte.lang.checks import described
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.rules import VERIFY
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.lower.cost.platform import Platform, Rates
from jaxte.lower.cost.platforms import platform_of
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


ANY = "*"  # stands for every tensor in ``forms``


@dataclass(frozen=True)
class Policy:
    """How forms are chosen.

    Attributes:
        platform: "cpu", "gpu" or "tpu".
        max_memory: bytes that a single intermediate may take; None for as many as are fastest.
        forms: form to take by the name of a tensor, or by "*" for every tensor that offers it.
        without: forms and rewrites never to use where there is another way.
        measured: seconds of each form by the signature of a definition, as ``te.autotune`` finds them.
        save: which forward tensors the backward pass gets.
        debug: whether what is lowered is verified (see ``lower.code.verify_program``), as it is in all tests.
        follows: whether code that JAX lowers for another platform takes the forms of that one; not where the user chose the platform.
    """

    platform: str = "cpu"
    max_memory: int | None = None
    forms: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    save: Save = AUTO
    debug: bool = VERIFY
    follows: bool = False

    def __post_init__(self) -> None:
        platform_of(self.platform)  # an unknown platform is an error before anything is derived
        budget_bytes(self.max_memory)
        _check_forms(self.forms)

    @cached_property  # each operation of a body asks
    def facts(self) -> Platform:
        return platform_of(self.platform)

    @property
    def rates(self) -> Rates:
        return self.facts.rates

    def on(self, platform: str) -> Policy:
        """The same for code that is lowered for ``platform``; what was measured here says nothing of another one."""
        if not self.follows or platform_of(platform) is self.facts:
            return self
        return replace(self, platform=platform, measured={})

    def for_parts(self, owners: Mapping[str, str]) -> Policy:
        """The same with forms that are named for a tensor named for its parts, too: ``owners`` has the tensor of each by their names."""
        forms = {
            part: self.forms[owner]
            for part, owner in owners.items()
            if owner in self.forms and part not in self.forms
        }
        return replace(self, forms={**self.forms, **forms}) if forms else self


def budget_bytes(budget: Any) -> int | None:
    """A memory budget as an integer; ``1e9`` is one too.

    Raises:
        LoweringError: it is no positive number of bytes.
    """
    if budget is None:
        return None
    is_number = isinstance(budget, Real) and not isinstance(budget, bool)
    if not is_number or not 0 < budget < math.inf or budget != int(budget):
        raise LoweringError(
            f"max_memory is {budget!r}; give a positive number of bytes, as 64 * 2**20, or None"
        )
    return int(budget)


def unwanted(names: Any) -> frozenset[str]:
    """The names of forms and rewrites that are not to be used; a single name is one too.

    Raises:
        LoweringError: they are no names.
    """
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, Collection) or not all(isinstance(name, str) for name in listed):
        raise LoweringError(
            f'without is {names!r}; give names of forms and rewrites as te.explain shows them, as ("stacked terms",)'
        )
    return frozenset(listed)


def _check_forms(forms: Any) -> None:
    remedy = 'give the name of a form by the name of a tensor, as {"y": "general"}, or by "*" for all'
    if not isinstance(forms, Mapping):
        raise LoweringError(f"forms is {forms!r}; {remedy}")
    for tensor, form in forms.items():
        if not isinstance(tensor, str) or not isinstance(form, str):
            raise LoweringError(f"forms has the entry {tensor!r}: {form!r}; {remedy}")


DEFAULT = Policy()


def signature(axes: Sequence[Axis], node: Expr, guards: Sequence[Expr] = (), kind: str = "") -> str:
    """Sixteen hexadecimal digits for ``node`` at each point of ``axes`` where ``guards`` hold.

    ``kind`` tells apart what is chosen for the same definition, where that is more than the form of a reduction.

    Equal definitions have equal keys in every process, whatever their axes and tensors are called.
    """
    reducers = {n.reducer: None for n in postorder(node, *guards) if isinstance(n, Reduce)}
    roots = [node, *guards, *(e for r in reducers for e in (*r.results, *r.identity))]
    naming = _Naming()
    written = [kind] * bool(kind) + [naming.axis(axis) for axis in axes]
    numbers: dict[Expr, int] = {}
    for entry in postorder(*roots):
        children = [numbers[child] for child in entry.children]
        written.append(f"{naming.label(entry)}{children}")
        numbers[entry] = len(numbers)
    return hashlib.sha1("\n".join(written).encode(), usedforsecurity=False).hexdigest()[:16]


class _Naming:
    """Numbers for axes and tensors, in order of appearance."""

    def __init__(self) -> None:
        self.axes: dict[Axis, int] = {}
        self.tensors: dict[Tensor, int] = {}

    def axis(self, axis: Axis) -> str:
        number = self.axes.setdefault(axis, len(self.axes))
        return f"a{number}:{text(axis.lo)}:{text(axis.hi)}"

    def label(self, node: Expr) -> str:
        match node:
            case Const(value):
                return f"{value!r}:{node.dtype}"
            case Axis():
                return self.axis(node)
            case Call(op):
                return f"{op.name}:{node.dtype}"
            case Read(tensor):
                number = self.tensors.setdefault(tensor, len(self.tensors))
                return f"T{number}:{tensor.dtype}{tuple(map(str, tensor.shape))}"
            case Reduce(reducer):
                own = [self.axis(a) for a in node.axes]
                return f"{reducer.name}:{reducer.ties}:{node.position}{own}"
        return f"{type(node).__name__}:{text(node)}"
