"""Measured forms: they are used, kept in a file, and never trusted where they do not belong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge import tuning
from jaxte.bridge.calls import options
from jaxte.bridge.tuning_file import Tuned, save_tuning
from jaxte.lower.cost.policy import signature
from jaxte.tensors.tensor import Tensor

X = np.random.default_rng(0).standard_normal((2, 4, 6, 6)).astype("float32")
W = np.random.default_rng(1).standard_normal((4, 2, 3, 3)).astype("float32")


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(options, "_measured", {})
    yield


def conv(x: Tensor, w: Tensor) -> Tensor:
    return te.ops.conv2d(x, w, padding=1, groups=2)


def blur(x: Tensor) -> Tensor:
    k = te.reduce_axis((0, 3), "k")
    return te.compute((8,), lambda i: te.sum(x[i + k], axis=k), "y")


def times(monkeypatch: pytest.MonkeyPatch, winner: str) -> None:
    """Clocks are replaced: ``winner`` takes 1 ms, everything else 2 ms."""
    monkeypatch.setattr(
        tuning, "_interleaved", lambda calls, seconds: {f: 1e-3 if f == winner else 2e-3 for f in calls}
    )


@pytest.mark.parametrize("winner", ["grouped convolution", "general"])
def test_the_fastest_form_is_used(monkeypatch: pytest.MonkeyPatch, winner: str) -> None:
    times(monkeypatch, winner)
    fn = te.function(conv)
    fn(X, W)  # code that was made before
    report = te.autotune(fn, X, W)
    assert set(report.winners.values()) == {winner}
    assert {"conv2d", "dx", "dw"} <= set(report.winners)
    taken = {name: next(e for e in es if e.chosen) for name, es in fn.explain(X, W).estimates.items()}
    assert all(e.form == winner and e.measured == 1e-3 for e in taken.values())
    assert "1 ms measured" in str(fn.explain(X, W))
    assert ("conv_general_dilated" in fn.source(X, W)) == (winner == "grouped convolution")


def test_tensors_of_one_name_are_timed_apart() -> None:
    def twice(x: Tensor) -> Tensor:
        k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 5), "m")
        first = te.compute((20,), lambda i: te.sum(x[i + k], axis=k), "y")
        return te.compute((16,), lambda i: te.sum(first[i + m] ** 2, axis=m), "y")

    report = te.autotune(twice, np.ones(22, "float32"), seconds=0.001)
    told = [tuned.definition for tuned in report.reductions.values() if tuned.tensor == "y"]
    assert len(told) == 2 and any("k in" in d for d in told) and any("m in" in d for d in told)


def test_a_backend_without_rates_takes_the_forms_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "abacus")
    assert te.explain(conv, X, W).platform == "gpu"


def test_the_clock_runs() -> None:
    report = te.autotune(conv, X, W, seconds=0.01)
    assert all(0 < s < 10 for tuned in report.reductions.values() for s in tuned.seconds.values())
    assert "conv2d: " in str(report)


def test_every_form_computes_the_same() -> None:
    results = []
    for form in ("grouped convolution", "general"):
        fn = te.function(conv, forms={"*": form})
        results.append(jax.vjp(fn, X, W)[1](np.ones((2, 4, 6, 6), "float32")))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_file_keeps_the_winners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    times(monkeypatch, "general")
    file = tmp_path / "tuning.json"
    te.autotune(conv, X, W, file=file)
    first = json.loads(file.read_text())
    te.autotune(blur, np.ones(10, "float32"), file=file)
    both = json.loads(file.read_text())
    assert set(first["reductions"]) < set(both["reductions"])
    monkeypatch.setattr(options, "_measured", {})
    assert te.load_tuning(file)
    assert "conv_general_dilated" not in te.source(conv, X, W)


@pytest.mark.parametrize("name", ["platform", "device", "jax", "format"])
def test_a_file_from_elsewhere_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    times(monkeypatch, "general")
    file = tmp_path / "tuning.json"
    te.autotune(blur, np.ones(10, "float32"), file=file)
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, name: "another"}))
    monkeypatch.setattr(options, "_measured", {})
    with pytest.warns(UserWarning, match=f"{name} another.*chosen by estimates"):
        assert not te.load_tuning(file)
    assert not options.measurements()


ENTRY = {"tensor": "Y", "definition": "Y[i] = ...", "seconds": {"general": 1.0}}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"reductions": 3}', "\x00\x01"]
    + [
        json.dumps({"reductions": {"k": entry}})
        for entry in (
            3, {}, {**ENTRY, "seconds": {}}, {**ENTRY, "seconds": {"a": -1}}, {**ENTRY, "seconds": {"a": "soon"}}
        )
    ],
)  # fmt: skip
def test_a_corrupted_file_says_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tuning.json"
    file.write_text(content)
    with pytest.raises(te.LoweringError, match=r"is no tuning file .* delete it and run te.autotune again"):
        te.load_tuning(file)
    with pytest.raises(te.LoweringError, match="is no tuning file"):
        te.autotune(conv, X, W, file=file, seconds=0.001)


def test_a_file_of_another_format_may_have_another_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tuning.json"
    file.write_text(json.dumps({"format": 99, "reductions": [1, 2]}))
    with pytest.warns(UserWarning, match=r"format 99.*chosen by estimates"):
        assert not te.load_tuning(file)
    times(monkeypatch, "general")
    te.autotune(blur, np.ones(10, "float32"), file=file)
    assert te.load_tuning(file)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("none/t.json", "is in the folder .*none, which does not exist"),
        ("", "is a folder; give the path"),
        (None, "the tuning file is None; give a path"),
    ],
)
def test_a_place_that_no_file_can_be_at_is_told_before_anything_is_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str | None, message: str
) -> None:
    monkeypatch.setattr(tuning, "_interleaved", lambda *_: pytest.fail("timed"))
    if where is None:
        with pytest.raises(te.LoweringError, match=message):
            te.load_tuning(None)
    else:
        with pytest.raises(te.LoweringError, match=message):
            te.autotune(blur, np.ones(10, "float32"), file=tmp_path / where)


def test_who_reads_a_file_that_is_being_written_finds_all_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    times(monkeypatch, "general")
    file = tmp_path / "tuning.json"
    te.autotune(conv, X, W, file=file)
    old = file.read_text()
    replaced = os.replace

    def looking(new: str, there: Path) -> None:
        assert file.read_text() == old
        replaced(new, there)

    monkeypatch.setattr("os.replace", looking)
    te.autotune(blur, np.ones(10, "float32"), file=file)
    assert file.read_text() != old
    assert [f.name for f in tmp_path.iterdir()] == ["tuning.json"]


ADD_TO_A_FILE = """
import sys
import time
from pathlib import Path
from jaxte.bridge import tuning_file
from jaxte.bridge.tuning_file import Tuned, save_tuning

