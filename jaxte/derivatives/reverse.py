"""Reverse mode: the adjoint of every tensor between inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from jaxte.autodiff.sums.blocks import identity_head, zero_adjoint
from jaxte.derivatives.accumulation import accumulate, prefix_of
from jaxte.derivatives.overrides import Fdiff, Overrides
from jaxte.lang import dtypes
from jaxte.lang.checks import described, several, wants_arguments
from jaxte.lang.errors import DifferentiationError, DtypeError, ShapeError
from jaxte.lang.expr import as_expr
from jaxte.planning.chains.rolled import with_chains
from jaxte.show.printing import displayed
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

Walked = tuple[dict[Tensor, Tensor], dict[Tensor, dict[Tensor, Tensor]]]
"""Adjoints, and their summands."""


class DifferentiationResult(Sequence[Tensor]):
    """The requested adjoints, in the order of the inputs.

    Attributes:
        adjoints: the adjoint of every tensor between the inputs and the output.
        adjoint_summands: for each tensor, what each of its readers passes on to it.
    """

    def __init__(self, result: Sequence[Tensor] | None, walk: Callable[[], Walked]) -> None:
        self._result = None if result is None else tuple(result)
        self._walk = walk

    @cached_property
    def _walked(self) -> Walked:
        """What is between is derived when it is asked for: steps of a loop that are derived as one have no adjoints of their own."""
        return self._walk()

    @property
    def adjoints(self) -> dict[Tensor, Tensor]:
        return self._walked[0]

    @property
    def adjoint_summands(self) -> dict[Tensor, dict[Tensor, Tensor]]:
        return self._walked[1]

    @property
    def result(self) -> list[Tensor]:
        """The requested adjoints as a list."""
        return list(self._requested())

    def _requested(self) -> tuple[Tensor, ...]:
        if self._result is None:
            raise DifferentiationError(
                "differentiate was called without inputs, so there is no list of requested adjoints; "
                "pass inputs=[...], or look adjoints up in .adjoints[tensor]"
            )
        return self._result

    def __len__(self) -> int:
        return 0 if self._result is None else len(self._result)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tensor, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._requested()[index]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._requested())

    def __bool__(self) -> bool:
        return bool(self._result)

    def _shown(self) -> list[Tensor]:
        return list(self.adjoints.values() if self._result is None else self._result)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._shown()))

    def _repr_latex_(self) -> str:
        return displayed(self._shown())


@wants_arguments
def differentiate(
    output: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    head: Tensor | Sequence[Tensor | None] | None = None,
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> DifferentiationResult:
    """The adjoints of ``inputs``: ``head`` times the Jacobian of ``output``, derived as index expressions.

    ``adjoint[p, a] = sum over o of head[p, o] * d output[o] / d input[a]``

    Args:
        output: the tensor to differentiate, or several at once, whose adjoints add up.
        inputs: tensors with respect to which; all tensors that ``output`` depends on if not given.
        head: the adjoint of ``output``, of shape ``prefix + output.shape``; the identity if not given, so that the
            results are Jacobians of shape ``output.shape + input.shape``. Of several outputs one for each, with the same prefix; None where
            nothing flows into one.
        override: ``{tensor: (dependencies, fn)}``: the derivative of ``tensor`` goes to ``dependencies`` (which need
            not be immediate) as ``fn(tensor, dependencies, head) -> [adjoint, ...]`` says, and nowhere else. The key may be a tuple of
            tensors, a region that is replaced as one: ``fn(tensors, dependencies, heads)``. In place of the pair, functions of arrays:
            ``te.array_gradient``.
        fdiff: ``fdiff(output, input, head)`` used for every other pair instead of :func:`diff_building_block`.

    Returns:
        A sequence of tensors, one for each of ``inputs``; zeros for an input that ``output`` does not depend on.

    Example:
        >>> A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
        >>> k = te.reduce_axis((0, 4), "k")
        >>> C = te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
        >>> dA, dB = te.differentiate(C, [A, B], head=te.placeholder((3, 5), name="dC"))
    """
    wanted = None if inputs is None else _as_tensors(inputs)
    outputs, heads = _with_heads(output, head)

    def walked() -> Walked:
        return accumulate(outputs, heads, wanted, override, fdiff)

    rolled = None if wanted is None or override or fdiff is not None else _in_loops(outputs, wanted)
    if rolled is not None:
        assert wanted is not None
        return DifferentiationResult(vjp_graph(rolled, heads, wanted), walked)
    found = walked()
    if wanted is None:
        return DifferentiationResult(None, lambda: found)
    prefix = prefix_of(outputs[0], heads[0])
    return DifferentiationResult([_adjoint_or_zeros(t, found[0], prefix) for t in wanted], lambda: found)


def _in_loops(outputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
    """``outputs`` with the steps of loops as recurrences; None where there are none, or where one of them is ``wanted``."""
    given = tuple(outputs)
    rolled = with_chains(given)
    if rolled is given:
        return None
    left, before = set(topological_order(rolled)), set(topological_order(given))
    return rolled if all(t in left or t not in before for t in wanted) else None


def _with_heads(output: Any, head: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs that something flows into, and their heads, checked."""
    if isinstance(output, Tensor) or not isinstance(output, (list, tuple)):
        check_output(output)
        if head is None:
            return [output], [identity_head(output)]
        check_head(output, head)
        return [output], [head]
    for tensor in output:
        check_output(tensor)
    heads = list(head) if isinstance(head, (list, tuple)) else []
    names = ", ".join(t.name for t in output)
    if len(heads) != len(output) or all(h is None for h in heads):
        raise DifferentiationError(
            f"{len(output)} outputs ({names}) are differentiated at once with {len(heads) or described(head)} heads; give a list of one "
            "head for each, None where nothing flows in; te.jacobian gives the Jacobian of each"
        )
    pairs = [(t, h) for t, h in zip(output, heads, strict=True) if h is not None]
    for tensor, own in pairs:
        check_head(tensor, own, f"the head of {tensor.name}")
    first = prefix_of(*pairs[0])
    for tensor, own in pairs:
        extents = prefix_of(tensor, own)
        if not (len(extents) == len(first) and all(map(same_extent, extents, first))):
            raise ShapeError(
                f"the head of {tensor.name} has {shape_text(extents)} in front of the shape of {tensor.name}, that of {pairs[0][0].name} "
                f"{shape_text(first)}; give all heads the same prefix"
            )
    return [t for t, _ in pairs], [h for _, h in pairs]


