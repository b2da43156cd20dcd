"""Overrides: derivatives of single tensors given by the user as functions from tensors to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.checks import called
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError, DtypeError, ShapeError
from jaxte.lang.expr import as_expr
from jaxte.lang.identity import identical
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Tensor, topological_order

Fdiff = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Override:
    """Where the derivative of a tensor goes, and how much of it."""

    dependencies: tuple[Tensor, ...]
    fn: Callable[..., Any]

    def adjoints(
        self, tensor: Tensor, head: Tensor, prefix: Sequence[Any]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Each dependency with the adjoint that ``fn`` gives it, checked."""
        returned = called(self.fn, (tensor, list(self.dependencies), head), f"the override of {tensor.name}")
        if not isinstance(returned, (Tensor, Iterable)):
            raise DifferentiationError(
                f"the override of {tensor.name} returned a {type(returned).__name__}; return a list of one adjoint for each of "
                f"its dependencies ({', '.join(t.name for t in self.dependencies)})"
            )
        listed = [returned] if isinstance(returned, Tensor) else list(returned)
        if len(listed) != len(self.dependencies):
            names = ", ".join(t.name for t in self.dependencies)
            raise DifferentiationError(
                f"the override of {tensor.name} returned {len(listed)} adjoints for {len(self.dependencies)} "
                f"dependencies ({names}); return one for each, in that order"
            )
        for source, part in zip(self.dependencies, listed, strict=True):
            _check_adjoint(tensor, source, part, (*prefix, *source.shape))
            yield source, part


def check_fdiff(fdiff: Any) -> None:
    if not (fdiff is None or callable(fdiff)):
        raise DifferentiationError(
            f"fdiff is {fdiff!r}; give a function fdiff(output, input, head) of Tensors"
        )


def _check_adjoint(tensor: Tensor, source: Tensor, part: Any, shape: tuple[Any, ...]) -> None:
    where = f"the override of {tensor.name} returned for {source.name}"
    if not isinstance(part, Tensor):
        raise DifferentiationError(
            f"{where} a {type(part).__name__}; return a Tensor of shape {shape_text(shape)}"
        )
    if not identical([as_expr(e) for e in part.shape], [as_expr(e) for e in shape]):
        raise ShapeError(
            f"{where} an adjoint of shape {shape_text(part.shape)}; it has to be {shape_text(shape)}"
        )
    if part.dtype != source.dtype:
        raise DtypeError(f"{where} an adjoint of dtype {part.dtype}; {source.name} has {source.dtype}")


def overrides_of(
    outputs: Sequence[Tensor], given: Mapping[Tensor, Any] | None = None
) -> dict[Tensor, Override]:
    """The overrides between ``outputs`` and their inputs: those that are ``given``, and those that tensors came with.

    Raises:
        DifferentiationError: a given override that is none, or of a tensor that ``outputs`` do not depend on.
    """
    checked = check_overrides({} if given is None else given)
    found: dict[Tensor, Override] = {}
    seen: set[Tensor] = set()
    stack = list(outputs)
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        own = checked.get(tensor, tensor.override)
        if own is not None:
            found[tensor] = own
        stack.extend(tensor.inputs)
        stack.extend(() if own is None else own.dependencies)
    for tensor in checked:
        if tensor not in found:
            raise DifferentiationError(
                f"override has {tensor.name}, which {_listed_names(outputs)} "
                f"{'does' if len(outputs) == 1 else 'do'} not depend on; its keys are tensors of the graph, the same objects "
                "that the definitions read"
            )
    _check_acyclic(found)
    return found


def attach(
    outputs: Sequence[Tensor],
    inputs: Iterable[Tensor],
    override: Mapping[Tensor, Any] | None,
    fdiff: Fdiff | None,
) -> None:
    """Makes the derivatives that a function was given those of its tensors, between ``inputs`` and ``outputs``.

    So they hold in whatever graph the tensors become part of.
    """
    given = {} if override is None else override
    overrides = {t: o for t, o in overrides_of(outputs, given).items() if t in given}
    if fdiff is not None:
        for tensor in _between(outputs, inputs):
            overrides.setdefault(tensor, by_fdiff(tensor, fdiff))
    for tensor, own in overrides.items():
        tensor.with_override(own)


def _between(outputs: Sequence[Tensor], inputs: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that are computed from ``inputs`` on the way to ``outputs``."""
    seen: set[Tensor] = set(inputs)
    found: list[Tensor] = []
    stack = list(outputs)
    while stack:
        tensor = stack.pop()
        if tensor not in seen and tensor.inputs:
            seen.add(tensor)
            found.append(tensor)
            stack.extend(tensor.inputs)
    return found


def by_fdiff(tensor: Tensor, fdiff: Fdiff) -> Override:
    """The derivative of ``tensor`` by ``fdiff``, input by input."""
    sources = tuple(t for t in tensor.inputs if is_inexact(t.dtype))

    def adjoints(out: Tensor, inputs: Sequence[Tensor], head: Tensor) -> list[Tensor]:
        return [fdiff(out, source, head) for source in inputs]

    return Override(sources, adjoints)


def check_overrides(override: Mapping[Tensor, Any]) -> dict[Tensor, Override]:
    """``override`` with dependencies filled in, or an error that says what is wrong with it."""
    if not isinstance(override, Mapping):
        raise DifferentiationError(f"override is {override!r}; give {{tensor: (dependencies, fn)}}")
    checked: dict[Tensor, Override] = {}
    for tensor, given in override.items():
        if not isinstance(tensor, Tensor):
            raise DifferentiationError(
                f"override has the key {tensor!r}; the keys are the tensors whose derivative it replaces"
            )
        if isinstance(given, Override):
            checked[tensor] = given
            continue
        dependencies, fn = given if isinstance(given, (tuple, list)) and len(given) == 2 else (None, given)
        if not callable(fn):
            raise DifferentiationError(
                f"the override of {tensor.name} is {given!r}; give (dependencies, fn) with fn(out, inputs, head) -> [adjoint, ...]"
            )
        sources = tensor.inputs if dependencies is None else _listed(dependencies)
        for source in sources:
            if not isinstance(source, Tensor):
                raise DifferentiationError(
                    f"the override of {tensor.name} depends on {source!r}, which is no Tensor"
                )
            if source is tensor or any(t is tensor for t in topological_order([source])):
                raise DifferentiationError(
                    f"the override of {tensor.name} depends on {source.name}, which is computed from {tensor.name}: "
                    "a cycle; dependencies are tensors that are computed before it"
                )
        checked[tensor] = Override(tuple(dict.fromkeys(sources)), fn)
    return checked


def _listed_names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(t.name for t in tensors)


def _listed(dependencies: Any) -> tuple[Any, ...]:
    return (dependencies,) if isinstance(dependencies, Tensor) else tuple(dependencies)


def _check_acyclic(overrides: Mapping[Tensor, Override]) -> None:
    """The overrides together must not lead back to a tensor that they start from."""
    for start in overrides:
        seen: set[Tensor] = set()
        stack = list(overrides[start].dependencies)
        while stack:
            tensor = stack.pop()
            if tensor is start:
                raise DifferentiationError(
                    f"the overrides form a cycle through {start.name}; remove one of them"
                )
            if tensor not in seen:
                seen.add(tensor)
                stack.extend(overrides[tensor].dependencies if tensor in overrides else tensor.inputs)
