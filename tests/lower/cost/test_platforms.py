"""What differs between platforms is in their table: no other module asks which one it is for."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path

import pytest

import jaxte as te
from jaxte.lang.errors import LoweringError
from jaxte.lower.body.candidates import Candidate, chosen
from jaxte.lower.cost.platforms import CPU, PLATFORMS, Platform, platform_of
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work

ROOT = Path(te.__file__).parent


def _compares_a_platform(node: ast.AST) -> bool:
    """``platform == "cpu"`` and its like."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    names = {ast.unparse(side).rpartition(".")[2] for side in sides}
    constants = {c.value for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant)}
    return "platform" in names and bool(constants & {*PLATFORMS, "cuda", "rocm"})


def test_no_module_asks_which_platform_it_is_for() -> None:
    asked = [
        f"{path.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]
        for path in sorted((ROOT / "lower").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if _compares_a_platform(node)
    ]
    assert not asked, "give cost/platforms.py a fact: " + ", ".join(asked)


def test_the_check_finds() -> None:
    assert _compares_a_platform(ast.parse('policy.platform != "cpu"', mode="eval").body)
    assert not _compares_a_platform(ast.parse('policy.form != "cpu"', mode="eval").body)


def test_every_fact_says_what_it_is() -> None:
    for field in fields(Platform):
        assert f"        {field.name}: " in str(Platform.__doc__) or f"``{field.name}``" in str(
            Platform.__doc__
        )


def test_unknown_platforms_are_named() -> None:
    assert platform_of("cuda") is PLATFORMS["gpu"]
    with pytest.raises(LoweringError, match="platform 'abacus' is unknown; give one of cpu, gpu, tpu"):
        platform_of("abacus")


def test_gains_that_vary_need_a_margin() -> None:
    """Twice as fast is not enough; four times is."""
    policy = Policy()
    margin = CPU.margin

    def taken(times: float) -> str:
        steady = Candidate("steady", Work(stream=times * 1e6), None)
        return chosen(
            policy, "y", [steady, Candidate("varying", Work(stream=1e6), None, varies=True)], ""
        ).candidate.form

    assert taken(0.9 * margin) == "steady"
    assert taken(1.1 * margin) == "varying"
    measured = replace(policy, measured={"": {"steady": 2.0, "varying": 1.9}})
    steady, varying = Candidate("steady", Work(), None), Candidate("varying", Work(), None, varies=True)
    assert chosen(measured, "y", [steady, varying], "").candidate.form == "varying"
