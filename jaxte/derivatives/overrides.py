"""Overrides: derivatives of a tensor, or of several tensors as one region, given by the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jaxte.lang.checks import called, described
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError, DtypeError, ShapeError
from jaxte.lang.expr import as_expr
from jaxte.lang.graphs import among, identical, reached
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Placeholder, Tensor

Fdiff = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Override:
    """Where the derivative of tensors goes, and how much of it.

    Attributes:
        outputs: the tensors whose derivative it is; more than one is a region.
        dependencies: where it goes, and nowhere else.
        fn: ``fn(output, dependencies, head)``, lists of outputs and heads for a region, returns the adjoint of each dependency.
        tangent: ``tangent(output, dependencies, tangents)`` returns the tangent of the output, or of each; None where forward mode is
            the transpose of ``fn``.
        region: whether ``fn`` and ``tangent`` take lists.
        primal: makes what derivatives of derivatives have in place of the one output: the value as a rule computes it anew, whose derivative
            is its own. None, or where it makes None: the output, with this derivative again.
        once: whether only the next derivative is this one.
        by_definition: whether ``fn`` gives what follows from the definition.
    """

    outputs: tuple[Tensor, ...]
    dependencies: tuple[Tensor, ...]
    fn: Callable[..., Any]
    tangent: Callable[..., Any] | None = None
    region: bool = False
    primal: Callable[[], Tensor | None] | None = None
    once: bool = False
    by_definition: bool = False

    @property
    def renewed(self) -> Tensor | None:
        """What stands for the output in derivatives of derivatives, where that is another tensor."""
        return None if self.primal is None else self.primal()

    @property
    def label(self) -> str:
        return listed_names(self.outputs)

    def adjoints(self, heads: Sequence[Tensor], prefix: Sequence[Extent]) -> Iterator[tuple[Tensor, Tensor]]:
        """Each dependency with the adjoint that ``fn`` gives it, checked."""
        outs, own = (list(self.outputs), list(heads)) if self.region else (self.outputs[0], heads[0])
        what = f"the override of {self.label}"
        returned = called(self.fn, (outs, list(self.dependencies), own), what)
        listed = self._listed(returned, self.dependencies, what, "adjoint", "its dependencies")
        for source, part in zip(self.dependencies, listed, strict=True):
            _check_returned(f"{what} returned for {source.name}", "an adjoint", source, part, prefix)
            yield source, part

    def tangents(self, moves: Sequence[Tensor], prefix: Sequence[Extent]) -> list[Tensor]:
        """The tangent of each output that ``tangent`` gives for ``moves``, one of each dependency, checked."""
        assert self.tangent is not None
        outs = list(self.outputs) if self.region else self.outputs[0]
        what = f"the tangent rule of {self.label}"
        returned = called(self.tangent, (outs, list(self.dependencies), list(moves)), what)
        listed = self._listed(returned, self.outputs, what, "tangent", "its tensors")
        for output, part in zip(self.outputs, listed, strict=True):
            _check_returned(f"{what} returned for {output.name}", "a tangent", output, part, prefix)
        return listed

    def _listed(
        self, returned: Any, wanted: Sequence[Tensor], what: str, kind: str, whose: str
    ) -> list[Tensor]:
        names = listed_names(wanted)
        if not isinstance(returned, (Tensor, Iterable)):
            raise DifferentiationError(
                f"{what} returned a {type(returned).__name__}; return a list of one {kind} for each of {whose} ({names})"
            )
        listed = [returned] if isinstance(returned, Tensor) else list(returned)
        if len(listed) != len(wanted):
            counted = "dependencies" if whose == "its dependencies" else "tensors"
            raise DifferentiationError(
                f"{what} returned {len(listed)} {kind}s for {len(wanted)} {counted} ({names}); return one for each, in that order"
            )
        return listed


class Rule(ABC):
    """A derivative that is not yet that of a tensor: what makes an override of the tensors that it is given to."""

    @abstractmethod
    def of(self, outputs: Sequence[Tensor], region: bool) -> Override: ...


Replacement: TypeAlias = tuple[Sequence[Tensor], Callable[..., Sequence[Tensor]]] | Rule | Override
Overrides: TypeAlias = Mapping[
    Any, Replacement
]  # by tensors or tuples of them; the key of a Mapping is invariant


def check_fdiff(fdiff: Any) -> None:
    if not (fdiff is None or callable(fdiff)):
        raise DifferentiationError(
            f"fdiff is {fdiff!r}; give a function fdiff(output, input, head) of Tensors"
        )


def _check_returned(where: str, kind: str, source: Tensor, part: Any, prefix: Sequence[Extent]) -> None:
    shape = (*prefix, *source.shape)
    if not isinstance(part, Tensor):
        raise DifferentiationError(
            f"{where} {described(part)}; return a Tensor of shape {shape_text(shape)}, as te.ops.full or te.constant make one"
        )
    if not identical([as_expr(e) for e in part.shape], [as_expr(e) for e in shape]):
        raise ShapeError(
            f"{where} {kind} of shape {shape_text(part.shape)}; it has to be {shape_text(shape)}"
        )
    if part.dtype != source.dtype:
        raise DtypeError(f"{where} {kind} of dtype {part.dtype}; {source.name} has {source.dtype}")


def reached_with_derivatives(
    outputs: Iterable[Tensor], given: Mapping[Tensor, Override] | None = None
) -> list[Tensor]:
    """Every tensor that the values of ``outputs`` need, or their derivatives: an override may depend on what its tensor does not read."""
    checked = {} if given is None else given

    def reads(tensor: Tensor) -> Sequence[Tensor]:
        own = checked.get(tensor, tensor.override)
        return tensor.inputs if own is None else (*tensor.inputs, *own.dependencies)

    return topological_order(outputs, reads)


def overrides_of(outputs: Sequence[Tensor], given: Mapping[Any, Any] | None = None) -> dict[Tensor, Override]:
    """The overrides between ``outputs`` and their inputs: those that are ``given``, and those that tensors came with.

    Raises:
        DifferentiationError: a given override that is none, or of a tensor that ``outputs`` do not depend on.
    """
    checked = check_overrides({} if given is None else given)
    order = reached_with_derivatives(outputs, checked)
    own_of = {tensor: checked.get(tensor, tensor.override) for tensor in reversed(order)}
    found = {tensor: own for tensor, own in own_of.items() if own is not None}
    for tensor, own in checked.items():
        if not any(t in found for t in own.outputs if t in checked):
            raise DifferentiationError(
                f"override has {tensor.name}, which {listed_names(outputs)} "
                f"{'does' if len(outputs) == 1 else 'do'} not depend on; its keys are tensors of the graph, the same objects "
                "that the definitions read"
            )
    _check_acyclic(found)
    return found


def attach(
    outputs: Sequence[Tensor],
    inputs: Iterable[Tensor],
    override: Mapping[Any, Any] | None,
    fdiff: Fdiff | None,
) -> None:
    """Makes the derivatives that a function was given those of its tensors, between ``inputs`` and ``outputs``.

    So they hold in whatever graph the tensors become part of.
    """
    given = {} if override is None else check_overrides(override)
    overrides = {t: o for t, o in overrides_of(outputs, given).items() if t in given}
    if fdiff is not None:
        for tensor in _between(outputs, inputs):
            overrides.setdefault(tensor, by_fdiff(tensor, fdiff))
    for tensor, own in overrides.items():
        tensor.with_override(own)


def _between(outputs: Sequence[Tensor], inputs: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that are computed from ``inputs`` on the way to ``outputs``."""
    given = set(inputs)
    found = reached(outputs, lambda tensor: () if tensor in given else tensor.inputs)
    return [tensor for tensor in found if tensor not in given and tensor.inputs]


