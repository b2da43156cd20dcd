"""Attributes of an object are set by its own class: no file changes what belongs to another one. Read off the source, nothing runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "jaxte"
OWN = ("self", "cls")
SETTERS = ("setattr", "object.__setattr__")
# Objects of other libraries, which are told what they have to know in this way, and what Python itself has no other way for.
ALLOWED = {
    "bridge/calls/arguments.py bound.arguments": "inspect.BoundArguments",
    "bridge/compiled/compile.py checked.lower": "a function beside the one of jax.jit, which has it",
    "bridge/primitive/module.py linecache.cache": "where tracebacks look for the lines of emitted modules",
    "bridge/primitive/primitive.py ad.primitive_jvps": "JAX's tables of rules",
    "bridge/primitive/primitive.py ad.primitive_transposes": "JAX's tables of rules",
    "bridge/primitive/primitive.py batching.primitive_batchers": "JAX's tables of rules",
    "frontends/jaxpr/loops/kept_rules.py ad.primitive_jvps": "JAX's tables of rules",
    "frontends/jaxpr/loops/kept_rules.py ad.primitive_transposes": "JAX's tables of rules",
    "frontends/jaxpr/loops/kept_rules.py batching.primitive_batchers": "JAX's tables of rules",
    "frontends/jaxpr/loops/until.py ad.primitive_jvps": "JAX's tables of rules",
    "frontends/jaxpr/loops/until.py batching.primitive_batchers": "JAX's tables of rules",
    "frontends/jaxpr/taken.py setattr": "jax.grad and its kin within te.everywhere, for which JAX has no hook",
    "lang/interning.py object.__setattr__": "nodes are immutable and interned: this is their constructor",
    "lang/interning.py reference.key": "a weak reference, of which a constructor of Python would be half of the time that a node takes",
    "lang/budget.py call.cache_clear": "what functools.lru_cache gives a function, too",
    "sets/transformation.py object.__setattr__": "the constructor of a frozen dataclass that checks its fields",
    "tensors/tensor.py setattr": "a tensor that is unpickled sets its own slots",
    "show/printing.py setattr": "notebooks ask Tensor, which is defined below",
}


def findings(path: Path, root: Path = ROOT) -> Iterator[str]:
    """The attributes set in ``path`` on what is neither ``self`` nor defined by the file itself."""
    tree = ast.parse(path.read_text())
    own = {*OWN, *_defined(tree)}
    where = path.relative_to(root).as_posix()
    for node in ast.walk(tree):
        for target in _set_by(node):
            name = ast.unparse(target)
            if isinstance(target, ast.Attribute) and name not in SETTERS:
                is_dunder = target.attr.startswith("__") and target.attr.endswith("__")
                is_own = isinstance(target.value, ast.Name) and target.value.id in own
                if is_dunder or is_own:
                    continue
            if f"{where} {name}" not in ALLOWED:
                yield f"{where}:{node.lineno} {name}"  # type: ignore[attr-defined]


def _defined(tree: ast.Module) -> Iterator[str]:
    """What a module defines at its top: an object that belongs to it."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (t.id for t in targets if isinstance(t, ast.Name))


def _set_by(node: ast.AST) -> Iterator[ast.expr]:
    """The attributes that a statement assigns, or puts an entry into, and calls that set one."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign(targets=several):
            targets += several
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            targets.append(target)
        case ast.Delete(targets=several):
            targets += several
        case ast.Call(func=function) if ast.unparse(function) in SETTERS:
            yield function
    while targets:
        match targets.pop():
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                targets += parts
            case ast.Attribute() as found:
                yield found
            case ast.Subscript(value=ast.Attribute() as found):
                yield found


def test_attributes_are_set_by_their_own_class() -> None:
    found = [entry for path in sorted(ROOT.rglob("*.py")) for entry in findings(path)]
    assert not found, "give a method to the class, or an argument to its constructor:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(body):\n    body.wide = True", 1),
        ("def f(body):\n    body.seen[1], x = 2, 3", 1),
        ("def f(body):\n    body.forms += ['a']", 1),
        ("def f(body):\n    del body.estimates[1:]", 1),
        ("def f(node):\n    object.__setattr__(node, 'a', 1)", 1),
        ("class A:\n    def f(self):\n        self.x = self.y[1] = 2", 0),
        ("import threading\nlocal = threading.local()\ndef f():\n    local.x = 1", 0),
        ("def f(g):\n    g.__name__ = 'f'", 0),
        ("def f():\n    table = {}\n    table[1] = 2", 0),
    ],
)
def test_the_check_finds(text: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert len(list(findings(path, tmp_path))) == count
