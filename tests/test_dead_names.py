"""Every function, class and constant of a module of jaxte is used by something in jaxte, or is public."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "jaxte"
PUBLIC = ("__init__.py", "draw.py", "tensors/facts.py", "testing.py")  # modules whose names users ask for
ASKED_BY_TESTS = ("lower/evaluation/program.py: evaluate_program", "lower/rewrites/table.py: REWRITES")


def defined(tree: ast.Module) -> Iterator[str]:
    """The names that the statements of a module define. What is decorated is registered by its decorator."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if (
                not node.decorator_list or isinstance(node, ast.ClassDef)
            ):
                yield name
            case ast.Assign(targets=targets):
                yield from (t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def read(tree: ast.Module, public: bool) -> Iterator[str]:
    """The names that a file reads, its annotations included; what an ``__init__`` imports is public."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names) if public:
                yield from (alias.name for alias in names)


def unused(root: Path) -> list[str]:
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(root.rglob("*.py"))}
    seen = Counter(name for p, tree in trees.items() for name in read(tree, p.name == "__init__.py"))
    found = []
    for path, tree in trees.items():
        at = path.relative_to(root).as_posix()
        names = () if at in PUBLIC else defined(tree)
        found += [f"{at}: {n}" for n in names if n != "_" and not n.startswith("__") and not seen[n]]
    return [where for where in found if where not in ASKED_BY_TESTS]


def test_every_name_is_used() -> None:
    assert unused(ROOT) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def alone(): ...", ["a.py: alone"]),
        ("LEFT = 3", ["a.py: LEFT"]),
        ("class Empty: ...", ["a.py: Empty"]),
        ("def one(): ...\none()", []),
        ("@registered\ndef rule(): ...", []),
    ],
)
def test_the_check_finds(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "a.py").write_text(text)
    assert unused(tmp_path) == expected
