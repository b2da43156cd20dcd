"""From Python's syntax tree to the tree of formulas: what the tables of :mod:`jaxte.frontends.text.vocabulary` name is part of the language, and everything else is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxte.frontends.text.tree import Element, Name, Node, Number, Operation, Reduced, Reduction, Source, Span
from jaxte.frontends.text.vocabulary import (
    ATTRIBUTES,
    BINARY,
    COMMON,
    COMPARE,
    DTYPES,
    FUNCTIONS,
    REDUCERS,
    REFUSED,
    SIZE,
    UNARY,
)
from jaxte.frontends.text.words import Python, as_written, parsed
from jaxte.lang.errors import IN_FORMULAS, nearest


@dataclass(frozen=True)
class Converter:
    """Expressions of one piece of Python.

    Attributes:
        functions, reducers: names that may be called, beside those of the language.
        axes: that are known where the expression stands.
    """

    python: Python
    functions: Collection[str] = ()
    reducers: Collection[str] = ()
    axes: frozenset[str] = frozenset()

    def within(self, axes: Iterable[str]) -> Converter:
        """The same where ``axes`` are known, too."""
        return replace(self, axes=self.axes | set(axes))

    def span(self, node: Any) -> Span:
        start = self.offset(node.lineno, node.col_offset)
        return self.python.span(start, self.offset(node.end_lineno, node.end_col_offset))

    def offset(self, line: int, column: int) -> int:
        """The position of a character, which Python counts in bytes within its line."""
        lines = self.python.text.split("\n")
        before = sum(len(own) + 1 for own in lines[: line - 1])
        return before + len(lines[line - 1].encode()[:column].decode(errors="ignore"))

    def expression(self, node: ast.expr) -> Node:
        rule = _RULES.get(type(node))
        if rule is None:
            raise self.refused(node)
        converted: Node = rule(self, node)
        return converted

    def refused(self, node: ast.AST, kind: type | None = None) -> Exception:
        why = REFUSED.get(kind or type(node)) or (  # type: ignore[arg-type]
            "this is no part of formulas, which have numbers, axes, elements X[i, j], arithmetic, comparisons, a if c else b, functions "
            "and reductions sum[k](...)"
        )
        return self.span(node).fault(why)

    def number(self, node: ast.Constant) -> Node:
        if not isinstance(node.value, (bool, int, float, complex)):
            raise self.span(node).fault(f"{node.value!r} is no number; a formula has numbers, not text")
        return Number(self.span(node), node.value)

    def name(self, node: ast.Name) -> Name:
        if node.id.startswith("__"):
            raise self.span(node).fault(f"{node.id} is no name of a formula")
        return Name(self.span(node), as_written(node.id))

    def binary(self, node: ast.BinOp) -> Node:
        if type(node.op) not in BINARY:
            raise self.refused(node, type(node.op))
        args = self.expression(node.left), self.expression(node.right)
        return Operation(self.span(node), BINARY[type(node.op)], args)

    def unary(self, node: ast.UnaryOp) -> Node:
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        if (
            isinstance(node.op, ast.USub)
            and isinstance(operand, Number)
            and not isinstance(operand.value, bool)
        ):
            return Number(self.span(node), -operand.value)
        return Operation(self.span(node), UNARY[type(node.op)], (operand,))

    def joined(self, node: ast.BoolOp) -> Node:
        word = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return self._folded(node, word, [self.expression(v) for v in node.values])

    def compared(self, node: ast.Compare) -> Node:
        """``a < b``; ``a < b < c`` is both of its parts."""
        operands = [self.expression(e) for e in (node.left, *node.comparators)]
        parts: list[Node] = []
        for op, a, b in zip(node.ops, operands[:-1], operands[1:], strict=True):
            if type(op) not in COMPARE:
                raise self.span(node).fault(
                    "`in` and `is` are no part of formulas, which compare with <, <=, ==, !=, >=, >"
                )
            parts.append(Operation(a.span.to(b.span), COMPARE[type(op)], (a, b)))
        return self._folded(node, "logical_and", parts)

    def chosen(self, node: ast.IfExp) -> Node:
        args = (self.expression(node.test), self.expression(node.body), self.expression(node.orelse))
        return Operation(self.span(node), "select", args)

    def subscript(self, node: ast.Subscript) -> Node:
        """An element of a tensor, or one result of a reduction of several values."""
        if isinstance(node.value, ast.Call):
            inner = self.called(node.value)
            part = getattr(node.slice, "value", None)
            if isinstance(inner, Reduction) and isinstance(part, int):
                return replace(inner, span=self.span(node), part=part)
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("T", "mT", "shape"):
            raise self.span(node).fault(ATTRIBUTES[node.value.attr])
        if not isinstance(node.value, ast.Name):
            raise self.span(node).fault(
                "only tensors have elements; give what stands before the bracket a name in a formula of its own"
            )
        listed = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return Element(self.span(node), self.name(node.value).name, tuple(self.expression(i) for i in listed))

    def called(self, node: ast.Call) -> Node:
        match node.func:
            case ast.Name(id=name):
                return self._function(node, name)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._reduction(node, node.func, name)
            case ast.Attribute(attr=name) if name in FUNCTIONS:
                raise self.span(node.func).fault(f"functions are written by their names alone: {name}(...)")
        raise self.span(node.func).fault(
            "only functions of the language are called, by their names: exp(...), or sum[k](...)"
        )

    def _function(self, node: ast.Call, name: str) -> Node:
        here = self.span(node.func)
        if name not in FUNCTIONS and name not in self.functions:
            if name in REDUCERS or name in self.reducers:
                raise here.fault(
                    f"{name} is a reduction, which names its axes in brackets: {name}[k](...){_pairs(name)}"
                )
            close = nearest(name, [*(set(FUNCTIONS) - set(DTYPES)), *self.functions])
            close = (
                f"; {SIZE}"
                if name in ("len", "size")
                else _reduction_called(name) or _written_out(name) or close
            )
            raise here.fault(
                f"{name} is no function of formulas{close or '; those are ' + ', '.join(COMMON) + ' and all others of te, and those given as keywords'}"
            )
        if node.keywords:
            raise self.span(node.keywords[0]).fault(
                f"{name} takes its arguments in their order, without keywords"
            )
        return Operation(self.span(node), name, tuple(self.expression(a) for a in node.args))

    def _reduction(self, node: ast.Call, func: ast.Subscript, name: str) -> Node:
        if name not in REDUCERS and name not in self.reducers:
            close = _written_out(name) or _of_two(name) or nearest(name, [*REDUCERS, *self.reducers])
            raise self.span(func.value).fault(
                f"{name} is no reduction{close or '; those are ' + ', '.join(REDUCERS)}"
            )
        axes = self.ranges(func.slice.elts if isinstance(func.slice, ast.Tuple) else [func.slice])
        inner = self.within(own.name.name for own in axes)
        where, options = None, {}
        for keyword in node.keywords:
            if keyword.arg == "where":
                where = inner.expression(keyword.value)
            elif keyword.arg == "ties" and isinstance(keyword.value, ast.Name):
                options["ties"] = keyword.value.id
            else:
                raise self.span(keyword).fault(
                    f"a reduction has where= and ties= beside its value, not {keyword.arg}="
                )
        args, part = _values(node.args)
        if not args:
            raise self.span(node).fault(f"{name} of nothing; give what is reduced, as in {name}[k](X[k])")
        reduced = tuple(inner.expression(a) for a in args)
        return Reduction(self.span(node), name, axes, reduced, where, part, options)

    def ranges(self, listed: Sequence[ast.expr]) -> tuple[Reduced, ...]:
        """The axes of a reduction; of ``k < i`` the one that is not known yet."""
        known = self.axes | {own.id for own in listed if isinstance(own, ast.Name)}
        found: list[Reduced] = []
        for node in listed:
            found.append(replace(self, axes=known).range(node))
            if any(found[-1].name.name == other.name.name for other in found[:-1]):
                raise found[-1].span.fault(
                    f"{found[-1].name.name} stands twice among the axes of a reduction"
                )
            known |= {found[-1].name.name}
        return tuple(found)

    def range(self, node: ast.expr) -> Reduced:
        """``k``, ``k < n``, ``a <= k``, ``a <= k <= b``: an axis with its bounds."""
        if isinstance(node, ast.Name):
            own = self.name(node)
            return Reduced(own.span, own)
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        ops = [type(op) for op in node.ops] if isinstance(node, ast.Compare) else []
        places = [1] if len(parts) == 3 else list(range(len(parts)))
        names = [n for n in places if isinstance(parts[n], ast.Name)]
        fresh = [n for n in names if self.name(parts[n]).name not in self.axes]  # type: ignore[arg-type]
        if not names or not set(ops) <= {ast.Lt, ast.LtE}:
            raise self.span(node).fault(
                "an axis is expected here, with bounds if it has them: k, k < 3, i - 2 <= k <= i"
            )
        at = (fresh or names)[0]
        lo = None if at == 0 else self._shifted(parts[at - 1], ops[at - 1] is ast.Lt)
        hi = None if at == len(parts) - 1 else self._shifted(parts[at + 1], ops[at] is ast.LtE)
        return Reduced(self.span(node), self.name(parts[at]), lo, hi)  # type: ignore[arg-type]

    def _shifted(self, node: ast.expr, by_one: bool) -> Node:
        value = self.expression(node)
        return Operation(value.span, "add", (value, Number(value.span, 1))) if by_one else value

    def _folded(self, node: ast.expr, word: str, parts: list[Node]) -> Node:
        result = parts[0]
        for part in parts[1:]:
            result = Operation(self.span(node), word, (result, part))
        return result


def _values(args: list[ast.expr]) -> tuple[list[ast.expr], int | None]:
    """What is reduced, and which of its results is meant: ``(a, b)[1]``, as ``te.formula`` writes it."""
    part = None
    if len(args) == 1 and isinstance(args[0], ast.Subscript) and isinstance(args[0].value, ast.Tuple):
        part = getattr(args[0].slice, "value", None)
        args = [args[0].value]
    if len(args) == 1 and isinstance(args[0], ast.Tuple):
        args = args[0].elts
    return args, part if isinstance(part, int) else None


def _written_out(name: str) -> str:
    known = IN_FORMULAS.get(name.lower())
    return f"; {known}" if known else ""


def _reduction_called(name: str) -> str:
    """How a reduction is written that stands with its axis in its name, as in ``sum_k(A[i, k])``."""
    reducer, _, axis = name.partition("_")
    return f"; a reduction is written {reducer}[{axis}](...)" if reducer in REDUCERS and axis else ""


def _of_two(name: str) -> str:
    """The reduction that a misspelled ``maximum[k](...)`` may mean."""
    meant = nearest(name, ("maximum", "minimum")).rpartition(" ")[2][:3]
    return f"; did you mean {meant}[k](...)?" if meant else ""


def _pairs(name: str) -> str:
    return f"; of two values it is {name}imum(a, b)" if name in ("max", "min") else ""


_RULES: Mapping[type, Callable[[Converter, Any], Node]] = {
    ast.Constant: Converter.number,
    ast.Name: Converter.name,
    ast.BinOp: Converter.binary,
    ast.UnaryOp: Converter.unary,
    ast.BoolOp: Converter.joined,
    ast.Compare: Converter.compared,
    ast.IfExp: Converter.chosen,
    ast.Subscript: Converter.subscript,
    ast.Call: Converter.called,
}


def expression_of(source: Source, span: Span) -> Node:
    python = Python(source, source.text[span.start : span.stop], tuple(range(span.start, span.stop)))
    return Converter(python).expression(parsed(python, "eval").body)
