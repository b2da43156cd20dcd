"""What is read off a compiled program of another platform, and the page that it makes; nothing is compiled here."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jaxte.lower.cost.platform import Platform
from platforms.facts import CASES
from platforms.kernels import MODELS, array_bytes, parsed
from platforms.page import page, ratio, tables
from platforms.side_by_side import draw, speeds, summary, whole
from platforms.texts import recorded, text_hash

GPU = """HloModule jit_f

%fused_slice (param_0: f32[1024,1024]) -> f32[1,1024] {
  %param_0 = f32[1024,1024]{1,0} parameter(0)
  ROOT %slice.1 = f32[1,1024]{1,0} slice(%param_0), slice={[0:1], [0:1024]}
}

%fused_update (param_0.1: f32[1024,1024], param_1: f32[1,1024]) -> f32[1024,1024] {
  %param_0.1 = f32[1024,1024]{1,0} parameter(0)
  %param_1 = f32[1,1024]{1,0} parameter(1)
  %zero = s32[] constant(0)
  ROOT %update = f32[1024,1024]{1,0} dynamic-update-slice(%param_0.1, %param_1, %zero, %zero)
}

%body (arg: (f32[1024,1024])) -> (f32[1024,1024]) {
  %arg = (f32[1024,1024]{1,0}) parameter(0)
  %x = f32[1024,1024]{1,0} get-tuple-element(%arg), index=0
  %negate = f32[1024,1024]{1,0} negate(%x)
  ROOT %out = (f32[1024,1024]{1,0}) tuple(%negate)
}

ENTRY %main (x.1: f32[1024,1024]) -> f32[1024,1024] {
  %x.1 = f32[1024,1024]{1,0} parameter(0)
  %row = f32[1,1024]{1,0} fusion(%x.1), kind=kLoop, calls=%fused_slice
  %new = f32[1024,1024]{1,0} fusion(%x.1, %row), kind=kLoop, calls=%fused_update
  %start = (f32[1024,1024]{1,0}) tuple(%new)
  %loop = (f32[1024,1024]{1,0}) while(%start), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %result = f32[1024,1024]{1,0} get-tuple-element(%loop), index=0
}
"""
ROW, WHOLE = 4 * 1024, 4 * 1024 * 1024


def test_slices_updates_and_loops_are_counted_as_what_they_move() -> None:
    text = parsed(GPU, "gpu")
    spent = text.of(text.entry)
    assert spent.kernels == 1 + 1 + 5 and spent.trips == 5
    assert spent.bytes == 2 * ROW + 2 * ROW + 5 * 2 * WHOLE
    assert spent.seconds > 7 * text.rates.start


LIBRARY = """HloModule jit_f

%fused_windows (param_0: f32[1024,1024]) -> f32[1024,1024] {
  %param_0 = f32[1024,1024]{1,0} parameter(0)
  ROOT %windows = f32[1024,1024]{1,0} reduce-window(%param_0, %zero), window={size=15x15 pad=7_7x7_7}, to_apply=%add
}

ENTRY %main (x.1: f32[1024,1024]) -> f32[1024,1024] {
  %x.1 = f32[1024,1024]{1,0} parameter(0)
  %conv = f32[1024,1024]{1,0} custom-call(%x.1, %x.1), window={size=1x1}, custom_call_target="__cudnn$convForward"
  ROOT %sums = f32[1024,1024]{1,0} fusion(%conv), kind=kLoop, calls=%fused_windows
}
"""


def test_convolutions_of_a_library_and_windows_take_what_the_clock_says() -> None:
    text = parsed(LIBRARY, "gpu")
    convolution, sums = (
        text._kernel(i, {"x.1": "f32[1024,1024]", "conv": "f32[1024,1024]"})
        for i in text.bodies[text.entry][1:]
    )
    assert convolution.seconds > text.rates.library * text.rates.start
    assert sums.seconds > 225 * 1024 * 1024 / text.rates.window > 2 * WHOLE / text.rates.bandwidth


def test_tiles_and_memory_of_the_chip() -> None:
    assert array_bytes("f32[10,3]{1,0}") == 120
    assert array_bytes("f32[10,3]{1,0:T(8,128)}") == 4 * 16 * 128
    assert array_bytes("f32[10,3]{0,1:T(8,128)}") == 4 * 8 * 128
    assert array_bytes("f32[10,3]{1,0:T(8,128)S(1)}") == 0
    assert array_bytes("(bf16[4], pred[4])") == 12


TPU = """HloModule jit_f

