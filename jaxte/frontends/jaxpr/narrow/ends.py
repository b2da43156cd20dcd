"""What arrays over all pairs are outside of a band: the number that an elementwise function makes of numbers, and what sums, maxima and products have of it.

The exponential of ``where(mask, scores, -1e9) - max`` is ``exp(-1e9 - max)`` outside of the band, a number of each row: 0, but for a row of which a mask of data
takes nothing. A product with values is that of the band, less this number, and this number times the sum of all values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf, isfinite
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.dimensions import REDUCTIONS
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.narrow.pairs import Blocks, Labels, Roles, roles_of
from jaxte.frontends.jaxpr.narrow.rows import bound
from jaxte.lang.dtypes import is_inexact


class _Row(Enum):
    NUMBER = "one number of each row"


BY_ROW = _Row.NUMBER
"""What stands for a number that depends on the row."""


@dataclass(frozen=True)
class Form:
    """An array over all pairs: its dimensions of rows and of columns, and the number that it has outside of the band, or :data:`BY_ROW`."""

    rows: int
    columns: int
    off: Any


NEUTRAL = {"reduce_sum": 0, "reduce_max": -inf, "reduce_min": inf, "dot_general": 0}
_NO_SCORE = -1e30  # which no sum of products in range is, so that the exponential of it less a score is 0
_AS_IT_IS = ("broadcast_in_dim", "transpose", "reshape", "squeeze", "expand_dims", "convert_element_type", "stop_gradient", "copy")  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_AS_IT_IS, lambda x: x),
    **dict(add=np.add, sub=np.subtract, mul=np.multiply, div=np.divide, max=np.maximum, min=np.minimum),
    **dict(
        exp=np.exp, exp2=np.exp2, neg=np.negative, abs=np.abs, square=np.square, tanh=np.tanh, sign=np.sign
    ),
    **{"not": np.logical_not, "and": np.logical_and, "or": np.logical_or},
}
# what has finite slopes everywhere, so that zeros beside the ends of an array do no harm
_SMOOTH = frozenset(
    [*_AS_IT_IS, "add", "sub", "mul", "neg", "max", "min", "exp", "exp2", "abs", "sign", "square", "tanh", "logistic", "select_n",
     "dot_general", "gather", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "reduce_sum"]
)  # fmt: skip


def off_of(step: Step, offs: Sequence[Any], taken_in_rows: bool) -> Any:
    """What the result is where operands are ``offs``, numbers or None for what is not one number; None where nothing says that it is one.

    Args:
        taken_in_rows: whether ``step`` is a choice that takes something in each row, whatever the arguments are: beside scores a number far below all of them
            is as good as -inf.
    """
    if step.name in REDUCTIONS:
        return offs[0] if step.name in NEUTRAL and offs[0] == NEUTRAL[step.name] == 0 else None
    if step.name == "select_n":
        return _chosen(offs, taken_in_rows)
    if step.name in ("mul", "and", "dot_general") and any(off is not None and off == 0 for off in offs):
        return 0
    if step.name == "or" and any(off is not None and off == 1 for off in offs):
        return True
    if step.name == "div" and offs[0] is not None and offs[0] == 0:
        return 0
    if step.name in ("add", "sub") and offs[0] == -inf and offs[1] is None:
        return -inf
    if step.name == "add" and offs[1] == -inf and offs[0] is None:
        return -inf
    row = _OF_NUMBERS.get(step.name)
    if row is None or any(not _is_number(off) for off in offs):
        return None
    with np.errstate(all="ignore"):
        found = row(*offs)
    return None if np.isnan(found) else np.asarray(found).item()


def _chosen(offs: Sequence[Any], taken_in_rows: bool) -> Any:
    which, *cases = offs
    if not _is_number(which):
        return cases[0] if all(_is_number(case) and case == cases[0] for case in cases) else None
    found = cases[int(which)]
    if taken_in_rows and _is_number(found) and not isinstance(found, bool) and found <= _NO_SCORE:
        return -inf
    return found


def _is_number(off: Any) -> bool:
    return off is not None and off is not BY_ROW


def is_harmless(step: Step) -> bool:
    """Whether ``step`` has finite slopes at zeros, which stand beside the ends of an array in blocks."""
    if step.name == "div":
        return step.inputs[1].known is not None
    if step.name == "integer_pow":
        return bool(step.eqn.params["y"] >= 0)
    return step.name in _SMOOTH or not is_inexact(step.outputs[0].dtype)


SHAPES = {"broadcast_in_dim": "shape", "reshape": "new_sizes"}
_EXTREMA: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "reduce_max": (jnp.max, jnp.maximum),
    "reduce_min": (jnp.min, jnp.minimum),
}


@dataclass(frozen=True)
class End:
    """``step`` goes along the columns.

    Attributes:
        roles: of its operands.
        row: which dimension of its result the rows are, or what it sums them as.
        around: the operand that is no neutral number outside of the band, and its dimension of columns.
    """

    step: Step
    roles: Roles
    row: Hashable
    around: tuple[int, int] | None

    def joined(self, of_blocks: Any, blocks: Blocks) -> Any:
        """The result from that of each block."""
        if isinstance(self.row, int):
            return blocks.as_rows(of_blocks, self.row)
        along, _ = _EXTREMA.get(self.step.name, (jnp.sum, None))
        return along(of_blocks, 0)

    @property
    def is_sum(self) -> bool:
        return self.step.name not in _EXTREMA

    def with_rest(self, made: Any, outside: Any, operands: Sequence[Any], columns: int) -> Any:
        """The result beside what is outside, of which there is ``outside`` in each row.

        Args:
            made: the result of the band, in a sum less what is outside.
            operands: in whole, but for that of the band.
            columns: how many there are in all.
        """
        assert self.around is not None
        n, _ = self.around
        if not self.is_sum:
            return _EXTREMA[self.step.name][1](made, bound(self.step, [outside]))
        if self.step.name == "reduce_sum":
            return made + bound(self.step, [outside * columns])
        (column,) = (column for m, (_, column) in enumerate(self.roles) if m != n)
        sums = [outside if m == n else jnp.sum(x, column, keepdims=True) for m, x in enumerate(operands)]
        return made + bound(self.step, sums)


def end_of(step: Step, labels: Labels | None, forms: Sequence[Form | None]) -> End | None:
    """What ``step`` is along the columns of an operand; None where it does not go along them, or what is outside cannot be told apart.

    Args:
        forms: of the operands that are moved by arguments and over pairs.
    """
    if labels is None or step.name not in NEUTRAL:
        return None
    found = None
    for n, (own, form) in enumerate(zip(labels, forms, strict=True)):
        column = None if form is None else own[form.columns]
        if form is None or not isinstance(column, tuple):
            continue
        row = own[form.rows]
        roles = roles_of(labels, row, column)
        if form.off == NEUTRAL[step.name]:
            return End(step, roles, row, None)
        if _is_apart(step, n, roles, form):
            found = End(step, roles, row, (n, form.columns))
    return found


def _is_apart(step: Step, n: int, roles: Roles, form: Form) -> bool:
    """Whether what is outside of the band is one number of each row, by which all else is the same in each row."""
    if step.name in _EXTREMA:
        return True
    if not is_inexact(step.outputs[0].dtype) or (form.off is not BY_ROW and not isfinite(form.off)):
        return False
    return all(row is None for m, (row, _) in enumerate(roles) if m != n)


def reads_by_row(step: Step, labels: Labels, column: int, offs: Sequence[Any]) -> bool:
    """Whether the result of ``step`` is one number of each row outside of the band, as its operands are: ``offs``, or what is the same in all columns."""
    return all(
        off is not None or column not in own or repeated_by(slot, own.index(column)) is not None
        for slot, own, off in zip(step.inputs, labels, offs, strict=True)
    )


def repeated_by(slot: Slot, d: int) -> Step | None:
    """The step that repeats something along dimension ``d`` of an array."""
    made = slot.origin
    if made is None or made.name != "broadcast_in_dim" or len(made.inputs) != 1:
        return None
    dims = made.eqn.params["broadcast_dimensions"]
    return made if d not in dims or made.inputs[0].shape[dims.index(d)] == 1 else None


def one_column(shape: Sequence[int], d: int) -> tuple[int, ...]:
    return (*shape[:d], 1, *shape[d + 1 :])


def outside_of(
    step: Step,
    labels: Labels,
    column: int,
    offs: Sequence[Any],
    read: Callable[[Slot], Any],
    rows: Mapping[Slot, Any],
) -> Any:
    """The numbers that the result of ``step`` has outside of the band, one column of all rows.

    Args:
        offs: those of its operands.
        read: an array in whole.
        rows: such columns that were made before.
    """

    def operand(n: int) -> Any:
        slot, own, off = step.inputs[n], labels[n], offs[n]
        if off is BY_ROW:
            return rows[slot]
        if column not in own:
            return read(slot)
        d = own.index(column)
        if off is not None:
            return jnp.full(one_column(slot.shape, d), off, slot.aval.dtype)
        made = repeated_by(slot, d)
        assert made is not None
        return bound(made, [read(made.inputs[0])], shape=one_column(slot.shape, d))

    if step.name == "select_n" and offs[0] is not None and offs[0] is not BY_ROW:
        return operand(1 + int(offs[0]))
    changed = {SHAPES[step.name]: one_column(step.outputs[0].shape, column)} if step.name in SHAPES else {}
    return bound(step, [operand(n) for n in range(len(step.inputs))], **changed)
