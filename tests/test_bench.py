"""The benchmarks' commands run with small settings, all sides of every case agree, and the counts among the figures hold.

Clocks are not asserted on.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
import suite
from exact.figures import with_column
from harness import figures, processes
from harness.case import BY_HAND, CORPUS, IDIOMATIC, INDEXED, JAXTE, SUITE, TORCH, Case, load, names
from harness.clock import Budget, interleaved
from harness.counts import operations
from harness.inputs import draw, normal
from harness.measure import difference, measure
from harness.passes import BOTH, FORWARD
from harness.sides import HAS_TORCH, function, heads, prepare, with_gradients
from harness.table import counts_report, report, times
from tests.agreement import QUICK

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
BUDGETS = {1: (6105, 437), 2: (2273, 599), 3: (1049, 599)}
ONCE = Budget(0.0, 1, 1)


def run(script: str, figures: Path, *options: str) -> tuple[str, Any]:
    """What a command prints, and the figures that it writes."""
    command = [sys.executable, str(BENCHMARKS / script), *options, "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr.strip(), done.stderr
    return done.stdout, json.loads(figures.read_text())


def test_run_prints_every_figure_beside_its_budget(tmp_path: Path) -> None:
    printed, rows = run("run.py", tmp_path / "figures.json", "--runs", "1", "--sizes", "20")
    assert printed.startswith("| what ") and len(printed.splitlines()) == len(rows) + 2
    assert all(isinstance(row["figure"], (int, float)) and row["budget"] > 0 for row in rows)
    assert all(row["ok"] == (row["figure"] <= row["budget"]) for row in rows)
    counts = [row for row in rows if row["unit"] in ("iterations", "elements")]
    assert len(counts) == 6 and all(
        row["ok"] and row["figure"] > 0 for row in counts
    )  # times may be noise around zero


def test_emitted_finds_the_scatters_of_jax_grad_and_none_of_jaxte(tmp_path: Path) -> None:
    printed, results = run("emitted.py", tmp_path / "figures.json", "--rounds", "1", "--size", "quick")
    suspects = {"scatter", "select_and_scatter", "gather", "while"}
    theirs = {op for sides in results.values() for op in sides["jax.grad"]["operations"]}
    assert {"scatter", "gather", "select_and_scatter"} <= theirs
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, sides in results.items():
        assert not suspects & set(sides["jaxte"]["operations"]), name
        assert name in printed and name in readme


def test_cost_of_the_adjoints_of_a_convolution() -> None:
    for stride, (iterations, memory) in BUDGETS.items():
        X, W = te.placeholder((1, 2, 10, 10), name="X"), te.placeholder((2, 2, 3, 3), name="W")
        Y = te.ops.conv2d(X, W, strides=stride)
        found = te.cost(te.differentiate(Y, [X, W], head=te.placeholder(Y.shape, name="H")))
        assert found.iterations <= iterations and found.memory <= memory


# --- the cases of the suite


@pytest.mark.parametrize("name", names())
def test_sides_of_a_case_agree(name: str) -> None:
    """Values and gradients of every side that runs in JAX beside those of the idiomatic form."""
    case = load(name)
    args = draw(case.inputs_at("tiny"))
    h = heads(case, IDIOMATIC, args)
    argnums = case.differentiated(args)
    found = {}
    for side in case.sides:
        if side != TORCH:
            everything = jax.jit(with_gradients(function(case, side), argnums), compiler_options=QUICK)
            found[side] = [np.asarray(x) for x in everything(h, *args)]
    assert {JAXTE, IDIOMATIC} <= set(found)
    for side, results in found.items():
        assert len(results) == len(h) + len(argnums)
        assert difference(found[IDIOMATIC], results) < case.tolerance, side


# cases whose definition has no index arithmetic, whose idiomatic form is advanced indexing already, or whose index form
# would be a mask over all pairs
WITHOUT_INDEXED = {
    *("batch_norm", "batched_matmul", "cross_entropy", "dense", "gaussian_sum_100000", "gaussian_sum_4096"),
    *("global_avg_pool", "global_max_pool", "l2_normalize", "layer_norm", "log_softmax", "product_reduction"),
    *("rms_norm", "softmax"),
    *("embedding", "gather_permutation", "graph_attention", "mesh_convolution"),
    *("prefix_maximum", "prefix_product"),
}


def test_cases_with_index_arithmetic_have_an_index_form_that_gathers() -> None:
    cases = [load(name) for name in names()]
    assert {case.name for case in cases if INDEXED not in case.sides} == WITHOUT_INDEXED
    for case in cases:
        if INDEXED in case.sides:
            args = draw(case.inputs_at("tiny"))
            found = operations(jax.jit(case.sides[INDEXED]).lower(*args).as_text())
            # the triangle of a prefix sum is a comparison of index arrays
            assert found.get("gather") or case.name == "prefix_sum", case.name


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", [name for name in names() if TORCH in load(name).sides])
def test_torch_agrees(name: str) -> None:
    case = load(name)
    args = draw(case.inputs_at("tiny"))
    h = heads(case, IDIOMATIC, args)
    expected, found = (prepare(case, side, BOTH, args, h).results() for side in (IDIOMATIC, TORCH))
    assert len(found) == len(h) + len(case.differentiated(args))
    assert difference(expected, found) < case.tolerance


def test_cases_state_what_they_are_and_refer_to_sides_that_exist() -> None:
    cases = [load(name) for name in names()]
    assert len({case.title for case in cases}) == len(cases) >= 45
    for case in cases:
        assert "=" in case.formula, case.name
        for size in case.sizes.values():
            assert set(size) == set(inspect.signature(case.inputs).parameters), case.name
        assert set(case.left_out) <= set(case.sizes) and set(case.spellings) <= set(case.sides), case.name
        assert set(case.works_more) <= set(case.sides), case.name
        for reasons in case.left_out.values():
            assert set(reasons) <= set(case.sides) and JAXTE not in reasons and all(reasons.values())


def test_the_suite_writes_table_figures_and_chart(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "suite.py"),
        "--quick",
        "--rounds",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, "--case", "max_pool_2_2", "softmax"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    data = json.loads((tmp_path / "suite.json").read_text())
    assert (tmp_path / "suite.png").read_bytes().startswith(b"\x89PNG")
    written = (tmp_path / "suite.md").read_text()
    assert written == done.stdout.rstrip("\n") + "\n"
    assert written.startswith(report(data)) and written.endswith(counts_report(data))
    for what in (
        data["machine"]["date"],
        data["machine"]["processor"],
        f"jax {jax.__version__}",
        "GB/s",
        "GFLOP/s",
    ):
        assert what in done.stdout
    assert [case["name"] for case in data["cases"]] == ["max_pool_2_2", "softmax"]
    for case in data["cases"]:
        assert not case.get("error") and case["title"] in done.stdout
        for which in (FORWARD, BOTH):
            sides = figures.sides(case, which)
            assert {JAXTE, IDIOMATIC, BY_HAND} <= set(sides)
            assert all("error" not in side and side["seconds"] > 0 for side in sides.values())
    pool = figures.sides(data["cases"][0], BOTH)
    assert pool[IDIOMATIC]["operations"]["select_and_scatter"] == 1
    assert pool[JAXTE]["temporaries"] < pool[IDIOMATIC]["temporaries"]


@pytest.mark.parametrize(
    ("document", "folder"), [(suite.DOCUMENT, SUITE), (suite.CORPUS_DOCUMENT, CORPUS)], ids=[SUITE, CORPUS]
)
def test_the_page_shows_the_figures_beside_it(document: Path, folder: str) -> None:
    """After a change of the report: python benchmarks/suite.py --from docs/performance.json --write, and docs/corpus.json"""
    data = json.loads(document.with_suffix(".json").read_text(encoding="utf-8"))
    for page, text in ((document, report(data)), (suite.counts_page(document), counts_report(data))):
        written = page.read_text(encoding="utf-8").partition(suite.BEGIN)[2].partition(suite.END)[0]
        assert written == with_column(f"\n{text}", "corpus" if folder == CORPUS else "suite")
    assert [case["name"] for case in data["cases"]] == names(folder) and data["size"] == "full"


def test_every_function_of_the_corpus_that_is_slower_says_what_limits_it() -> None:
    data = json.loads(suite.CORPUS_DOCUMENT.with_suffix(".json").read_text(encoding="utf-8"))
    slow = [c["name"] for c in data["cases"] if (figures.ratio(c, BOTH, IDIOMATIC) or 0.0) < 0.95]
    assert [name for name in slow if not load(name).holds_back] == []


def test_a_selection_is_of_one_page() -> None:
    assert suite.document_of(["softmax", "dense"]) == suite.DOCUMENT
    assert suite.document_of(["ssim"]) == suite.CORPUS_DOCUMENT
    with pytest.raises(SystemExit, match="one after the other"):
        suite.document_of(["ssim", "softmax"])


def test_columns_of_sides_that_no_case_has_are_left_out() -> None:
    alone = times([measured("one", {}, jaxte=1.0, idiomatic=2.0)], BOTH, RATES)
    assert "indexed" not in alone and "| idiomatic |" in alone and "geometric mean" in alone


def test_the_table_is_written_between_the_markers(tmp_path: Path) -> None:
    page, counted, results = tmp_path / "page.md", tmp_path / "counts.md", tmp_path / "results"
    for path in (page, counted):
        path.write_text(f"before\n{suite.BEGIN}\nold\n{suite.END}\nafter\n")
    data = {"machine": MACHINE, "size": "full", "ceilings": RATES, "cases": [measured("one", {}, jaxte=1.0)]}
    suite.save(data, results)
    suite.write_document(data, results, page, counted)
    for path, text in ((page, report(data)), (counted, counts_report(data))):
        assert path.read_text() == f"before\n{suite.BEGIN}\n{text}{suite.END}\nafter\n"
    assert json.loads((tmp_path / "page.json").read_text()) == data and (tmp_path / "page.png").exists()


def test_new_figures_replace_those_of_the_same_cases_on_the_same_machine() -> None:
    def run(processor: str, rate: float, **titles: str) -> dict[str, Any]:
        cases = [{"name": name, "title": title} for name, title in titles.items()]
        machine = {**MACHINE, "processor": processor}
        return {"machine": machine, "size": "full", "ceilings": {"bytes_per_second": rate}, "cases": cases}

    both = suite.updated(run("abacus", 2.0, a="old", c="old"), run("abacus", 1.0, c="new", b="new"))
    assert [(case["name"], case["title"]) for case in both["cases"]] == [
        ("a", "old"),
        ("b", "new"),
        ("c", "new"),
    ]
    assert both["ceilings"] == {"bytes_per_second": 2.0}
    suite.check_same(both, "full", {**MACHINE, "processor": "abacus"})
    for size, processor in (("full", "slide rule"), ("quick", "abacus")):
        with pytest.raises(SystemExit, match="another machine or of other sizes: full, abacus"):
            suite.check_same(both, size, {**MACHINE, "processor": processor})


# --- the harness


def twice(**sides: Callable[..., Any]) -> Case:
    """2 x, and other sides."""
    sizes = {size: {"n": 1000} for size in ("full", "quick", "tiny")}
    given = {JAXTE: lambda x: te.compute(x.shape, lambda i: 2 * x[i], "y"), IDIOMATIC: lambda x: 2 * x}
    return Case("twice", "twice", "y[i] = 2 x[i]", sizes, lambda n: (normal(n),), given | sides)


def test_a_side_that_fails_or_disagrees_costs_its_own_cell() -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no such luck")

    case = twice(**{INDEXED: broken, BY_HAND: lambda x: 2.01 * x})
    result = measure(case, "tiny", ONCE)
    for which in (FORWARD, BOTH):
        sides = figures.sides(result, which)
        assert sides[INDEXED] == {"error": "ValueError: no such luck"}
        assert sides[BY_HAND] == {"error": "ArithmeticError: differs by 5.0e-03 from idiomatic"}
        assert sides[JAXTE]["seconds"] > 0 and sides[IDIOMATIC]["seconds"] > 0
    text = report({"machine": MACHINE, "size": "tiny", "ceilings": RATES, "cases": [result]})
    assert "no such luck" in text and "| failed |" in text


def test_the_least_that_a_pass_moves_and_computes() -> None:
    result = measure(twice(), "tiny", ONCE)
    forward, both = (result["passes"][which] for which in (FORWARD, BOTH))
    assert forward["bytes_at_least"] == 8000 and both["bytes_at_least"] == 16000
    assert forward["flops_at_least"] == 1000 and forward["flops_of"] in (JAXTE, IDIOMATIC)
    assert figures.floor(result, FORWARD, {"bytes_per_second": 8e3, "flops_per_second": 1e9}) == 1.0
    assert figures.floor(result, FORWARD, {"bytes_per_second": 8e9, "flops_per_second": 500}) == 2.0
    more = measure(replace(twice(), works_more=(JAXTE, IDIOMATIC)), "tiny", ONCE)["passes"][FORWARD]
    assert more["flops_at_least"] == 0 and more["flops_of"] is None


def test_arguments_of_integers_are_not_differentiated() -> None:
    case = load("embedding")
    assert case.differentiated(draw(case.inputs_at("tiny"))) == (1,)
    assert replace(case, with_respect_to=(0,)).differentiated([]) == (0,)


@pytest.mark.parametrize(
    "name, limit, said", [("no_such_case", 60.0, "no_such_case"), ("softmax", 0.05, "not done within 0 s")]
)
def test_a_process_that_ends_badly_says_how(name: str, limit: float, said: str) -> None:
    assert said in processes.run("case", name, "tiny", limit)["error"]


ENDS_ITS_PROCESS = '''"""y[i] = 2 x[i]"""

import os

import jaxte as te
from harness.inputs import normal

TITLE = "one side ends its process"
SIZES = {size: {"n": 10} for size in ("full", "quick", "tiny")}


def inputs(n):
    return (normal(n),)


def expression(x):
    return te.compute(x.shape, lambda i: 2 * x[i], "y")


def idiomatic(x):
    os.kill(os.getpid(), 9)


def by_hand(x):
    return 2 * x
'''


def test_a_side_that_ends_its_process_costs_its_own_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "ends_its_process.py").write_text(ENDS_ITS_PROCESS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    result = processes.run_case("ends_its_process", "tiny", 120.0, 1)
    assert "error" not in result and "stage" not in result
    for which in (FORWARD, BOTH):
        sides = figures.sides(result, which)
        assert sides[IDIOMATIC] == {"error": "killed, most likely for want of memory"}
        assert sides[JAXTE]["seconds"] > 0 and sides[BY_HAND]["seconds"] > 0


@pytest.mark.parametrize(
    "options, said",
    [
        (("--case", "conv22d"), "there is no case 'conv22d'; did you mean conv2d"),
        (("--case", "zzz"), "there is no case 'zzz'; the cases are attention_window_long, "),
        (("--update", "--out", "nowhere"), "nowhere/suite.json holds no figures"),
        (("--from", "nowhere.json"), "nowhere.json holds no figures"),
    ],
)
def test_what_the_suite_cannot_do_is_said_at_once(
    options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["suite.py", *options])
    with pytest.raises(SystemExit) as stopped:
        suite.main()
    assert said in f"{stopped.value}{capsys.readouterr().err}"


def test_slow_calls_make_fewer_rounds() -> None:
    calls: list[str] = []

    def call(name: str) -> Callable[[], Any]:
        return lambda: calls.append(name)

    both = {name: call(name) for name in ("fast", "slow")}
    taken = interleaved(both, {"fast": 0.001, "slow": 1.0}, Budget(1.0, 2, 6))
    assert taken["fast"].rounds == 6 and taken["slow"].rounds == 2
    # the slow ones are spread over the fast ones, and the last round has both
    first = "".join(name[0] for name in calls)
    assert [first[:2], first[4:6]] == ["ff", "ff"] and {first[2:4], first[6:]} <= {"fs", "sf"}
    calls.clear()
    interleaved(both, dict.fromkeys(both, 0.1), Budget(2.0, 3, 20))
    rounds = {tuple(calls[n : n + 2]) for n in range(0, 40, 2)}
    assert rounds == {("fast", "slow"), ("slow", "fast")}  # whom a call follows changes
    assert Budget(2.0, 3, 50).rounds(0.001) == 50 and Budget(2.0, 3, 50).rounds(5.0) == 3
    assert Budget(2.0, 3, 50).rounds(11.0) == 1 and Budget(0.0, 7, 7).rounds(11.0) == 7


MACHINE = {
    "date": "2001-02-03",
    "processor": "abacus",
    "cores": 2,
    "platform": "cpu",
    "device": "cpu",
    "system": "none",
    "versions": {"jax": "1"},
}
RATES = {"bytes_per_second": 1e9, "flops_per_second": 1e9}


def measured(title: str, temporaries: dict[str, int], **seconds: float) -> dict[str, Any]:
    sides = {
        side.replace("_", " "): {
            "seconds": taken,
            "temporaries": temporaries.get(side, 0),
            "flops": 1e6,
            "bytes": 1e6,
            "operations": {},
            "compile_seconds": 0.1,
        }
        for side, taken in seconds.items()
    }
    return {"title": title, "passes": {BOTH: {"sides": sides, "bytes_at_least": 1e6, "flops_at_least": 1e6}}}


def test_ratios_means_and_goals() -> None:
    good = measured("good", {"jaxte": 0, "idiomatic": 10**6}, jaxte=1.0, idiomatic=8.0, by_hand=1.0)
    bad = measured("bad", {"jaxte": 10**6, "idiomatic": 0}, jaxte=1.0, idiomatic=0.5, by_hand=0.25)
    assert figures.ratio(good, BOTH, IDIOMATIC) == 8 and figures.ratio(good, BOTH, INDEXED) is None
    means = {IDIOMATIC: pytest.approx(2), INDEXED: None, BY_HAND: pytest.approx(0.5), TORCH: None}
    assert figures.means([good, bad], BOTH) == means
    assert figures.missed(good, BOTH) == []
    assert figures.missed(bad, BOTH) == [
        "0.50 of idiomatic",
        "0.25 of by hand",
        "temporaries above idiomatic",
    ]
    for result in (good, bad):
        result["holds_back"] = f"a reason for {result['title']}"
    text = report({"machine": MACHINE, "size": "full", "ceilings": RATES, "cases": [good, bad]})
    assert "a reason for bad" in text and "a reason for good" not in text
    assert "| good | 1,000 ms | 8.0 | 1.0 |" in text and "| bad | 1,000 ms | **0.50** | **0.25** |" in text
    assert "| geometric mean |  | **2.0** | **0.50** |" in text
    assert "1 of 2 cases reach 0.95 of the idiomatic form" in text
    assert "bad: forward + backward: 0.50 of idiomatic" in text and "2001-02-03; abacus, 2 cores" in text
