"""What is done to arrays, one primitive each.

Each primitive is of a kind by what XLA does with it: it computes it for each element, moves elements, reduces, or calls a routine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

CHEAP = frozenset(
    [
        "abs", "add", "add_any", "and", "clamp", "copy", "eq", "floor", "ceil", "ge", "gt", "imag",
        "integer_pow", "is_finite", "le", "lt", "max", "min", "mul", "ne", "neg", "not", "nextafter", "or",
        "real", "reduce_precision", "round", "select_n", "shift_left", "shift_right_arithmetic",
        "shift_right_logical", "sign", "square", "sub", "xor", "complex", "conj", "population_count",
    ]
)  # fmt: skip
PARTS = frozenset(["real", "imag", "complex", "conj"])  # which move what complex numbers are made of
FREE = frozenset(["convert_element_type", "stop_gradient"])  # a part of the instruction that loads, or none
DIVISIONS = frozenset(["div", "rem", "sqrt", "rsqrt", "cbrt"])
EXPONENTIALS = frozenset(
    [
        "exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sinh", "cosh", "asinh", "acosh",
        "atanh", "erf", "erfc",
    ]
)  # fmt: skip
POWERS = frozenset(
    [
        "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "lgamma", "digamma", "erf_inv", "bessel_i0e", "bessel_i1e",
        "igamma", "igammac", "igamma_grad_a", "regularized_incomplete_beta",
    ]
)  # fmt: skip
FOR_EACH = CHEAP | FREE | DIVISIONS | EXPONENTIALS | POWERS
# which XLA copies into each loop that reads them, though they take longest; of a complex exponential it does so with both of its sines
COPIED = frozenset(["sin", "cos", "tan", "rem"])
DEAR = (DIVISIONS | EXPONENTIALS | POWERS) - COPIED  # which XLA does not compute twice
PLACES = frozenset(["argmax", "argmin"])
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
# each element is tested for where it comes from, or read at a computed place
BRANCHES = JOINS | {"pad", "gather"}
FUSED = FOR_EACH | REDUCTIONS | MOVES

APART = "apart"  # a call that XLA enters no loop across
# on the CPU, barriers are gone before loops are fused; within a program, arrays are where they are put
SAME = frozenset(["optimization_barrier", "pvary", "device_put"])


@dataclass(eq=False)
class Array:
    """What an operation makes, or what is given.

    Attributes:
        maker: the operation; None where it is given.
        readers: operations that read it, each with the position of the operand.
        is_result: whether the program returns it.
        is_number: whether it stands in the program as a number.
        number: what it holds, where it is a single number that is known.
        is_complex: whether it holds complex numbers.
    """

    shape: tuple[int, ...]
    item: int
    maker: Operation | None = None
    readers: list[tuple[Operation, int]] = field(default_factory=list)
    is_result: bool = False
    is_number: bool = False
    number: float | None = None
    is_complex: bool = False

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


def is_dear(own: Operation) -> bool:
    """Whether XLA computes ``own`` once, however many loops read it."""
    return own.name in DEAR and not (own.name == "exp" and own.made.is_complex)


def joined_along(own: Operation) -> int:
    """The dimension of what a concatenation makes along which its operands follow each other, which ``stack`` calls an axis."""
    found: int = own.params["dimension" if own.name == "concatenate" else "axis"]
    return found
