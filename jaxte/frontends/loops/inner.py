"""Functions within a function, ``def`` or ``lambda``: they are read at each of their calls, and see the names around them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxte.frontends.loops.expressions import Frame
from jaxte.frontends.loops.returns import with_one_return
from jaxte.frontends.loops.source import Written
from jaxte.lang.errors import DefinitionError


@dataclass(frozen=True, eq=False)
class InnerWritten(Written):
    """The text of a function within another one, which ``around`` is."""

    around: Frame

    @property
    def names(self) -> Mapping[str, Any]:
        return {**self.around.text.names, **self.around.names}


@dataclass(frozen=True, eq=False)
class Inner:
    """A function within a function."""

    written: InnerWritten
    parameters: inspect.Signature


def inner(node: ast.FunctionDef | ast.Lambda, frame: Frame, value: Callable[[ast.expr], Any]) -> Inner:
    """What ``node`` defines; its defaults have the ``value`` that they have there.

    Raises:
        DefinitionError: parameters of a number that is not known, or decorators.
    """
    args = node.args
    if args.vararg or args.kwarg or args.posonlyargs or args.kwonlyargs:
        raise DefinitionError("a function within the function has plain parameters alone")
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        tree = ast.copy_location(ast.FunctionDef("lambda", args, [body], []), node)
    else:
        tree = node
    if tree.decorator_list:
        raise DefinitionError("a function within the function has no decorators")
    given = dict(zip([a.arg for a in args.args][::-1], map(value, args.defaults[::-1]), strict=False))
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(a.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=given.get(a.arg, empty))
        for a in args.args
    ]
    text = InnerWritten(node, frame.text.source, with_one_return(tree), frame)
    return Inner(text, inspect.Signature(parameters))
