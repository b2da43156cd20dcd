"""What differs between platforms is in their table: no other module asks which one it is for."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import jaxte as te
from jaxte.lang.errors import LoweringError
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.scalars.times import taking
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.platforms import PLATFORMS, platform_of
from jaxte.lower.cost.work import expensive_calls

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


def test_functions_take_their_times_where_they_are_planned_and_lowered() -> None:
    x = te.placeholder((8,), name="x")
    node = te.compute((8,), lambda i: te.sin(x[i]) + te.exp(x[i]) + x[i] ** 1.5 + x[i] ** 1.3, "y").body
    taken = []
    for platform in ("cpu", "gpu"):
        with taking(platform_of(platform).functions):
            taken.append(expensive_calls([node]))
    assert taken == [14 + 1 + 1 + 16, 4]
    assert all(name in TABLE for name, _ in platform_of("cpu").functions.multiples)
