"""Forms that are looked for in a whole reduction: scatters, scans, windows and convolutions."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import prod

from jaxte.expr import ONE, Axis, Expr, Reduce, conjuncts
from jaxte.lower.body import Body
from jaxte.lower.bounds import known
from jaxte.lower.convolution import ConvolutionSpec, convolution_source, recognise_convolution
from jaxte.lower.factors import product_of, split_outer
from jaxte.lower.indexing import recognise_scatter
from jaxte.lower.indexing_source import scatter_source
from jaxte.lower.ops import Code, Statement, Value
from jaxte.lower.reduces import full
from jaxte.lower.scan import recognise_scan
from jaxte.lower.scan_source import scan_source
from jaxte.lower.scopes import Scope
from jaxte.lower.specs import Array, Refusal
from jaxte.lower.window import WindowSpec, recognise_window
from jaxte.lower.window_source import window_source
from jaxte.lower.writing import name
from jaxte.scalars import CALL
from jaxte.walk import free_axes, reads_of, substitute

Search = Generator[tuple[Expr, Scope], Value, Value | None]
_FEW_TAPS = 32
_SHORT = 40


def recognised(body: Body, node: Expr, scope: Scope, guards: Sequence[Expr] = ()) -> Search:
    """The value of a reduction (zero where ``guards`` do not hold) by a form of its own; None where it has none."""
    current = substitute(node, dict(scope.table))
    if not isinstance(current, Reduce):
        return None
    guards = [substitute(g, dict(scope.table)) for g in guards]
    free = free_axes(current) | {a: None for g in guards for a in free_axes(g)}
    axes = tuple(d for d in scope.order if d in free)
    tied = any(len(free_axes(c)) > 1 for c in conjuncts(current.where))
    mixed = _mixes(current, axes)
    single = current.reducer.name != "sum" or _is_single(current)
    if not guards:
        for wanted, search in (
            (any(reads_of(c) for c in conjuncts(current.where)), _scatter),
            (tied, _scan),
            (mixed and single, _window),
        ):
            found = (yield from search(body, current, axes)) if wanted else None
            if found is not None:
                return found
    if not mixed:
        return None
    found = yield from _convolution(body, current, axes, guards)
    return (yield from _window(body, current, axes)) if found is None and not (guards or single) else found


def _is_single(node: Reduce) -> bool:
    """Whether no two factors depend on the reduced axes, so that there is nothing to convolve."""
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    return len(inner) < 2


def _mixes(node: Reduce, axes: Sequence[Axis]) -> bool:
    """Whether an index mixes an output axis with a reduced one."""
    for read in reads_of(*node.exprs):
        for index in read.indices:
            free = free_axes(index)
            if any(a in free for a in node.axes) and any(a in free for a in axes):
                return True
    return False


def _scatter(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    spec = recognise_scatter(axes, node)
    if isinstance(spec, Refusal):
        body.refuse("scatter-add", spec.reason)
        return None
    texts = yield from _operands(body, spec.operands)
    body.note("scatter-add")
    body.reason = spec.reason
    return _whole(scatter_source(spec, texts, body.sizes.text), axes, node)


def _scan(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    spec = recognise_scan(axes, node)
    if isinstance(spec, Refusal):
        body.refuse("scan", spec.reason)
        return None
    texts = yield from _operands(body, spec.operands)
    body.note("scan")
    return _whole(scan_source(spec, texts, body.sizes.text), axes, node)


def _window(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    spec = recognise_window(axes, node)
    if not isinstance(spec, WindowSpec):
        if isinstance(spec, Refusal):
            body.refuse("window", spec.reason)
        return None
    texts = yield from _operands(body, spec.operands)
    body.note("window")
    target = body.names.numbered(body.target)
    for line in window_source(spec, texts, target, body.sizes.text):
        left, _, right = line.partition(" = ")
        body.statements.append(Statement(body.label, left, right))
    return Value(name(target), axes, (node.dtype, False))


def _convolution(body: Body, node: Reduce, axes: tuple[Axis, ...], guards: Sequence[Expr]) -> Search:
    spec = recognise_convolution(axes, node, guards)
    if isinstance(spec, Refusal):
        body.refuse("convolution", spec.reason)
        return None
    if body.platform == "cpu" and _is_depthwise(spec):
        body.refuse(
            "convolution", "no channels to contract: slices, multiplied and added, are faster on the CPU"
        )
        return None
    texts = yield from _operands(body, spec.operands)
    body.note("convolution")
    return _whole(convolution_source(spec, texts, body.sizes.text), axes, node)


def _is_depthwise(spec: ConvolutionSpec) -> bool:
    """Whether each output feature sees one input feature, through a window or onto outputs that are few."""
    layout = spec.dimension_numbers[1]
    shape = [known(e) for e in (spec.rhs_shape or spec.rhs.shape)]
    sizes = dict(zip(layout, shape, strict=True))
    spatial = [e for letter, e in sizes.items() if letter not in "OI"]
    if sizes["I"] != 1 or (spec.groups is ONE and sizes["O"] != 1):
        return False
    return None not in spatial and prod(e or 0 for e in spatial) <= _FEW_TAPS


def _operands(body: Body, arrays: Sequence[Array]) -> Generator[tuple[Expr, Scope], Value, list[str]]:
    """The texts of arrays: names, or short expressions that bind like calls."""
    texts: list[str] = []
    for array in arrays:
        value = yield array.body, Scope(array.axes)
        value = body.cast(value, array.dtype)
        whole = Value(full(body, value, array.axes), array.axes, value.kind)
        short = len(whole.code.text) <= _SHORT and whole.code.strength == CALL
        texts.append((whole if short else body.named(whole)).code.text)
    return texts


def _whole(text: str, axes: tuple[Axis, ...], node: Reduce) -> Value:
    return Value(Code(text, 0), axes, (node.dtype, False))
