"""The results of a whole program: every statement in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from jaxte.lower.arrays.node import ArrayError
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Program
from jaxte.meaning.feeds import Sizes, bind_sizes
from tests.lower.evaluation import data, elementwise, loops, products, views
from tests.lower.evaluation.frame import Frame, Rules, Value

RULES: Rules = {
    **elementwise.RULES,
    **views.RULES,
    **products.RULES,
    **loops.RULES,
    **data.RULES,
}


def evaluate_program(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What ``program`` returns for ``arrays``, one for each parameter: the meaning of its nodes, in NumPy, without any text.

    Raises:
        ArrayError: a node has another shape or dtype than it says, or trusts a fact that its positions do not have; the message
            names the statement.
    """
    given = {tensor: np.asarray(a) for (_, tensor), a in zip(program.params, arrays, strict=True)}
    run = _Run(dict(program.externs), bind_sizes(given))
    names = {ident: given[tensor] for ident, tensor in program.params}
    with np.errstate(all="ignore"):
        run.statements(program.statements, names)
    return [np.asarray(names[result]) for result in program.results]


class _Run:
    """A run under way: the functions that exist so far, and what sizes are."""

    def __init__(self, functions: dict[str, Callable[..., Value]], sizes: Sizes) -> None:
        self.functions = functions
        self.sizes = sizes

    def statements(self, statements: Iterable[AnyStatement], names: dict[str, Value]) -> None:
        """Runs ``statements``, which add to ``names``."""
        for statement in statements:
            try:
                self._statement(statement, names)
            except ArrayError as error:
                raise ArrayError(f"{statement.target}: {error}") from None

    def _statement(self, statement: AnyStatement, names: dict[str, Value]) -> None:
        if isinstance(statement, Function):
            self.functions[statement.name] = self._function(statement, names)
        elif isinstance(statement, PrefixFunction):
            self.functions[statement.name] = self._prefix_function(statement, names)
        else:
            _assign(statement.target, self._frame(names).value(statement.source), names)

    def _frame(self, names: Mapping[str, Value], is_checked: bool = True) -> Frame:
        return Frame(RULES, names, self.functions, dict(self.sizes.items()), is_checked)

    def _function(self, own: Function, outside: Mapping[str, Value]) -> Callable[..., Value]:
        def call(*args: Value) -> Value:
            names = {**outside, **dict(zip(own.params, args, strict=True))}
            self.statements(own.statements, names)
            return self._frame(names).value(own.result)

        return call

    def _prefix_function(self, own: PrefixFunction, outside: Mapping[str, Value]) -> Callable[..., Value]:
        """Cumulative reductions one step after the other, whatever blocks they are written in."""

        def call(values: Value) -> Value:
            arrays = values if isinstance(values, tuple) else (values,)
            wanted = np.moveaxis(arrays[own.position], own.axis, 0)
            start = self._frame(outside).value(own.identities[own.position])
            total = np.broadcast_to(start.astype(wanted.dtype), wanted.shape[1:])
            found = np.empty_like(wanted)
            for n in reversed(range(len(found))) if own.reverse else range(len(found)):
                parts = tuple(np.moveaxis(a, own.axis, 0)[n] for a in arrays)
                part = parts if isinstance(values, tuple) else parts[0]
                names = {**outside, "total": total, "part": part}
                total = found[n] = self._frame(names, is_checked=False).value(own.step)
            return np.moveaxis(found, 0, own.axis)

        return call


def _assign(target: str, value: Value, names: dict[str, Value]) -> None:
    """``target = value``, where the target may be names of the parts of a tuple, in parentheses or not."""
    wanted = [name.strip("() ") for name in target.split(",")]
    found = [value] if len(wanted) == 1 else list(_leaves(value))
    names.update(zip(wanted, found, strict=True))


def _leaves(value: Value) -> Iterable[Value]:
    if (
        isinstance(value, (tuple, list)) and value
    ):  # one without items is what a loop hands on that carries nothing
        for item in value:
            yield from _leaves(item)
    else:
        yield value
