"""A band with a step as bands without one, side by side: one for each remainder of the rows.

Column ``g r + s z`` is, for the rows ``r = s q + m`` of one remainder ``m``, the column ``g q + z`` of those that are ``s`` apart from
``g m`` on. Where windows move by one column a row, these are what a reshape to rows of ``s`` makes of all columns; where they move
by a stride ``g``, there is a slice for each remainder.
"""

from __future__ import annotations

from jaxte.lower.code.lettered_array import Shaped
from jaxte.lower.code.spec import tuple_text
from jaxte.lower.printing.numbers import dtype_text


def columns_in_all(count: int, stride: int, step: int) -> int:
    """The number of columns, where there are ``count`` for each remainder."""
    return stride * (step - 1) + step * (count - 1) + 1


def by_remainders(y: Shaped, at: int, stride: int, step: int, loop: str) -> Shaped:
    """The columns in dimension ``at`` of ``y`` as those of each remainder, which come next; ``loop`` is a free name."""
    count = (y.extents[at] - stride * (step - 1) - 1) // step + 1
    if stride == 1:
        return y.reshaped(at, 1, "js", (count, step))
    start = f"{stride} * {loop}"
    entry = f"{start}:{start} + {step * (count - 1) + 1}:{step}"
    taken = f"{y.text}[{', '.join([*[':'] * at, entry])}]"
    text = f"jnp.stack([{taken} for {loop} in range({step})], axis={at + 1})"
    letters = f"{y.letters[: at + 1]}s{y.letters[at + 1 :]}"
    return Shaped(text, letters, (*y.extents[:at], count, step, *y.extents[at + 1 :]))


def added_remainders(y: Shaped, at: int, stride: int, loop: str, dtype: str) -> Shaped:
    """All columns in dimension ``at``, of those of each remainder in the next one: the other way round."""
    count, step = y.extents[at : at + 2]
    length = columns_in_all(count, stride, step)
    if stride == 1:
        return y.reshaped(at, 2, "j", (length,))
    widths = ["(0, 0, 0)"] * (len(y.extents) - 1)
    widths[at] = f"({stride} * {loop}, {stride} * ({step - 1} - {loop}), {step - 1})"
    taken = f"{y.text}[{', '.join([*[':'] * (at + 1), loop])}]"
    placed = f"lax.pad({taken}, {dtype_text(dtype)}(0), {tuple_text(widths)})"
    letters = y.letters[: at + 1] + y.letters[at + 2 :]
    extents = (*y.extents[:at], length, *y.extents[at + 2 :])
    return Shaped(f"sum({placed} for {loop} in range({step}))", letters, extents)