def by_fdiff(tensor: Tensor, fdiff: Fdiff) -> Override:
    """The derivative of ``tensor`` by ``fdiff``, input by input."""
    sources = tuple(t for t in tensor.inputs if is_inexact(t.dtype))

    def adjoints(out: Tensor, inputs: Sequence[Tensor], head: Tensor) -> list[Tensor]:
        return [fdiff(out, source, head) for source in inputs]

    return Override((tensor,), sources, adjoints)


def opaque(overrides: Mapping[Tensor, Override]) -> frozenset[Tensor]:
    """The tensors whose derivative does not follow from their definition."""
    return frozenset(t for t, own in overrides.items() if not own.by_definition)


def check_overrides(override: Mapping[Any, Any]) -> dict[Tensor, Override]:
    """``override`` by tensors, with dependencies filled in, or an error that says what is wrong with it."""
    if not isinstance(override, Mapping):
        raise DifferentiationError(f"override is {override!r}; give {{tensor: (dependencies, fn)}}")
    checked: dict[Tensor, Override] = {}
    for key, given in override.items():
        outputs = key if isinstance(key, tuple) else (key,)
        for tensor in outputs:
            if not isinstance(tensor, Tensor):
                raise DifferentiationError(
                    f"override has the key {tensor!r}; the keys are the tensors whose derivative it replaces, or tuples of them"
                )
        own = given if isinstance(given, Override) else _override(outputs, given, isinstance(key, tuple))
        for tensor in outputs:
            if tensor in checked:
                raise DifferentiationError(f"override has {tensor.name} twice; give one derivative of it")
            checked[tensor] = own
    return checked


