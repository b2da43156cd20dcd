"""What is emitted for each benchmark case at its full size: forms, operations, and bytes beside the idiomatic form's.

Nothing runs here: programs are lowered, and compiled for what XLA counts, which is exact and free of noise.
``python tests/test_case_forms.py`` prints the tables anew; read them before they are taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import pytest

from harness.case import IDIOMATIC, JAXTE, load, names
from harness.counts import operations
from harness.inputs import draw
from harness.sides import function, with_gradients
from tests.agreement import QUICK
from tests.case_tables import EXPECTED, MORE_BYTES, MORE_TEMPORARIES

# positions that are data and of which no fact is known: all that may scatter
SCATTERS = {"embedding", "deformable_conv", "graph_attention"}
GATHERS = {"embedding", "deformable_conv", "graph_attention", "mesh_convolution", "gather_permutation"}
LOOPS = ("tiles", "scan", "product per image")  # forms that are loops
SLACK = 65536  # bytes: scalars, alignment and what XLA keeps for itself


@cache
def structs(name: str) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in draw(load(name).inputs_at("full"))]


@cache
def lowered(name: str, side: str) -> Any:
    """The function with its gradients, at full size."""
    case, arrays = load(name), structs(name)
    fn = function(case, side)
    found = jax.eval_shape(fn, *arrays)
    outputs: Sequence[Any] = found if isinstance(found, (tuple, list)) else [found]
    heads = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in outputs]
    return jax.jit(with_gradients(fn, case.differentiated(arrays))).lower(heads, *arrays)  # type: ignore[arg-type]


def forms(name: str) -> str:
    """The forms of all tensors of both passes."""
    choices = function(load(name), JAXTE).explain(*structs(name)).choices.values()
    return ", ".join(sorted({c.form for own in choices for c in own} - {"elementwise"}))


@cache
def counted(name: str, side: str) -> tuple[int, int]:
    """The bytes of temporaries, and those that are read and written (in loops once)."""
    # XLA assigns its buffers before LLVM, which takes most of the time, sees the loops
    compiled = lowered(name, side).compile(compiler_options=QUICK)
    held = int(compiled.memory_analysis().temp_size_in_bytes)
    return held, int(compiled.cost_analysis()["bytes accessed"])


def temporaries(name: str, side: str) -> int:
    return counted(name, side)[0]


def moved(name: str, side: str) -> int:
    return counted(name, side)[1]


@pytest.mark.parametrize("name", names())
def test_operations(name: str) -> None:
    found = operations(lowered(name, JAXTE).as_text())
    assert found == EXPECTED[name][0]
    assert not found.get("select_and_scatter")
    assert not found.get("scatter") or name in SCATTERS
    assert not found.get("gather") or name in GATHERS
    assert not found.get("while") or any(form in EXPECTED[name][1] for form in LOOPS)


@pytest.mark.parametrize("name", names())
def test_forms(name: str) -> None:
    assert forms(name) == EXPECTED[name][1]


@pytest.mark.parametrize("name", [n for n in names() if IDIOMATIC not in load(n).left_out.get("full", {})])
def test_temporaries(name: str) -> None:
    """Never above the idiomatic form's, but for what is listed with its reason."""
    own, theirs = temporaries(name, JAXTE), temporaries(name, IDIOMATIC)
    limit = MORE_TEMPORARIES.get(name, (1.0, ""))[0] * theirs + SLACK
    assert own <= limit, f"{own:,} bytes beside {theirs:,}"


@pytest.mark.parametrize("name", [n for n in names() if IDIOMATIC not in load(n).left_out.get("full", {})])
def test_bytes(name: str) -> None:
    """Never above the idiomatic form's, but for what is listed with its reason."""
    own, theirs = moved(name, JAXTE), moved(name, IDIOMATIC)
    limit = MORE_BYTES.get(name, (1.0, ""))[0] * theirs + SLACK
    assert own <= limit, f"{own:,} bytes beside {theirs:,}"


def main() -> None:
    print("EXPECTED = {")
    for name in names():
        print(
            f'    "{name}": (\n        {operations(lowered(name, JAXTE).as_text())},\n        "{forms(name)}",\n    ),'
        )
    print("}")
    for name in names():
        if IDIOMATIC not in load(name).left_out.get("full", {}):
            own, theirs = temporaries(name, JAXTE), temporaries(name, IDIOMATIC)
            if own > theirs + SLACK:
                print(f"# {name}: {own:,} beside {theirs:,}: {own / max(theirs, 1):.2f}")


if __name__ == "__main__":
    main()
