"""The check of a whole program: every statement in turn, with the names that exist before it."""

from __future__ import annotations

from collections.abc import Iterable

from jaxte.lang.expr import as_expr
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.loops import Tuple
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.verify import verify_node
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Program, Statement

Bound = dict[str, Name | None]


def verify_program(program: Program) -> None:
    """Checks that ``program`` has a meaning.

    Raises:
        ArrayError: it has none; the message names the statement.
    """
    bound: Bound = {
        ident: Name(ident, tuple(as_expr(e) for e in tensor.shape), (tensor.dtype, False))
        for ident, tensor in program.params
    }
    try:
        _verify(program.statements, bound)
    except ArrayError as error:
        raise ArrayError(
            f"{program.name}: {error}; the array program that jaxte made has no meaning, which is a fault of jaxte: "
            "please report it, and give te.function another form, as forms={'*': 'general'}"
        ) from None
    for result in program.results:
        if result not in bound:
            raise ArrayError(f"{program.name}: the result {result} is not assigned")


def _verify(statements: Iterable[AnyStatement], bound: Bound) -> None:
    for statement in statements:
        try:
            _verify_statement(statement, bound)
        except ArrayError as error:
            raise ArrayError(f"{statement.target}: {error}") from None


def _verify_statement(statement: AnyStatement, bound: Bound) -> None:
    match statement:
        case Statement(_, target, source):
            verify_node(source, bound)
            names = [name.strip("() ") for name in target.split(",")]
            bound.update(dict.fromkeys(names))
            if len(names) == 1:
                bound[names[0]] = _named(names[0], source)
        case Function(_, name, params, inner, result):
            inside: Bound = {**bound, **dict.fromkeys(params)}
            _verify(inner, inside)
            for item in result.items if isinstance(result, Tuple) else (result,):
                verify_node(item, inside)
            bound[name] = None
        case PrefixFunction(name=name):
            bound[name] = None


def _named(name: str, source: Node) -> Name | None:
    """``source`` under a name; None where it is no single array."""
    return None if source.is_tuple else Name(name, source.shape, source.kind)
