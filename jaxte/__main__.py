"""``python -m jaxte compare module:function f32[64,64] f32[3]``: a function with its gradient by ``jax.grad`` and by jaxte, as a table.

``python -m jaxte rows``: the steps, passes, rewrites, ways of writing and forms that ``without=`` takes by name.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxte.bridge.functions.function_methods import Function
from jaxte.comparing import drawn
from jaxte.lang.errors import JaxteError, nearest
from jaxte.lower.program.rows import rows
from jaxte.testing import compare

_ARRAY = re.compile(r"(?P<kind>\w+)\[(?P<shape>[\d, ]*)\]")
_KINDS = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "i32": "int32",
}


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m jaxte", description=__doc__)
    commands = parser.add_subparsers(required=True)
    table = commands.add_parser("compare", help="a function with its gradient by jax.grad and by jaxte")
    table.add_argument("function", help="module:function")
    table.add_argument(
        "arrays", nargs="+", help="f32[64,64]: an array of random numbers of this dtype and shape"
    )
    table.add_argument(
        "--reference", help="module:function: a JAX function of the same results, for a function of jaxte"
    )
    table.add_argument("--order", type=int, default=1, help="2 for second derivatives, too, and so on")
    commands.add_parser(
        "rows", help="the steps, passes, rewrites, ways of writing and forms that programs are made by"
    )
    given = parser.parse_args(words)
    if "function" not in given:
        print(_listed())
        return 0
    sys.path.insert(0, "")
    function = _named(given.function, parser)
    reference = [_named(given.reference, parser)] if given.reference else []
    rng = np.random.default_rng(0)
    arrays = [_array(a, rng, parser) for a in given.arrays]
    try:
        found = compare(function, *reference, *arrays, order=given.order, raises=False)
    except (JaxteError, AssertionError) as error:
        hint = ", here --reference module:function" if isinstance(function, Function) else ""
        parser.error(f"{error}{'' if reference else hint}")
    print(found)
    return 0 if found.agrees else 1


def _named(word: str, parser: argparse.ArgumentParser) -> Callable[..., Any]:
    """The function that ``module:function`` names."""
    module, _, name = word.partition(":")
    if not name:
        parser.error(f"{word} is no function; write module:function, as in model:loss")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        parser.error(f"{error}; the module is looked up in this folder and among what is installed")
    function = getattr(found, name, None)
    if not callable(function):
        parser.error(f"{module} has no function {name}{nearest(name, vars(found))}")
    return function  # type: ignore[no-any-return]


def _listed() -> str:
    lines = []
    for kind, own in rows().items():
        lines += [f"{kind} ({len(own)})", *(f"  {name:<28} {reason}" for name, reason in own)]
    return "\n".join(lines)


def _array(word: str, rng: np.random.Generator, parser: argparse.ArgumentParser) -> Any:
    found = _ARRAY.fullmatch(word)
    kind = _KINDS.get(found["kind"], found["kind"]) if found else ""
    if found is None or kind not in _KINDS.values():
        parser.error(
            f"{word} is no array; write its dtype and shape, as in f32[64,64] (of {', '.join(_KINDS)})"
        )
    shape = [int(n) for n in found["shape"].split(",") if n.strip()]
    return drawn(rng, shape, kind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
