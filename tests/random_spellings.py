"""Random reductions and random chains of respellings of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute
from tests.choices import Choices
from tests.respellings import RESPELLINGS

At = Callable[[Any, Any], tuple[Any, Any]]  # where a tap is read, and the condition under which


def spelled(choices: Choices) -> tuple[list[Placeholder], Compute]:
    """A sum or a maximum over taps, or positions, and channels, with weights over some of these."""
    length, channels, outputs = choices.among((24, 32, 36)), choices.among((1, 4, 6)), choices.among((1, 8))
    where, taps, count = _line(choices, length)
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, channels), "c")
    x = te.placeholder((3, length, channels), name="x")
    kind = choices.among(("sum", "sum", "sum", "max"))
    weights = choices.among(("", "k", "kc", "kco", "co")) if kind == "sum" else ""
    extents = {"k": taps, "c": channels, "o": outputs}
    w = te.placeholder(tuple(extents[a] for a in weights) or (1,), name="w")
    shape = (3, count, outputs) if "o" in weights else (3, count)

    def element(b: Any, i: Any, o: Any = None) -> Any:
        place, condition = where(i, k)
        value = x[b, place, c]
        if weights:
            value = value * w[tuple({"k": k, "c": c, "o": o}[a] for a in weights)]
        return getattr(te, kind)(value, axis=[k, c], where=condition)

    y = te.compute(shape, element, "y")
    assert isinstance(y, Compute)
    return ([x, w] if weights else [x]), y


def _line(choices: Choices, n: int) -> tuple[At, int, int]:
    """Where tap ``k`` of position ``i`` is read, how many taps and how many positions there are."""
    taps, dilation, stride = choices.among((2, 3, 4)), choices.among((1, 1, 2)), choices.among((1, 1, 2, 3))
    span = dilation * (taps - 1)
    match choices.number(0, 7):
        case 0:
            return (lambda i, k: (stride * i + dilation * k, None)), taps, (n - span - 1) // stride + 1
        case 1:
            return (lambda i, k: (i + dilation * k - span, i + dilation * k >= span)), taps, n
        case 2:
            half = span // 2
            at = lambda i, k: i + dilation * k - half  # noqa: E731
            return (lambda i, k: (at(i, k), (at(i, k) >= 0) & (at(i, k) < n))), taps, n
        case 3:
            return (lambda i, k: ((stride * i + dilation * k - 1) % n, None)), taps, n // stride
        case 4:
            return (lambda i, k: (k, k <= i)), n, n
        case 5:
            return (lambda i, k: (k, (k >= i - taps) & (k <= i + taps))), n, n
        case 6:
            return (lambda i, k: (k, k // 4 == i)), n, n // 4
        case _:
            return (lambda i, k: (4 * i + k, None)), 4, n // 4


def respelled_by_chance(choices: Choices, tensor: Compute, steps: int) -> tuple[str, Compute]:
    """``tensor`` after ``steps`` respellings, as far as they apply, and their names."""
    names = []
    for _ in range(steps):
        name = choices.among(tuple(RESPELLINGS))
        assert isinstance(tensor.body, Reduce) or not names
        found = RESPELLINGS[name](tensor, tensor.body) if isinstance(tensor.body, Reduce) else None
        if found is not None:
            names.append(name)
            tensor = found
    return " ".join(names), tensor
