"""Whether a derivative that was given is that of the definition: by normal forms, or at random points in double precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jaxte.autodiff.sums.blocks import diff_building_block, zero_adjoint
from jaxte.autodiff.sums.cheap import equal_by_normal_forms
from jaxte.derivatives.given_overrides import by_fdiff, overrides_of, uncovered
from jaxte.derivatives.overrides import Override, Overrides, listed_names
from jaxte.derivatives.reverse import vjp_graph
from jaxte.derivatives.widened import widened, without_overrides
from jaxte.lang import dtypes
from jaxte.lang.checks import several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError, FeedError
from jaxte.lang.graphs import among
from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.recurrences.node import definitions_in, recurrences_in
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Extern, Tensor

_MOST_SHOWN = 8  # elements of an input in a report


@dataclass(frozen=True)
class Difference:
    """Where a given adjoint is not the derived one.

    Attributes:
        adjoint: the tensor that it is the adjoint of.
        index: the element.
        given, derived: its value by the override, and by the definition.
        point: the arrays at which that is so.
    """

    adjoint: Tensor
    index: tuple[int, ...]
    given: Any
    derived: Any
    point: Mapping[Tensor, np.ndarray]

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        lines = [
            f"d{self.adjoint.name}[{at}] is {self.given:.10g} by the override and {self.derived:.10g} by the definition, where"
        ]
        for tensor, array in self.point.items():
            shown = np.array2string(array, threshold=_MOST_SHOWN, precision=6)
            lines.append(f"    {tensor.name} = {shown}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Verification:
    """What :func:`verify_override` found; true where all adjoints agree.

    Attributes:
        exact: adjoints that are proven equal.
        at_points: adjoints that are equal at all points that were tried.
        difference: the first difference, if there is one.
    """

    exact: tuple[str, ...]
    at_points: tuple[str, ...]
    difference: Difference | None

    def __bool__(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        lines = [f"{name}: equal, by normal forms" for name in self.exact]
        lines += [f"{name}: equal at random points" for name in self.at_points]
        return "\n".join([*lines, *([] if self.difference is None else [str(self.difference)])])

    __repr__ = __str__


@wants_arguments
def verify_override(
    outputs: Tensor | Sequence[Tensor],
    override: Overrides | None = None,
    feeds: Mapping[Tensor, npt.ArrayLike] | None = None,
    points: int = 4,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> Verification:
    """Compares given derivatives with those that follow from the definitions.

    An input that an override leaves out is compared, too: nothing flows to it.
    Adjoints are equal for certain where their difference, written out as a polynomial over what cannot be taken apart, has no terms.
    Where that does not show it, both are evaluated by :func:`interpret` at random points in double precision.

    Args:
        outputs: tensors whose graph holds what is overridden.
        override: as in :func:`differentiate`; without it, the derivatives that tensors of the graph came with are checked.
        feeds: arrays for inputs that random numbers do not do for, such as index tensors.
        points: how many points are tried.
        tolerance: greatest difference, relative to the largest element. Functions of arrays compute in single precision
            while 64-bit types are off in JAX: give a larger one then.
        seed: of the points.

    Returns:
        A :class:`Verification`: true where everything agrees; it prints the first difference with its point.

    Raises:
        DifferentiationError: there is no override to verify.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> Y = te.compute((3,), lambda i: X[i] ** 3, "Y")
        >>> te.verify_override(Y, {Y: ([X], lambda out, inputs, head: [3 * X * X * head])})
        dX of Y: equal, by normal forms
    """
    roots = several(outputs, Tensor, "the outputs of te.verify_override", "Tensors")
    found = overrides_of(roots, override)
    asked = [o for t, o in found.items() if override is None or among(t, _keys(override))]
    within = _given_within(roots) if override is None else []
    if not asked and not within:
        raise DifferentiationError(
            "te.verify_override: there is no override in this graph; give override={tensor: (dependencies, fn)}, or the result of a "
            "te.custom_gradient"
        )
    exact: list[str] = []
    tried: list[str] = []
    for label, dependencies, pairs in _compared(roots, asked, within):
        for source, given, derived in pairs:
            name = f"d{source.name} of {label}"
            if equal_by_normal_forms(given, derived, dependencies):
                exact.append(name)
                continue
            difference = _difference(source, given, derived, feeds or {}, points, tolerance, seed)
            if difference is not None:
                return Verification(tuple(exact), tuple(tried), difference)
            tried.append(name)
    return Verification(tuple(exact), tuple(tried), None)


def _compared(
    roots: Sequence[Tensor], asked: Sequence[Override], within: Sequence[Tensor]
) -> Iterator[tuple[str, Sequence[Tensor], list[tuple[Tensor, Tensor, Tensor]]]]:
    """What is compared, with a label and what the derivatives are in: each override by itself, and those within bodies by the adjoints of the whole."""
    for own in dict.fromkeys(asked):
        yield own.label, own.dependencies, _pairs(own, _heads(own.outputs))
    if within:
        inputs = [t for t in topological_order(roots) if isinstance(t, Placeholder) and is_inexact(t.dtype)]
        yield f"{listed_names(roots)}, by {listed_names(within)}", inputs, _whole(roots, inputs)


def _heads(outputs: Sequence[Tensor]) -> list[Tensor]:
    return [placeholder(t.shape, t.dtype, f"H_{t.name}") for t in outputs]


def _given_within(roots: Sequence[Tensor]) -> list[Tensor]:
    """The tensors within recurrences whose derivative was given."""
    groups = recurrences_in(topological_order(roots))
    return [t for group in groups for t in definitions_in(group.tensors) if t.override is not None]


def _whole(roots: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each of ``inputs`` the adjoint with what was given within recurrences, and the one that is derived, through all of the graph."""
    heads = _heads(roots)
    given = vjp_graph(roots, heads, inputs)
    derived = vjp_graph(without_overrides(roots), heads, inputs)
    return list(zip(inputs, given, derived, strict=True))


