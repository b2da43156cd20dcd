"""A jaxpr as a flat list of operations on arrays: calls are entered, equal operations are one, and what nothing reads is left out.

Each primitive is of a kind by what XLA does with it: it computes it for each element, moves elements, reduces, or calls a routine.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxte.bridge.jaxprs import CALLS, walked

CHEAP = frozenset(
    [
        "abs",
        "add",
        "add_any",
        "and",
        "clamp",
        "copy",
        "eq",
        "floor",
        "ceil",
        "ge",
        "gt",
        "imag",
        "integer_pow",
        "is_finite",
        "le",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "not",
        "nextafter",
        "or",
        "real",
        "reduce_precision",
        "round",
        "select_n",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "square",
        "sub",
        "xor",
        "complex",
        "conj",
        "population_count",
    ]
)
FREE = frozenset(["convert_element_type", "stop_gradient"])  # a part of the instruction that loads, or none
DIVISIONS = frozenset(["div", "rem", "sqrt", "rsqrt", "cbrt"])
EXPONENTIALS = frozenset(
    [
        "exp",
        "exp2",
        "log",
        "log1p",
        "expm1",
        "tanh",
        "logistic",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
    ]
)
POWERS = frozenset(
    ["pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "lgamma", "digamma", "erf_inv"]
)
FOR_EACH = CHEAP | FREE | DIVISIONS | EXPONENTIALS | POWERS
DEAR = DIVISIONS | EXPONENTIALS | POWERS  # which XLA does not compute twice
REDUCTIONS = frozenset(
    ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin"]
)
VIEWS = frozenset(["reshape", "squeeze", "expand_dims"])
# large reductions of floats are done by a routine, which takes in these functions and no others: comparisons and choices become arrays before
BY_ROUTINE = frozenset(["reduce_sum", "reduce_max", "reduce_min"])
TAKEN_BY_ROUTINE = (
    VIEWS
    | FREE
    | DIVISIONS
    | EXPONENTIALS
    | frozenset(
        [
            "abs",
            "add",
            "add_any",
            "broadcast_in_dim",
            "ceil",
            "copy",
            "floor",
            "integer_pow",
            "max",
            "min",
            "mul",
            "neg",
            "pad",
            "pow",
            "round",
            "sign",
            "square",
            "sub",
            "transpose",
        ]
    )
) - {"rem", "cbrt"}
JOINS = frozenset(["concatenate", "stack"])
UPDATE = "dynamic_update_slice"
MOVES = (
    VIEWS
    | JOINS
    | {"broadcast_in_dim", "transpose", "slice", "pad", "rev", "iota", "dynamic_slice", "gather", UPDATE}
)
BRANCHES = JOINS | {
    "pad",
    "gather",
}  # each element is tested for where it comes from, or read at a computed place
FUSED = FOR_EACH | REDUCTIONS | MOVES

APART = "apart"  # a call that XLA enters no loop across
SAME = frozenset(["optimization_barrier", "pvary"])  # on the CPU, barriers are gone before loops are fused


_JAXTE = "jaxte"  # the primitive that holds a program of ours
_PLAIN = (int, float, str, tuple, type(None), np.dtype)
_NUMBERS = frozenset([int])
_HOLD_BODIES = frozenset(["scan", "while", "cond"])


@dataclass(eq=False)
class Array:
    """What an operation makes, or what is given.

    Attributes:
        maker: the operation; None where it is given.
        readers: operations that read it, each with the position of the operand.
        is_result: whether the program returns it.
    """

    shape: tuple[int, ...]
    item: int
    maker: Operation | None = None
    readers: list[tuple[Operation, int]] = field(default_factory=list)
    is_result: bool = False
    is_number: bool = False

    def __post_init__(self) -> None:
        self.size = prod(self.shape)

    def is_returned(self) -> None:
        """The program returns it."""
        self.is_result = True

    @property
    def bytes(self) -> int:
        return self.item * self.size


@dataclass(eq=False)
class Operation:
    """One primitive; ``is_known`` where XLA computes it when it compiles, or again at no cost: positions, and functions of them."""

    name: str
    inputs: Sequence[Array]
    params: dict[str, Any]
    outputs: list[Array] = field(default_factory=list)
    made: Array = field(init=False)  # of one that is part of a loop
    is_known: bool = False
    rank: int = 0

    def makes(self, made: Sequence[Array]) -> list[Array]:
        """What it makes."""
        self.outputs = list(made)
        if made:
            self.made = made[0]
        return self.outputs

    def stands_at(self, rank: int) -> None:
        """It is needed, and stands at ``rank`` in the order of all."""
        self.rank = rank
        self.is_known, positions = True, self.name == "iota"
        for n, array in enumerate(self.inputs):
            array.readers.append((self, n))
            positions = positions or array.maker is not None
            if not (array.is_number if array.maker is None else array.maker.is_known):
                self.is_known = False
        self.is_known = self.is_known and positions


def operations(closed: Any, platform: str) -> list[Operation]:
    """The operations of a jaxpr that are needed for its results, each after those that it reads."""
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    given = [_array(v.aval) for v in jaxpr.invars]
    results = _Entered(platform).run(jaxpr, given)
    for result in results:
        result.is_returned()
    found = _after_inputs(results)
    for rank, own in enumerate(found):
        own.stands_at(rank)
    return found


def _array(aval: Any, maker: Operation | None = None, is_number: bool = False) -> Array:
    shape = getattr(aval, "shape", ())
    if not _NUMBERS.issuperset(map(type, shape)):
        shape = tuple(e if isinstance(e, int) else 1 for e in shape)
    return Array(shape, getattr(getattr(aval, "dtype", None), "itemsize", 4), maker, is_number=is_number)


class _Entered:
    """Runs a jaxpr, and those that it calls, on descriptions of arrays."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._equal: dict[object, list[Array]] = {}
        self._numbers: dict[object, Array] = {}

    def run(self, jaxpr: Any, given: Sequence[Array]) -> list[Array]:
        constants = [_array(v.aval) for v in jaxpr.constvars]
        return walked(jaxpr, [*constants, *given], self._made, self._number)

    def _number(self, literal: Any) -> Array:
        key = (str(literal.val), str(literal.aval))
        if key not in self._numbers:
            self._numbers[key] = _array(literal.aval, is_number=True)
        return self._numbers[key]

    def _made(self, eqn: Any, inputs: list[Array]) -> list[Array]:
        name = eqn.primitive.name
        if name in SAME:
            return inputs
        if name == _JAXTE:
            return self.run(_emitted(eqn, self._platform).jaxpr, inputs)
        if name in CALLS:
            body = eqn.params[CALLS[name]]
            if not body.jaxpr.eqns if isinstance(body, ClosedJaxpr) else not body.eqns:
                return self._apart(eqn, inputs)
            return self.run(body.jaxpr if isinstance(body, ClosedJaxpr) else body, inputs)
        if name in ("split", "unstack"):
            return [a for v in eqn.outvars for a in _operation("slice", inputs, {}, [v])]
        key = None if name in _HOLD_BODIES else (name, tuple(map(id, inputs)), _told(eqn.params))
        found = self._equal.get(key) if key is not None else None
        if found is None:
            found = _operation(name, inputs, eqn.params, eqn.outvars)
            self._equal[key or object()] = found
        return found

    def _apart(self, eqn: Any, inputs: list[Array]) -> list[Array]:
        """A call that does nothing: what is given, or that as an array of its own where the call is not to be entered."""
        metadata = getattr(eqn.ctx, "xla_metadata", None) or {}
        if metadata.get("inlineable") == "false":
            return _operation(APART, inputs, {}, eqn.outvars)
        body = eqn.params[CALLS[eqn.primitive.name]]
        return self.run(body.jaxpr if isinstance(body, ClosedJaxpr) else body, inputs)


def _told(params: dict[str, Any]) -> Hashable:
    """What tells the parameters of an equation: numbers, names and axes as they are, which takes no text, all else by its text."""
    return tuple(
        [(name, own if isinstance(own, _PLAIN) else str(own)) for name, own in sorted(params.items())]
    )


def _operation(name: str, inputs: list[Array], params: dict[str, Any], made: Sequence[Any]) -> list[Array]:
    own = Operation(name, inputs, params)
    return own.makes([_array(v.aval, own) for v in made])


def _emitted(eqn: Any, platform: str) -> Any:
    return eqn.params["program"].on(platform).traced([a.aval for a in eqn.invars])


def _after_inputs(results: Sequence[Array]) -> list[Operation]:
    """The makers of ``results`` and of what they read, in order."""
    done: set[Operation] = set()
    order: list[Operation] = []
    stack = [(a.maker, 0) for a in reversed(results) if a.maker is not None]
    while stack:
        own, at = stack.pop()
        if own in done:
            continue
        if at == len(own.inputs):
            done.add(own)
            order.append(own)
            continue
        stack.append((own, at + 1))
        maker = own.inputs[at].maker
        if maker is not None and maker not in done:
            stack.append((maker, 0))
    return order
