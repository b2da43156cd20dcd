"""The symbolic sizes of a program, each read off the shape of one of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang.expr import Expr, Read, Var
from jaxte.lang.walk import postorder
from jaxte.lower.code.identifiers import Names
from jaxte.lower.printing.printer import Printer
from jaxte.meaning.feeds import Told, sizes_in, told_sizes
from jaxte.sets.affine import from_linear
from jaxte.tensors.recurrences.node import definitions_in
from jaxte.tensors.tensor import Tensor


def read_sizes(
    params: Sequence[Tensor], idents: Mapping[Tensor, str], names: Names, order: Sequence[Tensor]
) -> tuple[dict[Var, str], tuple[tuple[str, str], ...]]:
    """The symbolic sizes, each read off the shape of a parameter."""
    told = told_sizes([param.shape for param in params])
    used = _sizes_used(order, frozenset(params))
    for size in reversed(told):
        used.update(sizes_in([from_linear(size.rest)]) if size.size in used else ())
    found: dict[Var, str] = {}
    reads: list[tuple[str, str]] = []
    for size in told:
        if size.size in used:
            text = _size_read(size, f"{idents[params[size.array]]}.shape[{size.axis}]", Printer(found))
            found[size.size] = names.new(size.size.name)
            reads.append((found[size.size], text))
    return found, tuple(reads)


def _sizes_used(order: Sequence[Tensor], given: frozenset[Tensor]) -> set[Expr]:
    """The sizes that the definitions mention, or the shapes of what they read."""
    found: set[Expr] = set()
    for tensor in order:
        exprs = [e for e in tensor.shape if isinstance(e, Expr)]
        for own in definitions_in([] if tensor in given else [tensor]):
            exprs.append(own.body)
            exprs += [e for n in postorder(own.body) for e in _extents_at(n)]
        found |= {n for n in postorder(*exprs) if isinstance(n, Var)}
    return found


def _extents_at(node: Expr) -> list[Expr]:
    if isinstance(node, Read):
        return [e for e in node.tensor.shape if isinstance(e, Expr)]
    axes = getattr(node, "axes", ())
    return [e for axis in axes for e in (axis.lo, axis.hi)]


def _size_read(told: Told, shape: str, printer: Printer) -> str:
    """The code of a size, by an extent that is ``shape`` at run time: ``(x.shape[0] - 1) // 2`` for ``2 * n + 1``."""
    rest = told.rest
    text = shape
    if rest.terms:
        text = f"{shape} - ({printer.text(from_linear(rest))})"
    elif rest.constant:
        text = f"{shape} - {rest.constant}" if rest.constant > 0 else f"{shape} + {-rest.constant}"
    if told.factor == 1:
        return text
    return f"{text} // {told.factor}" if text is shape else f"({text}) // {told.factor}"
