"""What whoever plans for a platform says around it: what a tensor between two sums costs there, and which steps are not wanted.

Where loops are cheap to start and arithmetic is dear, partial sums that are reused gain early; where arithmetic is cheap and each loop is a
kernel that takes microseconds to start, only large ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from jaxte.lang.budget import unbounded
from jaxte.lang.errors import RangeError
from jaxte.lang.expr import Expr
from jaxte.lang.graphs import identical
from jaxte.lang.rules import VERIFY, fault, verify_expr
from jaxte.lang.scalars.times import IN_VECTORS, FunctionTimes, taking
from jaxte.tensors.bodies.range_checks import check_reads, reads_inside
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Compute


@dataclass(frozen=True, slots=True)
class Intermediates:
    """What it costs to keep part of a sum.

    Attributes:
        element: operations for each element of an intermediate, to write it and read it again.
        loop: operations for the loop that writes it.
        narrow: whether 16-bit numbers are multiplied by units of their own, which float32 numbers in their place would be kept from.
        extrema: whether extrema over windows are tensors of their own, one dimension after the other.
        rows: whether sums along rows are one loop with what they are taken of, and with what reads them, unless another sum divided that.
        within: whether what is computed for each term of a sum is one loop with it.
        chain: elements of a step up to which steps that are alike run in a loop; none do where it is 0.
        function: operations for a function as exp is.
        cheap_steps: whether a step of a loop takes no longer to start than a sum takes to add.
        times: how many times as long as exp other functions take.
    """

    element: int = 4
    loop: int = 0
    narrow: bool = False
    extrema: bool = False
    rows: bool = False
    within: bool = False
    chain: int = 512
    function: float = 2.5
    cheap_steps: bool = True
    times: FunctionTimes = IN_VECTORS


_CHEAP = Intermediates()
_costs: ContextVar[Intermediates | None] = ContextVar("_costs", default=None)
_unwanted: ContextVar[frozenset[str]] = ContextVar("_unwanted", default=frozenset())
_verified: ContextVar[bool] = ContextVar("_verified", default=VERIFY)


def intermediates() -> Intermediates:
    """What intermediates cost here; outside of functions, what they do on a CPU."""
    return _costs.get() or _CHEAP


_outside: list[Callable[[], Intermediates]] = []  # the last of them says what functions would be planned for


def plans_outside(costs: Callable[[], Intermediates]) -> None:
    """``costs`` is asked for what definitions outside of a function are planned for: whoever knows on which platform these will run."""
    _outside.append(costs)


def longest_chained() -> int:
    """Elements of a step up to which steps that are alike run in a loop.

    Outside of functions that is as on the platform which functions would be planned for: a loop stays one where it is differentiated. Asking for
    that starts JAX, so that it is only done where there are such steps.
    """
    own = _costs.get()
    if own is None and _outside:
        own = _outside[-1]()
    return (own or _CHEAP).chain


@contextmanager
def planned_with(costs: Intermediates, without: frozenset[str], debug: bool) -> Iterator[None]:
    """Plans in which intermediates cost as much as ``costs`` says, made by steps that are not among ``without``, and verified under ``debug``."""
    tokens = _costs.set(costs), _unwanted.set(without), _verified.set(debug)
    try:
        with taking(costs.times):
            yield
    finally:
        _costs.reset(tokens[0])
        _unwanted.reset(tokens[1])
        _verified.reset(tokens[2])


@dataclass(frozen=True)
class Asked:
    """Who asks the steps of planning about one tensor.

    Attributes:
        without: the names of the steps that are not wanted.
        fired: the names of those that changed something.
    """

    without: frozenset[str] = field(default_factory=_unwanted.get)
    fired: list[str] = field(default_factory=list)

    def verify(self, rule: str, before: Any, after: Any) -> None:
        if not _verified.get():
            return
        match before, after:
            case Compute(), Compute():
                verify_definition(rule, before, after)
            case Expr(), Expr():
                verify_expr(rule, before, after)
            case tuple(), tuple():
                for old, new in zip(before, after, strict=False):
                    if new is not old and isinstance(old, Compute) and isinstance(new, Compute):
                        verify_definition(rule, old, new)


def verify_definition(rule: str, before: Compute, after: Compute) -> None:
    """Refuses a definition in place of another one of other shape or dtype, or with a read that leaves its tensor where none of that one did.

    Raises:
        RuleError: with the name of the rule that gave it.
    """
    verify_kind(rule, before, after)
    with unbounded():
        if not reads_inside(before.axes, before.body):
            return  # an adjoint may read outside where what it is multiplied by is zero
        try:
            check_reads(after.name, after.axes, after.body)
        except RangeError as error:
            raise fault(rule, str(error)) from None


def verify_kind(rule: str, before: Compute, after: Compute) -> None:
    """Refuses a definition in place of another one of other shape or dtype.

    Raises:
        RuleError: with the name of the rule that gave it.
    """
    verify_expr(rule, before.body, after.element(before.axes))
    if not identical(before.shape, after.shape):
        raise fault(rule, f"{shape_text(after.shape)} stands for {shape_text(before.shape)}")