ENTRY %main (x: f32[8,128]) -> f32[8,128] {
  %x = f32[8,128]{1,0:T(8,128)} parameter(0)
  %copy-start = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%x)
  %copy-done = f32[8,128]{1,0:T(8,128)S(1)} copy-done(%copy-start)
  %slice-start = ((f32[8,128]{1,0:T(8,128)}), f32[4,128]{1,0:T(4,128)S(1)}, s32[]{:S(2)}) slice-start(%x), slice={[0:4], [0:128]}
  %slice-done = f32[4,128]{1,0:T(4,128)S(1)} slice-done(%slice-start)
  %whole = f32[8,128]{1,0:T(8,128)S(1)} custom-call(%slice-done, %slice-done), custom_call_target="ConcatBitcast"
  ROOT %sum = f32[8,128]{1,0:T(8,128)} add(%copy-done, %whole), backend_config={"window_config":{"estimated_cycles":"1824"}}
}
"""


def test_copies_between_memories_are_what_they_move() -> None:
    text = parsed(TPU, "tpu")
    spent = text.of(text.entry)
    assert spent.kernels == 1 and spent.bytes == 4 * 128 * (8 + 4 + 8) and spent.cycles == 1824


def test_cycles_that_the_compiler_states_stand_beside_the_model() -> None:
    def side(**more: int) -> dict[str, Any]:
        counted = {"bytes": 1.0, "kernels": 1, "temporaries": 0, "trips": 0, "model": 2}
        return {"seconds": 1e-6, "operations": {}, **counted, **more}

    def written(*others: str, **more: int) -> str:
        plain = {**side(cycles=3000), "operations": dict.fromkeys(others, 1)}
        sides = {"jaxte": side(**more), "plain": plain}
        (table,) = tables({"tpu": {"corpus": {"blur": {"forward": sides}}}}).values()
        return table

    assert "1.00 (1.5 by cycles)" in written(cycles=2000)
    assert "by cycles" not in written()  # of figures that were taken before
    assert "by cycles" not in written("select-and-scatter", cycles=2000)  # of which none are stated
    assert "by cycles" in written("dot", cycles=2000)


def test_figures_by_an_earlier_model_are_marked() -> None:
    def side(model: int) -> dict[str, Any]:
        return {
            "seconds": 1e-6,
            "bytes": 1.0,
            "kernels": 1,
            "temporaries": 0,
            "trips": 0,
            "operations": {},
            "model": model,
        }

    for platform, model, marked in (("gpu", MODELS["gpu"], False), ("gpu", 1, True), ("tpu", 1, True)):
        (table,) = tables(
            {platform: {"corpus": {"blur": {"forward": {"jaxte": side(model), "plain": side(model)}}}}}
        ).values()
        assert ("1.00*" in table) is marked
    assert (
        "1.00*"
        not in tables(
            {"tpu": {"corpus": {"blur": {"forward": {"jaxte": side(2), "plain": side(2)}}}}}
        ).popitem()[1]
    )


def test_the_page_says_what_is_below_and_what_failed() -> None:
    def side(seconds: float, **operations: int) -> dict[str, Any]:
        counted = {"bytes": 1e6, "kernels": 2, "temporaries": 0, "trips": 0}
        return {"seconds": seconds, "operations": operations} | counted

    slow = {"jaxte": side(2e-6), "plain": side(1e-6, scatter=1)}
    failed = {"jaxte": {"error": "no such kernel"}, "plain": side(1e-6)}
    assert ratio(slow) == 0.5 and ratio(failed) is None
    text = page({"gpu": {"corpus": {"blur": {"forward": slow, "forward + backward": failed}}}})
    (table,) = tables({"gpu": {"corpus": {"blur": {"forward": slow, "forward + backward": failed}}}}).values()
    assert "below 0.97: blur 0.50" in text and "no such kernel" in table and "none / 1 scatter" in table


def test_operators_that_are_as_plain_jax_are_listed_without_a_row() -> None:
    def both(seconds: float, kernels: int = 2) -> dict[str, Any]:
        side = {"seconds": seconds, "operations": {}, "bytes": 1e6, "temporaries": 0, "trips": 0}
        return {
            "forward": {
                "jaxte": side | {"kernels": kernels},
                "plain": {**side, "kernels": 2, "seconds": 1e-6},
            }
        }

    found = {"exp": both(1e-6), "take": both(2e-6), "sort": both(1e-6, kernels=1)}
    ((path, text),) = tables({"gpu": {"operators": found}}).items()
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]
    assert path == "results/platforms-gpu-operators.md"
    assert rows == ["`sort`", "`take`"] and "operators: `exp`." in text


def test_cases_of_facts_are_of_facts() -> None:
    known = {f.name: f.type for f in fields(Platform)}
    assert CASES.keys() <= known.keys()
    assert all((other is None) is (known[fact] == "bool") for fact, (_, other) in CASES.items())


TEXTS = list(recorded(json.loads((Path(__file__).parents[1] / "docs" / "platforms.json").read_text())))


@pytest.mark.parametrize(("platform", "name", "hashed"), TEXTS, ids=[f"{p}-{n}" for p, n, _ in TEXTS])
def test_figures_are_those_of_what_is_emitted(platform: str, name: str, hashed: str) -> None:
    """``--stale`` takes the figures of those that changed again."""
    assert text_hash(name, platform) == hashed, (
        f"what is emitted of {name} for {platform} is not what was measured; in the environment of make platforms, take its figures again: "
        f"python benchmarks/platforms --platform {platform} --stale"
    )


def test_all_platforms_stand_side_by_side(tmp_path: Path) -> None:
    """Times of the clock beside those of the model; a side that was not compiled is left out."""
    took = {"plain": {"seconds": 4.0}, "jaxte": {"seconds": 1.0}}
    failed = {"plain": {"error": "not compiled"}, "jaxte": {"seconds": 1.0}}
    found = speeds({"gpu": {"corpus": {"sobel": {"forward": took, "forward + backward": failed}}}})
    assert (
        found["gpu"] == {("corpus", "sobel", "forward"): 4.0}
        and ("corpus", "sobel", "forward") in found["cpu"]
    )
    assert "**4.00** (0 of 1 below 0.97)" in summary(found)
    (row,) = [line for line in whole(found).splitlines() if line.startswith("| `sobel`")]
    assert [cell.strip() for cell in row.split("|")][4] == "4.00"
    draw(found, tmp_path / "platforms.png")
    assert (tmp_path / "platforms.png").read_bytes().startswith(b"\x89PNG")