def _keys(override: Mapping[Any, Any]) -> list[Tensor]:
    return [t for key in override for t in (key if isinstance(key, tuple) else (key,))]


def _pairs(own: Override, heads: Sequence[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each dependency the adjoint that was given, and the one that is derived from the definitions up to the dependencies.

    What flows on from one dependency to another is not part of either. To an input that no dependency covers, zeros are given.
    """
    lost = uncovered(own.outputs, own.dependencies)
    plain = {t: replace(by_fdiff(t, _block), by_definition=True) for t in own.outputs}
    ends = {t: Override((t,), (), lambda *_: []) for t in own.dependencies}
    derived = vjp_graph(own.outputs, heads, [*own.dependencies, *lost], {**plain, **ends})
    given = [*own.adjoints(heads, ()), *((t, zero_adjoint(t, ())) for t in lost)]
    return [(s, a, d) for (s, a), d in zip(given, derived, strict=True)]


def _block(output: Tensor, input: Tensor, head: Tensor) -> Tensor:
    found = diff_building_block(output, input, head)
    assert isinstance(found, Tensor)
    return found


def _difference(
    source: Tensor,
    given: Tensor,
    derived: Tensor,
    feeds: Mapping[Tensor, npt.ArrayLike],
    points: int,
    tolerance: float,
    seed: int,
) -> Difference | None:
    """The first element at which the two differ, at the first point where they do."""
    order = topological_order([given, derived])
    double = (
        widened([given, derived]) if not any(isinstance(t, Extern) for t in order) else {t: t for t in order}
    )
    inputs = [t for t in order if isinstance(t, Placeholder)]
    rng = np.random.default_rng(seed)
    for number in range(points):
        point: dict[Tensor, np.ndarray] = {
            t: _numbers(rng, t, double[t].dtype, feeds, positive=number % 2 == 1) for t in inputs
        }
        own, meant = (_value(double[t], {double[p]: a for p, a in point.items()}) for t in (given, derived))
        scale = max(1.0, float(np.max(np.abs(meant[np.isfinite(meant)]), initial=0.0)))
        with np.errstate(all="ignore"):
            same = (
                (np.abs(own - meant) <= tolerance * scale)
                | (own == meant)
                | (np.isnan(own) & np.isnan(meant))
            )
        if not np.all(same):
            index = tuple(int(n) for n in np.argwhere(~same)[0])
            return Difference(source, index, own[index], meant[index], point)
    return None


def _value(tensor: Tensor, feeds: Mapping[Tensor, np.ndarray]) -> np.ndarray:
    order = topological_order([tensor])
    return np.asarray(interpret(tensor, {t: a for t, a in feeds.items() if among(t, order)}))


def _numbers(
    rng: np.random.Generator,
    tensor: Tensor,
    dtype: str,
    feeds: Mapping[Tensor, npt.ArrayLike],
    positive: bool,
) -> np.ndarray:
    if tensor in feeds:
        return np.asarray(feeds[tensor], dtype)
    if not all(isinstance(e, int) for e in tensor.shape):
        raise FeedError(
            f"te.verify_override: {tensor.name} has symbolic sizes; give an array for it in feeds="
        )
    shape = tuple(int(e) for e in tensor.shape)  # type: ignore[call-overload]
    if not dtypes.is_inexact(dtype):
        raise FeedError(
            f"te.verify_override: {tensor.name} holds integers, of which random ones may be no positions; give an array in feeds="
        )
    drawn = rng.uniform(0.2, 2.0, shape) if positive else rng.standard_normal(shape)
    return np.asarray(drawn + 1j * rng.standard_normal(shape) if dtypes.is_complex(dtype) else drawn, dtype)
