"""A case is one file of ``benchmarks/cases`` or ``benchmarks/corpus``: an index expression, and other forms of the same function.

The suite (``cases``) has what libraries offer, spelled well; the corpus has functions in the spelling that a user writes first.

    \"\"\"What is computed, as a formula.\"\"\"

    TITLE = "max-pool 2x2, stride 2"
    SIZES = {"full": dict(n=16, h=56), "quick": dict(n=4, h=28), "tiny": dict(n=1, h=4)}

    def inputs(n, h): ...           # recipes of harness.inputs, one for each argument
    def expression(x): ...          # jaxte Tensors to Tensors
    def idiomatic(x): ...           # what a JAX user writes first

and where they exist ``indexed(x)`` (advanced indexing), ``by_hand(x)`` (the best form known, with a backward pass of its
own where that is part of it) and ``torch(torch, x)`` (on torch tensors, the module first so that no file imports it). Optional constants:

    LEFT_OUT = {"full": {"indexed": "holds 4 GB"}}      sides not run at a size, and why
    SPELLINGS = {"indexed": "jnp.roll"}                 what a side is, where its name does not say it
    WITH_RESPECT_TO = (0,)                              arguments to differentiate; else all floating ones
    WORKS_MORE = ("idiomatic",)                         sides with many more flops than asked: no floor for the others
    TOLERANCE = 1e-3                                    norm of the difference over the norm; else 1e-4
    HOLDS_BACK = "..."                                  why the case misses a goal; shown while it does
    ABOVE = {"bytes": (3.0, "...")}                     what XLA counts, times the idiomatic form's, above what is
                                                        allowed (tests/test_corpus.py), at most this, and why
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from harness.inputs import Input

BENCHMARKS = Path(__file__).parent.parent
SUITE, CORPUS = "cases", "corpus"  # folders
JAXTE, IDIOMATIC, INDEXED, BY_HAND, TORCH = "jaxte", "idiomatic", "indexed", "by hand", "torch"
SIDES = (JAXTE, IDIOMATIC, INDEXED, BY_HAND, TORCH)
SIZE_NAMES = ("full", "quick", "tiny")
_FUNCTIONS = {
    JAXTE: "expression",
    IDIOMATIC: "idiomatic",
    INDEXED: "indexed",
    BY_HAND: "by_hand",
    TORCH: "torch",
}


@dataclass(frozen=True)
class Case:
    """What a file states.

    Attributes:
        name: of the file.
        formula: its docstring.
        sides: the function of each side.
        inputs: recipes of the arguments, from the numbers of a size.
    """

    name: str
    title: str
    formula: str
    sizes: Mapping[str, Mapping[str, int]]
    inputs: Callable[..., Sequence[Input]]
    sides: Mapping[str, Callable[..., Any]]
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    with_respect_to: tuple[int, ...] | None = None
    works_more: tuple[str, ...] = ()
    tolerance: float = 1e-4
    holds_back: str = ""
    above: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def inputs_at(self, size: str) -> Sequence[Input]:
        return self.inputs(**self.sizes[size])

    def differentiated(self, args: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the arguments that have a gradient."""
        if self.with_respect_to is not None:
            return self.with_respect_to
        return tuple(n for n, x in enumerate(args) if np.issubdtype(np.dtype(x.dtype), np.floating))


def names(folder: str = SUITE) -> list[str]:
    """All cases of a folder, in the order of the table: that of the files' names."""
    return sorted(p.stem for p in (BENCHMARKS / folder).glob("*.py") if not p.stem.startswith("_"))


def load(name: str) -> Case:
    """The case of the file ``name``, of either folder: names are unique.

    Raises:
        ValueError: the file does not state what it must; the message says what.
    """
    folder = CORPUS if name in names(CORPUS) else SUITE
    module = importlib.import_module(f"{folder}.{name}")
    missing = [
        what
        for what in ("__doc__", "TITLE", "SIZES", "inputs", "expression", "idiomatic")
        if not getattr(module, what, None)
    ]
    if missing:
        raise ValueError(f"benchmarks/{folder}/{name}.py does not state {', '.join(missing)}")
    if set(module.SIZES) != set(SIZE_NAMES):
        raise ValueError(
            f"benchmarks/{folder}/{name}.py: SIZES has {list(module.SIZES)}, not {list(SIZE_NAMES)}"
        )
    return _case(name, module)


def _case(name: str, module: ModuleType) -> Case:
    return Case(
        name,
        module.TITLE,
        str(module.__doc__).strip(),
        module.SIZES,
        module.inputs,
        {side: getattr(module, fn) for side, fn in _FUNCTIONS.items() if hasattr(module, fn)},
        getattr(module, "LEFT_OUT", {}),
        getattr(module, "SPELLINGS", {}),
        getattr(module, "WITH_RESPECT_TO", None),
        getattr(module, "WORKS_MORE", ()),
        getattr(module, "TOLERANCE", 1e-4),
        getattr(module, "HOLDS_BACK", ""),
        getattr(module, "ABOVE", {}),
    )
