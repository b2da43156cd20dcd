"""``PYTHONPATH=.:benchmarks python -m tests.reach``: which rows change how many functions, with their gradients: those of the suite and
the corpus, also as others would spell them, and short ones of many fields (tests/doubled_functions.py).

A row is a step of planning, a pass, a rewrite or a form. One that changes at most two functions is printed with their names: it goes
into a more general one, or it shows three functions that it was not made for (see tests/lower/mechanisms.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import jax

import jaxte as te
from harness.case import CORPUS, JAXTE, SUITE, load, names
from harness.inputs import draw
from harness.sides import function
from jaxte.lower.program.rows import rows
from tests.doubled_functions import FUNCTIONS as SHORT
from tests.unusual_spellings import FUNCTIONS as SPELLINGS

_FEW = 2
_SIZE = 64  # of the short functions


def functions() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Each with its name and the shapes of its arguments."""
    spelled = {fn.__name__: fn for fn in SPELLINGS}
    for name in (*names(SUITE), *names(CORPUS)):
        case = load(name)
        arrays = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in draw(case.inputs_at("full"))]
        yield name, function(case, JAXTE), arrays
        if name in spelled:
            yield f"{name} otherwise", te.function(spelled[name]), arrays
    for name, (build, shapes) in SHORT.items():
        yield f"short {name}", te.function(build), [jax.ShapeDtypeStruct(s, "float32") for s in shapes(_SIZE)]


def reached(fn: Callable[..., Any], arrays: list[Any]) -> set[str]:
    """The names of the rows that change ``fn`` or its gradients."""
    told = te.explain(fn, *arrays)
    found = {name for own in told.passes.values() for name in own}
    for choices in told.choices.values():
        for choice in choices:
            found |= {*choice.rewrites, *choice.form.split(" + ")}
            found |= {"tiles"} if choice.tiles is not None else set()
    return found


def main() -> None:
    readers: dict[str, list[str]] = defaultdict(list)
    count = 0
    for name, fn, arrays in functions():
        count += 1
        for row in reached(fn, arrays):
            readers[row].append(name)
    for kind, own in rows().items():
        print(f"{kind}, of {count} functions")
        for row, _ in own:
            few = f"  {', '.join(readers[row])}" if len(readers[row]) <= _FEW else ""
            print(f"  {row:<32}{len(readers[row]):>5}{few}")


if __name__ == "__main__":
    main()
