"""Variables that two inequalities leave one value: ``0 <= e - n * q < n`` holds for ``q == e // n`` alone.

So a sum over the quotients of a ``%`` is none: with ``j == i - a - n * q`` between 0 and n, the quotient is ``(i - a) // n``, and ``j`` is
``(i - a) % n``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxte.affine import Linear, floor_divide
from jaxte.elimination import mentions
from jaxte.expr import Call, Expr


def pinned(variables: Iterable[Expr], forms: Sequence[Linear]) -> tuple[Expr, Linear] | None:
    """The first of ``variables`` that has one value at most where every form is at least 0, and this value.

    Where the value is none, the other variables break one of ``forms``, which have to hold with the value put in.
    """
    for variable in variables:
        above = [f for f in forms if f.coefficient(variable) > 1 and not _hides(f, variable)]
        below = [f for f in forms if f.coefficient(variable) < -1 and not _hides(f, variable)]
        for low in above:
            factor = low.coefficient(variable)
            for high in below:
                width = low + high
                # 0 <= low == factor * q - ... and 0 <= high == width - low
                if width.is_constant and 0 <= width.constant < factor:
                    return variable, floor_divide(high.without(variable), factor)
    return None


def _hides(form: Linear, variable: Expr) -> bool:
    """Whether ``variable`` stands inside of an atom of ``form`` too."""
    return any(isinstance(atom, Call) and mentions(atom, [variable]) for atom in form.terms)
