"""Variables that two inequalities leave one value: ``0 <= e - n * q < n`` holds for ``q == e // n`` alone.

So a sum over the quotients of a ``%`` is none: with ``j == i - a - n * q`` between 0 and n, the quotient is ``(i - a) // n``, and ``j`` is
``(i - a) % n``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jaxte.lang.expr import Call, Expr
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.sets.affine import Linear, floor_divide, from_linear
from jaxte.sets.solving.elimination import mentions


def pinned(variables: Iterable[Expr], forms: Sequence[Linear]) -> tuple[Expr, Linear] | None:
    """One of ``variables`` that has one value at most where every form is at least 0, and this value, the shortest to write.

    Where the value is none, the other variables break one of ``forms``, which have to hold with the value put in.
    """
    return min(pins(variables, forms), key=lambda pin: _length(pin[1]), default=None)


def pins(variables: Iterable[Expr], forms: Sequence[Linear]) -> Iterator[tuple[Expr, Linear]]:
    """Each of ``variables`` that has one value at most, with such a value; see :func:`pinned`."""
    for variable in variables:
        above = [f for f in forms if f.coefficient(variable) > 1 and not _hides(f, variable)]
        below = [f for f in forms if f.coefficient(variable) < -1 and not _hides(f, variable)]
        for low in above:
            factor = low.coefficient(variable)
            for high in below:
                width = low + high
                # 0 <= low == factor * q - ... and 0 <= high == width - low
                if width.is_constant and 0 <= width.constant < factor:
                    yield variable, floor_divide(high.without(variable), factor)


def _length(value: Linear) -> tuple[int, int]:
    written = from_linear(value)
    return sum(1 for _ in postorder(written)), len(text(written))


def _hides(form: Linear, variable: Expr) -> bool:
    """Whether ``variable`` stands inside of an atom of ``form`` too."""
    return any(isinstance(atom, Call) and mentions(atom, [variable]) for atom in form.terms)
