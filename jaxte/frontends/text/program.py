"""A text of formulas as a program: what each line defines, what it reads, and what the inputs and outputs are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from jaxte.frontends.text.convert import Converter
from jaxte.frontends.text.tree import Element, Name, Node, Reduction, Source, Span, nodes_of
from jaxte.frontends.text.vocabulary import DTYPES, END, NUMBERS
from jaxte.frontends.text.words import Line, in_python, lines_of, parsed
from jaxte.lang.errors import DefinitionError, nearest

_FORM = "a formula is NAME[axes] = expression, as in Y[i] = sum[k](A[i, k] * x[k])"


@dataclass(frozen=True, eq=False)
class Formula:
    """``name[axes] = body``, with the ranges that stand behind it."""

    name: Name
    axes: tuple[Name, ...]
    body: Node
    ranges: Mapping[str, tuple[Node | None, Node]]


@dataclass(frozen=True, eq=False)
class Declaration:
    """``name: dtype(shape)``: what an input is."""

    name: Name
    dtype: str
    shape: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """Formulas in an order in which each may be computed.

    Attributes:
        inputs: the tensors that no formula defines, in the order in which the text names them.
        outputs: the names of those that no formula reads.
    """

    formulas: tuple[Formula, ...]
    declarations: Mapping[str, Declaration]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def program(source: Source, sizes: Collection[str], functions: Collection[str]) -> Program:
    """The program that a text is.

    Args:
        sizes: names that are sizes.
        functions: names of functions and reductions that were given.
    """
    formulas: list[Formula] = []
    declarations: dict[str, Declaration] = {}
    for line in lines_of(source):
        read = _statement(source, line, functions)
        if isinstance(read, Declaration):
            declarations[read.name.name] = read
        else:
            if any(read.name.name == f.name.name for f in formulas):
                raise read.name.span.fault(
                    f"{read.name.name} is defined twice; give one of them another name"
                )
            formulas.append(read)
    if not formulas:
        raise DefinitionError(f"te.define of a text without a formula; {_FORM}")
    inputs = dict.fromkeys(declarations) | dict.fromkeys(_inputs(formulas, sizes, declarations))
    read_names = {
        _name_of(n)
        for f in formulas
        for n, axes, _ in _scoped(f)
        if isinstance(n, Element) or n.name not in axes
    }
    defined = [f.name.name for f in formulas]
    kept = tuple(n for n in inputs if n not in defined)
    return Program(tuple(formulas), declarations, kept, tuple(n for n in defined if n not in read_names))


def _statement(source: Source, line: Line, functions: Collection[str]) -> Formula | Declaration:
    python = in_python(source, line.tokens)
    converter = Converter(python, functions, functions)
    for word, why in ((":=", "a definition is written with ="), ("->", "-> belongs to te.einsum")):
        for token in line.tokens:
            if token.text == word:
                raise Span(source, token.start, token.start + 2).fault(f"{why}; {_FORM}")
    try:
        statement = parsed(python, "exec").body
    except DefinitionError:
        if any(token.text in ("=", "…") or token.text.startswith(":") for token in line.tokens):
            raise
        whole = Span(source, line.tokens[0].start, line.tokens[-1].start + line.tokens[-1].length)
        raise whole.fault(f"this is no formula; {_FORM}") from None
    match statement:
        case [ast.Assign(targets=[target], value=value)]:
            return _formula(source, converter, target, value, line)
        case [ast.AnnAssign(target=ast.Name() as target, annotation=annotation)]:
            return _declaration(converter, target, annotation)
        case [ast.AugAssign() as wrong]:
            raise converter.span(wrong.target).fault(
                "a tensor is defined once, with =; a sum is written sum[k](X[k])"
            )
        case [ast.Expr(value=ast.Compare(ops=[ast.Eq(), *_]) as wrong)]:
            raise converter.span(wrong).fault(f"== compares; {_FORM}")
        case [ast.Expr(value=ast.Compare(ops=[ast.Lt()], comparators=[ast.UnaryOp(op=ast.USub())]) as wrong)]:
            raise converter.span(wrong).fault(f"a definition is written with =, not <-; {_FORM}")
        case [ast.Return() as wrong]:
            raise converter.span(wrong).fault("the results are what no formula reads, without a return")
        case [_, wrong, *_]:
            raise converter.span(wrong).fault("each formula has a line of its own")
        case [wrong]:
            raise converter.span(wrong).fault(f"this is no formula; {_FORM}")
    raise python.span(0, 1).fault(f"this is no formula; {_FORM}")


def _formula(source: Source, converter: Converter, target: ast.expr, value: ast.expr, line: Line) -> Formula:
    match target:
        case ast.Name():
            name, axes = converter.name(target), []
        case ast.Subscript(value=ast.Name() as base, slice=ast.Tuple(elts=axes)):
            name = converter.name(base)
        case ast.Subscript(value=ast.Name() as base, slice=axis):
            name, axes = converter.name(base), [axis]
        case _:
            raise converter.span(target).fault(f"the left side is a name with axes; {_FORM}")
    own: list[Name] = []
    for axis in axes:
        if isinstance(axis, ast.Subscript):
            raise converter.span(axis).fault(
                "the left side has axes only; what goes to positions that are data is a sum over those that go to one, "
                "Y[j] = sum[i](x[i], where=I[i] == j)"
            )
        if not isinstance(axis, ast.Name):
            raise converter.span(axis).fault(
                "the left side has axes only, each by its name; put arithmetic into the reads on the right"
            )
        found = converter.name(axis)
        if any(found.name == other.name for other in own):
            raise found.span.fault(
                f"{found.name} stands twice on the left; give each axis of {name.name} a name of its own"
            )
        own.append(found)
    body = converter.within([n.name for n in own]).expression(value)
    reduced = {r.name.name for n in nodes_of(body) if isinstance(n, Reduction) for r in n.axes}
    formula = Formula(name, tuple(own), body, dict(_ranges(source, line, reduced | {n.name for n in own})))
    for node, known, _ in _scoped(formula):
        if _name_of(node) == name.name and (isinstance(node, Element) or node.name not in known):
            raise node.span.fault(
                f"{name.name} is what this formula defines, and cannot be read in it; te.recurrence defines a tensor that reads itself"
            )
    return formula


def _ranges(
    source: Source, line: Line, axes: Collection[str]
) -> Iterator[tuple[str, tuple[Node | None, Node]]]:
    """The ranges behind a formula, ``(b < 8, 2 <= k < 5)``."""
    if not line.ranges:
        return
    python = in_python(source, line.ranges)
    converter = Converter(python)
    found = parsed(python, "eval").body
    for part in found.elts if isinstance(found, ast.Tuple) else [found]:
        reduced = converter.range(part)
        if reduced.hi is None:
            raise reduced.span.fault("the range of an axis is written k < 3, or 2 <= k < 5")
        if reduced.name.name not in axes:
            raise reduced.span.fault(
                f"{reduced.name.name} is no axis of this formula{nearest(reduced.name.name, axes)}"
            )
        yield reduced.name.name, (reduced.lo, reduced.hi)


def _declaration(converter: Converter, target: ast.Name, annotation: ast.expr) -> Declaration:
    name = converter.name(target)
    match annotation:
        case ast.Call(func=ast.Name(id=dtype), args=shape, keywords=[]):
            if dtype not in DTYPES:
                raise converter.span(annotation.func).fault(f"{dtype} is no dtype{nearest(dtype, DTYPES)}")
            return Declaration(name, dtype, tuple(converter.expression(e) for e in shape))
    raise converter.span(annotation).fault(f"what a tensor is, is written {name.name}: float32(8, 34)")


def _name_of(node: Element | Name) -> str:
    return node.tensor if isinstance(node, Element) else node.name


def _inputs(
    formulas: Collection[Formula], sizes: Collection[str], declared: Collection[str]
) -> Iterator[str]:
    """The names that are inputs, with an error for those that can be none."""
    later = {f.name.name: f for f in formulas}
    known: set[str] = set()
    for formula in formulas:
        for node, axes, within in _scoped(formula):
            name = _name_of(node)
            is_axis = isinstance(node, Name) and name in axes
            if is_axis or name in known or name in sizes:
                continue
            if name in later:
                raise node.span.fault(f"{name} is defined further down; put its formula above this one")
            if isinstance(node, Name) and (name in NUMBERS or (within and name == END)):
                continue
            if isinstance(node, Name) and within and name not in declared:
                raise _no_axis(node, axes)
            yield name
        known.add(formula.name.name)


def _no_axis(node: Name, axes: Collection[str]) -> Exception:
    close = nearest(node.name, axes)
    return node.span.fault(
        f"{node.name} is no axis of this formula{close or f': put it on the left side, or reduce over it with sum[{node.name}](...); a size is given as a keyword, {node.name}=...'}"
    )


def _scoped(formula: Formula) -> Iterator[tuple[Element | Name, frozenset[str], bool]]:
    """Every name of a tensor, axis or size, the axes that are known where it stands, and whether it stands in an index."""
    stack: list[tuple[Node, frozenset[str], bool]] = [
        (formula.body, frozenset(a.name for a in formula.axes), False)
    ]
    while stack:
        node, axes, within = stack.pop()
        if isinstance(node, (Element, Name)):
            yield node, axes, within
        if isinstance(node, Reduction):
            axes |= {r.name.name for r in node.axes}
        inside = within or isinstance(node, Element)
        stack.extend((child, axes, inside) for child in reversed(node.children))
