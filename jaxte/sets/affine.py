"""Index expressions as integer-linear forms.

A form is ``sum of coefficient * atom + constant`` with integer coefficients. Atoms are axes, sizes and the
quasi-affine nodes ``e // c``, ``e % c``, ``minimum``, ``maximum`` and reads of integer tensors. Normalising an
expression through its form makes equal index expressions the same node wherever this arithmetic can show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from math import gcd
from operator import attrgetter

from jaxte.lang.dtypes import SHORT_INTEGERS, UNSIGNED
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Var, as_expr, call, widened
from jaxte.lang.operators import ADD, FLOOR_DIVIDE, MOD, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import OfNodes, reads_of
from jaxte.sets.linear import Linear, multiple_of, new_form, split_multiples
from jaxte.sets.quasi_affine import index_of, is_of_sizes, product_of

_dtype = attrgetter("dtype")
_QUASI = ("floor_divide", "mod", "minimum", "maximum")


@lru_cache(maxsize=4096)  # every step of lowering reads the same indices again
def linear(expr: Expr) -> Linear:
    """The linear form of an index expression.

    Raises:
        IndexExpressionError: a product of axes, or a value that is no integer arithmetic.
    """
    if not expr.children:  # most are an axis or a number
        return _form(expr, {})
    found = _forms.of(index_of(expr))
    return _join_divisions(found) if len(found.terms) > 1 else found


def _form_as_computed(node: Expr, forms: Mapping[Expr, Linear]) -> Linear:
    form = _form(node, forms)
    return Linear({node: 1}) if node.dtype in SHORT_INTEGERS and _wraps(node) else form


def _form(node: Expr, forms: Mapping[Expr, Linear]) -> Linear:
    match node:
        case Const(int() as value):
            return Linear({}, int(value))
        case Axis() | Var():
            return Linear({node: 1})
        case Read() if node.dtype != "bool" and not node.dtype.startswith(("f", "b", "c")):
            return Linear({node: 1})
        case Call(op, args) if node.dtype != "bool":  # of which the sum is no sum of integers
            operands = [forms.get(a) or Linear({}) for a in args]
            match op.name:
                case "add":
                    return operands[0] + operands[1]
                case "subtract":
                    return operands[0] - operands[1]
                case "negative":
                    return operands[0] * -1
                case "multiply" if operands[0].is_constant:
                    return operands[1] * operands[0].constant
                case "multiply" if operands[1].is_constant:
                    return operands[0] * operands[1].constant
                case "multiply" if is_of_sizes(node):
                    return _product(*operands)
                case "cast" if not node.dtype.startswith(("f", "c", "bf", "bool")):
                    return operands[0]
                case "floor_divide" | "mod":
                    return _division(node, op.name, operands)
                case "minimum" | "maximum":
                    parts = [from_linear(o) for o in operands]
                    return _atom(call(op, *parts))
    remedy = "for data-dependent positions index with an integer tensor, as in X[I[i]]"
    if isinstance(node, Call) and node.op.name == "multiply":
        remedy = f"for factors that differ along an axis write te.choose(h, (1, 2, 4)) * k; {remedy}"
    raise IndexExpressionError(
        f"`{text(node)}` is not affine: an index is a sum of axes and sizes times integer constants, with // and % "
        f"by constants; {remedy}"
    )


_forms = OfNodes(_form_as_computed)


def _product(a: Linear, b: Linear) -> Linear:
    """The product of two forms of sizes."""
    result = b * a.constant + Linear(a.terms) * b.constant
    for (x, m), (y, n) in product(a.terms.items(), b.terms.items()):
        result = result + Linear({product_of(x, y): m * n})
    return result


def _wraps(node: Expr) -> bool:
    """Whether ``node`` is arithmetic of short integers on data, whose results may be other than those of the numbers."""
    if not isinstance(node, Call) or not reads_of(node):
        return False
    if node.op.name != "cast":
        return node.op.name in ("add", "subtract", "negative", "multiply")
    (operand,) = node.args
    return not operand.weak and operand.dtype != node.dtype


def _atom(node: Expr) -> Linear:
    """The form of a node that may have been folded to a constant or an axis."""
    return Linear({}, int(node.value)) if isinstance(node, Const) else Linear({node: 1})  # type: ignore[arg-type]


def _division(node: Expr, name: str, operands: list[Linear]) -> Linear:
    numerator, divisor = operands
    if not divisor.is_constant or divisor.constant <= 0:
        raise IndexExpressionError(
            f"`{text(node)}`: an index is divided by a positive constant, or by what is positive at each position"
        )
    # a number below 0 would be another one there, as (q + 2) % 3 written (q - 1) % 3
    if node.dtype in UNSIGNED and reads_of(node):
        return Linear({node: 1})
    numerator = _join_divisions(numerator) if len(numerator.terms) > 1 else numerator
    return (
        floor_divide(numerator, divisor.constant)
        if name == "floor_divide"
        else mod(numerator, divisor.constant)
    )


def floor_divide(form: Linear, divisor: int) -> Linear:
    """``form // divisor`` with the multiples of the divisor taken out."""
    whole, rest = split_multiples(form, divisor)
    if not rest.terms:
        return new_form(Linear, (whole.terms, whole.constant + rest.constant // divisor))
    common = gcd(divisor, *rest.terms.values())
    if common > 1:  # (2 * e + r) // (2 * c) == (e + r // 2) // c
        return whole + floor_divide(rest // common, divisor // common)
    nested = [a for a, c in rest.terms.items() if c == 1 and isinstance(a, Call) and a.op is FLOOR_DIVIDE]
    if len(nested) == 1:  # (x + e // b) // c == (b * x + e) // (b * c)
        numerator, by = nested[0].args
        factor = int(by.value)  # type: ignore[attr-defined]
        return whole + floor_divide(rest.without(nested[0]) * factor + linear(numerator), divisor * factor)
    inner = _single_atom(rest)
    if inner is not None and inner.op is MOD and inner.args[1].value <= divisor:  # type: ignore[attr-defined]
        return whole
    return whole + _atom(call(FLOOR_DIVIDE, from_linear(rest), divisor))


def mod(form: Linear, divisor: int) -> Linear:
    """``form % divisor`` with the multiples of the divisor left out, of remainders too."""
    form = _without_remainders(form, divisor)
    _, rest = split_multiples(form, divisor)
    if not rest.terms:
        return Linear({}, rest.constant % divisor)
    common = gcd(divisor, *rest.terms.values())
    if common > 1:  # (2 * e + r) % (2 * c) == 2 * ((e + r // 2) % c) + r % 2
        return mod(rest // common, divisor // common) * common + Linear({}, rest.constant % common)
    inner = _single_atom(rest)
    if inner is not None and inner.op is MOD and inner.args[1].value <= divisor:  # type: ignore[attr-defined]
        return rest
    return _atom(call(MOD, from_linear(rest), divisor))


def _without_remainders(form: Linear, divisor: int) -> Linear:
    """``form`` with the same remainder by ``divisor``: ``(e % 6 + k) % 3 == (e + k) % 3``."""
    for atom, factor in form.terms.items():
        if isinstance(atom, Call) and atom.op is MOD and factor * int(atom.args[1].value) % divisor == 0:  # type: ignore[attr-defined]
            return _without_remainders(form.without(atom) + linear(atom.args[0]) * factor, divisor)
    return form


def _single_atom(form: Linear) -> Call | None:
    """The quasi-affine atom that ``form`` is, if it is one with coefficient 1."""
    if form.constant == 0 and len(form.terms) == 1:
        ((atom, coefficient),) = form.terms.items()
        if coefficient == 1 and isinstance(atom, Call) and atom.op.name in _QUASI:
            return atom
    return None


def from_linear(form: Linear) -> Expr:
    """``form`` as an expression, with ``e - c * (e // c)`` written as ``e % c``.

    Data of short integers are widened where they are computed with.
    """
    return _written(tuple(form.terms.items()), form.constant)


@lru_cache(maxsize=4096)
def _written(terms: tuple[tuple[Expr, int], ...], constant: int) -> Expr:
    form = _join_divisions(new_form(Linear, (dict(terms), constant)))
    computed = form.constant or len(form.terms) > 1 or 1 not in form.terms.values()
    if computed and not SHORT_INTEGERS.keys().isdisjoint(map(_dtype, form.terms)):
        form = Linear({widened(a): c for a, c in form.terms.items()}, form.constant)
    by_size = [*form.terms.items()]
    if len(by_size) > 1:
        by_size.sort(key=lambda term: -abs(term[1]))
    result: Expr | None = None
    for atom, coefficient in by_size:
        if coefficient > 0:
            term = atom if coefficient == 1 else call(MULTIPLY, coefficient, atom)
            result = term if result is None else call(ADD, result, term)
    negative = [(a, c) for a, c in by_size if c < 0]
    constant = form.constant
    if result is None:
        if not negative:
            return as_expr(constant)
        if constant:
            result, constant = as_expr(constant), 0
        else:
            atom, coefficient = negative.pop(0)
            result = call(NEGATIVE, atom) if coefficient == -1 else call(MULTIPLY, coefficient, atom)
    for atom, coefficient in negative:
        result = call(SUBTRACT, result, atom if coefficient == -1 else call(MULTIPLY, -coefficient, atom))
    if constant > 0:
        return call(ADD, result, constant)
    return call(SUBTRACT, result, -constant) if constant else result


def _join_divisions(form: Linear) -> Linear:
    """``form`` with ``n`` beside ``n // c`` written as ``c * (n // c) + n % c`` where that leaves less.

    Likewise ``c * (n // c) + n % c`` becomes ``n``, ``n - n % c`` becomes ``c * (n // c)``, and ``n // b - c * (n // (b * c))`` the digit ``n // b % c``.
    """
    for atom, coefficient in list(form.terms.items()):
        if not (isinstance(atom, Call) and form.terms.get(atom) == coefficient):
            continue
        if atom.op is FLOOR_DIVIDE and len(form.terms) > 1:
            numerator, divisor = linear(atom.args[0]), atom.args[1].value  # type: ignore[attr-defined]
            multiple = multiple_of(form, numerator)
            if multiple and abs(coefficient + multiple * divisor) < abs(coefficient):
                form = form - numerator * multiple + Linear({atom: multiple * divisor})
                form = form + mod(numerator, divisor) * multiple
            elif (digit := _digit(form, atom)) is not None:
                form = digit
        elif atom.op is MOD:
            numerator, divisor = linear(atom.args[0]), atom.args[1].value  # type: ignore[attr-defined]
            if (
                len(form.terms) > 1
                and (joined := _without_remainder(form, atom, numerator, divisor)) is not None
            ):
                form = joined
            elif coefficient < 0 and form.constant == coefficient * (1 - divisor):
                # c - 1 - e % c == (-1 - e) % c, unless that makes coefficients larger
                turned = mod(numerator * -1 - Linear({}, 1), divisor)
                if _size(turned) <= _size(Linear({atom: 1})):
                    form = form - Linear({atom: coefficient}, form.constant) + turned * -coefficient
    return form


def _without_remainder(form: Linear, atom: Call, numerator: Linear, divisor: int) -> Linear | None:
    """``form`` with ``n`` or multiples of ``n // divisor`` beside ``atom``, which is ``n % divisor``, as the other one of these; None where there are none."""
    coefficient = form.terms[atom]
    if numerator.terms and multiple_of(form, numerator) == -coefficient:
        form = form - numerator * -coefficient - Linear({atom: coefficient})
        return form + floor_divide(numerator, divisor) * (-coefficient * divisor)
    quotient = floor_divide(numerator, divisor)
    if quotient.terms and multiple_of(form, quotient) == coefficient * divisor:
        form = form - quotient * (coefficient * divisor) - Linear({atom: coefficient})
        return form + numerator * coefficient
    return None


def _digit(form: Linear, atom: Call) -> Linear | None:
    """``form`` with ``n // b`` beside ``atom``, which is ``n // (b * c)``, as a multiple of ``atom`` and the digit ``n // b % c``; None where there is no such."""
    numerator, divisor = atom.args
    for other, factor in form.terms.items():
        if other is atom or not isinstance(other, Call) or other.op is not FLOOR_DIVIDE:
            continue
        if other.args[0] is not numerator:
            continue
        ratio, rest = divmod(int(divisor.value), int(other.args[1].value))  # type: ignore[attr-defined]
        left = form.coefficient(atom) + factor * ratio
        if rest == 0 and factor > 0 and abs(left) < abs(form.coefficient(atom)):
            kept = form.without(other).without(atom) + Linear({atom: left})
            return kept + mod(Linear({other: 1}), ratio) * factor
    return None


def _size(form: Linear) -> int:
    """How much there is to read in the only atom of ``form``: its coefficients added up, a sign counting half of one."""
    (atom,) = form.terms or (None,)
    factors = linear(atom.args[0]).terms.values() if isinstance(atom, Call) else ()
    return sum(2 * abs(c) + (c < 0) for c in factors)


@lru_cache(maxsize=4096)
def normal(expr: Expr) -> Expr:
    """The normal form of an index expression; the same node for equal ones where linear arithmetic shows it."""
    return from_linear(linear(expr))
