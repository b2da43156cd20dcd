"""``PYTHONPATH=.:benchmarks python -m tests.sensitivity``: between which values each number of ``lang/limits.py`` decides nothing else in the recorded programs.

Before anything else of jaxte is imported, its limits become numbers that note what they are compared with, as multiples of themselves: the nearest below and above. While a limit
stays between these, every comparison of every program ends as it does now, and so all texts are what they are.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from tests.thresholds import ROOT

LIMITS = "jaxte.lang.limits"
_COMPARED = ("__lt__", "__le__", "__gt__", "__ge__")
_SCALED = ("__add__", "__sub__", "__mul__", "__floordiv__", "__truediv__", "__pow__")


@dataclass
class Met:
    """What a limit was compared with, as multiples of it; ``same`` times with itself, and how each comparison ended."""

    below: float = -math.inf
    above: float = math.inf
    same: int = 0
    ends: frozenset[bool] = frozenset()

    def note(self, own: float, other: Any, ended: bool) -> None:
        try:
            ratio = float(other) / float(own)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            return
        self.ends |= {ended}
        self.same += ratio == 1
        if ratio < 1:
            self.below = max(self.below, ratio)
        elif ratio > 1:
            self.above = min(self.above, ratio)


def noting(value: float, met: Met) -> Any:
    """``value`` as a number that notes in ``met``; so do its sums and products with others."""
    base = type(value)
    kind = type(
        "Noting", (base,), {"__hash__": base.__hash__, "__reduce__": lambda own: (base, (base(own),))}
    )

    def compared(name: str) -> Callable[[Any, Any], Any]:
        def compare(own: Any, other: Any) -> Any:
            ended = getattr(base, name)(own, other)
            if ended is not NotImplemented:
                met.note(base(own), other, ended)
            return ended

        return compare

    def scaled(name: str) -> Callable[[Any, Any], Any]:
        def scale(own: Any, other: Any) -> Any:
            found = getattr(base, name)(own, other)
            return noting(found, met) if type(found) in (int, float) else found

        return scale

    for name in _COMPARED:
        setattr(kind, name, compared(name))
    for name in _SCALED:
        for both in (name, f"__r{name[2:]}"):
            if hasattr(base, both):
                setattr(kind, both, scaled(both))
    return kind(value)


def watched() -> dict[str, tuple[float, Met]]:
    """The limits by name, each with what it will have met; everything of jaxte that is imported from now on has these."""
    spec = spec_from_file_location(LIMITS, ROOT.joinpath(*LIMITS.split(".")[1:]).with_suffix(".py"))
    assert spec is not None and spec.loader is not None and "jaxte" not in sys.modules
    limits = sys.modules[LIMITS] = module_from_spec(spec)
    spec.loader.exec_module(limits)
    found: dict[str, tuple[float, Met]] = {}
    for name, value in vars(limits).copy().items():
        if name.isupper() and isinstance(value, int | float):
            found[name] = (value, Met())
            setattr(limits, name, noting(value, found[name][1]))
    return found


def main() -> None:
    found = watched()
    warnings.simplefilter("ignore")
    import jax

    import jaxte as te
    from tests.reach import functions

    for name, spellings in functions():
        for f, arrays in spellings:
            try:
                te.explain(f, *arrays) if name.startswith("raised") else te.source(f, *arrays)
                if name.startswith("raised"):
                    jax.make_jaxpr(jax.value_and_grad(f))(*arrays)
            except Exception as error:
                print(f"{name}: {error}", file=sys.stderr)
    for name, (value, met) in found.items():
        low, high = met.below * value, met.above * value
        print(f"{name} = {value}: {low:.6g} to {high:.6g}, equal {met.same} times, {len(met.ends)} ways")


if __name__ == "__main__":
    main()
