"""Options of ``te.function`` that are of no use: each is an error where it is given, or ``te.explain`` says so."""

import jax
import numpy as np
import pytest

import jaxte as te


def blur(x):
    k = te.reduce_axis((0, 3), "k")
    return te.compute((x.shape[0] - 2,), lambda i: te.sum(x[i + k], axis=k), "y")


X = np.arange(8, dtype="float32")


@pytest.mark.parametrize(
    "budget", [0, -5, 1.5, "1MB", True, float("nan"), float("inf"), [1], np.float32(0.5), jax.numpy.int32(8)]
)
def test_budgets_that_are_no_number_of_bytes(budget) -> None:
    with pytest.raises(te.LoweringError, match=r"max_memory is .*; give a positive number of bytes"):
        te.function(blur, max_memory=budget)


@pytest.mark.parametrize("budget", [1e9, np.int64(10**6), 2**40])
def test_budgets_of_any_number_type(budget) -> None:
    np.testing.assert_array_equal(te.function(blur, max_memory=budget)(X), X[:-2] + X[1:-1] + X[2:])


@pytest.mark.parametrize("forms", [["y"], "y", {"y": 3}, {3: "general"}, {"y": None}])
def test_forms_that_are_no_names_by_name(forms) -> None:
    with pytest.raises(te.LoweringError, match=r"forms (is|has the entry) .*give the name of a form"):
        te.function(blur, forms=forms)


@pytest.mark.parametrize("platform", ["", 3, ["cpu"], "CPU"])
def test_platforms_that_are_none(platform) -> None:
    with pytest.raises(te.LoweringError, match=r"platform .* is unknown; give one of cpu, gpu, tpu"):
        te.function(blur, platform=platform)


@pytest.mark.parametrize("option", ["fdiff", "override"])
def test_derivatives_that_are_no_functions(option) -> None:
    with pytest.raises(te.DifferentiationError, match=rf"{option} is 3; give "):
        te.function(blur, **{option: 3})


def test_derivatives_that_differentiate_cannot_use() -> None:
    x = te.placeholder((8,), name="X")
    y = blur(x)
    for given in ({"fdiff": 3}, {"override": 3}, {"override": [1]}):
        with pytest.raises(te.DifferentiationError, match=rf"{next(iter(given))} is .*; give "):
            te.differentiate(y, [x], **given)
    with pytest.raises(
        te.DifferentiationError, match=r"override of y returned a NoneType; return a list .* \(X\)"
    ):
        te.differentiate(y, [x], override={y: ([x], lambda *_: None)})


@pytest.mark.parametrize("given", [{"name": 3}, {"static_argnames": 3}, {"static_argnames": (3,)}])
def test_names_that_are_no_strings(given) -> None:
    with pytest.raises(te.DefinitionError, match="; give "):
        te.function(blur, **given)


def test_forms_that_are_not_met_are_told() -> None:
    forms = {"y": "no such form", "Y": "general", "*": "none"}
    unmet = te.function(blur, forms=forms).explain(X).unmet
    assert unmet["Y"] == "no tensor here is named Y"
    assert unmet["y"].startswith("no such form is none of the forms that y offers (")
    assert unmet["*"].startswith("none is none of the forms that any tensor here offers (")
    report = te.function(blur, forms=forms).explain(X)
    assert "forms={'Y': 'general'} not met: no tensor here is named Y" in str(report)
    for offer in report.estimates["y"]:
        assert not te.function(blur, forms={"y": offer.form, "*": "general"}).explain(X).unmet
