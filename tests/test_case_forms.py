"""What is emitted for each benchmark case at its full size: forms, operations, and bytes beside the idiomatic form's.

Nothing runs here: programs are lowered, and compiled for what XLA counts, which is exact and free of noise.
``python tests/test_case_forms.py`` prints the tables anew; read them before they are taken over.
"""

from __future__ import annotations

import pytest

from harness.case import IDIOMATIC, JAXTE, load, names
from harness.counts import operations
from harness.sides import function
from tests.case_figures import figures, recorded, worse
from tests.case_programs import compiled, lowered, structs
from tests.case_tables import EXPECTED, MORE_BYTES, MORE_TEMPORARIES

# positions that are data and of which no fact is known: all that may scatter
SCATTERS = {"embedding", "deformable_conv", "graph_attention"}
GATHERS = {"embedding", "deformable_conv", "graph_attention", "mesh_convolution", "gather_permutation"}
LOOPS = ("tiles", "scan", "product per image")  # forms that are loops
COMPARABLE = [n for n in names() if IDIOMATIC not in load(n).left_out.get("full", {})]
# by module: all tests of one case stand together, so that one process compiles it once
CASES = pytest.mark.parametrize("name", names(), scope="module")
COMPARED = pytest.mark.parametrize("name", COMPARABLE, scope="module")
SLACK = 65536  # bytes: scalars, alignment and what XLA keeps for itself


def forms(name: str) -> str:
    """The forms of all tensors of both passes."""
    choices = function(load(name), JAXTE).explain(*structs(name)).choices.values()
    return ", ".join(sorted({c.form for own in choices for c in own} - {"elementwise"}))


def temporaries(name: str, side: str) -> int:
    return int(compiled(name, side).memory_analysis().temp_size_in_bytes)


def moved(name: str, side: str) -> int:
    """The bytes that are read and written, in loops once."""
    return int(compiled(name, side).cost_analysis()["bytes accessed"])


@CASES
def test_operations(name: str) -> None:
    found = operations(lowered(name, JAXTE).as_text())
    assert found == EXPECTED[name][0]
    assert not found.get("select_and_scatter")
    assert not found.get("scatter") or name in SCATTERS
    assert not found.get("gather") or name in GATHERS
    assert not found.get("while") or any(form in EXPECTED[name][1] for form in LOOPS)


@CASES
def test_forms(name: str) -> None:
    assert forms(name) == EXPECTED[name][1]


@COMPARED
def test_temporaries(name: str) -> None:
    """Never above the idiomatic form's, but for what is listed with its reason."""
    own, theirs = temporaries(name, JAXTE), temporaries(name, IDIOMATIC)
    limit = MORE_TEMPORARIES.get(name, (1.0, ""))[0] * theirs + SLACK
    assert own <= limit, f"{own:,} bytes beside {theirs:,}"


@COMPARED
def test_bytes(name: str) -> None:
    """Never above the idiomatic form's, but for what is listed with its reason."""
    own, theirs = moved(name, JAXTE), moved(name, IDIOMATIC)
    limit = MORE_BYTES.get(name, (1.0, ""))[0] * theirs + SLACK
    assert own <= limit, f"{own:,} bytes beside {theirs:,}"


@CASES
def test_figures(name: str) -> None:
    """Flops, bytes, temporaries and operations are at most what ``case_figures.json`` holds."""
    before = recorded()
    if before is None:
        pytest.skip("another release of XLA, which counts otherwise")
    assert not worse(figures(name), before[name])


def test_figures_of_every_case_are_recorded() -> None:
    before = recorded()
    assert before is None or sorted(before) == sorted(names())


def main() -> None:
    print("EXPECTED = {")
    for name in names():
        print(
            f'    "{name}": (\n        {operations(lowered(name, JAXTE).as_text())},\n        "{forms(name)}",\n    ),'
        )
    print("}")
    for name in COMPARABLE:
        own, theirs = temporaries(name, JAXTE), temporaries(name, IDIOMATIC)
        if own > theirs + SLACK:
            print(f"# {name}: {own:,} beside {theirs:,}: {own / max(theirs, 1):.2f}")


if __name__ == "__main__":
    main()