def vjp_graph(
    outputs: Sequence[Tensor],
    heads: Sequence[Tensor],
    inputs: Sequence[Tensor],
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> list[Tensor]:
    """The adjoint of each of ``inputs``, summed over several outputs with a head each."""
    adjoints, _ = accumulate(outputs, heads, list(inputs), override, fdiff)
    return [_adjoint_or_zeros(t, adjoints, prefix_of(outputs[0], heads[0])) for t in inputs]


def _adjoint_or_zeros(tensor: Tensor, adjoints: Mapping[Tensor, Tensor], prefix: tuple[Any, ...]) -> Tensor:
    found = adjoints.get(tensor)
    return zero_adjoint(tensor, prefix) if found is None else found


def _as_tensors(inputs: Any) -> list[Tensor]:
    return several(inputs, Tensor, "inputs of te.differentiate", "the tensors of the graph")


def check_output(output: Tensor) -> None:
    if not isinstance(output, Tensor):
        raise DifferentiationError(
            f"differentiate takes a Tensor, not {type(output).__name__}; te.grad differentiates functions"
        )
    if not dtypes.is_inexact(output.dtype):
        raise DtypeError(
            f"{output.name} has dtype {output.dtype}, which has no derivative; cast it to a float first"
        )


def check_head(output: Tensor, head: Tensor, what: str = "head") -> None:
    """``head`` has the shape ``prefix + output.shape`` and a dtype that fits."""
    if not isinstance(head, Tensor):
        raise DifferentiationError(
            f"{what} is a {type(head).__name__}; give a Tensor of shape prefix + {shape_text(output.shape)}, "
            "for instance te.placeholder or te.ops.ones"
        )
    own = head.shape[head.ndim - output.ndim :] if head.ndim >= output.ndim else ()
    if head.ndim < output.ndim or any(
        as_expr(a) is not as_expr(b) for a, b in zip(own, output.shape, strict=True)
    ):
        raise ShapeError(
            f"{what} {head.name} has shape {shape_text(head.shape)}; it has to end with the shape "
            f"{shape_text(output.shape)} of {output.name}"
        )
    if head.dtype != output.dtype:
        raise DtypeError(
            f"{what} {head.name} has dtype {head.dtype}, but {output.name} has {output.dtype}; cast it with te.cast"
        )
