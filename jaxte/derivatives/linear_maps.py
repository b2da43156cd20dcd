"""Derivatives as definitions: tangents, linearisations, transposes, Hessians and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from jaxte.autodiff.sums.blocks import jacobian as direct_jacobian
from jaxte.derivatives.forward import jvp_graph, transposed
from jaxte.derivatives.overrides import Fdiff, Overrides
from jaxte.derivatives.reverse import check_head, check_output, differentiate
from jaxte.lang import dtypes
from jaxte.lang.checks import described, several, wants_arguments
from jaxte.lang.errors import ArgumentError, DifferentiationError, DtypeError, ShapeError
from jaxte.lang.graphs import among
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.shapes import Extent, same_extent, shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor


@overload
def jvp(
    outputs: Tensor,
    inputs: Tensor | Sequence[Tensor],
    tangents: Any,
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> Tensor: ...
@overload
def jvp(
    outputs: Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    tangents: Any,
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> list[Tensor]: ...
@wants_arguments
def jvp(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    tangents: Any,
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> Any:
    """The tangents of ``outputs`` for ``tangents`` of ``inputs``: the Jacobian times a vector, as index expressions.

    ``tangent[p, o] = sum over inputs x, a of d output[o] / d x[a] * tangents[x][p, a]``

    It is the transpose of what :func:`differentiate` derives, with the same guards, ties and overrides, and is linear in the tangents.

    Args:
        outputs: one tensor or several.
        inputs: the tensors that move, intermediate ones too; each moves by itself and with the others that it is computed from.
        tangents: for each of ``inputs`` a tensor of its dtype and of shape ``prefix + input.shape``, with the same prefix for all; None for
            an input that does not move.
        override: as in :func:`differentiate`; forward mode is the transpose of what it does to the head.
        fdiff: as in :func:`differentiate`.

    Returns:
        A tensor of shape ``prefix + output.shape``, or a list of one for each of ``outputs``.

    Raises:
        DifferentiationError: an override that is not linear in its head.
        ShapeError: a tangent of another shape than its input.
        DtypeError: an input, an output or a tangent of a dtype that has no derivative, or of another one.

    Example:
        >>> X, W = te.placeholder((10,), name="X"), te.placeholder((3,), name="W")
        >>> k = te.reduce_axis((0, 3), "k")
        >>> Y = te.compute((8,), lambda i: te.sum(X[i + k] * W[k], axis=k), "Y")
        >>> print(te.formula(te.jvp(Y, X, te.placeholder((10,), name="T"))))
        Y_dot[i] = sum over k of T[i + k] * W[k]  (i < 8, k < 3)
    """
    wanted = several(outputs, Tensor, "the outputs of te.jvp", "Tensors")
    sources = several(inputs, Tensor, "the inputs of te.jvp", "Tensors")
    if not isinstance(inputs, Tensor) and not isinstance(tangents, Sequence):
        raise ArgumentError(
            f"the tangents of te.jvp are {described(tangents)}; give one for each of the inputs"
        )
    moves = [tangents] if isinstance(inputs, Tensor) else list(tangents)
    if len(moves) != len(sources):
        raise ArgumentError(
            f"te.jvp has {len(sources)} inputs ({', '.join(t.name for t in sources)}) and {len(moves)} tangents; give one for each, "
            "None for an input that does not move"
        )
    for tensor in wanted:
        check_output(tensor)
    prefix = _common_prefix(sources, moves)
    found = jvp_graph(wanted, sources, moves, override, fdiff, prefix)
    return found[0] if isinstance(outputs, Tensor) else found


def _common_prefix(inputs: Sequence[Tensor], tangents: Sequence[Any]) -> tuple[Extent, ...]:
    """The extents in front of those of the input that every tangent has."""
    found: tuple[Extent, ...] | None = None
    for tensor, tangent in zip(inputs, tangents, strict=True):
        if not dtypes.is_inexact(tensor.dtype):
            raise DtypeError(
                f"{tensor.name} has dtype {tensor.dtype}, which has no tangent; leave it out of the inputs, or cast it to a float first"
            )
        if tangent is None:
            continue
        check_head(tensor, tangent, f"the tangent of {tensor.name}")
        own = tangent.shape[: tangent.ndim - tensor.ndim]
        if found is not None and not (len(own) == len(found) and all(map(same_extent, own, found))):
            raise ShapeError(
                f"the tangent of {tensor.name} has {shape_text(own)} in front of the shape of {tensor.name}, another one "
                f"{shape_text(found)}; give all tangents the same prefix"
            )
        found = own
    return found or ()


@dataclass(frozen=True, eq=False)
class Linearization:
    """What is linear in the tangents of the inputs; see :func:`linearize`.

    Attributes:
        tangents: a placeholder for the tangent of each input.
        results: the tangent of each output, a definition over ``tangents``.
    """

    tangents: list[Placeholder]
    results: list[Tensor]
    _push: Callable[[Sequence[Tensor | None]], list[Tensor]]

    def __call__(self, *tangents: Tensor | None) -> list[Tensor]:
        """The tangents of the outputs for other tangents of the inputs."""
        return self._push(tangents)


@wants_arguments
def linearize(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor]) -> Linearization:
    """The linear map from tangents of ``inputs`` to tangents of ``outputs``, over placeholders of its own.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> linear = te.linearize(te.compute((3,), lambda i: X[i] * X[2 - i], "Y"), X)
        >>> print(te.formula(linear.results[0]))
        Y_dot[i] = X_dot[i] * X[2 - i] + X_dot[2 - i] * X[i]  (i < 3)
    """
    wanted = several(outputs, Tensor, "the outputs of te.linearize", "Tensors")
    sources = several(inputs, Tensor, "the inputs of te.linearize", "Tensors")
    tangents = [placeholder(t.shape, t.dtype, f"{t.name}_dot") for t in sources]

    def push(moves: Sequence[Tensor | None]) -> list[Tensor]:
        return jvp(wanted, sources, moves)

    return Linearization(tangents, push(tangents), push)


@wants_arguments
def transpose(output: Tensor, input: Tensor, head: Tensor | None = None) -> Tensor:
    """The transpose of the linear map from ``input`` to ``output``: a tensor of the shape of ``input``, linear in ``head``.

    ``result[a] = sum over o of head[o] * d output[o] / d input[a]``, which reads nothing of ``input``. The transpose of the transpose is the
    map itself: what :func:`differentiate` derived from a definition is turned back into that definition.

    Args:
        output: a tensor that is linear in ``input`` (an added constant does not count).
        input: any tensor that ``output`` depends on.
        head: of shape ``prefix + output.shape``; a new placeholder named H if not given.

    Raises:
        DifferentiationError: ``output`` is not linear in ``input``; it names a tensor where it is not.

    Example:
        >>> X, W = te.placeholder((10,), name="X"), te.placeholder((3,), name="W")
        >>> k = te.reduce_axis((0, 3), "k")
        >>> Y = te.compute((8,), lambda i: te.sum(X[i + k] * W[k], axis=k), "Y")
        >>> H = te.placeholder((8,), name="H")
        >>> print(te.formula(te.transpose(te.transpose(Y, X, H), H, X)))
        dH[i] = sum over k of X[i + k] * W[k]  (i < 8, k < 3)
    """
    check_output(output)
    if head is None:
        head = placeholder(output.shape, output.dtype, "H")
    check_head(output, head)
    remedy = "; te.transpose is of linear maps, such as those of te.linearize"
    return transposed([output], [input], [head], remedy=remedy)[0]


@overload
def hvp(output: Tensor, inputs: Tensor, vectors: Tensor) -> Tensor: ...
@overload
def hvp(output: Tensor, inputs: Sequence[Tensor], vectors: Sequence[Tensor | None]) -> list[Tensor]: ...
@wants_arguments
def hvp(output: Tensor, inputs: Tensor | Sequence[Tensor], vectors: Any) -> Any:
    """The Hessian of a scalar times a vector: the tangent of the gradient, in a constant multiple of the gradient's work.

    ``result[x][a] = sum over inputs y, b of d2 output / (d x[a] d y[b]) * vectors[y][b]``

    Args:
        output: a tensor of shape ``()``.
        inputs: one tensor or several.
        vectors: one for each of ``inputs``, as the tangents of :func:`jvp`.

    Returns:
        A tensor, or a list of one for each of ``inputs``.

    Example:
        >>> X, V = te.placeholder((5,), name="X"), te.placeholder((5,), name="V")
        >>> k = te.reduce_axis((0, 4), "k")
        >>> E = te.compute((), lambda: te.sum((X[k + 1] - X[k] ** 2) ** 2, axis=k), "E")
        >>> te.hvp(E, X, V).shape
        (5,)
    """
    _check_scalar(output, "te.hvp")
    sources = several(inputs, Tensor, "the inputs of te.hvp", "Tensors")
    gradients = list(differentiate(output, sources))
    moves = [vectors] if isinstance(inputs, Tensor) else vectors
    found = jvp(gradients, sources, moves)
    return found[0] if isinstance(inputs, Tensor) else found


@wants_arguments
def hessian(output: Tensor, inputs: Tensor | Sequence[Tensor]) -> Any:
    """The second derivatives of ``output``: a tensor of shape ``output.shape + x.shape + y.shape`` for each pair of inputs.

    Args:
        output: a tensor, most often a scalar.
        inputs: one tensor, or several.

    Returns:
        For one tensor, a Tensor; for several, a list of rows, ``rows[n][m]`` with respect to inputs ``n`` and ``m``.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> k = te.reduce_axis((0, 3), "k")
        >>> print(te.formula(te.hessian(te.compute((), lambda: te.sum(X[k] ** 3, axis=k), "E"), X)))
        dX[k, k'] = 6 * X[k] if k == k' else 0  (k < 3, k' < 3)
    """
    sources = several(inputs, Tensor, "the inputs of te.hessian", "Tensors")
    rows = [list(differentiate(g, sources)) for g in differentiate(output, sources)]
    return rows[0][0] if isinstance(inputs, Tensor) else rows


@wants_arguments
def jacobian(
    output: Tensor | Sequence[Tensor], input: Tensor | Sequence[Tensor], optimize: bool = True
) -> Any:
    """The Jacobian of ``output`` with respect to ``input``, of shape ``output.shape + input.shape``.

    Of an immediate input, what the body of ``output`` says of it; of an input further away, the total derivative; of a tensor that
    ``output`` does not depend on, zeros.

    Args:
        output: one tensor or several.
        input: one tensor or several.
        optimize: False leaves the sums over zeros as they are: the definition, for comparison; of an immediate input only.

    Returns:
        For one output and one input a Tensor; for several of either, a list, of outputs first.

    Raises:
        DtypeError: a dtype that has no derivative.

    Example:
        >>> X = te.placeholder((4,), name="X")
        >>> Y = te.compute((4,), lambda i: X[i] * X[3 - i], "Y")
        >>> te.jacobian(Y, X).shape, te.jacobian(te.compute((2,), lambda i: Y[2 * i], "Z"), X).shape
        ((4, 4), (2, 4))
    """
    rows = several(output, Tensor, "the output of te.jacobian", "a Tensor or several")
    columns = several(input, Tensor, "the input of te.jacobian", "a Tensor or several")
    found = [[_jacobian(y, x, optimize) for x in columns] for y in rows]
    blocks: Any = [row[0] for row in found] if isinstance(input, Tensor) else found
    return blocks[0] if isinstance(output, Tensor) else blocks


def _jacobian(output: Tensor, input: Tensor, optimize: bool) -> Tensor:
    if input is output or among(input, output.inputs):
        return direct_jacobian(output, input, optimize)
    if not optimize and among(input, topological_order([output])):
        raise DifferentiationError(
            f"{output.name} does not read {input.name} itself; te.jacobian with optimize=False is of an immediate input"
        )
    return differentiate(output, [input])[0]


def _check_scalar(output: Tensor, what: str) -> None:
    check_output(output)
    if output.ndim:
        raise ShapeError(
            f"{what} of {output.name} of shape {shape_text(output.shape)}: it is of scalars; sum the elements, or take te.jvp of an "
            "adjoint that te.differentiate gives for a head"
        )
