"""``te.define``: a program of formulas as a function of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from jaxte.bridge.functions.builder_function import Array, ArrayLike, BuilderFunction
from jaxte.frontends.text.build import Built, Scope
from jaxte.frontends.text.program import Declaration, Formula, Program, program
from jaxte.frontends.text.tree import Node, Source, read_within_the_stack
from jaxte.frontends.text.words import tokens_of
from jaxte.lang.checks import described, one_of_type, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError, ShapeError, nearest
from jaxte.lang.expr import ZERO, Expr, ScalarLike, as_expr
from jaxte.tensors.compute import defined
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault

    # without another word a program has one result
    Results_co = WithDefault("Results_co", covariant=True, default=Array)
else:
    Results_co = TypeVar("Results_co", covariant=True)

_REMEDY = "write its range behind the formula, as in Y[i] = ...  ({name} < 8), or give it as a keyword of te.define, {name}=8"


class Formulas(BuilderFunction[..., Any], Generic[Results_co]):
    """A program of formulas, of arrays and of Tensors.

    Type checkers do not read its text: they take it to have one result. Where it has two, say so,
    ``pair: te.Formulas[tuple[jax.Array, jax.Array]] = te.define(...)``.

    Attributes:
        text, names: what it was made of by :func:`define`.
    """

    def __init__(self, builder: Callable[..., Any], text: str, names: Mapping[str, Any]) -> None:
        super().__init__(builder)
        self.text, self.names = text, dict(names)

    def __repr__(self) -> str:
        return f"<te.define: {'; '.join(line.strip() for line in self.text.strip().splitlines())}>"

    def __reduce__(self) -> Any:
        """By its text, of which it is made again."""
        return _again, (self.text, self.names)

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __call__(self: Formulas[Array], *args: Tensor, **kwargs: Tensor) -> Tensor: ...
        @overload
        def __call__(
            self: Formulas[tuple[Array, Array]], *args: Tensor, **kwargs: Tensor
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self: Formulas[tuple[Array, ...]], *args: Tensor, **kwargs: Tensor
        ) -> tuple[Tensor, ...]: ...
        @overload
        def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> Results_co: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


@wants_arguments
def define(text: str, **names: int | Expr | Callable[..., ScalarLike]) -> Formulas[Results_co]:
    """A function of arrays, or of Tensors, from formulas.

    Each line is ``NAME[axes] = expression``. Its expression has elements ``X[b, t + k, c]``, numbers, arithmetic, comparisons,
    ``a if c else b``, the scalar functions of ``te`` by their names, and reductions ``sum[k, c](...)`` (also ``prod``, ``max``, ``min``,
    ``any``, ``all``, ``argmax``, ``argmin``, ``mean``, ``var``, ``std``, ``logsumexp``, ``norm``, ``softmax``) with ``where=`` and ``ties=``. Ranges follow from the shapes; they may stand behind a formula,
    ``(t < 8)``, and beside an axis, ``sum[k < 3](...)`` or ``sum[k <= i](...)``. What ``te.formula`` and ``te.definitions`` write is read, too.
    The text is parsed and never evaluated.

    Args:
        text: one formula a line; within brackets a line goes on. ``X: float32(8, 34)`` says what an input is. ``#`` begins a comment.
        names: sizes (integers or ``te.var``), functions of scalar expressions, and reductions made by ``te.comm_reducer``, by the names that
            they have in the text.

    Returns:
        A jaxte function, as ``te.function`` makes it: of the tensors that no formula defines, in the order in which the text names them,
        or by their names. It returns what no other formula reads, a tuple where these are several.

    Raises:
        DefinitionError: text that is no formula, with a caret under the place.
        ShapeError: at the call, shapes that contradict each other, or do not determine the range of an axis.

    Example:
        >>> conv = te.define("Y[b, t, o] = sum[k, c](X[b, t + k, c] * W[k, c, o])")
        >>> conv(jnp.ones((8, 34, 16)), jnp.ones((3, 16, 32))).shape
        (8, 32, 32)
    """
    written = one_of_type(text, str, "the text of te.define", "formulas, one a line")
    source = Source("te.define", "\n".join(line.strip() for line in written.strip().splitlines()))
    sizes, given = _sorted(names)
    with read_within_the_stack(source):
        made = program(source, sizes, given)
    tokens = tokens_of(source)
    words = {token.text for token in tokens}
    indexed = {token.text for token, after in pairwise(tokens) if after.text == "["}
    for name in indexed.intersection(sizes):
        raise ArgumentError(
            f"te.define: {name}={names[name]} gives a size, and {name}[...] in the text is a tensor; call the function that te.define returns with its arrays, "
            "and give the range of an axis by the name of the axis"
        )
    for name in names:
        if name not in words:
            others = sorted(word for word in words if word.isidentifier())
            close = nearest(name, others) or f"; its names are {', '.join(others)}"
            raise ArgumentError(f"te.define: {name}= is given, but the text has no {name}{close}")

    def build(*args: Any, **kwargs: Any) -> Any:
        return _tensors(made, build.__signature__.bind(*args, **kwargs).arguments, sizes, given)  # type: ignore[attr-defined]

    build.__signature__ = _signature(made.inputs)  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = "_".join(made.outputs)
    build.__doc__ = source.text
    return Formulas(build, text, names)


def _again(text: str, names: Mapping[str, Any]) -> Formulas[Any]:
    return define(text, **names)


def _sorted(names: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Callable[..., Any]]]:
    """The sizes and the functions among keywords."""
    sizes: dict[str, Any] = {}
    given: dict[str, Callable[..., Any]] = {}
    for name, value in names.items():
        if isinstance(value, (int, Expr)) and not isinstance(value, bool):
            sizes[name] = value
        elif callable(value) and not isinstance(value, Tensor):
            given[name] = value
        else:
            raise ArgumentError(
                f"te.define: {name} is {described(value)}; keywords are sizes (integers or te.var) and functions, and tensors are the "
                f"arguments of the function that te.define returns, te.define(text)({name}=...)"
            )
    return sizes, given


def _signature(inputs: tuple[str, ...]) -> inspect.Signature:
    """Parameters by the names of the inputs, in their order; names that Python has no parameters for are called by place."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    plain = [name.replace("'", "_") for name in inputs]
    if len(set(plain)) != len(plain):
        raise DefinitionError(
            f"te.define: the inputs {', '.join(inputs)} differ by apostrophes only; give them other names"
        )
    return inspect.Signature([inspect.Parameter(name, kind) for name in plain])


