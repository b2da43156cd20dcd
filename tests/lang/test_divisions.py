"""Quotients and remainders are values, and one module says what they are: no other one matches the operators."""

from __future__ import annotations

import re
from pathlib import Path

import jaxte as te
from jaxte.lang.divisions import Quotient, Remainder, division, divisions
from jaxte.lang.expr import Var

PACKAGE = Path(te.__file__).parent
_MATCHES = re.compile(
    r"""\b(is|in|is\ not|not\ in|==)\ \(?(ops\.)?(FLOOR_DIVIDE|MOD|"floor_divide"|"mod")\b|,\ (ops\.)?(MOD|FLOOR_DIVIDE)\)""",
    re.X,
)
# the first makes and folds them, the second is their linear form, the third reads JAX's names
KNOW = {"lang/divisions.py", "lang/arithmetic.py", "sets/affine.py", "bridge/primitive/sizes.py"}


def test_each_is_a_number_and_what_divides_it() -> None:
    i, n = te.reduce_axis((0, 12), "i"), Var("n")
    match division((i + 1) // 4), division(i % n), division(i * 4):
        case Quotient(number, 4), Remainder(_, None) as by_size, None:
            assert number is i + 1 and by_size.divisor is n
        case found:
            raise AssertionError(found)
    nested = divisions((i // 4) % 2 + i)
    assert [type(d) for d in nested] == [Quotient, Remainder] and nested[1].number is nested[0].node


def test_one_module_knows_the_operators() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if _MATCHES.search("\n".join(line for line in path.read_text().splitlines() if "import" not in line))
    }
    assert found <= KNOW | {"sets/solving/elimination.py"}, "ask jaxte.lang.divisions"
