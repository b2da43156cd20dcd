"""``python -m tests.thresholds``: the numbers with a name in jaxte, each with its reason, apart by what is done with them.

A threshold is a number that something may be more or less than, by an operator, ``min`` or ``max``, and that decides how a thing is computed. Numbers that are only
calculated with (costs, sizes, points of a sequence), handed on as an argument, or that count what is shown of a text or drawing, decide nothing of that kind by themselves,
and what numbers may differ by where they are rounded decides whether they are equal;
those that are handed on may be limits all the same, and are listed by themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent / "jaxte"
THRESHOLDS, TEXT, ROUNDING, CALCULATED, GIVEN = (
    "thresholds",
    "lengths of text",
    "bounds of rounding",
    "calculated with",
    "handed on",
)
KINDS = (THRESHOLDS, TEXT, ROUNDING, CALCULATED, GIVEN)
_BY_REASON = {
    TEXT: ("characters", "signs on a line", "pixels", "definitions shown"),
    ROUNDING: ("rounding", "rounded", "may round", "precision", "approximates"),
}
_SAME = ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn  # with which nothing is more or less


@dataclass(frozen=True)
class Number:
    """A number with a name, by its module and the line there, with the statement that says what it counts."""

    module: str
    name: str
    line: str


def numbers(trees: dict[str, ast.Module], lines: dict[str, list[str]]) -> Iterator[Number]:
    """Those of all modules; each name of a tuple counts."""
    for module, tree in trees.items():
        for node in tree.body:
            if (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and node.value is not None
                and _is_number(node.value)
            ):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                line = " ".join(" ".join(lines[module][node.lineno - 1 : node.end_lineno]).split())
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield Number(module, name.id, line)


def kinds(root: Path = ROOT) -> dict[str, list[Number]]:
    """The numbers below ``root``, by what is done with them wherever they are read."""
    texts = {
        ".".join((root.name, *p.relative_to(root).with_suffix("").parts)): p.read_text(encoding="utf-8")
        for p in sorted(root.rglob("*.py"))
    }
    trees = {module: ast.parse(text) for module, text in texts.items()}
    own = list(numbers(trees, {module: text.splitlines() for module, text in texts.items()}))
    uses: dict[tuple[str, str], set[str]] = {(n.module, n.name): set() for n in own}
    for module, tree in trees.items():
        local = {name: (m, name) for m, name in uses if m == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                local |= {
                    a.asname or a.name: (node.module or "", a.name)
                    for a in node.names
                    if (node.module, a.name) in uses
                }
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in local:
                uses[local[node.id]].add(_use(node, parents))
    found: dict[str, list[Number]] = {kind: [] for kind in KINDS}
    for number in own:
        met = uses[number.module, number.name]
        said = (kind for kind, words in _BY_REASON.items() if any(word in number.line for word in words))
        found[next(said, next(k for k in KINDS if k in met or k == GIVEN))].append(number)
    return found


def _use(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    calculated = False
    while node in parents and not isinstance(node, ast.stmt):
        node = parents[node]
        if isinstance(node, ast.Compare) and not all(isinstance(op, _SAME) for op in node.ops):
            return THRESHOLDS
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            clamps = any(isinstance(a, ast.Constant) and a.value == 0 for a in node.args)
            if node.func.id in ("min", "max") and not clamps:
                return THRESHOLDS
            if node.func.id == "len":
                return GIVEN
        calculated |= isinstance(node, ast.BinOp)
    return CALCULATED if calculated else GIVEN


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.Tuple(elts=items):
            return bool(items) and all(map(_is_number, items))
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
    return False


def main() -> None:
    found = kinds()
    for kind, own in found.items():
        print(f"{len(own)} {kind}")
        for number in own:
            print(f"  {number.module}: {number.line}")
    print(f"{sum(map(len, found.values()))} in all")


if __name__ == "__main__":
    main()
