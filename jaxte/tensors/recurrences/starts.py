"""The values of states before the first position: what a recurrence begins with, numbers and arrays as a user gives them, which are Tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from jaxte.lang import dtypes
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import Call, Const, Expr, Read, as_expr, call, cast
from jaxte.lang.operators import MULTIPLY, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import all_of
from jaxte.sets.affine import linear, normal
from jaxte.sets.conditions import is_zero, same_condition
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.bodies.functions import check_result
from jaxte.tensors.elementwise import of_array
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.tensor import Tensor


def _multiplied(chosen: Expr) -> Expr:
    """What a number multiplies in ``chosen``, which is zero where that is; else ``chosen`` itself."""
    match chosen:
        case Call(op, (value, Const(number)) | (Const(number), value)) if op is MULTIPLY and isinstance(
            number, int | float
        ):
            return value if isfinite(number) else chosen
    return chosen


@dataclass
class Starts:
    """What the states of ``group`` begin with, as the bodies of a step say it.

    Attributes:
        tensors: of states that have values before the first position, the tensor of these.
        zeros: the states that are zero there.
    """

    group: Recurrence
    tensors: dict[State, Tensor] = field(default_factory=dict)
    zeros: set[State] = field(default_factory=set)

    def longer(self, group: Recurrence) -> Starts:
        """The same for ``group``, which has more states."""
        return Starts(group, {**self.tensors}, {*self.zeros})

    def choices(self, body: Expr) -> dict[Expr, Expr]:
        """Choices between a state and its values before the first position, as reads of what is carried, which begins with these.

        Other reads of the state stand under a condition that leaves these positions out, so that it may begin with anything for them.
        """
        found: dict[Expr, Expr] = {}
        for node in all_of(Call, body):
            if node.op is SELECT:
                test, chosen, other = node.args
                taken = _multiplied(chosen)
                if not isinstance(taken, Read) or not isinstance(taken.tensor, State):
                    continue
                state = taken.tensor
                if state not in self.group.numbers:
                    continue
                if self._is_zero(test, taken, other):
                    self.zeros.add(state)
                    found[node] = chosen
                    continue
                if chosen is not taken:
                    continue
                start = self._start(test, taken, other)
                if start is not None and self.tensors.setdefault(state, start) is start:
                    found[node] = taken
        return found

    def _is_zero(self, test: Expr, taken: Read, other: Expr) -> bool:
        """Whether ``test`` chooses between a state and zero where it has no value: what is carried begins with that."""
        while isinstance(other, Call) and other.op.name == "cast":
            (other,) = other.args
        if not isinstance(other, Const) or other.value or taken.tensor in self.tensors:
            return False
        return self._is_inside(test, taken)

    def _start(self, test: Expr, taken: Read, other: Expr) -> Tensor | None:
        """The tensor of the values before the first position, where ``test`` chooses between it and a state."""
        if not isinstance(other, Read) or taken.tensor in self.zeros:
            return None
        before, place = other.tensor, self.group.place_of(taken.tensor)
        if isinstance(before, State) or before.ndim != taken.tensor.ndim:
            return None
        if any(
            a is not b
            for n, (a, b) in enumerate(zip(taken.indices, other.indices, strict=True))
            if n != place
        ):
            return None
        form = linear_or_none(other.indices[place])
        if form is None or not self._is_inside(test, taken):
            return None
        shift = _shift(taken.tensor, before, place, self.group.reverse)
        return before if is_zero(form - linear(taken.indices[place]) - linear(shift)) else None

    def _is_inside(self, test: Expr, taken: Read) -> bool:
        """Whether ``test`` says that ``taken`` is of a position of the recurrence."""
        place = self.group.place_of(taken.tensor)
        return linear_or_none(taken.indices[place]) is not None and same_condition(
            test, inside(taken, place, self.group.reverse)
        )


def guarded_read(state: Tensor, place: int, read: Read, before: Tensor, reverse: bool) -> Expr:
    """``read`` of a state, or of ``before`` where it is before the first position."""
    shift = _shift(state, before, place, reverse)
    own = [normal(i + shift) if n == place else i for n, i in enumerate(read.indices)]
    return call(SELECT, inside(read, place, reverse), read, Read(before, own))


def inside(read: Read, place: int, reverse: bool) -> Expr:
    """That ``read`` is not before the first position along its dimension ``place``."""
    index = read.indices[place]
    return (index < as_expr(read.tensor.shape[place])) if reverse else (index >= 0)


def _shift(state: Tensor, before: Tensor, place: int, reverse: bool) -> Expr:
    """How far the positions of ``before`` are from those of ``state``."""
    return -as_expr(state.shape[place]) if reverse else as_expr(before.shape[place])


def with_values(init: Any, name: str) -> Any:
    """``init``, an array of numbers as a Tensor."""
    is_array = (
        hasattr(init, "__array__") and not isinstance(init, (Tensor, Expr)) and getattr(init, "ndim", 0) > 0
    )
    return of_array(init, f"{name}_init") if is_array else init


def number_of(init: Any, state: State) -> Expr:
    try:
        return check_result(init, state.name)
    except DefinitionError:
        raise ArgumentError(
            f"init of {state.name} is {described(init)}; give a number, a function of the other axes, an array or a Tensor; of several tensors a tuple, "
            "one for each"
        ) from None


def begun(value: Expr, state: State) -> Expr:
    """What stands before the first position in the dtype of ``state``, unless that would lose a fraction or an imaginary part."""
    number = value.value if isinstance(value, Const) else None
    is_whole = isinstance(number, float) and number.is_integer()
    loses_fraction = dtypes.is_inexact(value.dtype) and not dtypes.is_inexact(state.dtype) and not is_whole
    if loses_fraction or (dtypes.is_complex(value.dtype) and not dtypes.is_complex(state.dtype)):
        wanted = "complex" if dtypes.is_complex(value.dtype) else "floating"
        raise DtypeError(
            f"init of {state.name} is `{text(value)}` of dtype {value.dtype}, {state.name} is {state.dtype}; cast init with te.cast, or give a "
            f"{wanted} dtype"
        )
    return cast(value, state.dtype)
