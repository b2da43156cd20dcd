"""The examples run and say what they are to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart() -> None:
    printed = run("quickstart.py")
    assert "Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o]" in printed
    assert "import jax" in printed and "scatter" not in printed


def test_tvm_tutorial() -> None:
    printed = run("tvm_tutorial.py")
    assert printed.endswith("All numbers agree with JAX.\n")
    assert "sum over k of X[i, k] * W[j, k]" in printed or "sum over" in printed


@pytest.mark.slow
def test_digits() -> None:
    printed = run("digits.py")
    accuracy = float(printed.rpartition("test accuracy: ")[2].split()[0])
    assert accuracy >= 97
