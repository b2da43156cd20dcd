"""What XLA counts for a program, and what it returns: a program whose counts are recorded is compiled for its values alone, or not at all.

The counts follow from what the program computes, the release of XLA and its options. So ``xla_counts.json`` holds them by the key of the program
(tests/program_keys.py), for which nothing is lowered, and values come from the emitters that compile in a quarter of the time. What is not recorded
is compiled and counted, and with JAXTE_HYPOTHESIS=full everything is. Programs with devices or buffers of their own go by the hash of their text.

    JAXTE_COUNTS=build/counts.jsonl pytest; python -m tests.xla_counts build/counts.jsonl

(``make record``) records what the tests asked for in that run, and nothing else; with ``--more`` in addition to what is recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jaxlib
from hypothesis import settings
from jax.stages import Lowered

from tests import numpy_programs
from tests.agreement import QUICK, QUICKEST
from tests.program_keys import key_of_text

FILE = Path(__file__).with_name("xla_counts.json")
COSTS = ("flops", "bytes accessed", "transcendentals")


@dataclass(frozen=True)
class Memory:
    """The part of XLA's analysis that tests ask for."""

    temp_size_in_bytes: int


@dataclass(frozen=True)
class Fused:
    """A program, fused as users have it where its counts or its text are asked, and compiled quickly for its values."""

    lowered: Lowered

    @cached_property
    def key(self) -> str:
        """That of the program, or the hash of its text."""
        program = numpy_programs.program_of(self.lowered)
        if program is not None:
            return key_of_text(program)
        return hashlib.sha256(self.lowered.as_text().encode()).hexdigest()[:16]

    @cached_property
    def _fused(self) -> Any:
        return self.lowered.compile(compiler_options=QUICK)

    @cached_property
    def _executable(self) -> Any:
        return self.lowered.compile(compiler_options=QUICKEST)

    @cached_property
    def _counts(self) -> Sequence[int]:
        found = recorded().get(self.key)
        if found is None or settings.default.max_examples >= 1000:
            found = count(self._fused)
        if asked := os.environ.get("JAXTE_COUNTS"):
            with open(asked, "a", encoding="utf-8") as file:
                file.write(json.dumps({self.key: found}) + "\n")
        return found

    def cost_analysis(self) -> dict[str, int]:
        return dict(zip(COSTS, self._counts, strict=False))

    def memory_analysis(self) -> Memory:
        return Memory(self._counts[-1])

    def as_text(self) -> str:
        """The program after XLA's fusions, for which it is compiled in any case."""
        return str(self._fused.as_text())

    def __call__(self, *args: Any) -> Any:
        return numpy_programs.run(self.lowered, lambda: self._executable, *args)


def count(compiled: Any) -> list[int]:
    """The flops, the bytes, the transcendental operations and the bytes of temporaries."""
    cost = compiled.cost_analysis()
    return [
        *(int(cost.get(key, 0)) for key in COSTS),
        int(compiled.memory_analysis().temp_size_in_bytes),
    ]


@cache
def recorded() -> Mapping[str, Sequence[int]]:
    """The counts by the key; none of another release of XLA, which counts otherwise."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return found["counts"] if found["jaxlib"] == jaxlib.__version__ else {}  # type: ignore[no-any-return]


def main(asked: str, *options: str) -> None:
    counts = dict(recorded()) if "--more" in options else {}
    for line in Path(asked).read_text(encoding="utf-8").splitlines():
        counts |= json.loads(line)
    rows = ",\n".join(f'  "{key}": {json.dumps(counts[key])}' for key in sorted(counts))
    FILE.write_text(
        f'{{\n "jaxlib": "{jaxlib.__version__}",\n "counts": {{\n{rows}\n }}\n}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
