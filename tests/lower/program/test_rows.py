"""The rows that programs are made by have names, which te.explain shows and without= takes."""

import numpy as np
import pytest

import jaxte as te
from jaxte.__main__ import main
from jaxte.lower.program.rows import rows


def test_no_two_rows_of_a_kind_have_one_name() -> None:
    for own in rows().values():
        names = [name for name, _ in own]
        assert len(set(names)) == len(names) and all(reason for _, reason in own)


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rows"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for own in rows().values() for name, _ in own)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("partial sum", "did you mean 'partial sums'"),
        ("convolutions", "did you mean 'convolution'"),
        ("qqq", "python -m jaxte rows"),
    ],
)
def test_an_unknown_name_is_refused(name: str, hint: str) -> None:
    with pytest.raises(te.LoweringError, match=rf"without has '{name}', which is no .*{hint}"):
        te.function(lambda x: x, without=name)


def test_steps_of_planning_are_told_and_switched_off() -> None:
    def smoothed(x: te.Tensor, g: te.Tensor) -> te.Tensor:
        k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "m")
        return te.compute(
            (60, 60), lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m], axis=(k, m)), "smoothed"
        )

    inputs = np.ones((64, 64), "float32"), np.ones(5, "float32")
    planned = te.explain(te.function(smoothed), *inputs)
    assert "partial sums" in planned.rewrites["smoothed"]
    assert "rewritten: " in str(planned) and len(planned.choices["forward"]) > 1
    whole = te.explain(te.function(smoothed, without="partial sums"), *inputs)
    assert "partial sums" not in whole.rewrites.get("smoothed", ()) and len(whole.choices["forward"]) == 1


def test_passes_are_told_and_switched_off() -> None:
    def around(x: te.Tensor) -> te.Tensor:
        n, m = x.shape
        turns = [(a, b) for a in range(-2, 3) for b in range(-2, 3)]
        return te.compute((n, m), lambda i, j: sum(x[(i + a) % n, (j + b) % m] ** 2 for a, b in turns), "y")

    x = np.ones((40, 50), "float32")
    told = te.explain(te.function(around), x)
    assert told.passes["forward"] == ("halos",) and "rewritten together: halos" in str(told)
    off = te.explain(te.function(around, without="halos"), x)
    assert "forward" not in off.passes