def _override(outputs: tuple[Tensor, ...], given: Any, region: bool) -> Override:
    if isinstance(given, Rule):
        own = given.of(outputs, region)
        check_dependencies(outputs, own.dependencies)
        check_covered(outputs, own.dependencies)
        return own
    label = listed_names(outputs)
    dependencies, fn = given if isinstance(given, (tuple, list)) and len(given) == 2 else (None, given)
    if not callable(fn):
        raise DifferentiationError(
            f"the override of {label} is {given!r}; give (dependencies, fn) with fn(out, inputs, head) -> [adjoint, ...]"
        )
    if region and dependencies is None:
        raise DifferentiationError(
            f"the override of the region {label} names no dependencies; give (dependencies, fn)"
        )
    sources = outputs[0].inputs if dependencies is None else _listed(dependencies)
    check_dependencies(outputs, sources)
    if region:
        check_covered(outputs, sources)
    return Override(outputs, tuple(dict.fromkeys(sources)), fn, region=region)


def check_dependencies(outputs: Sequence[Tensor], dependencies: Sequence[Any]) -> None:
    """The dependencies are tensors that are computed before the outputs."""
    label = listed_names(outputs)
    for source in dependencies:
        if not isinstance(source, Tensor):
            raise DifferentiationError(
                f"the override of {label} depends on {described(source)}, which is no Tensor"
            )
        for output in outputs:
            if source is output or among(output, topological_order([source])):
                raise DifferentiationError(
                    f"the override of {label} depends on {source.name}, which is computed from {output.name}: "
                    "a cycle; dependencies are tensors that are computed before it"
                )


def check_covered(outputs: Sequence[Tensor], dependencies: Sequence[Tensor]) -> None:
    """Whatever the outputs are computed from with a derivative, they are computed from through the dependencies.

    Raises:
        DifferentiationError: an input whose derivative would be lost; it names it.
    """
    lost = uncovered(outputs, dependencies)
    if lost:
        label = listed_names(outputs)
        raise DifferentiationError(
            f"the override of {label} covers {listed_names(dependencies) or 'no input'}, but {label} also depends on {lost[0].name}; "
            f"name {lost[0].name} among its dependencies, with an adjoint of zeros if none is meant to flow"
        )


def uncovered(outputs: Sequence[Tensor], dependencies: Sequence[Tensor]) -> list[Placeholder]:
    """The inputs that ``outputs`` are computed from with a derivative, and not through ``dependencies`` alone."""
    covered = set(dependencies)

    def below(tensor: Tensor) -> Sequence[Tensor]:
        own = tensor.inputs if tensor.override is None else tensor.override.dependencies
        return [t for t in own if t not in covered]

    found = reached([s for t in outputs for s in t.inputs if s not in covered], below)
    return [t for t in found if isinstance(t, Placeholder) and is_inexact(t.dtype)]


def listed_names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(t.name for t in tensors)


def _listed(dependencies: Any) -> tuple[Any, ...]:
    return (dependencies,) if isinstance(dependencies, Tensor) else tuple(dependencies)


def _check_acyclic(overrides: Mapping[Tensor, Override]) -> None:
    """The overrides together must not lead back to a tensor that they start from."""

    def below(tensor: Tensor) -> Sequence[Tensor]:
        return overrides[tensor].dependencies if tensor in overrides else tensor.inputs

    for start in overrides:
        if start in reached(below(start), below):
            raise DifferentiationError(f"the overrides form a cycle through {start.name}; remove one of them")
