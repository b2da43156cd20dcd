"""Every function, class and constant of a module of jaxte is used by something in jaxte, or is public; and what texts name exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "jaxte"
# modules whose names users ask for
PUBLIC = (
    "__init__.py",
    "draw.py",
    "lang/functions/composed.py",
    "lang/functions/special.py",
    "tensors/facts.py",
    "testing.py",
)
TEXTS = ("jaxte/**/*.py", "docs/**/*.md", "README.md", "CONTRIBUTING.md")
FOLDERS = ("jaxte", "tests", "benchmarks", "examples")
MODULE = re.compile(r"\bjaxte(?:\.[a-z_]\w*)+")
FILE = re.compile(r"(?<![\w./{}-])(?:\w+/)*\w+\.py\b")
ASKED_BY_TESTS = ("lower/rewrites/table.py: REWRITES",)


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


def without_reason(root: Path) -> list[str]:
    """The numbers with a name of which no comment, and no string below them, says what they count and what holds beyond."""
    found = []
    for path in sorted(root.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.parse("\n".join(lines)).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if value is None or not _is_number(value):
                continue
            around = [lines[node.lineno - 2].lstrip(), *lines[node.lineno - 1 : node.end_lineno]]
            below = lines[node.end_lineno] if node.end_lineno < len(lines) else ""
            said = around[0].startswith("#") or any("#" in line for line in around[1:])
            if not said and not below.startswith('"""'):
                found.append(f"{path.relative_to(root).as_posix()}:{node.lineno}: {around[1]}")
    return found


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.Tuple(elts=items):
            return bool(items) and all(map(_is_number, items))
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
    return False


def test_every_number_says_what_it_counts() -> None:
    assert without_reason(ROOT) == []


def test_a_number_alone_is_found(tmp_path: Path) -> None:
    written = (
        '_A = 3\n\n_B = 1 << 4, 2  # rows\n\n# rows\n_C = 2.5\n\nD = 4\n"""Rows."""\n\nE: int = 5\nF = True\n'
    )
    (tmp_path / "some.py").write_text(written, encoding="utf-8")
    assert without_reason(tmp_path) == ["some.py:1: _A = 3", "some.py:11: E: int = 5"]


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


def missing(root: Path, texts: Iterable[Path]) -> list[str]:
    """The modules and files that ``texts`` name and that do not exist below ``root``, the folder of jaxte's folder."""
    files = [
        f"/{p.relative_to(root).as_posix()}" for folder in FOLDERS for p in (root / folder).rglob("*.py")
    ]
    found = []
    for path in texts:
        text = path.read_text(encoding="utf-8")
        gone = [m[0] for m in MODULE.finditer(text) if not exists(root, m[0].split("."))]
        gone += [m[0] for m in FILE.finditer(text) if not any(f.endswith(f"/{m[0]}") for f in files)]
        found += [f"{path.relative_to(root)}: {name}" for name in dict.fromkeys(gone)]
    return found


def exists(root: Path, parts: list[str]) -> bool:
    """Whether the dotted name is a module, or the module before it has a name like the next part."""
    at = root
    for part in parts:
        file = (at / part).with_suffix(".py")
        if not (at / part).is_dir() and not file.exists():
            source = at / "__init__.py" if at.is_dir() else at
            return part in source.read_text(encoding="utf-8")
        at = at / part if (at / part).is_dir() else file
    return True


def test_what_texts_name_exists() -> None:
    assert missing(ROOT.parent, [p for pattern in TEXTS for p in ROOT.parent.glob(pattern)]) == []


def test_what_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "jaxte" / "lang").mkdir(parents=True)
    (tmp_path / "jaxte" / "lang" / "__init__.py").touch()
    (tmp_path / "jaxte" / "lang" / "expr.py").write_text("def read(): ...")
    text = tmp_path / "a.md"
    text.write_text("jaxte.lang.expr.read jaxte.lang.gone lang/expr.py lang/gone.py jaxte.lang.expr.lost")
    assert missing(tmp_path, [text]) == [
        "a.md: jaxte.lang.gone", "a.md: jaxte.lang.expr.lost", "a.md: lang/gone.py"
    ]  # fmt: skip
