"""The vocabulary of lowering: views, values, statements and programs, all of it immutable, and whether a program has a meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import Axis, Reducer, as_expr
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.loops import Tuple
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.verify import verify_node
from jaxte.lower.arrays.views import Step
from jaxte.lower.code.choice import Choice
from jaxte.lower.printing.printer import Printer
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """Steps that turn a tensor into an array with one dimension for each of ``dims``."""

    steps: tuple[Step, ...]
    dims: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """The node of an array with one dimension for each of ``dims``, and the dtype that JAX gives it.

    ``literal`` marks Python numbers, which take the dtype of what they meet; ``number`` is which one, where that is known.
    """

    code: Node
    dims: tuple[Axis, ...]
    kind: Kind
    literal: bool = False
    number: int | float | None = None

    @property
    def dtype(self) -> str:
        return self.kind[0]


# --- programs

WHEN_TRACED = ""  # the scope of what is computed when the function is traced, not when it is called


@dataclass(frozen=True, slots=True)
class Statement:
    """``target = source``, inside the named scope ``scope``, or ``WHEN_TRACED``."""

    scope: str
    target: str
    source: Node


@dataclass(frozen=True, slots=True)
class Function:
    """The function ``name`` of arrays called ``params``: ``statements``, and the result."""

    scope: str
    name: str
    params: tuple[str, ...]
    statements: tuple[AnyStatement, ...]
    result: Node

    @property
    def target(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PrefixFunction:
    """The function ``name`` of an array, or a tuple of ``reducer.arity``: cumulative reductions along ``axis`` in blocks.

    ``step`` makes the next "total" of "total" and "part"; ``position`` is the value that is asked for.
    """

    scope: str
    name: str
    reducer: Reducer
    position: int
    ndim: int
    axis: int
    reverse: bool
    step: Node
    identities: tuple[Node, ...]

    @property
    def target(self) -> str:
        return self.name


AnyStatement = Statement | Function | PrefixFunction


def with_sources(statements: Iterable[AnyStatement], rule: Callable[[Node], Node]) -> list[AnyStatement]:
    """``statements`` with ``rule`` of what each assigns in its place."""

    def over(s: AnyStatement) -> AnyStatement:
        if not isinstance(s, Statement) or (source := rule(s.source)) is s.source:
            return s
        return replace(s, source=source)

    return list(map(over, statements))


@dataclass(frozen=True, slots=True)
class Program:
    """One function, lowered.

    Attributes:
        name: identifier of the function.
        params: identifier and tensor of each parameter, in order.
        sizes: identifier of each symbolic size and the code that reads it off a parameter's shape.
        statements: the assignments, in order.
        results: identifiers of the values returned, in order.
        formulas: the definitions, as text that is safe in a docstring.
        choices: what each computed tensor was lowered to.
        externs: names that the text expects to be bound to functions on arrays.
        tensors: what is returned.
        printer: writes its nodes.
        passes: the names of the passes across its definitions that changed something.
    """

    name: str
    params: tuple[tuple[str, Tensor], ...]
    sizes: tuple[tuple[str, str], ...]
    statements: tuple[AnyStatement, ...]
    results: tuple[str, ...]
    formulas: tuple[str, ...]
    choices: tuple[Choice, ...]
    externs: tuple[tuple[str, Callable[..., Any]], ...] = ()
    tensors: tuple[Tensor, ...] = ()
    printer: Printer = field(default_factory=lambda: Printer({}))
    passes: tuple[str, ...] = ()


# --- whether a program has a meaning

Bound = dict[str, Name | None]


def verify_program(program: Program) -> None:
    """Checks that ``program`` has a meaning.

    Raises:
        ArrayError: it has none; the message names the statement.
    """
    bound: Bound = {ident: tensor_name(ident, tensor) for ident, tensor in program.params}
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


def tensor_name(identifier: str, tensor: Tensor) -> Name:
    """The name of ``tensor``."""
    return Name(identifier, tuple(as_expr(e) for e in tensor.shape), (tensor.dtype, False))


def name_of(identifier: str, dims: Sequence[Axis], kind: Kind) -> Name:
    """The name of an array over ``dims``."""
    return Name(identifier, tuple(d.hi for d in dims), kind)
