"""Programs: what one call of the primitive computes.

A program is tensors between inputs and results, and the code that was emitted for them. The programs that its transformations call
(``linearized``, ``transposed``, ``batched`` beside this module) are made when they are first asked for and kept by the program that
they come from, so that equal calls meet the same object: a program is equal to itself only, and JAX caches by its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

import jax

from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.bridge.jaxprs import evaluated_jaxpr, traced_for
from jaxte.bridge.price.programs import Beside, Flow, beside_transpose, beside_whole
from jaxte.bridge.primitive.lazy import BUILDING, lazy
from jaxte.bridge.primitive.module import Module, as_list, load, title, with_own_externs
from jaxte.bridge.primitive.sizes import in_one_form, is_symbolic
from jaxte.bridge.primitive.told import from_whole_arrays, told
from jaxte.derivatives.accumulation import accumulation_order
from jaxte.derivatives.forward import reached_from
from jaxte.derivatives.given_overrides import by_fdiff, check_overrides
from jaxte.derivatives.overrides import Override
from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.derivatives.stand_ins import stand_in
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import LoweringError
from jaxte.lower.code.lines import identifier
from jaxte.lower.code.vocabulary import Program as Lowered
from jaxte.lower.cost.policy import DEFAULT, Policy
from jaxte.lower.forms.conv.candidates import GROUPED, GROUPS_OF_BATCH, ONE_PASS, PER_GROUP
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.laid_out import with_shared
from jaxte.lower.program.plan import lower
from jaxte.lower.rules.peeled_edges import PEELED
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.node import Final, Kept
from jaxte.tensors.shapes import Shape
from jaxte.tensors.tensor import Tensor

FORWARD, SAVING, BACKWARD, TANGENT = "forward", "forward_with_residuals", "backward", "tangents"

# Pieces written into one array, and sums of several results at once, are gathered on every device by XLA.
_UNDIVIDED = frozenset((PEELED, ONE_PASS, PER_GROUP, GROUPED, GROUPS_OF_BATCH))

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """What is known of a result before it is derived."""

    shape: Shape
    dtype: str


@dataclass(frozen=True, eq=False)
class Program:
    """One function of arrays.

    Attributes:
        name: of the emitted function.
        label: of the definition, in tracebacks and errors.
        inputs: the tensors that are given; what computed ones are made from is not looked at.
        results: shape and dtype of each output.
        make: derives the outputs.
        with_head: positions of the results that are differentiated.
        policy: how forms are chosen.
        override, fdiff: as in ``te.differentiate``; overrides of tensors of other programs are allowed here.
        transpose: makes the transpose where another program has it already, of ``(wanted, heads)``; None where it has to be derived.
        beside: the forward pass of a backward pass, which XLA compiles together with it.
        flow: of a backward pass, which inputs and results of the forward pass it is of: what that keeps is no result.
        excluded: positions of results that are residuals with elements that the backward pass may leave out.
    """

    name: str
    label: str
    inputs: tuple[Tensor, ...]
    results: tuple[Result, ...]
    make: Callable[[], Sequence[Tensor]]
    with_head: tuple[int, ...]
    policy: Policy = DEFAULT
    override: Mapping[Tensor, Any] | None = None
    fdiff: Callable[..., Any] | None = None
    transpose: Callable[[tuple[int, ...], tuple[int, ...]], Any] | None = None
    beside: Program | None = None
    flow: Flow = ((), ())
    excluded: frozenset[int] = frozenset()
    _kept: dict[Hashable, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.label}.{self.name}"

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` makes, once for each ``key``."""
        found = self._kept.get(key)
        if found is None:
            with BUILDING:
                found = self._kept.get(key)
                if found is None:
                    found = self._kept[key] = make()
        return found  # type: ignore[no-any-return]

    @lazy
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(self.make())

    @lazy
    def lowered(self) -> Lowered:
        made = lower(self.name, self.inputs, self.outputs, self.policy)
        if self.beside is not None and self.policy.save.is_default:  # else a barrier keeps them apart
            made = with_shared(made, self.beside.lowered, self.policy.facts)

        def within(budget: int) -> Lowered:
            return lower(self.name, self.inputs, self.outputs, replace(self.policy, max_memory=budget))

        beside = cache(lambda: self.beside_jax(made, is_own=True))  # of all its tensors that are told of
        return told(self.label, made, self.policy.facts, None if self.policy.max_memory else within, beside)

    def beside_jax(self, made: Lowered, is_own: bool = False) -> Beside | None:
        """The prices of what was lowered as ``made`` and of plain JAX: of a backward pass, the transpose of the forward pass.

        Args:
            is_own: whether ``made`` is what this program is lowered to, so that its jaxpr is the one that is asked for later.
        """
        loaded = self._loaded(made)[self.name]

        def emitted(*arrays: Any) -> list[Any]:
            return as_list(loaded(*self.apart(arrays)), len(self.results))

        traced = lambda *arrays: evaluated_jaxpr(self._traced(emitted, arrays), arrays)  # noqa: E731
        run = traced if is_own else emitted
        forward = self.beside
        if forward is not None:
            of_forward = (forward.as_jaxpr, forward.inputs, self.flow)
            return beside_transpose(of_forward, (run, self.inputs), self.policy.platform)
        try:
            whole = lower(self.name, self.inputs, self.outputs, from_whole_arrays(self.policy))
        except LoweringError:
            return None
        return beside_whole(run, self._loaded(whole)[self.name], self.inputs, self.policy.platform)

    def _loaded(self, made: Lowered) -> Module:
        """The module of the function that was lowered as ``made``."""
        own, externs = with_own_externs([made])
        return load(module_text(own, "", title(self.label, externs)), identifier(self.label), externs)

    @lazy
    def module(self) -> Module:
        """The emitted function alone."""
        return self._loaded(self.lowered)

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results, by the emitted code."""
        if not is_symbolic(arrays):
            return self._emitted(*arrays)
        shapes = ([t.shape for t in self.inputs], [r.shape for r in self.results])
        return in_one_form(self._emitted, *shapes)(*arrays)

    def traced(self, avals: Sequence[Any]) -> Any:
        """The emitted code as a jaxpr for arrays of these types, which is priced, and lowered where JAX still is as it was."""
        return self._traced(self._emitted, avals)

    def _traced(self, emitted: Callable[..., list[Any]], avals: Sequence[Any]) -> Any:
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        return self.kept(traced_for(given), lambda: jax.make_jaxpr(emitted)(*given))

    def as_jaxpr(self, *arrays: Any) -> list[Any]:
        """The results, by the jaxpr of the emitted code: it is traced for several prices, the calls of jax.numpy in it once."""
        return evaluated_jaxpr(self.traced(arrays), arrays)

    def as_traced(self, avals: Sequence[Any]) -> Any | None:
        """The emitted code as a jaxpr where it was traced for a price, so that it is lowered without running it once more; else None."""
        return self._kept.get(traced_for(avals))

    def _emitted(self, *arrays: Any) -> list[Any]:
        return as_list(self.module[self.name](*self.apart(arrays)), len(self.results))

    def apart(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """``arrays``, behind a barrier where what is computed again from them must not become what the forward pass computed.

        XLA would find both equal and keep what the user asked not to keep.
        """
        if self.name != BACKWARD or self.policy.save.is_default or not arrays:
            return arrays
        return jax.lax.optimization_barrier(tuple(arrays))

    @lazy
    def divided(self) -> Callable[..., list[Any]]:
        """The same function in forms that XLA divides among devices."""
        policy = replace(self.policy, without=self.policy.without | _UNDIVIDED)
        lowered = lower(self.name, self.inputs, self.outputs, policy)
        if lowered.statements == self.lowered.statements:
            return self
        module = self._loaded(lowered)
        return lambda *arrays: as_list(module[self.name](*self.apart(arrays)), len(self.results))

    def on(self, platform: str) -> Program:
        """The same function in the forms of the platform that JAX lowers it for, which need not be the one it was traced on.

        What it keeps for a backward pass was chosen when it was traced.
        """
        policy = self.policy.on(platform)
        if policy is self.policy:
            return self

        def make() -> Program:
            beside = None if self.beside is None else self.beside.on(platform)
            return replace(self, make=lambda: self.outputs, policy=policy, beside=beside, _kept={})

        return self.kept(("on", policy.platform), make)

    @lazy
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the inputs that have a derivative."""
        return tuple(n for n, t in enumerate(self.inputs) if is_inexact(t.dtype)) if self.with_head else ()

    @lazy
    def closed(self) -> Program:
        """The same program as a function of placeholders and of nothing else.

        Adjoints know what they were derived from, and their derivatives may read that; their copies do not.
        """
        if all(isinstance(t, Placeholder) for t in self.inputs) and not self._has_origins():
            return self
        table: dict[Tensor, Tensor] = {t: stand_in(t) for t in self.inputs}
        return self.rebuilt(Rebuilt(table, given=self.every_override))

    def _has_origins(self) -> bool:
        reached = reached_from(self.outputs, self.inputs, self.overrides)
        return any(isinstance(t, Adjoint) and t.origins for t in reached)

    def rebuilt(self, rebuilt: Rebuilt) -> Program:
        """The same program over other inputs."""
        outputs = rebuilt.tensors(self.outputs)
        inputs = [rebuilt.table[t] for t in self.inputs]
        made = program(
            self.name, self.label, inputs, outputs, self.policy, rebuilt.overrides, with_head=self.with_head
        )
        return replace(made, excluded=self.excluded)

    @lazy
    def overrides(self) -> dict[Tensor, Override]:
        """The derivatives that were given, by tensor."""
        checked = check_overrides(self.override or {})
        reached = reached_from(self.outputs, self.inputs, checked)
        computed = reached - set(self.inputs)
        return {t: checked.get(t, t.override) for t in computed if t in checked or t.override is not None}

    def overrides_of(self, outputs: Sequence[Tensor]) -> dict[Tensor, Override]:
        """Those of :attr:`overrides` that some of the outputs depend on."""
        reached = reached_from(outputs, self.inputs, self.overrides)
        return {t: own for t, own in self.overrides.items() if t in reached}

    @lazy
    def renewed(self) -> Program:
        """The same program as its derivatives have it: the values of tensors that were given rules as these rules make them."""
        overrides = self.overrides
        if all(own.renewed is None for own in overrides.values()):
            return self
        table: dict[Tensor, Tensor] = {t: t for t in self.inputs}
        reached = accumulation_order(self.outputs, overrides)  # not what is within a tensor that has a rule
        return self.rebuilt(Rebuilt(table, given=self.every_override, renews=reached))

    @property
    def lasting(self) -> dict[Tensor, Override]:
        """Those of :attr:`overrides` that derivatives of derivatives have too."""
        return {t: own for t, own in self.overrides.items() if not own.once}

    @property
    def every_override(self) -> dict[Tensor, Override]:
        """The same, with ``fdiff`` for each tensor that has no override."""
        found = dict(self.overrides)
        if self.fdiff is not None:
            for tensor in reached_from(self.outputs, self.inputs, found) - set(self.inputs):
                found.setdefault(tensor, by_fdiff(tensor, self.fdiff))
        return found


def program(
    name: str,
    label: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    policy: Policy = DEFAULT,
    override: Mapping[Tensor, Any] | None = None,
    fdiff: Callable[..., Any] | None = None,
    with_head: Sequence[int] | None = None,
) -> Program:
    """The program between tensors that are there; by default results of floats are differentiated, but not what a loop keeps to be computed again from."""
    if with_head is None:
        floats = [n for n, t in enumerate(outputs) if is_inexact(t.dtype)]
        with_head = [n for n in floats if not isinstance(outputs[n], (Final, Kept))]
    results = tuple(Result(t.shape, t.dtype) for t in outputs)
    known = tuple(outputs)
    return Program(
        name, label, tuple(inputs), results, lambda: known, tuple(with_head), policy, override, fdiff
    )
