"""How many calls of Python derivations take, as users have them: in a process of its own, where nothing is verified."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# About a twentieth more than are counted; what is asked twice, or walks a whole expression for one answer, takes more than that.
MOST = {
    "conv2d": 58_600,
    "flips": 174_800,
    "lattice": 180_000,
    "quotients": 157_500,
    "kernels": 178_000,
    "extrema": 160_000,
    "steps": 72_400,
    "advection": 175_200,
}


def test_no_derivation_takes_more_calls_than_it_did() -> None:
    hidden = {name: value for name, value in os.environ.items() if name != "JAXTE_VERIFY"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "derivations.py"), "--small"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**hidden, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])},
    )
    counted = {name: int(calls) for name, calls in map(str.split, done.stdout.splitlines())}
    assert counted.keys() == MOST.keys()
    assert {name: calls for name, calls in counted.items() if calls > MOST[name]} == {}
