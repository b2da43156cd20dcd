"""Equations as a flat list: calls that only group others are looked into, and what does not depend on arguments is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import jax
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import GROUPS, literal_array
from jaxte.frontends.jaxpr.equations.known import folded, is_symbolic
from jaxte.frontends.jaxpr.equations.table import RULES, Reads

# steps whose derivative is not that of what they compute
OWN_DERIVATIVES = frozenset({"custom_jvp_call", "custom_vjp_call", "stop_gradient"})
_KERNELS = ("mosaic",)
_aval, _known = attrgetter("aval"), attrgetter("known")
_LINEAR_READS = (Reads.LINEAR, Reads.VIEW, Reads.WINDOW, Reads.PRODUCT, Reads.REDUCE)


@dataclass(eq=False)
class Slot:
    """An array between equations.

    Attributes:
        known: its content, where it does not depend on arguments.
        origin: the step that computes it; None for what comes from outside.
    """

    aval: Any
    known: Any = None
    origin: Step | None = None
    readers: list[Step] = field(default_factory=list)

    def made_by(self, step: Step, known: Any = None) -> None:
        """``step`` computes it, and what it comes to where that is known."""
        self.origin, self.known = step, known

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.aval.shape)

    @cached_property
    def dtype(self) -> str:
        return _dtype_name(self.aval.dtype)


@cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype)


@dataclass(eq=False)
class Step:
    """One equation that groups no others.

    Attributes:
        eqn: the equation.
        inputs: what it reads.
        outputs: what it makes.
        label: name of what it makes.
        calls: those that it is in, the outermost first.
    """

    eqn: Any
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    label: str
    calls: tuple[Any, ...] = ()

    @cached_property
    def name(self) -> str:
        return str(self.eqn.primitive.name)

    @property
    def is_known(self) -> bool:
        """Whether all that it makes is known; what makes nothing, as a callback, is there for something else."""
        return bool(self.outputs) and not any(map(is_, map(_known, self.outputs), repeat(None)))

    @cached_property
    def has_symbols(self) -> bool:
        """Whether an array that it reads or makes has a size that is a symbol of ``jax.export``."""
        return any(map(is_symbolic, map(_aval, (*self.inputs, *self.outputs))))

    @property
    def place(self) -> Any:
        """The equation that stands in the user's source: this one, or else the call around it, since functions of JAX hide what they are made of."""
        around = (self.eqn, *reversed(self.calls))
        return next((e for e in around if source_info_util.summarize(e.source_info)), self.eqn)

    @property
    def reads_linearly(self) -> bool:
        """Whether a view that this step reads can be composed into it."""
        rule = RULES.get(self.name)
        if rule is None or rule.reads not in _LINEAR_READS:
            return self.name == "select_n"
        if self.name in ("mul", "div"):
            return any(
                (not s.shape and s.known is not None) or (s.origin is None and s.known is not None)
                for s in self.inputs
            )
        return True


@dataclass
class Refused(Exception):
    """A step that could not be raised, and why."""

    step: Step
    reason: str

    def __str__(self) -> str:
        return self.reason


def slots_of(closed: Any, given: Mapping[int, Any] | None = None) -> dict[Any, Slot]:
    """The arrays that a jaxpr begins with: its constants, and its arguments, of which some may be ``given``."""
    known, jaxpr = given or {}, closed.jaxpr
    slots = {v: Slot(v.aval, known_array(known.get(n))) for n, v in enumerate(jaxpr.invars)}
    return slots | {
        v: Slot(v.aval, known_array(c)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)
    }


def flat(
    eqns: Iterable[Any], slots: dict[Any, Slot], label: str | None = None, fold: bool = True
) -> Iterator[tuple[Any, list[Step]]]:
    """Each of ``eqns`` with the steps that it is made of; ``slots`` has what is known of variables, and is filled."""
    for eqn in eqns:
        steps = list(_steps(eqn, slots, label))
        for step in steps:
            for slot in dict.fromkeys(step.inputs):
                slot.readers.append(step)
        yield eqn, steps


def needed(steps: Sequence[Step], results: Sequence[Slot]) -> list[Step]:
    """The steps that ``results`` depend on."""
    wanted, found = set(results), []
    for step in reversed(steps):
        if not wanted.isdisjoint(step.outputs):
            wanted.update(step.inputs)
            found.append(step)
    return found[::-1]


