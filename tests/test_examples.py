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
    assert "dA[i, k] = sum over j of H[i, j] * B[k, j]" in printed


@pytest.mark.slow
def test_digits() -> None:
    printed = run("digits.py")
    assert float(printed.rpartition("test accuracy: ")[2].split()[0]) >= 97
    assert float(printed.rpartition("from jax.grad: ")[2].split()[0]) <= 1e-5
    assert "conv_general_dilated" in printed and "scatter" not in printed
