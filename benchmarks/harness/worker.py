"""One process of the suite: a case, or the ceilings and the machine. Writes what is known as JSON, again before each step.

python benchmarks/harness/worker.py case max_pool_2_2 quick result.json
python benchmarks/harness/worker.py machine - quick machine.json
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import jax

from harness.case import load
from harness.ceilings import ceilings
from harness.clock import FULL, QUICK
from harness.machine import machine
from harness.measure import measure


def write(path: Path, data: dict[str, Any]) -> None:
    """Whole or not at all: the parent may read at any time."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    os.replace(part, path)


def limit_memory() -> None:
    """On the CPU at most three quarters of the machine's memory, so that too large a form fails and the machine goes on."""
    if jax.default_backend() == "cpu":
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_DATA, (total * 3 // 4, resource.RLIM_INFINITY))


def main(what: str, name: str, size: str, out: str, rounds: str = "0", lost: str = "{}") -> None:
    path = Path(out)
    limit_memory()
    # some platforms round the factors of float32 products by default; no side is to win or to fail by that
    jax.config.update("jax_default_matmul_precision", "float32")
    if what == "machine":
        write(path, {"machine": machine(), "ceilings": ceilings(size != "full")})
        return
    budget = FULL if size == "full" else QUICK
    if int(rounds):
        budget = replace(budget, seconds=0.0, least=int(rounds), most=int(rounds))
    note = lambda result, at: write(path, {**result, "stage": at})  # noqa: E731
    write(path, measure(load(name), size, budget, note, json.loads(lost)))


if __name__ == "__main__":
    main(*sys.argv[1:])
