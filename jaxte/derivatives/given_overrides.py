"""The overrides of a graph: those that are given, checked, and those that its tensors came with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxte.derivatives.overrides import Fdiff, Override, Rule, listed_names, reached_with_derivatives
from jaxte.lang.checks import described
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.graphs import among, reached
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor


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

    Raises:
        DifferentiationError: a derivative that would reach none of ``inputs``, since a dependency is of another graph.
    """
    inputs = list(inputs)
    given = {} if override is None else check_overrides(override)
    check_reached(given, inputs)
    overrides = {t: o for t, o in overrides_of(outputs, given).items() if t in given}
    if fdiff is not None:
        for tensor in _between(outputs, inputs):
            overrides.setdefault(tensor, by_fdiff(tensor, fdiff))
    for tensor, own in overrides.items():
        tensor.with_override(own)


def check_reached(overrides: Mapping[Tensor, Override], inputs: Sequence[Tensor]) -> None:
    """The dependencies of ``overrides`` are made of ``inputs`` of a function, or of no input at all.

    Raises:
        DifferentiationError: a gradient that would go to an input of another function, and be lost.
    """
    for own in dict.fromkeys(overrides.values()):
        for source in own.dependencies:
            below = [t for t in reached_with_derivatives([source]) if isinstance(t, Placeholder)]
            if below and not any(among(t, inputs) for t in below):
                made = "" if among(source, below) else f", which is computed from {listed_names(below)},"
                raise DifferentiationError(
                    f"the override of {own.label} passes a gradient to {source.name}{made} but the inputs of the function are "
                    f"{listed_names(inputs)}, so that it would be lost; name tensors among its dependencies that are computed from these"
                )


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


def _listed(dependencies: Any) -> tuple[Any, ...]:
    return (dependencies,) if isinstance(dependencies, Tensor) else tuple(dependencies)


def _check_acyclic(overrides: Mapping[Tensor, Override]) -> None:
    """The overrides together must not lead back to a tensor that they start from."""

    def below(tensor: Tensor) -> Sequence[Tensor]:
        return overrides[tensor].dependencies if tensor in overrides else tensor.inputs

    for start in overrides:
        if start in reached(below(start), below):
            raise DifferentiationError(f"the overrides form a cycle through {start.name}; remove one of them")