def has_symbols(eqn: Any) -> bool:
    """Whether an equation reads or makes an array whose sizes are symbols of ``jax.export``."""
    return any(is_symbolic(atom.aval) for atom in (*eqn.invars, *eqn.outvars))


def slot_of(atom: Any, slots: Mapping[Any, Slot]) -> Slot:
    if isinstance(atom, Literal):
        return Slot(atom.aval, literal_array(atom))
    return slots[atom]


def _steps(
    eqn: Any, slots: dict[Any, Slot], label: str | None, calls: tuple[Any, ...] = ()
) -> Iterator[Step]:
    inputs = tuple([slot_of(a, slots) for a in eqn.invars])
    name = eqn.primitive.name
    inner = grouped(eqn)
    if inner is None and name == "cond" and (inner := _everywhere(eqn)) is not None:
        inputs = inputs[1:]
    if inner is not None:
        own = {
            v: Slot(v.aval, known_array(c)) for v, c in zip(inner.jaxpr.constvars, inner.consts, strict=True)
        }
        own |= dict(zip(inner.jaxpr.invars, inputs, strict=True))
        for inside in inner.jaxpr.eqns:
            yield from _steps(inside, own, _label(eqn) or label, (*calls, eqn))
        for outer, result in zip(eqn.outvars, inner.jaxpr.outvars, strict=True):
            slots[outer] = slot_of(result, own)
        return
    outputs = tuple([Slot(v.aval) for v in eqn.outvars])
    if name == "platform_index":
        slots[eqn.outvars[0]] = outputs[0]
        return
    step = Step(eqn, inputs, outputs, label or name.replace("_p", ""), calls)
    known = [slot.known for slot in inputs]
    unknown = any(map(is_, known, repeat(None)))
    values = [None] * len(outputs) if unknown else folded(eqn, known)
    for var, slot, value in zip(eqn.outvars, outputs, values, strict=True):
        slot.made_by(step, value)
        slots[var] = slot
    yield step


def returns_operand(eqn: Any) -> bool:
    """Whether a call has one of its operands among its results, as ``jnp.where`` of arrays without elements has."""
    inner = grouped(eqn)
    if inner is None:
        return False
    given = {*inner.jaxpr.invars}
    for own in inner.jaxpr.eqns:
        if returns_operand(own) and not given.isdisjoint(v for v in own.invars if not isinstance(v, Literal)):
            given.update(own.outvars)
    return any(v in given for v in inner.jaxpr.outvars if not isinstance(v, Literal))


def grouped(eqn: Any) -> Any | None:
    """The jaxpr of a call that says nothing but what its equations say; None of all else."""
    inner = eqn.params.get(GROUPS.get(eqn.primitive.name, ""))
    if (
        not hasattr(inner, "consts")
        or eqn.effects
        or ("mesh" in eqn.params and not _is_plain_jit(eqn.params))
    ):
        return None
    return inner


def _everywhere(eqn: Any) -> Any:
    """The branch of a ``lax.platform_dependent`` that all platforms take but the one that compiles Pallas kernels, as of ``jnp.diagonal``."""
    platforms = eqn.params.get("branches_platforms")
    if platforms is None or eqn.effects or set(platforms) != {_KERNELS, None}:
        return None
    return eqn.params["branches"][platforms.index(None)]


def _is_plain_jit(params: Mapping[str, Any]) -> bool:
    shardings = (*params.get("in_shardings", ()), *params.get("out_shardings", ()))
    return all(type(s).__name__ == "UnspecifiedValue" for s in shardings) and not any(
        params.get("donated_invars", ())
    )


def _label(eqn: Any) -> str:
    name = str(eqn.params.get("name", ""))
    return name.strip("_<>").removesuffix("_static") if name.isidentifier() else ""


def known_array(value: Any, most: int = 1 << 20) -> Any:
    """The content of a constant, where it is there and has at most so many elements to be looked at."""
    if isinstance(value, jax.core.Tracer):  # asking a traced key where it lies is an error
        return None
    is_there = (
        isinstance(value, jax.Array) and value.is_fully_addressable and hasattr(value, "addressable_shards")
    )
    if is_there or isinstance(value, (np.ndarray, np.generic, int, float, bool)):
        try:
            if np.size(value) <= most and np.dtype(getattr(value, "dtype", type(value))).kind in "biuf":
                return np.asarray(value)
        except TypeError:
            return None
    return None