file, name, meeting = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
read = tuning_file.kept_here
def slowly(path):
    found = read(path)
    time.sleep(0.01)
    return found
tuning_file.kept_here = slowly  # so that the other writes between what this process reads and what it writes

(meeting / name).touch()
while len(list(meeting.iterdir())) < 2:
    time.sleep(0.001)
for n in range(20):
    save_tuning(file, {f"{name} {n}": Tuned("y", "y[i] = ...", {"general": 1.0})})
"""


def test_processes_that_add_to_one_file_at_once_keep_the_entries_of_each_other(tmp_path: Path) -> None:
    kept, meeting = tmp_path / "kept", tmp_path / "meeting"
    kept.mkdir()
    meeting.mkdir()
    file = kept / "tuning.json"
    command = [sys.executable, "-c", ADD_TO_A_FILE, str(file)]
    started = [subprocess.Popen([*command, name, str(meeting)]) for name in ("a", "b")]
    assert [process.wait(60) for process in started] == [0, 0]
    assert set(json.loads(file.read_text())["reductions"]) == {f"{c} {n}" for c in "ab" for n in range(20)}
    assert [f.name for f in kept.iterdir()] == ["tuning.json"]


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    (tmp_path / ".tuning.json.lock").touch()
    save_tuning(file, {"a": Tuned("y", "y[i] = ...", {"general": 1.0})})
    assert [f.name for f in tmp_path.iterdir()] == ["tuning.json"]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", None])
def test_seconds_that_are_none(seconds: Any) -> None:
    with pytest.raises(te.LoweringError, match=r"seconds is .*; give the seconds to time each form"):
        te.autotune(conv, X, W, seconds=seconds)


def test_shapes_alone_cannot_be_timed() -> None:
    with pytest.raises(te.LoweringError, match="the argument x of blur has no values"):
        te.autotune(blur, jax.ShapeDtypeStruct((10,), "float32"))


def test_gradients_are_no_builders() -> None:
    with pytest.raises(te.DefinitionError, match="gradient of blur is a function of arrays"):
        te.autotune(te.grad(te.function(blur)), np.ones(10, "float32"))


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(te.LoweringError, match=r"there is no tuning file .*te.autotune\(fn, \*args, file="):
        te.load_tuning(tmp_path / "none.json")


def test_forms_that_disagree_are_never_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = tuning._runner
    made: list[Any] = []

    def wrong_in_the_second(program: Any) -> Any:
        run = original(program)
        made.append(run)
        return run if program.name != "one" or len(made) % 2 else lambda *a: run(*a) + 1

    monkeypatch.setattr(tuning, "_runner", wrong_in_the_second)
    with pytest.raises(te.LoweringError, match=r"the forms .* differ by"):
        te.autotune(conv, X, W, seconds=0.001)


def test_a_forced_form_and_an_unknown_one() -> None:
    for form in ("grouped convolution", "general"):
        fn = te.function(conv, forms={"conv2d": form})
        chosen = [e.form for e in fn.explain(X, W).estimates["conv2d"] if e.chosen]
        assert chosen == [form]
    other = te.function(
        conv, forms={"conv2d": "no such form"}
    )  # the others are chosen by cost, as without it
    assert other.source(X, W) == te.function(conv).source(X, W)


def test_an_unknown_platform_is_an_error() -> None:
    with pytest.raises(te.LoweringError, match="platform 'abacus' is unknown; give one of cpu, gpu, tpu"):
        te.function(conv, platform="abacus")(X, W)


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_is_positive(budget: int) -> None:
    with pytest.raises(te.LoweringError, match="give a positive number of bytes"):
        te.function(conv, max_memory=budget)(X, W)


def test_platforms_choose_for_themselves() -> None:
    found = {p: te.function(conv, platform=p).explain(X, W) for p in ("cpu", "gpu", "tpu", "cuda")}
    assert found["gpu"].platform == "gpu"
    assert found["gpu"].forms == found["cuda"].forms


# --- signatures


def _body(names: str, extent: int = 5, scale: float = 2.0) -> str:
    i, k = te.reduce_axis((0, 4), names[0]), te.reduce_axis((0, 3), names[1])
    x = te.placeholder((extent + 3,), name=names[2])
    y = te.compute((4,), lambda a: te.sum(x[a + k] * scale, axis=k))
    del i
    return signature(y.axes, y.body)  # type: ignore[attr-defined]


def test_signatures_are_those_of_definitions() -> None:
    assert _body("ikX") == _body("pqZ")
    assert _body("ikX") != _body("ikX", extent=6)
    assert _body("ikX") != _body("ikX", scale=3.0)
    assert len(_body("ikX")) == 16
