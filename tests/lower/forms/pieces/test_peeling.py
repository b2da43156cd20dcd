"""Edges peeled off: an interior without guards, a few positions around it, one array that both are written into."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.bridge.primitive.module import load
from jaxte.lang.walk import substitute
from jaxte.lower.code.lines import sources_of
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.lower.rules.peeled_edges import PEELED, SURROUNDED
from jaxte.tensors.tensor import Compute
from tests.agreement import compiled_run
from tests.lowered import arrays_for, inputs_of, program_of
from tests.xla_counts import Fused

X = te.placeholder((512, 384), name="X")


def diffused(u: te.Tensor) -> te.Tensor:
    n, m = u.shape

    def element(i: Any, j: Any) -> Any:
        rows = te.select(i > 0, u[i - 1, j], 0.0) + te.select(i < n - 1, u[i + 1, j], 0.0)
        columns = te.select(j > 0, u[i, j - 1], 0.0) + te.select(j < m - 1, u[i, j + 1], 0.0)
        return u[i, j] + 0.1 * (rows + columns - 4 * u[i, j])

    return te.compute((n, m), element, "Y")


def turning(u: te.Tensor) -> te.Tensor:
    n, m = u.shape
    return te.compute((n, m), lambda i, j: u[(i - 1) % n, j] - u[i, (j + 2) % m], "Y")


def doubled(u: te.Tensor) -> te.Tensor:
    n, m = u.shape

    def element(i: Any, j: Any) -> Any:
        left, right = te.maximum((j - 1) // 2, 0), te.minimum((j + 1) // 2, m - 1)
        return (
            te.select(j % 2 == 0, 0.25, 0.75) * u[i, left] + te.select(j % 2 == 0, 0.75, 0.25) * u[i, right]
        )

    return te.compute((n, 2 * m), element, "Y")


def held(u: te.Tensor) -> te.Tensor:
    n, m = u.shape
    return te.compute((n, m), lambda i, j: u[te.maximum(i - 1, 0), j] * u[i, te.minimum(j + 1, m - 1)], "Y")


def weighted_sum(Y: te.Tensor) -> te.Tensor:
    """The sum of all elements of ``Y``, written within it, each with a weight: as the derivative by a number before a stencil is."""
    assert isinstance(Y, Compute)
    H = te.placeholder(Y.shape, Y.dtype, "H")
    axes = tuple(te.reduce_axis((0, extent)) for extent in Y.shape)
    body = substitute(Y.body, dict(zip(Y.axes, axes, strict=True)))
    return te.compute((), lambda: te.sum(H[axes] * body, axis=axes), "T")


def compiled(Y: te.Tensor, form: str) -> Any:
    fn = te.function(inputs_of(Y), Y, forms={ANY: form})
    return Fused(jax.jit(fn).lower(*(jax.ShapeDtypeStruct(t.shape, t.dtype) for t in inputs_of(Y))))


def form_of(Y: te.Tensor, platform: str = "cpu") -> str:
    (choice,) = lower("forward", inputs_of(Y), [Y], Policy(platform)).choices
    return choice.form


def sources(tensor: te.Tensor) -> dict[str, str]:
    """The right-hand sides of the emitted assignments by what they assign."""
    program = program_of(tensor)
    return dict(zip((s.target for s in program.statements), sources_of(program), strict=True))


def test_a_large_stencil_is_an_interior_and_four_edges() -> None:
    Y = diffused(X)
    assert form_of(Y) == PEELED
    statements = sources(Y)
    assert "pad" not in statements["Y_interior"]
    assert [t for t in statements if t.startswith("Y_edge")] == [f"Y_edge{n}" for n in ("", "_1", "_2", "_3")]
    text = te.function([X], Y).lower(jnp.zeros(X.shape)).as_text()
    assert "scatter" not in text and "gather" not in text and "concatenate" not in text


def test_an_image_twice_the_size_is_repeated_slices_and_two_edges() -> None:
    Y = doubled(X)
    assert form_of(Y) == PEELED
    statements = sources(Y)
    assert (
        "pad" not in statements["Y_interior"]
        and "jnp.repeat(X[:, 1:], 2, axis=1)" in statements["Y_interior"]
    )
    assert [t for t in statements if t.startswith("Y_edge")] == ["Y_edge", "Y_edge_1"]
    given = np.random.default_rng(0).standard_normal(X.shape).astype(np.float32)
    before, after = (
        np.pad(given, ((0, 0), (1, 1)), mode="edge")[:, :-2],
        np.pad(given, ((0, 0), (1, 1)), mode="edge")[:, 2:],
    )
    expected = np.stack([0.25 * before + 0.75 * given, 0.75 * given + 0.25 * after], 2).reshape(512, 768)
    np.testing.assert_allclose(te.evaluate(Y, {X: given}), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("divisor", "is_peeled"), [(2, True), (4, True), (3, False), (8, False)])
def test_quotients_are_peeled_that_take_their_next_value_all_the_time(divisor: int, is_peeled: bool) -> None:
    n = X.shape[1]
    Y = te.compute(
        (512, divisor * n),
        lambda i, j: X[i, te.maximum((j - 1) // divisor, 0)] - X[i, te.minimum((j + 1) // divisor, n - 1)],
        "Y",
    )
    assert (form_of(Y) == PEELED) == is_peeled


@pytest.mark.parametrize("stencil", [diffused, turning])
def test_nothing_is_copied(stencil: Any) -> None:
    peeled, whole = (compiled(stencil(X), form) for form in (PEELED, SURROUNDED))
    image = 4 * 512 * 384
    assert peeled.memory_analysis().temp_size_in_bytes < image / 20
    assert whole.memory_analysis().temp_size_in_bytes >= image
    assert peeled.cost_analysis()["bytes accessed"] < 0.85 * whole.cost_analysis()["bytes accessed"]


@pytest.mark.parametrize("stencil", [diffused, turning, held])
def test_a_sum_of_what_has_edges_is_of_slices(stencil: Any) -> None:
    peeled, whole = (compiled(weighted_sum(stencil(X)), form) for form in (PEELED, SURROUNDED))
    image = 4 * 512 * 384  # the product that is summed is one
    assert peeled.memory_analysis().temp_size_in_bytes < 1.05 * image
    assert peeled.cost_analysis()["bytes accessed"] < 0.85 * whole.cost_analysis()["bytes accessed"]
    assert "pad(X, " not in "".join(sources(weighted_sum(stencil(X))).values())


def test_the_adjoint_is_taken_apart_as_well() -> None:
    H = te.placeholder(X.shape, name="H")
    (dX,) = te.differentiate(diffused(X), (X,), head=H)
    assert form_of(dX) == PEELED


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_small_tensors_are_computed_at_once(n: int) -> None:
    assert form_of(diffused(te.placeholder((n, n), name="U"))) != PEELED


def test_the_platform_decides() -> None:
    for platform in ("gpu", "tpu"):
        assert form_of(diffused(X), platform) != PEELED
        assert form_of(diffused(te.placeholder((8192, 8192), name="U")), platform) != PEELED


def test_both_forms_are_explained_and_measured(tmp_path: Any) -> None:
    Y = diffused(te.placeholder((300, 200), name="U"))
    explained = str(te.explain(Y))
    assert PEELED in explained and SURROUNDED in explained
    fn = te.function(inputs_of(Y), Y)
    tuned = te.autotune(fn, np.ones((300, 200), np.float32), file=tmp_path / "tuned.json")
    assert any({PEELED, SURROUNDED} == set(entry.seconds) for entry in tuned.reductions.values())


def test_a_costly_producer_is_computed_once() -> None:
    Z = te.compute(X.shape, lambda i, j: te.exp(X[i, j]) / (1 + X[i, j] * X[i, j]), "Z")
    Y = diffused(Z)
    text = compiled(Y, PEELED).as_text()
    assert "dynamic-update-slice" in text
    assert text.count(" exponential(") == 1


def test_a_condition_in_the_middle_is_not_an_edge() -> None:
    n = X.shape[0]
    Y = te.compute((n, 384), lambda i, j: X[i, j] + te.select(i >= 256, X[i - 256, j], X[i, j]), "Y")
    assert form_of(Y) != PEELED


def run(tensors: list[te.Tensor], form: str) -> tuple[list[Any], str]:
    program = lower("forward", inputs_of(*tensors), tensors, Policy(forms={ANY: form}))
    text = module_text([program], "", "forced")
    found = compiled_run(load(text, "forced", {})["forward"], arrays_for(program), optimised=False)
    return list(found) if len(tensors) > 1 else [found], text


def place(draw: st.DrawFn, axis: Any, extent: int) -> tuple[Any, Any]:
    """An index near ``axis`` and the condition to read at it: in range, wrapping around, or held at the ends."""
    move = draw(st.sampled_from([-3, -1, -1, 0, 0, 1, 1, 2]))
    match draw(st.sampled_from(["zeros", "fewer", "wraps", "held", "mirrored", "halves", "half held"])):
        case "halves":
            return (axis + move) // 2, axis + move >= 0
        case "half held":
            return te.maximum(te.minimum((axis + move) // 2, (extent - 2) // 2), 0), te.const(True)
        case "zeros":
            return axis + move, (axis + move >= 0) & (axis + move < extent)
        case "fewer":
            return axis + move, (axis + move >= 1) & (axis + move < extent - 2)
        case "wraps":
            return (axis + move) % extent, te.const(True)
        case "held":
            return te.maximum(te.minimum(axis + move, extent - 1), 0), te.const(True)
    return extent - 1 - (axis + move), (axis + move >= 0) & (axis + move < extent)


@st.composite
def stencils(draw: st.DrawFn) -> te.Tensor:
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    shape = tuple(draw(st.integers(8, 12) if n else st.integers(4, 17)) for n in range(rank))
    dtype = draw(st.sampled_from(["float32", "float32", "int32", "float16"]))
    u, v = te.placeholder(shape, dtype, "U"), te.placeholder(shape, dtype, "V")
    weights = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))

    def element(*at: Any) -> Any:
        total = u[at] if draw(st.booleans()) else te.const(1, dtype)
        for weight in weights:
            found = [place(draw, axis, extent) for axis, extent in zip(at, shape, strict=True)]
            inside = found[0][1]
            for _, condition in found[1:]:
                inside = inside & condition
            source = draw(st.sampled_from([u, u, v]))
            other = draw(st.sampled_from([0, 0, 0, 2]))
            read = source[tuple(index for index, _ in found)]
            total = total + weight * te.select(inside, read, te.const(other, dtype))
        return total

    return te.compute(shape, element, "Y")


@settings(max_examples=500 if settings.default.max_examples >= 1000 else 40)
@given(stencils())
def test_random_stencils(Y: te.Tensor) -> None:
    tensors = [Y]
    wanted = [t for t in inputs_of(Y) if t.dtype == "float32"]
    if wanted:
        tensors += te.differentiate(Y, wanted, head=te.placeholder(Y.shape, Y.dtype, "H"))
    tensors.append(weighted_sum(Y))
    program = lower("forward", inputs_of(*tensors), tensors)
    feeds = dict(zip((t for _, t in program.params), arrays_for(program), strict=True))
    expected = te.interpret(tensors, feeds)
    for form in (PEELED, SURROUNDED):
        found, text = run(tensors, form)
        event(f"{form}: {'dynamic_update_slice' in text}")
        for tensor, value, meaning in zip(tensors, found, expected, strict=True):
            assert (value.shape, value.dtype) == (meaning.shape, meaning.dtype), text
            rounding = 1e-2 if tensor.dtype == "float16" else 1e-4
            np.testing.assert_allclose(
                np.asarray(value, "float64"), meaning.astype("float64"), rounding, rounding, err_msg=text
            )
