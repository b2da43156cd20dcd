"""Expressions that are not negative, whatever finite numbers their inputs are: roots of these are finite, and quotients by what is above zero.

``sqrt(sum over k of x[i, k] ** 2 + 1e-6)`` is finite, and so is ``x[i, j]`` divided by it, or by ``1 + exp(x[i, j])``.

Even functions of differences, each of one of both signs: ``(a - b)**2`` is ``(b - a)**2`` to the last bit, and so are ``cos(a - b)`` and ``1 - tanh(a - b)**2``; the slope
of a sigmoid is to what it rounds ``1 - s`` by.

An adjoint reads the difference of two neighbours from both sides. With the same squares, the weights that are made of them are the same, and
are computed once: ``exp(-(x[i] - x[i + 1])**2)`` for the edge to the right, and for that to the left of the next element. Where all differences are taken in one
direction, functions stay of which these are slopes: the pass forward has computed the same ``tanh(a - b)``.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from operator import is_

from jaxte.lang.dtypes import is_complex, is_inexact
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer
from jaxte.lang.limits import LEVELS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, POWER, SELECT, SUBTRACT
from jaxte.lang.scalars.table import may_blow_up
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, fold, postorder, reads_of
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import reach, surely_inside
from jaxte.tensors.structure import Rows
from jaxte.tensors.tensor import Compute

_NEVER_NEGATIVE = frozenset(
    ["square", "exp", "exp2", "relu", "relu6", "sigmoid", "softplus", "hypot", "cosh"]
)
_SAME = frozenset(["cast", "stop_gradient"])


class Sign(IntEnum):
    """What is known of a number that is not NaN."""

    ANY = 0
    NOT_NEGATIVE = 1
    POSITIVE = 2


def is_finite_by_signs(expr: Expr) -> bool:
    """Whether ``expr`` is finite wherever what it reads is, overflow aside, as far as the signs of roots' operands and of divisors tell."""
    risky = [n for n in all_of(Call, expr) if is_inexact(n.dtype) and may_blow_up(n)]
    return all(map(_is_in_range, risky))


def _is_in_range(node: Call) -> bool:
    """Whether the operands of a function that is not finite everywhere have a sign for which it is."""
    match node.op.name:
        case "divide":
            return sign(node.args[1]) is Sign.POSITIVE
        case "sqrt" | "log1p":
            return sign(node.args[0]) >= Sign.NOT_NEGATIVE
        case "rsqrt" | "log" | "log2" | "log10" | "reciprocal" | "power":
            return sign(node.args[0]) is Sign.POSITIVE
    return False


def sign(expr: Expr) -> Sign:
    """What is known of ``expr``, where results that are too small to be told from zero are zero."""
    return _sign(expr, LEVELS)


@lru_cache(maxsize=4096)
def _sign(expr: Expr, depth: int) -> Sign:
    def rule(node: Expr, below: list[Sign]) -> Sign:
        match node:
            case Const(number) if isinstance(number, (int, float)):
                return Sign.POSITIVE if number > 0 else Sign.NOT_NEGATIVE if number == 0 else Sign.ANY
            case Read(tensor) if isinstance(tensor, Compute) and depth:
                own = _sign(tensor.body, depth - 1)
                # there are zeros around it
                return own if surely_inside(node) else min(own, Sign.NOT_NEGATIVE)
            case Reduce(Reducer(name="sum")):
                return min(below[0], Sign.NOT_NEGATIVE)
            case Call() if is_inexact(node.dtype) and not is_complex(node.dtype):
                return _of_call(node, below)
        return Sign.ANY

    return fold(expr, rule)  # type: ignore[no-any-return]


def _of_call(node: Call, below: list[Sign]) -> Sign:
    name = node.op.name
    if node.op is ADD:
        return max(below) if min(below) else Sign.ANY
    if node.op is SELECT:
        return min(below[1:])
    if node.op is MULTIPLY or node.op is DIVIDE:
        if node.op is MULTIPLY and node.args[0] is node.args[1]:
            return Sign.NOT_NEGATIVE
        return min(
            *below, Sign.POSITIVE if any(isinstance(a, Const) for a in node.args) else Sign.NOT_NEGATIVE
        )
    if name == "maximum":
        return max(below)
    if name == "minimum":
        return min(below)
    if name in _SAME:
        return below[0]
    if name in ("sqrt", "abs"):
        return max(below[0], Sign.NOT_NEGATIVE)
    if node.op is POWER:
        exponent = node.args[1]
        even = (
            isinstance(exponent, Const)
            and isinstance(exponent.value, (int, float))
            and exponent.value % 2 == 0
        )
        return Sign.NOT_NEGATIVE if even or below[0] else Sign.ANY
    return Sign.NOT_NEGATIVE if name in _NEVER_NEGATIVE else Sign.ANY


