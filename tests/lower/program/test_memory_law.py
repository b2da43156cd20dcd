"""The same law for what is emitted: points beside those that count, and bytes beside what is read and made, for definitions of some size.

No loop computes more than eight times the points of the definition, and no array on the way to a tensor is larger than ten times what the
tensor reads and is, unless tiles or a budget ask for it.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.lang.limits import FAR_FEWER
from jaxte.lower.code.vocabulary import Program
from jaxte.tensors.tensor import Tensor
from tests.lowered import program_of
from tests.test_random_definitions import examples

FEW_BYTES, FEW_POINTS = 2**16, 2**12  # from which on the law is about something

Index = Callable[[Expr, Expr, int], Expr]
INDICES: dict[str, Index] = {
    "window": lambda i, k, n: i + k,
    "strided": lambda i, k, n: (2 * i + k) % n,
    "wrapped": lambda i, k, n: (i + 3 * k - 1) % n,
    "held": lambda i, k, n: te.minimum(te.maximum(i - k, 0), n - 1),
    "reversed": lambda i, k, n: n - 1 - i - k,
    "repeated": lambda i, k, n: (i + k) // 2,
    "digits": lambda i, k, n: (i // 4) * 2 + k % 2,
}
VALUES: tuple[Callable[[Expr], Expr], ...] = (lambda x: x, te.tanh, lambda x: x * x, te.relu)
REDUCTIONS = (te.sum, te.max, te.min, te.prod)


@st.composite
def definitions(draw: st.DrawFn) -> Tensor:
    """A reduction over taps, on one axis or two, of a function of one tensor, times another one at times."""
    n, taps = draw(st.sampled_from([64, 96, 160])), draw(st.integers(2, 5))
    first, second = draw(st.sampled_from(list(INDICES))), draw(st.sampled_from(list(INDICES)))
    value, reduce = draw(st.sampled_from(VALUES)), draw(st.sampled_from(REDUCTIONS))
    both, weighted = draw(st.booleans()), draw(st.booleans())
    size = n + 4
    x, w = te.placeholder((size, size), name="x"), te.placeholder((taps, n), name="w")
    k = te.reduce_axis((0, taps), "k")

    def element(i: Expr, j: Expr) -> Expr:
        column = INDICES[second](j, k, size) if both else j
        read = value(x[INDICES[first](i, k, size), column])
        return reduce(read * w[k, j] if weighted else read, axis=k)

    return te.compute((n, n), element, "y")


def check(program: Program) -> None:
    for choice in program.choices:
        own = choice.verdict
        if own is not None:
            assert own.computed <= max(FAR_FEWER * own.counting, FEW_POINTS), str(own)
            assert own.held <= max(FAR_FEWER * own.needed, FEW_BYTES), str(own)


@examples(quick=12, full=2000)
@given(definition=definitions())
def test_points_and_bytes_of_what_is_emitted(definition: Tensor) -> None:
    head = te.placeholder(definition.shape, name="H")
    check(program_of(definition))
    for source in definition.inputs:
        check(program_of(*te.differentiate(definition, [source], head)))
