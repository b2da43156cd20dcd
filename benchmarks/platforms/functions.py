"""The functions that are compiled: suite, corpus, raised functions and operators, by jaxte and by plain JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

import jaxte as te
from harness.case import CORPUS, IDIOMATIC, JAXTE, SUITE, load, names
from harness.inputs import draw
from harness.passes import BOTH, FORWARD
from harness.sides import heads, with_gradients
from operators import basic_rows, further_rows, image_rows
from operators.row import ROWS
from raised import EXAMPLES, Example

# importing the rows registers them
assert basic_rows and image_rows and further_rows
RAISED, OPERATORS = "raised", "operators"
GROUPS = (SUITE, CORPUS, RAISED, OPERATORS)


@dataclass(frozen=True)
class Pair:
    """One pass of a function, by both.

    Attributes:
        ours, plain: the functions to compile.
        args: their arguments.
    """

    group: str
    name: str
    which: str
    ours: Callable[..., Any]
    plain: Callable[..., Any]
    args: Sequence[Any]


def pairs(group: str, name: str, platform: str | None, size: str = "full") -> Iterator[Pair]:
    """The passes of a function; ``platform`` is the one that it is compiled for, None for the one that it runs on."""
    if group == RAISED:
        if is_touched(EXAMPLES[name], platform):
            yield _raised(EXAMPLES[name], platform)
        return
    case = ROWS[name].case if group == OPERATORS else load(name)
    args = draw(case.inputs_at("full" if group == OPERATORS else size))
    ours, plain = te.function(case.sides[JAXTE], platform=platform), case.sides[IDIOMATIC]
    yield Pair(group, name, FORWARD, ours, plain, args)
    own = heads(case, IDIOMATIC, args)
    argnums = case.differentiated(args)
    if own and argnums:
        yield Pair(group, name, BOTH, *(with_gradients(f, argnums) for f in (ours, plain)), [own, *args])


def is_touched(example: Example, platform: str | None) -> bool:
    """Whether anything of a function is raised on a platform; else both are the same program."""
    report = te.explain(te.adjoint(example.loss, platform=platform), *example.arguments())
    return bool(report.regions or report.loops or report.parts)


def _raised(example: Example, platform: str | None) -> Pair:
    args = example.arguments()
    floats = tuple(n for n, a in enumerate(args) if all(x.dtype.kind == "f" for x in jax.tree.leaves(a)))
    raised = te.adjoint(example.loss, platform=platform)
    ours, plain = te.value_and_grad(raised, floats), jax.value_and_grad(example.loss, floats)
    return Pair(RAISED, example.name, BOTH, ours, plain, args)


def listed(group: str) -> list[str]:
    """The names of a group's functions."""
    if group == RAISED:
        return list(EXAMPLES)
    return list(ROWS) if group == OPERATORS else names(group)
