"""What a builder returned: tensors in a pytree, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_structure

from jaxte.lang.checks import described
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr
from jaxte.lang.text import text
from jaxte.tensors.graph import topological_order
from jaxte.tensors.tensor import Placeholder, Tensor


@dataclass(frozen=True)
class Outputs:
    """The tensors of a result, and the pytree that they stand in.

    Attributes:
        main: how many of them come first that are differentiated, where the rest is auxiliary.
    """

    tensors: tuple[Tensor, ...]
    tree: PyTreeDef
    main: int

    @property
    def with_head(self) -> tuple[int, ...]:
        """Positions of the tensors that have a derivative."""
        return tuple(n for n, t in enumerate(self.tensors[: self.main]) if is_inexact(t.dtype))

    @property
    def is_single(self) -> bool:
        return self.tree == tree_structure(0)


def collect_outputs(result: Any, label: str, has_aux: bool = False) -> Outputs:
    """The tensors of ``result``; with ``has_aux``, those of the first of a pair have derivatives."""
    if has_aux and not (isinstance(result, (tuple, list)) and len(result) == 2):
        raise DefinitionError(
            f"{label}: with has_aux=True the function returns a pair (output, auxiliary), not {described(result)}"
        )
    found, tree = tree_flatten_with_path(result)
    for path, leaf in found:
        if not isinstance(leaf, Tensor):
            raise DefinitionError(_not_a_tensor(leaf, f"{label} returns{_at(keystr(path))}"))
    if not found:
        raise DefinitionError(
            f"{label} returns {described(result)}, no Tensor; end the builder with `return` and the Tensor (or a tuple, "
            "list or dict of Tensors) that it makes"
        )
    main = len(tree_flatten_with_path(result[0])[0]) if has_aux else len(found)
    return Outputs(tuple(leaf for _, leaf in found), tree, main)


def _at(where: str) -> str:
    return f" at {where}" if where else ""


def _not_a_tensor(leaf: Any, where: str) -> str:
    if isinstance(leaf, Expr):
        shown = text(leaf)
        return f"{where} the scalar expression `{shown}`; make it a Tensor with te.compute(lambda: {shown})"
    return f"{where} {described(leaf)}, no Tensor; return Tensors, made by te.compute or te.ops"


def check_inputs(inputs: Sequence[Placeholder], outputs: Sequence[Tensor], label: str) -> None:
    """Every placeholder that ``outputs`` need is among ``inputs``."""
    known = set(inputs)
    missing = [t for t in topological_order(outputs) if isinstance(t, Placeholder) and t not in known]
    if missing:
        names = ", ".join(repr(t) for t in missing)
        raise DefinitionError(
            f"{label} needs {names}, which {'is' if len(missing) == 1 else 'are'} not among its inputs "
            f"({', '.join(t.name for t in inputs) or 'none'}); pass every placeholder that the outputs depend on"
        )