_EVEN = frozenset(["abs", "square", "cos", "cosh"])
_ODD = frozenset(["sign", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"])


def with_even_functions(body: Expr, with_slopes: bool = True) -> Expr:
    """``body`` with even functions of differences of two elements as functions of what stands behind less what stands before it.

    Args:
        with_slopes: also functions of odd ones, where all differences are taken in one direction: ``1 - tanh(a - b)**2``.
    """
    nodes = postorder(body)
    differences = [n for n in nodes if isinstance(n, Call) and n.op is SUBTRACT]
    if not differences:
        return body
    directions = {_direction(*n.args) for n in differences if all(map(_is_neighbour, n.args))}
    one_way = not with_slopes and directions in ({1}, {-1})
    plain: dict[Expr, Expr] = {}
    turned: dict[Expr, Expr] = {}  # what is the negative of a node
    for node in nodes:
        children = [plain[child] for child in node.children]
        same = all(map(is_, children, node.children))
        plain[node] = node if same else node.rebuild(children)
        if isinstance(node, Call):
            _turn(node, plain, turned, one_way)
    return plain[body]


def _turn(node: Call, plain: dict[Expr, Expr], turned: dict[Expr, Expr], one_way: bool) -> None:
    """Adds ``node`` by the negatives of what it is made of to ``plain``, where they cancel, or to ``turned``."""
    if node.op is SUBTRACT and all(map(_is_neighbour, node.args)):
        first, second = node.args
        direction = _direction(first, second)
        if direction < 0 or (not direction and text(second) < text(first)):
            turned[node] = node.rebuild([second, first])
    elif (sigmoid := _of_logistic_density(node)) is not None and sigmoid.args[0] in turned and not one_way:
        there = sigmoid.rebuild([turned[sigmoid.args[0]]])
        plain[node] = there * (1 - there)
    elif not turned.keys().isdisjoint(node.args):
        if node.op is MULTIPLY or node.op is DIVIDE:
            found = node.rebuild([turned.get(a, plain[a]) for a in node.args])
            (plain if all(a in turned for a in node.args) else turned)[node] = found
        elif node.op.name in _EVEN:
            plain[node] = node.rebuild([turned[a] for a in node.args])
        elif node.op.name in _ODD and not one_way:
            turned[node] = node.rebuild([turned[a] for a in node.args])


def _of_logistic_density(node: Call) -> Call | None:
    """The sigmoid ``s`` of ``s * (1 - s)``, its slope; None where ``node`` is something else."""
    match node:
        case Call(op, (Call() as sigmoid, Call(minus, (Const(1), other)))) if op is MULTIPLY:
            return (
                sigmoid if minus is SUBTRACT and other is sigmoid and sigmoid.op.name == "sigmoid" else None
            )
    return None


def _direction(first: Expr, second: Expr) -> int:
    """1 where ``first`` stands behind ``second`` in their tensor at all positions, -1 where it stands before it, 0 where that is not known."""
    assert isinstance(first, Read)
    assert isinstance(second, Read)
    if first.tensor is not second.tensor:
        return 0
    for a, b in zip(first.indices, second.indices, strict=True):
        forms = linear_or_none(a), linear_or_none(b)
        if a is b:
            continue
        apart = None if forms[0] is None or forms[1] is None else forms[0] - forms[1]
        if apart is None:
            return 0
        ends = reach(apart) if apart.terms else (apart.constant, apart.constant)
        return 0 if ends is None or ends[0] <= 0 <= ends[1] else 1 if ends[0] > 0 else -1
    return 0


def _is_neighbour(node: Expr) -> bool:
    """Whether ``node`` is an element at a known position: of rows that data choose, no other difference is the same from the other side."""
    return isinstance(node, Read) and not isinstance(node.tensor, Rows) and not reads_of(*node.indices)
