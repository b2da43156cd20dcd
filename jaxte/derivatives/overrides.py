"""Overrides: derivatives of a tensor, or of several tensors as one region, given by the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jaxte.lang.checks import called, described
from jaxte.lang.errors import DifferentiationError, DtypeError, ShapeError
from jaxte.lang.expr import as_expr
from jaxte.lang.graphs import identical
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

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
# by tensors or tuples of them; the key of a Mapping is invariant
Overrides: TypeAlias = Mapping[Any, Replacement]


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


def listed_names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(t.name for t in tensors)
