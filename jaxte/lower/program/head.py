"""The head of an emitted function: the formulas of its docstring, and its symbolic sizes, each read off the shape of a parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from jaxte.lang.expr import Expr, Read, Var
from jaxte.lang.text import definition_text
from jaxte.lang.walk import postorder
from jaxte.lower.code.lines import Names, docstring_text
from jaxte.lower.printing.printer import Printer
from jaxte.meaning.feeds import Told, sizes_in, told_sizes
from jaxte.sets.affine import from_linear
from jaxte.tensors.recurrences.node import Recurrent, definitions_in
from jaxte.tensors.tensor import Tensor

_LONGEST = 600  # characters of a formula in a docstring


def formulas(
    order: Sequence[Tensor], params: Sequence[Tensor], idents: Mapping[Tensor, str]
) -> Iterator[str]:
    """The definition of each tensor of ``order`` that is computed, as text that is safe in a docstring.

    Tensors of one label are called as in the code, by ``idents``, which tells them apart.
    """
    given = frozenset(params)
    computed = [t for t in order if t not in given]
    own = definitions_in(computed)
    whole = _states(computed)
    read = (t for tensor in own for t in tensor.inputs)
    shown = dict.fromkeys(whole.get(t, t) for t in (*params, *own, *read))
    labels = Counter(t.name for t in shown)
    written = {idents[t]: t for t in shown if t in idents}
    called: dict[Tensor, str] = {}
    for tensor in shown:
        if labels[tensor.name] > 1 or written.get(tensor.name, tensor) is not tensor:
            called[tensor] = idents.get(tensor) or _free_name(tensor, {*labels, *written, *called.values()})
    called |= {part: called[t] for part, t in whole.items() if t in called}
    for tensor in own:
        safe = docstring_text(
            definition_text(called.get(tensor, tensor.name), tensor.axes, tensor.body, called)
        )
        yield safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


def _states(tensors: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """What stands for a tensor of a recurrence in its definition, and the definition itself, by that tensor."""
    found: dict[Tensor, Tensor] = {}
    for tensor in tensors:
        if isinstance(tensor, Recurrent):
            own = tensor.group
            for state, definition, whole in zip(own.states, own.definitions, own.tensors, strict=True):
                found |= {state: whole, definition: whole}
            found |= _states(own.inside)
    return found


def _free_name(tensor: Tensor, taken: set[str]) -> str:
    """A name for what is no variable of the code, as it is part of what reads it."""
    return next(name for n in count(1) if (name := f"{tensor.name}_{n}") not in taken)


def read_sizes(
    params: Sequence[Tensor], idents: Mapping[Tensor, str], names: Names, order: Sequence[Tensor]
) -> tuple[dict[Var, str], tuple[tuple[str, str], ...]]:
    """The symbolic sizes, each read off the shape of a parameter."""
    told = told_sizes([param.shape for param in params])
    used = _sizes_used(order, frozenset(params)) if told else set()
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
