"""What NumPy's operators make of truths, and what they refuse: ``-`` of two of them, and a part of an array that would be of another kind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from jaxte.frontends.loops.layout import elementwise
from jaxte.frontends.loops.values import Block
from jaxte.lang import dtypes, functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, Read, as_expr
from jaxte.lang.walk import reads_of

_COUNT = "write int(...) or .astype(int) around each to count, or & and | to combine them"
_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("truths", lambda d: d == "bool"),
    ("integers", dtypes.is_integer),
    ("floats", dtypes.is_float),
    ("complex numbers", dtypes.is_complex),
)


def first_of(value: Any) -> Expr:
    """One element of an operand, which says its dtype."""
    return as_expr(value.element([as_expr(0)] * len(value.shape)) if isinstance(value, Block) else value)


def computed(op: ast.operator | ast.unaryop, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function``, which ``op`` stands for, of ``args``: truths of positions are Python's, and numbers, those of data are NumPy's.

    Raises:
        DefinitionError: NumPy refuses it, or it says one thing of Python's truths and another of NumPy's.
    """
    if not any(isinstance(a, (Expr, Block)) for a in args):
        return function(*args)
    firsts = [first_of(a) if isinstance(a, (Expr, Block)) else None for a in args]
    of_data = [e is not None and e.dtype == "bool" and bool(reads_of(e)) for e in firsts]
    args = [
        functions.cast(e, "int32") if e is not None and e.dtype == "bool" and not own and a is e else a
        for a, e, own in zip(args, firsts, of_data, strict=True)
    ]
    if all(of_data):
        if isinstance(op, (ast.Sub, ast.USub)):
            raise DefinitionError(f"NumPy has no - of truths; {_COUNT}")
        if isinstance(op, ast.Add) and any(isinstance(a, Read) and not a.indices for a in args):
            raise DefinitionError(f"+ of two truths is 2 in Python, and True in NumPy; {_COUNT}")
        if isinstance(op, ast.Mult):
            function = functions.logical_and
    return elementwise(function, args)


def refuse_truths(name: str, args: Sequence[Any]) -> None:
    """That not all of ``args`` are truths, of which ``name`` makes others in NumPy, and counts here.

    Raises:
        DefinitionError: they are.
    """
    if args and all(first_of(a).dtype == "bool" for a in args):
        raise DefinitionError(f"{name} of truths is no count in NumPy; {_COUNT}")


def check_in_place(variable: str, dtype: str, found: Any) -> None:
    """That an array of ``dtype`` can take ``found``, which an operator makes of it in place.

    Raises:
        DefinitionError: it is of a higher kind, as a float is than an integer.
    """
    new, own = _rank(first_of(found).dtype), _rank(dtype)
    if new > own:
        raise DefinitionError(
            f"{variable} holds {_KINDS[own][0]}, and an operator in place cannot make them {_KINDS[new][0]}; write it as {variable} = ..., or begin with "
            ".astype(...)"
        )


def _rank(dtype: str) -> int:
    return next(n for n, (_, is_of) in enumerate(_KINDS) if is_of(dtype))
