"""How many lines a definition takes beside plain JAX: the functions of the corpus, and the networks of the examples.

python benchmarks/lines.py     # renews docs/results/lines.md
"""

from __future__ import annotations

import ast
import inspect
import statistics
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jaxte as te
from harness.case import CORPUS, IDIOMATIC, JAXTE, load, names
from harness.inputs import draw

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "lines.md"
WIDTH = 110  # of a line, as in the code of this repository
# the functions and classes of an example that are the same network, with jaxte and with equinox
EXAMPLES = {
    "residual_digits": (("layer", "network", "loss", "value_and_grad"), ("Layer", "Network", "plain_value_and_grad")),
    "window_transformer": (
        ("rotated", "heads_apart", "attended", "network", "loss", "value_and_grad"),
        ("Block", "Network", "plain_value_and_grad"),
    ),
}  # fmt: skip
HEAD = """# Lines of code

Written by `python benchmarks/lines.py`; do not edit. These are lines of code of a function's body, without its signature, its docstring and blank lines, at {width}
characters a line.

| written as | median | mean |
|---|---|---|
| a builder of `te.compute`, with shapes and ranges | {builder} |
| plain JAX, as a good user of it writes first | {plain} |
| formulas, as `te.definitions` writes them and `te.define` reads them | {formulas} |

Builders and plain JAX are those of `benchmarks/corpus`. Formulas state the range of each axis behind the definition; a formula that is longer than a line counts as
several. They are no longer than plain JAX in {shorter} of the {all} functions. The others are programs of several steps, for which plain JAX has a loop or a function
of its library.

## Networks

The networks of the examples, with the functions that compute their losses and gradients, once of `te.ops` and once of equinox, whose classes also declare and draw the
parameters that both sides use:

| example | jaxte | equinox |
|---|---|---|
{examples}

## The functions of the corpus

| function | builder | plain JAX | formulas |
|---|---|---|---|
{rows}
"""


def body_lines(nodes: Sequence[ast.stmt]) -> int:
    """The lines on which statements stand; docstrings are none."""
    code = [n for n in nodes if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    return len({line for n in code for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)})


def lines_of(function: Callable[..., Any]) -> int:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return body_lines(node.body) if isinstance(node, ast.FunctionDef) else 1


def formula_lines(name: str) -> int:
    case = load(name)
    arrays = draw(case.inputs_at("tiny"))
    inputs = [te.placeholder(a.shape, a.dtype, f"arg{n}") for n, a in enumerate(arrays)]
    result = case.sides[JAXTE](*inputs)
    formulas = te.definitions(list(result) if isinstance(result, tuple) else [result]).splitlines()
    return sum(len(textwrap.wrap(formula, WIDTH)) for formula in formulas)


def measured() -> dict[str, tuple[int, int, int]]:
    """Of each function of the corpus: the builder, plain JAX, formulas."""
    sides = {name: load(name).sides for name in names(CORPUS)}
    return {n: (lines_of(s[JAXTE]), lines_of(s[IDIOMATIC]), formula_lines(n)) for n, s in sides.items()}


def of_example(name: str, wanted: Sequence[str]) -> int:
    tree = ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in wanted]
    assert len(found) == len(wanted), name
    text = "\n".join(ast.unparse(n) for n in found)  # without blank lines and comments
    return sum(len(textwrap.wrap(line, WIDTH)) for line in text.splitlines() if line.strip())


def page() -> str:
    found = measured()
    builder, plain, formulas = zip(*found.values(), strict=True)
    shown = [f"{statistics.median(v):g} | {statistics.mean(v):.1f}" for v in (builder, plain, formulas)]
    return HEAD.format(
        width=WIDTH,
        builder=shown[0],
        plain=shown[1],
        formulas=shown[2],
        shorter=sum(f <= p for f, p in zip(formulas, plain, strict=True)),
        all=len(found),
        examples="\n".join(
            f"| `{name}` | {of_example(name, ours)} | {of_example(name, theirs)} |"
            for name, (ours, theirs) in EXAMPLES.items()
        ),
        rows="\n".join(f"| `{name}` | {' | '.join(map(str, row))} |" for name, row in found.items()),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