def _tensors(
    made: Program,
    arguments: Mapping[str, Any],
    sizes: Mapping[str, Any],
    given: Mapping[str, Callable[..., Any]],
) -> Any:
    """The outputs of a program for its inputs."""
    tensors: dict[str, Any] = dict(zip(made.inputs, arguments.values(), strict=True))
    for name, own in made.declarations.items():
        _check(own, tensors[name], sizes)
    for formula in made.formulas:
        with read_within_the_stack(formula.name.span.source):
            scope = Scope(tensors, sizes, _ranges(formula, sizes), given, remedy=_REMEDY)
            built = Built(formula.axes, formula.body, scope)
            element = built.expression()
        (tensors[formula.name.name],) = defined([formula.name.name], built.axes, [element])
    found = tuple(tensors[name] for name in made.outputs)
    return found if len(found) > 1 else found[0]


def _ranges(formula: Formula, sizes: Mapping[str, Any]) -> dict[str, tuple[Expr, Expr]]:
    found = {}
    for name, (lo, hi) in formula.ranges.items():
        first = ZERO if lo is None else _size(lo, sizes)
        if first is not ZERO and any(name == own.name for own in formula.axes):
            assert lo is not None
            raise lo.span.fault(f"{name} is an axis of {formula.name.name}, which begins at 0")
        found[name] = first, _size(hi, sizes)
    return found


def _size(node: Node, sizes: Mapping[str, Any]) -> Expr:
    return Built((), node, Scope({}, sizes)).expression()


def _check(own: Declaration, value: Any, sizes: Mapping[str, Any]) -> None:
    """That an input is what the text says of it."""
    shape = tuple(_size(e, sizes) for e in own.shape)
    if not isinstance(value, Tensor):
        value_shape: tuple[Any, ...] = ()
    else:
        value_shape = value.shape
        if value.dtype != own.dtype:
            raise own.name.span.fault(
                f"{own.name.name} is given as {value.dtype}, and stands here as {own.dtype}"
            )
    if len(shape) != len(value_shape) or not all(map(same_extent, map(as_expr, value_shape), shape)):
        raise own.name.span.fault(
            f"{own.name.name} is given with the shape {shape_text(value_shape)}, and stands here with {shape_text(shape)}",
            ShapeError,
        )
