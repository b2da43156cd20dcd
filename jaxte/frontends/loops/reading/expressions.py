"""Expressions of a program: Python's syntax tree as numbers, index expressions, elements of variables, and blocks of elements."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.frames import Frame, Redo, is_truth, truth
from jaxte.frontends.loops.reading.numpy_rules import computed, elementwise, viewed
from jaxte.frontends.loops.reading.recorder import Recorder
from jaxte.frontends.loops.reading.values import Allocation, Block, is_number, is_static
from jaxte.lang import functions
from jaxte.lang.errors import DefinitionError, JaxteError, nearest
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.affine import normal
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.inputs import constant
from jaxte.tensors.tensor import Tensor

BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
COMPARE: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
    ast.Lt: (operator.lt, functions.less), ast.LtE: (operator.le, functions.less_equal),
    ast.Gt: (operator.gt, functions.greater), ast.GtE: (operator.ge, functions.greater_equal),
    ast.Eq: (operator.eq, functions.equal), ast.NotEq: (operator.ne, functions.not_equal),
}  # fmt: skip
_WIDE = ("float64", "complex128", "int64")


class Expressions(ABC):
    """Reads the expressions of one function."""

    forced: set[object]  # names that are variables, whatever they are given

    def __init__(self, frame: Frame, recorder: Recorder, default: str) -> None:
        self.frame = frame
        self.recorder = recorder
        self.default = default

    def fault(self, node: ast.AST, message: str, kind: type[DefinitionError] = DefinitionError) -> Exception:
        return self.frame.text.fault(node, message, kind)

    def value(self, node: ast.expr) -> Any:
        """What ``node`` stands for."""
        rule = _RULES.get(type(node))
        if rule is None:
            raise self.fault(node, f"{said(node)} is no part of te.loops; {SPEAKS}")
        try:
            return getattr(self, rule)(node)
        except (JaxteError, Redo) as error:
            if isinstance(error, Redo) or "\n" in str(error):
                raise
            raise self.fault(node, str(error)) from None
        except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
            raise self.fault(node, str(error)) from None

    def number(self, node: ast.expr) -> Any:
        """A number: static, or an expression."""
        return self.as_number(self.value(node), node)

    def as_number(self, found: Any, node: ast.AST) -> Any:
        if isinstance(found, Variable) and not found.shape:
            return self.read(found, (), node)
        if not is_number(found):
            raise self.fault(node, "a number is wanted here, not an array; index it, as in x[i]")
        return found

    def as_known(self, node: ast.expr) -> None:
        """Asks for a reading in which the integers behind ``node`` are numbers that each statement changes; where they are data already, there is none."""
        for name in self.frame.text.behind(node):
            own, key = self.frame.names.get(name), (self.frame.number, "known", name)
            if isinstance(own, Variable) and not own.shape and own.initial is None and key not in self.forced:
                raise Redo(key)

    def fixed(self, found: Any, node: ast.AST) -> Any:
        """``found``, which a position, a bound or a size is; of counters in another way than in a sum, as ``2**i``, the loops are written out."""
        if isinstance(found, Expr) and not reads_of(found) and not is_static(found):
            for axis in free_axes(found):
                if axis in self.recorder.short:
                    raise Redo(self.recorder.short[axis])
            raise self.fault(
                node,
                "a position or a bound is a sum of multiples of counters and sizes; of another expression of counters, loops over at most 64 known numbers are "
                "written out, and this one is longer, or moves",
            )
        return found

    def operand(self, node: ast.expr) -> Any:
        """A number or a block."""
        return self.as_operand(self.value(node), node)

    def as_operand(self, found: Any, node: ast.expr) -> Any:
        if isinstance(found, Variable):
            return self.block(found, node) if found.shape else self.read(found, (), node)
        if isinstance(found, Allocation) and found.fill is not None:
            fill = as_expr(functions.cast(found.fill, found.dtype or self.default))
            return Block(tuple(map(as_expr, found.shape)), lambda at: fill)
        if not is_number(found) and not isinstance(found, Block):
            raise self.fault(node, "a number or an array is wanted here")
        return found

    def read(self, variable: Variable, indices: Sequence[Expr], node: ast.AST) -> Read:
        return self.recorder.read(variable, indices, self.frame.text.span(node))

    def block(self, variable: Variable, node: ast.AST) -> Block:
        """The whole of a variable."""
        shape = tuple(as_expr(e) for e in variable.shape)
        return Block(
            shape, lambda at: self.read(variable, at, node), variable, is_laid_out=variable.is_laid_out
        )

    # --- the kinds of expressions

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        names, text = self.frame.names, self.frame.text
        if node.id in names:
            return names[node.id]
        if node.id in self.frame.ended:
            key = (self.frame.number, node.id)
            if node.id in text.stores and key not in self.forced:
                raise Redo(key)
            raise self.fault(node, self.frame.ended[node.id])
        if node.id in text.stores:
            raise self.fault(node, f"{node.id} is read before it is given a value; assign it first")
        if node.id in text.names:
            return self.from_outside(text.names[node.id], node.id)
        raise self.fault(
            node, f"{node.id} is no name that is known here{nearest(node.id, [*names, *text.stores])}"
        )

    def attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, (Variable, Block)):
            if node.attr == "shape":
                return tuple(base.shape)
            if node.attr == "ndim":
                return len(base.shape)
            if node.attr == "size":
                found = as_expr(1)
                for extent in base.shape:
                    found = found * extent
                return normal(found)
            if node.attr == "dtype" and isinstance(base, Variable):
                return base.dtype
            if node.attr == "T":
                own = self.as_operand(base, node.value)
                return viewed(own, own.shape[::-1], lambda at: list(at)[::-1])
            raise self.fault(node, f".{node.attr} of an array is no part of te.loops; {SPEAKS}")
        if isinstance(base, ModuleType) or not isinstance(base, (Expr, Tensor)):
            if isinstance(base, tuple):
                raise self.fault(
                    node, "a list stays as it is; make an array by np.zeros, and write its elements"
                )
            return self.from_outside(getattr(base, node.attr), node.attr)
        raise self.fault(node, f".{node.attr} is no part of te.loops")

    def from_outside(self, value: Any, name: str) -> Any:
        """What a name of the module means: an array of numbers is one that no statement may write."""
        if isinstance(value, (Variable, Tensor, Expr, type)):
            return value
        is_array = hasattr(value, "__array__") and bool(getattr(value, "ndim", 0))
        return self.outside(value, name) if is_array else value

    def outside(self, value: Any, name: str) -> Variable:
        """The numbers of ``value``, which are the same at each call; NumPy's, doubles where nobody says otherwise, stay these beside doubles."""
        kind = str(np.asarray(value).dtype)
        own = constant(value, name, kind if kind in _WIDE and self.default == "float64" else None)
        key = ("outside", name, own.shape, np.asarray(value).tobytes())
        found = self.recorder.variable(key, name, own.shape, own.dtype, own)
        found.is_known()
        return found

    def tuple(self, node: ast.Tuple | ast.List) -> Any:
        return tuple(self.value(e) for e in node.elts)

    def binary(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.MatMult):
            return self.product(self.operand(node.left), self.operand(node.right), node)
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(a, tuple) or isinstance(b, tuple):
            return BINARY[type(node.op)](a, b)
        a, b = self.as_operand(a, node.left), self.as_operand(b, node.right)
        found = computed(node.op, BINARY[type(node.op)], [a, b])
        return normal(found) if isinstance(found, Expr) and is_static(found) else found

    def unary(self, node: ast.UnaryOp) -> Any:
        own = self.operand(node.operand)
        if isinstance(node.op, ast.UAdd):
            return own
        if isinstance(node.op, ast.Not):
            return not own if not isinstance(own, Expr) else functions.logical_not(truth(own))
        return computed(node.op, operator.neg if isinstance(node.op, ast.USub) else operator.invert, [own])

    def joined(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``, of which the later parts are evaluated only where the earlier ones leave it open."""
        is_and = isinstance(node.op, ast.And)
        found = self.number(node.values[0])
        for part in node.values[1:]:
            test = truth(found)
            if isinstance(test, bool):
                if test is not is_and:
                    return found
                found = self.number(part)
                continue
            with self.recorder.inside(as_expr(test) if is_and else functions.logical_not(test)):
                other = self.number(part)
            if not (is_truth(found) and is_truth(other)):
                found = (
                    functions.select(test, other, found) if is_and else functions.select(test, found, other)
                )
            elif reads_of(as_expr(other)) and is_decidable(as_expr(found)):
                table = (found, other, False) if is_and else (found, True, other)
                found = functions.select(*table)
            else:
                found = (functions.logical_and if is_and else functions.logical_or)(found, other)
        return found

    def compared(self, node: ast.Compare) -> Any:
        if any(type(op) not in COMPARE for op in node.ops):
            if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
                a, b = self.value(node.left), self.value(node.comparators[0])
                return (a is b) == isinstance(node.ops[0], ast.Is)
            raise self.fault(node, "in and not in are no part of te.loops")
        left, found = self.operand(node.left), None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.operand(right_node)
            static = not isinstance(left, (Expr, Block)) and not isinstance(right, (Expr, Block))
            one = elementwise(COMPARE[type(op)][0 if static else 1], [left, right])
            if isinstance(one, Const):
                one = bool(one.value)
            found = (
                one
                if found is None
                else (found and one if isinstance(found, bool) else functions.logical_and(found, one))
            )
            left = right
        return found

    def chosen(self, node: ast.IfExp) -> Any:
        test = truth(self.number(node.test))
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        with self.recorder.inside(test):
            taken = self.number(node.body)
        with self.recorder.inside(functions.logical_not(test)):
            other = self.number(node.orelse)
        return functions.select(test, taken, other)

    @abstractmethod
    def product(self, a: Any, b: Any, node: ast.AST) -> Any:
        """``a @ b``."""


SPEAKS = "it has loops, if, assignments, arithmetic, elements and slices of arrays, np.zeros and the like, and the functions of numpy on numbers"
_WORDS: dict[type, str] = {
    ast.ClassDef: "a class", ast.Expr: "an expression whose value nobody takes", ast.NamedExpr: ":=", ast.Dict: "a dictionary", ast.Set: "a set",
    ast.DictComp: "a dictionary", ast.SetComp: "a set", ast.JoinedStr: "a formatted string", ast.Starred: "*", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.Await: "await", ast.Import: "import", ast.ImportFrom: "import", ast.Raise: "raise", ast.Match: "match", ast.Nonlocal: "nonlocal",
}  # fmt: skip


def said(node: ast.AST) -> str:
    """What a person calls a kind of statement or expression."""
    return _WORDS.get(type(node), type(node).__name__)


_RULES: dict[type, str] = {
    ast.Constant: "constant", ast.Name: "name", ast.Attribute: "attribute", ast.Tuple: "tuple", ast.List: "tuple", ast.BinOp: "binary",
    ast.ListComp: "comprehension", ast.GeneratorExp: "comprehension", ast.Lambda: "function", ast.UnaryOp: "unary", ast.BoolOp: "joined", ast.Compare: "compared", ast.IfExp: "chosen", ast.Subscript: "subscript", ast.Call: "call",
}  # fmt: skip
