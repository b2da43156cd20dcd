"""The examples run and say what they are to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *options: str, **variables: str) -> str:
    command = [sys.executable, EXAMPLES / name, *options]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=os.environ | variables, check=False
    )
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


def test_newton() -> None:
    printed = run("newton.py", "--points", "12")
    norms = [float(line.rpartition(" ")[2]) for line in printed.splitlines() if line.startswith("step")]
    assert norms[2] < 1e-2 * norms[0] and norms[2] < 0.05 * norms[1]
    assert "144 unknowns, 672 elements" in printed


def test_raise(tmp_path: Path) -> None:
    picture = tmp_path / "conductivity.png"
    options = ("--size", "40", "--steps", "4", "--figure", str(picture))
    printed = run("raise.py", *options)
    assert float(printed.partition("difference of the fields ")[2].split()[0]) <= 1e-5
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_digits() -> None:
    printed = run("digits.py", JAX_DISABLE_MOST_OPTIMIZATIONS="0")
    assert float(printed.rpartition("test accuracy: ")[2].split()[0]) >= 97
    assert float(printed.rpartition("from jax.grad: ")[2].split()[0]) <= 1e-5
    assert "conv_general_dilated" in printed and "scatter" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("residual_digits", 20),
        ("window_transformer", 10),
    ],
)
def test_networks_learn_as_in_equinox(name: str, steps: int, tmp_path: Path) -> None:
    """The short form of `make examples`: the losses of both sides, step by step, and half of the memory."""
    picture = tmp_path / "losses.png"
    options = ("--steps", str(steps), "--rounds", "1", "--picture", str(picture))
    printed = run(f"{name}.py", *options)
    assert float(printed.rpartition(f"first {steps} steps: ")[2].split()[0]) <= 1e-4
    held = [
        float(line.partition("a step, ")[2].split()[0])
        for line in printed.splitlines()
        if " a step, " in line
    ]
    assert len(held) == 2 and held[0] < 0.7 * held[1]
    assert picture.read_bytes().startswith(b"\x89PNG")
