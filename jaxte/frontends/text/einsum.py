"""``te.einsum``: products, sums and other reductions of arrays by a pattern with arithmetic of indices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, overload

from jaxte.bridge.functions.builder_function import Array, ArrayLike
from jaxte.bridge.functions.function import function
from jaxte.frontends.text.build import Built, Scope
from jaxte.frontends.text.operands import Resolved, resolved
from jaxte.frontends.text.patterns import pattern
from jaxte.frontends.text.tree import (
    Composed,
    Name,
    Node,
    Number,
    Operation,
    Pattern,
    Reduced,
    Reduction,
    Source,
    nodes_of,
    read_within_the_stack,
)
from jaxte.frontends.text.vocabulary import END, KEEPING, MODES, REDUCERS
from jaxte.lang.checks import described, one_of_type, wants_arguments
from jaxte.lang.errors import PADS, ArgumentError, ShapeError, nearest
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.tensors.compute import defined
from jaxte.tensors.custom_reductions import Reduction as CustomReduction
from jaxte.tensors.tensor import Compute, Tensor

Reducer: TypeAlias = str | Callable[..., Expr] | CustomReduction
Pad: TypeAlias = Literal["zero", "edge", "wrap", "reflect"] | None
_SCALARS = (bool, int, float, complex)


@overload
def einsum(
    text: str, *operands: Tensor, reduce: Reducer = "sum", pad: Pad = None, **sizes: int | Expr
) -> Tensor: ...
@overload
def einsum(
    text: str, *operands: ArrayLike, reduce: Reducer = "sum", pad: Pad = None, **sizes: int
) -> Array: ...
@wants_arguments
def einsum(text: str, *operands: Any, reduce: Any = "sum", pad: str | None = None, **sizes: Any) -> Any:
    """Sums of products by a pattern, with arithmetic in its indices.

    ``"b (t+k) c, k c o -> b t o"`` is ``y[b, t, o] = sum over k, c of x[b, t + k, c] * w[k, c, o]``. Operands stand between commas, the
    axes of each side by side, arithmetic in parentheses: ``(2*t + 3*k)``, ``(t // 2)``, ``(end - t)``, where end is the last position. ``(h w)`` is an axis of the array that is several, ``...`` are further
    axes, a number is that position. Terms are added with ``+`` and ``-``, and functions are written around them: ``"exp(i k - i), k j -> i j"``. Numbers multiply with ``*``, and parentheses around
    whole operands group them: ``"exp(-0.5 * (i - j)**2) -> i j"``. Sizes follow from the shapes. Patterns of ``numpy.einsum``, ``"ij,jk->ik"``, are read, too.

    Args:
        text: the pattern.
        operands: arrays, or Tensors.
        reduce: what is done along axes that the result has not: "sum", "prod", "max", "min", "mean", "var", "std", "logsumexp", "norm", "any", "all", "argmax", "argmin", or a reduction
            of ``te.comm_reducer``. A sum is taken of each term over the axes that this term has, another reduction of the whole.
        pad: what arithmetic that leaves an array reads there: "zero"; "edge", the nearest element; "wrap", the other end; "reflect", mirrored at the last element.
            The result then has as many elements as the array, or as the stride leaves of them. None: nothing leaves an array.
        sizes: of axes by their names, where the shapes do not say them.

    Returns:
        An array, differentiable by every transformation of JAX with derived adjoints; of Tensors, a Tensor.

    Raises:
        DefinitionError: text that is no pattern, with a caret under the place.
        ShapeError: shapes that contradict each other or leave an axis open.

    Example:
        >>> te.einsum("(t+k), k -> t", jnp.arange(5.0), jnp.ones(2)).tolist()
        [1.0, 3.0, 5.0, 7.0]
    """
    one_of_type(text, str, "the pattern of te.einsum", "a string such as 'b (t+k) c, k c o -> b t o'")
    if not (_is_reduction(reduce) or (isinstance(reduce, str) and reduce in REDUCERS)):
        wanted = reduce if isinstance(reduce, str) else getattr(reduce, "__name__", "")
        close = nearest(wanted, REDUCERS)
        raise ArgumentError(
            f"te.einsum: reduce is {described(reduce)}{close or '; give ' + ', '.join(REDUCERS) + ', or what te.comm_reducer returns'}"
        )
    if not (pad is None or (isinstance(pad, str) and pad in MODES)):
        meant = PADS.get(str(pad).lower())
        close = f"; did you mean {meant!r}?" if meant else f"; give {', '.join(map(repr, MODES))}, or None"
        raise ArgumentError(f"te.einsum: pad is {described(pad)}{close}")
    for name, size in sizes.items():
        if (
            not isinstance(size, (int, Expr))
            or isinstance(size, bool)
            or (isinstance(size, int) and size < 0)
        ):
            close = nearest(name, ("reduce", "pad"))
            raise ArgumentError(
                f"te.einsum: {name} is {described(size)}{close or '; keywords are the sizes of axes, which are integers from 0 on'}"
            )
    for number, operand in enumerate(operands):
        if not (isinstance(operand, (Tensor, *_SCALARS)) or hasattr(operand, "shape")):
            remedy = "give an array, as jnp.asarray makes it, or a Tensor"
            if isinstance(operand, str) and operand in REDUCERS:
                remedy = f"a reduction is reduce={operand!r}"
            raise ArgumentError(f"te.einsum: the operand {number} is {described(operand)}; {remedy}")
    return _run(list(operands), text, reduce, pad, sizes)


def _is_reduction(reduce: Any) -> bool:
    """Whether it is called as ``te.max`` and what ``te.comm_reducer`` returns are."""
    try:
        return callable(reduce) and "over" in inspect.signature(reduce).parameters
    except ValueError:  # a function without a signature, as some of Python's own
        return False


def _built(
    operand: Sequence[Any], text: str, reduce: Any, pad: str | None, sizes: Mapping[str, Any]
) -> Compute:
    source = Source("te.einsum", text)
    with read_within_the_stack(source):
        axes, element = _element(operand, source, reduce, pad, sizes)
    return defined(["einsum"], axes, [element])[0]


def _element(
    operand: Sequence[Any], source: Source, reduce: Any, pad: str | None, sizes: Mapping[str, Any]
) -> tuple[tuple[Axis, ...], Expr]:
    """The axes of the result, and the element there."""
    reducers = {"reduce": reduce} if callable(reduce) else {}
    given = pattern(source)
    _check_count(given, operand)
    shapes = [x.shape if isinstance(x, Tensor) else () for x in operand]
    known = resolved(given, shapes, sizes)
    names = list(_flat(known.result))
    _check_result(known, names, {**sizes, **known.ranges})
    body = _reduced(known.body, {n.name for n in names}, "reduce" if reducers else reduce)
    tensors = {str(n): x for n, x in enumerate(operand)}
    composed = {f"{name}|": size for name, (_, size) in known.ranges.items()}
    scope = Scope(tensors, {**sizes, **composed}, known.ranges, reducers, pad)
    built = Built(names, body, scope)
    axes, at = _axes(known.result, {n.name: a for n, a in zip(names, built.axes, strict=True)})
    return axes, built.expression(at)


_built.__name__ = "einsum"
_run = function(_built)


def _check_count(given: Pattern, operands: Sequence[Any]) -> None:
    wanted, found = len(given.operands), len(operands)
    if wanted != found:
        span = given.operands[-1].span if wanted > found else given.arrow
        words = {n.function for n in nodes_of(given.body) if isinstance(n, Operation)}
        hint = ""
        if wanted > found and "power" in words:
            hint = "; ** raises whole operands, (i d - j d)**2, so that arithmetic of indices has parentheses of its own, ((t+k))**2"
        elif wanted > found and (words & {"add", "subtract", "divide"} or "*" in given.source.text):
            hint = "; arithmetic of indices stands in parentheses, as in (t+k)"
        raise span.fault(
            f"the pattern has {wanted} {'operand' if wanted == 1 else 'operands'}, and {found} {'is' if found == 1 else 'are'} given{hint}",
            ShapeError,
        )


def _flat(result: Sequence[Node]) -> Iterator[Name]:
    for item in result:
        if isinstance(item, Name):
            yield item
        elif isinstance(item, Composed):
            for factor in item.factors:
                if not isinstance(factor, Name):
                    raise factor.span.fault(
                        "several axes that are one have names each, as in (h r), with r=2 as a keyword"
                    )
                yield factor
        elif not (isinstance(item, Number) and item.value == 1):
            raise item.span.fault(
                "the result has axes, (h w) for several that become one, and 1; put arithmetic into the operands"
            )


def _check_result(known: Resolved, names: Sequence[Name], sizes: Mapping[str, Any]) -> None:
    read = {n.name for n in nodes_of(known.body) if isinstance(n, Name)}
    for at, own in enumerate(names):
        if any(own.name == other.name for other in names[:at]):
            raise own.span.fault(f"{own.name} stands twice in the result; a diagonal is read, as in i i -> i")
        if own.name not in read and own.name not in sizes:
            close = nearest(own.name, read)
            raise own.span.fault(
                f"{own.name} stands in no operand{close or f'; to repeat along it, give its size as a keyword, {own.name}=...'}"
            )


def _reduced(body: Node, kept: set[str], reducer: str) -> Node:
    """``body`` reduced over the axes that the result has not: each term where it is a sum, or else the whole."""
    if reducer == "sum" and isinstance(body, Operation) and body.function in ("add", "subtract", "negative"):
        return replace(body, args=tuple(_reduced(a, kept, reducer) for a in body.args))
    missing = {n.name: n for n in _open_names(body) if n.name not in kept}
    if not missing:
        return body
    return Reduction(body.span, reducer, tuple(Reduced(n.span, n) for n in missing.values()), (body,))


def _open_names(body: Node) -> Iterator[Name]:
    """The axes of indices that no reduction in ``body`` is over."""
    stack: list[tuple[Node, frozenset[str]]] = [(body, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Name) and not (node.name in bound or node.name == END or node.name.endswith("|")):
            yield node
        if isinstance(node, Reduction) and node.reducer not in KEEPING:
            bound |= {r.name.name for r in node.axes}
        below = node.values if isinstance(node, Reduction) else node.children
        stack.extend((child, bound) for child in reversed(below))


def _axes(result: Sequence[Node], axes: Mapping[str, Axis]) -> tuple[tuple[Axis, ...], dict[str, Expr]]:
    """The axes of the array, and the axis of each name in terms of them."""
    found: list[Axis] = []
    at: dict[str, Expr] = {}
    for item in result:
        if isinstance(item, Name):
            found.append(axes[item.name])
            at[item.name] = axes[item.name]
            continue
        factors = [n for n in nodes_of(item) if isinstance(n, Name)]
        extent = as_expr(1)
        for factor in factors:
            extent = extent * axes[factor.name].extent
        joined = Axis("_".join(f.name for f in factors) or "one", 0, extent)
        found.append(joined)
        rest: Expr = joined
        for n, factor in enumerate(reversed(factors)):
            size = axes[factor.name].extent
            at[factor.name] = rest if n == len(factors) - 1 else rest % size
            rest = rest // size
    return tuple(found), at
