"""How JAX is spelled is known in one place: no string of ``lower`` outside of its printers holds a piece of JAX code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PRINTERS = (
    "printing",
    "code/lines.py",
    "code/prefixes.py",
    "program/emit.py",
    "program/prelude.py",
)  # of nodes, of statements, and of modules around them with what they begin with
LOWER = Path(__file__).parent.parent.parent / "jaxte" / "lower"
JAX = re.compile(r"\b(jnp|lax|jax|functools)\.[a-z]")
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef)


def templates(source: str) -> Iterator[str]:
    """The strings of a module, docstrings aside, that hold JAX code."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, WITH_DOCSTRING) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if JAX.search(node.value):
                yield f"line {node.lineno}: {node.value!r}"


def test_no_other_file_holds_jax_code() -> None:
    files = {str(path.relative_to(LOWER)): path for path in LOWER.rglob("*.py")}
    found = {
        name: list(templates(path.read_text(encoding="utf-8")))
        for name, path in files.items()
        if not name.startswith(PRINTERS)
    }
    assert not {name: lines for name, lines in found.items() if lines}


def test_the_search_finds_a_template() -> None:
    assert list(templates('"""jnp.sum in a docstring"""\nx = f"jnp.sum({x})"')) == ["line 2: 'jnp.sum('"]
