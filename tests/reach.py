"""Which rows change how many functions, with their gradients, on each platform; tests/reach.json has what was found.

    PYTHONPATH=.:benchmarks python -m tests.reach                        # for the CPU
    PYTHONPATH=.:benchmarks python -m tests.reach --platform gpu --write # and enters it into tests/reach.json

The functions are those of the suite and the corpus, short ones of many fields (tests/doubled_functions.py), programs as users spell them first
(tests/natural_programs.py, tests/spellings.py), and what te.grad raises of the JAX functions of benchmarks/raised. All spellings of a function count as one.

A row is a step of planning, a pass, a rewrite or a form. One that changes at most two functions is printed with their names: it goes
into a more general one, or it shows three functions that it was not made for (tests/lower/mechanisms.py), as test_reach.py asks.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

import jaxte as te
from harness.case import CORPUS, JAXTE, SUITE, load, names
from harness.inputs import draw
from harness.sides import function
from jaxte.lower.program.rows import rows
from raised import EXAMPLES
from tests.doubled_functions import FUNCTIONS as SHORT
from tests.natural_programs import PROGRAMS
from tests.spellings import FUNCTIONS as SPELLED
from tests.unusual_spellings import FUNCTIONS as UNUSUAL

RECORD = Path(__file__).parent / "reach.json"
PLATFORMS = ("cpu", "gpu", "tpu")
_FEW = 2
_NAMED = 4  # functions of a row that the record names
_SIZE = 64  # of the short functions
Function = tuple[Callable[..., Any], Sequence[Any]]


def functions() -> Iterator[tuple[str, list[Function]]]:
    """The name of each, with its spellings and their arguments."""
    unusual = {fn.__name__: fn for fn in UNUSUAL}
    for name in (*names(SUITE), *names(CORPUS)):
        case = load(name)
        arrays = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in draw(case.inputs_at("full"))]
        others = [te.function(unusual[name])] if name in unusual else []
        yield name, [(fn, arrays) for fn in (function(case, JAXTE), *others)]
    for name, (build, shapes) in SHORT.items():
        yield f"short {name}", [(te.function(build), _floats(shapes(_SIZE)))]
    for name, (spellings, lengths) in SPELLED.items():
        yield f"spelled {name}", [(te.function(s), _floats(lengths)) for s in spellings]
    for name, (build, arguments) in PROGRAMS.items():
        yield f"natural {name}", [(te.function(build), [_single(a) for a in arguments])]
    for name, example in EXAMPLES.items():
        yield f"raised {name}", [(te.adjoint(example.loss), example.arguments())]


def _floats(shapes: Sequence[tuple[int, ...]]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(s, "float32") for s in shapes]


def _single(array: np.ndarray) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, "float32" if array.dtype.kind == "f" else array.dtype)


def reached(fn: Callable[..., Any], arrays: Sequence[Any]) -> set[str]:
    """The names of the rows that change ``fn`` or its gradients, or the regions that are raised of it."""
    told = te.explain(fn, *arrays)
    regions = getattr(told, "regions", None)
    return set().union(*map(_named, [told] if regions is None else [r.code for r in regions]))


def _named(told: Any) -> set[str]:
    found = {name for own in told.passes.values() for name in own}
    for choices in told.choices.values():
        for choice in choices:
            found |= {*choice.rewrites, *(e.form for e in choice.estimates if e.chosen)}
            found |= {part.partition(" of ")[0] for part in choice.form.split(" + ")} | {
                *choice.form.split(" + ")
            }
            found |= {"tiles"} if choice.tiles is not None else set()
    return found


def readers(platform: str) -> tuple[dict[str, list[str]], int]:
    """The functions that each row changes where they are made for ``platform``, and how many functions there are."""
    found: dict[str, list[str]] = defaultdict(list)
    count = 0
    with mock.patch.object(jax, "default_backend", lambda: platform):
        for name, spellings in functions():
            count += 1
            for row in set().union(*(reached(fn, arrays) for fn, arrays in spellings)):
                found[row].append(name)
    return found, count


def write(platform: str, found: dict[str, list[str]], count: int) -> None:
    """Enters what was found into the record: for each row how many functions it changes, and some of them."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record[platform] = {
        "functions": count,
        "rows": {
            name: {"changes": len(found[name]), "as": sorted(found[name])[:_NAMED]}
            for own in rows().values()
            for name, _ in own
            if found[name]
        },
    }
    lines = [
        f' "{p}": {{"functions": {own["functions"]}, "rows": {{\n'
        + ",\n".join(f"  {json.dumps(row)}: {json.dumps(told)}" for row, told in own["rows"].items())
        + "\n }}"
        for p, own in record.items()
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--platform", choices=PLATFORMS, default="cpu")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found, count = readers(asked.platform)
    for kind, own in rows().items():
        print(f"{kind}, of {count} functions for {asked.platform}")
        for row, _ in own:
            few = f"  {', '.join(found[row])}" if len(found[row]) <= _FEW else ""
            print(f"  {row:<32}{len(found[row]):>5}{few}")
    if asked.write:
        write(asked.platform, found, count)


if __name__ == "__main__":
    main()
