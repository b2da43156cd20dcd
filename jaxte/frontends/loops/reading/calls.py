"""Calls: functions of numbers, arrays that are made, and sums of blocks, which are loops of their own."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.loops.reading.arrays import Arrays, reshaped
from jaxte.frontends.loops.reading.expressions import SPEAKS
from jaxte.frontends.loops.reading.numpy_rules import elementwise, is_in_rows, refuse_truths
from jaxte.frontends.loops.reading.totals import WHOLE
from jaxte.frontends.loops.reading.values import (
    ALLOCATIONS,
    LIBRARIES,
    PRODUCTS,
    REDUCTIONS,
    Allocation,
    Block,
    as_precise,
    check_extents,
    dtype_of,
    function_of,
    place_of,
)
from jaxte.lang import functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.walk import free_axes, reads_of

_CASTS = (float, int, bool, complex)
METHODS = (
    "reshape", "ravel", "flatten", "transpose", "diagonal", "trace", "std", "var", "cumsum", "cumprod",
    "argmax", "argmin",
)  # fmt: skip


class Calls(Arrays):
    """Reads expressions with calls."""

    def call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            if isinstance(base, (Variable, Block)):
                return self.method(base, node)
        target = self.value(node.func)
        return self.called(target, node)

    def called(self, target: Any, node: ast.Call) -> Any:
        name = getattr(target, "__name__", "")
        library = _is_library(target)
        if library and name in ALLOCATIONS:
            return self.allocated(name, node)
        if library and name in ("copy", "array", "asarray"):
            return self._array(name, node)
        if library and name in WHOLE:
            return self.whole(name, [self._whole_argument(a) for a in node.args], self._words(node), node)
        if target is len:
            return (
                self.value(node.args[0]).shape[0]
                if not isinstance(self.value(node.args[0]), tuple)
                else len(self.value(node.args[0]))
            )
        if target is complex and len(node.args) == 2:
            real, imaginary = map(self.number, node.args)
            return real + imaginary * 1j
        if target in _CASTS and len(node.args) == 1:
            own = self.number(node.args[0])
            kind = dtype_of(target, self.default)
            return functions.cast(own, kind) if isinstance(own, Expr) else target(own)
        if target in (min, max) and len(node.args) > 1:
            return self.folded(functions.minimum if target is min else functions.maximum, target, node)
        if (library and name in REDUCTIONS) or target in (sum, min, max):
            return self.reduced(REDUCTIONS[name], name == "mean", [self.operand(node.args[0])], node)
        if library and name in PRODUCTS:
            a, b = (self.operand(x) for x in node.args)
            return self._product_of(name, a, b, node)
        return self.applied(target, node)

    def _product_of(self, name: str, a: Any, b: Any, node: ast.Call) -> Any:
        """``np.name(a, b)``: of vectors in one line where NumPy takes arrays of any shape for such."""
        if not isinstance(a, Block) or not isinstance(b, Block):
            return self.product(a, b, node)
        if name in ("outer", "vdot"):
            a, b = (reshaped(self, node, x, -1) for x in (a, b))
        if name == "outer":
            refuse_truths("np.outer", [a, b])
            return Block((*a.shape, *b.shape), lambda at: a.element(at[:1]) * b.element(at[1:]))
        if name == "vdot":
            a = elementwise(functions.conj, [a])
        if name == "inner" and len(b.shape) == 2:
            b = self.whole("transpose", [b], {}, node)
        return self.product(a, b, node)

    def whole(self, name: str, args: Sequence[Any], words: dict[str, Any], node: Any) -> Any:
        """``np.name(*args, **words)``, where an element of it is an element of its arguments."""
        try:
            signature(WHOLE[name]).bind(self, node, *args, **words)
        except TypeError:
            raise DefinitionError(f"np.{name} is not known with these arguments; write a loop") from None
        found = WHOLE[name](self, node, *args, **words)
        return self._as_laid_out(found, args)

    def _as_laid_out(self, found: Any, args: Sequence[Any]) -> Any:
        """``found``, which NumPy may lay out as the arrays that it is made of."""
        if not isinstance(found, Block) or found.of is not None or len(found.shape) < 2:
            return found
        given = [b for a in args for b in (a if isinstance(a, tuple) else (a,)) if isinstance(b, Block)]
        return found if all(map(is_in_rows, given)) else replace(found, is_laid_out=False)

    def applied(self, target: Any, node: ast.Call) -> Any:
        """A function of scalars, applied to numbers or elements."""
        own = functions.abs if target is abs else functions.power if target is pow else function_of(target)
        args = [self.operand(a) for a in node.args]
        if isinstance(target, np.ufunc) and len(args) > target.nin:
            raise self.fault(
                node.args[target.nin], "an array for the result is no part of te.loops; assign it"
            )
        if own is not None and not node.keywords:
            if not any(isinstance(a, (Expr, Block)) for a in args) and callable(target):
                return target(*args)
            return elementwise(own, args)
        if isinstance(target, type) and issubclass(target, np.generic):
            return elementwise(lambda x: functions.cast(x, target), args)
        label = ast.unparse(node.func)
        raise self.fault(
            node.func,
            f"{label} is no function that te.loops knows; decorate it with @te.loops too, or use one of numpy by its name",
        )

    def _array(self, name: str, node: ast.Call) -> Any:
        """An array of a list, a copy of another one, or the same array."""
        own, words = self.value(node.args[0]), self._words(node)
        kind = words.get("dtype", self.value(node.args[1]) if len(node.args) > 1 else None)
        if name == "asarray" and kind is None and isinstance(own, (Variable, Block)):
            return own
        found = self.listed(own, node) if isinstance(own, tuple) else self.as_operand(own, node.args[0])
        if kind is None:
            return self._as_laid_out(self.copied(found), [found])
        dtype = dtype_of(kind, self.default)
        return elementwise(lambda x: functions.cast(x, dtype), [found])

    def _whole_argument(self, node: ast.expr) -> Any:
        own = self.value(node)
        return self.as_operand(own, node) if isinstance(own, Variable) else own

    def _words(self, node: ast.Call) -> dict[str, Any]:
        return {str(k.arg): self.value(k.value) for k in node.keywords}

    def folded(self, own: Callable[..., Any], target: Callable[..., Any], node: ast.Call) -> Any:
        args = [self.operand(a) for a in node.args]
        if not any(isinstance(a, (Expr, Block)) for a in args):
            return target(args)
        found = args[0]
        for other in args[1:]:
            found = elementwise(own, [found, other])
        return found

    def allocated(self, name: str, node: ast.Call) -> Allocation:
        words = {k.arg: k.value for k in node.keywords}
        args = list(node.args)
        like = name.endswith("_like")
        shape = self.value(args.pop(0) if args else words["shape"])
        own, in_rows = None, True
        if like:
            source = self.as_operand(shape, node)
            own = (
                source.element([as_expr(0) for _ in source.shape]).dtype
                if isinstance(source, Block)
                else None
            )
            in_rows = not isinstance(source, Block) or is_in_rows(source)
            shape = shape.shape
        shape = shape if isinstance(shape, tuple) else (shape,)
        fill: Any = {"zeros": 0, "ones": 1, "empty": None}.get(name.removesuffix("_like"))
        if name.startswith("full"):
            fill = self.number(args.pop(0) if args else words["fill_value"])
            number = as_expr(fill)
            own = own or (as_precise(number.dtype, self.default) if number.weak else number.dtype)
        kind = words.get("dtype", args[0] if args else None)
        dtype = own if kind is None else dtype_of(self.value(kind), self.default)
        for extent in (self.fixed(e, node) for e in shape):
            if isinstance(extent, Expr) and (free_axes(extent) or reads_of(extent)):
                self.as_known(node)
                raise self.fault(
                    node, "the shape of an array depends on a counter or on data; make it as large as it gets"
                )
        return Allocation(shape, dtype, fill, in_rows)

    def copied(self, own: Any) -> Any:
        return Block(own.shape, own.element) if isinstance(own, Block) else own

    def method(self, base: Variable | Block, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        own = self.as_operand(base, node.func.value)
        if name == "copy":
            return self.copied(own)
        if name in REDUCTIONS:
            return self.reduced(REDUCTIONS[name], name == "mean", [own], node)
        if name in METHODS:
            args = list(map(self._whole_argument, node.args))
            given = [tuple(args)] if name == "transpose" and len(args) > 1 else args  # the axes, one by one
            return self.whole(name, [own, *given], self._words(node), node)
        if name == "dot":
            return self.product(own, self.operand(node.args[0]), node)
        if name == "astype":
            kind = dtype_of(self.value(node.args[0]), self.default)
            return elementwise(lambda x: functions.cast(x, kind), [own])
        raise self.fault(node.func, f".{name}() of an array is no part of te.loops; {SPEAKS}")

    # --- sums of blocks, which are loops of their own

    def product(self, a: Any, b: Any, node: ast.AST) -> Any:
        """``a @ b``."""
        if not isinstance(a, Block) or not isinstance(b, Block):
            return elementwise(operator.mul, [a, b])
        refuse_truths("@", [a, b])
        if len(a.shape) > 2 or len(b.shape) > 2:
            raise self.fault(node, "@ of more than two axes; write the loops")
        check_extents(a.shape[-1], b.shape[0])
        rows, columns = a.shape[:-1], b.shape[1:]

        def term(at: Sequence[Expr]) -> Expr:
            *outer, k = at
            return a.element([*outer[: len(rows)], k]) * b.element([k, *outer[len(rows) :]])

        return self.summed("sum", Block((*rows, *columns, a.shape[-1]), term), 1, node)

    def reduced(self, op: str, mean: bool, args: Sequence[Any], node: ast.Call) -> Any:
        own = args[0]
        given = (
            node.args[1:]
            if not isinstance(node.func, ast.Attribute) or _is_library(self.value(node.func.value))
            else node.args
        )
        words = {k.arg: k.value for k in node.keywords}
        if set(words) - {"axis", "keepdims"} or len(given) > 1:
            raise self.fault(
                node, "of a reduction of arrays, axis= and keepdims= are known here; write the loops"
            )
        axis_node = words.get("axis", given[0] if given else None)
        axis = None if axis_node is None else self.value(axis_node)
        if not isinstance(own, Block):
            return own
        rank = len(own.shape)
        chosen = (
            range(rank)
            if axis is None
            else [place_of(a, rank) for a in (axis if isinstance(axis, tuple) else (axis,))]
        )
        rest = [n for n in range(rank) if n not in chosen]
        order = [*rest, *chosen]

        def element(at: Sequence[Expr]) -> Expr:
            return own.element([at[order.index(n)] for n in range(rank)])

        found = self.summed(op, Block(tuple(own.shape[n] for n in order), element), len(chosen), node)
        if mean:
            count: Any = as_expr(1)
            for n in chosen:
                count = count * own.shape[n]
            found = elementwise(lambda x: x / functions.cast(count, self.default), [found])
        found = self._as_laid_out(found, args)
        if "keepdims" not in words or not self.value(words["keepdims"]):
            return found
        short = tuple(as_expr(1) if n in chosen else e for n, e in enumerate(own.shape))
        return Block(
            short,
            lambda at: found.element([at[n] for n in rest]) if rest else found,
            is_laid_out=is_in_rows(own),
        )

    @abstractmethod
    def summed(self, op: str, block: Block, count: int, node: ast.AST) -> Any:
        """The reduction of the last ``count`` axes of ``block``."""


def _is_library(target: Any) -> bool:
    """Whether ``target`` is a library, or a function of one, and no value of the program."""
    if isinstance(target, ModuleType):
        return target.__name__.split(".")[0] in LIBRARIES
    if isinstance(target, (Variable, Block, Expr)):
        return False
    module = getattr(target, "__module__", None) or ("numpy" if isinstance(target, np.ufunc) else "")
    return module.split(".")[0] in LIBRARIES
