"""The forms of cumulative reductions: each against the interpreter, and the one that is taken by size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.tensors.tensor import Tensor
from tests.xla_counts import Fused

FORMS = ("scan", "associative scan", "sequential scan", "blocked scan", "prefix written out")
Builder = Callable[[Tensor], Tensor]


def prefix(
    reduce: Callable[..., Any], shift: int = 0, suffix: bool = False, mirrored: bool = False
) -> Builder:
    """Reduces along the last axis, up to (or from) the position ``i + shift``."""

    def build(x: Tensor) -> Tensor:
        n = x.shape[1]
        j = te.reduce_axis((0, n), "j")

        def body(b: Any, i: Any) -> Any:
            end = (n - 1 - i if mirrored else i) + shift
            return reduce(x[b, j], axis=j, where=j >= end if suffix else j <= end)

        return te.compute(x.shape, body, "P")

    return build


def affine(x: Tensor) -> Tensor:
    """Compositions of maps, which do not commute."""
    compose = te.comm_reducer(
        lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]),
        lambda a, b: (te.const(1.0, a), te.const(0.0, b)),
        "compose",
    )
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: compose((x[b, j], x[b, j] + 1.0), axis=j, where=j <= i)[1], "P")


def affine_backwards(x: Tensor) -> Tensor:
    compose = te.comm_reducer(
        lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]),
        lambda a, b: (te.const(1.0, a), te.const(0.0, b)),
        "compose",
    )
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: compose((x[b, j], x[b, j] + 1.0), axis=j, where=j >= i)[1], "P")


def both_axes(x: Tensor) -> Tensor:
    a, j = te.reduce_axis((0, x.shape[0]), "a"), te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: te.sum(x[a, j], axis=[a, j], where=(a <= b) & (j < i)), "P")


def single(x: Tensor) -> Tensor:
    """No axis beside the one that is scanned."""
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute((x.shape[1],), lambda i: te.max(x[0, j], axis=j, where=j <= i), "P")


CASES: dict[str, Builder] = {
    "sum": prefix(te.sum),
    "exclusive sum": prefix(te.sum, -1),
    "sum ahead": prefix(te.sum, 2),
    "suffix sum": prefix(te.sum, suffix=True),
    "mirrored sum": prefix(te.sum, mirrored=True),
    "product": prefix(te.prod),
    "maximum": prefix(te.max),
    "suffix minimum": prefix(te.min, 1, suffix=True),
    "maps": affine,
    "maps backwards": affine_backwards,
    "both axes": both_axes,
    "single": single,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_each_form_beside_the_interpreter(name: str, form: str) -> None:
    agree(CASES[name], (3, 7), form)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.sampled_from([te.sum, te.prod, te.max, te.min]),
    st.integers(-2, 2),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
    st.integers(1, 9),
)
def test_random_prefixes(
    form: str, reduce: Any, shift: int, suffix: bool, mirrored: bool, rows: int, length: int
) -> None:
    agree(prefix(reduce, shift, suffix, mirrored), (rows, length), form)


def agree(build: Builder, shape: tuple[int, int], form: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    variable = te.placeholder(shape, name="x")
    expected = te.interpret(build(variable), {variable: x})
    found = te.function(build, forms={"*": form})(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["*", *FORMS[1:]])
@pytest.mark.parametrize("name", ["maximum", "suffix minimum", "single"])
def test_running_maxima_and_minima_of_booleans(name: str, form: str) -> None:
    """JAX has no cumulative function of booleans."""
    x = np.random.default_rng(0).random((3, 7)) < 0.3
    variable = te.placeholder(x.shape, "bool", "x")
    expected = te.interpret(CASES[name](variable), {variable: x})
    found = te.function(CASES[name], forms={} if form == "*" else {"*": form})(x)
    assert found.dtype == bool and expected.any() and not expected.all()
    np.testing.assert_array_equal(found, expected)


def form_of(build: Builder, *shape: int, platform: str = "cpu") -> str:
    x = te.placeholder(shape, name="x")
    return lower("forward", [x], [build(x)], Policy(platform=platform)).choices[0].form


def test_the_form_by_size_and_platform() -> None:
    """They run step by step on a CPU, where a step is cheap, and never so on a GPU; long sums in blocks, which keep more digits."""
    for name in ("sum", "product", "maximum"):
        assert form_of(CASES[name], 8, 100_000) == ("blocked scan" if name == "sum" else "sequential scan")
        assert form_of(CASES[name], 8, 100) == "sequential scan"
        assert form_of(CASES[name], 8, 100, platform="gpu") == "scan"
        assert form_of(CASES[name], 8, 100_000, platform="gpu") == "scan"
        for platform in ("cpu", "gpu", "tpu"):
            assert form_of(CASES[name], 3000, 4, platform=platform) == "prefix written out"
        assert form_of(CASES[name], 3, 4) == "scan"
        assert form_of(CASES[name], 3000, 17) != "prefix written out"
    assert form_of(affine, 3000, 4) != "prefix written out"
    assert form_of(affine, 8, 100_000) == "sequential scan"
    assert form_of(affine, 8, 100_000, platform="gpu") == "blocked scan"
    assert form_of(affine_backwards, 8, 100, platform="gpu") == "associative scan"


@pytest.mark.parametrize("rows", [1, 4])
def test_long_running_sums_keep_their_digits(rows: int) -> None:
    """A phase is a sum of thousands of steps: of its error all that is computed from it is noise."""
    x = np.random.default_rng(0).uniform(0.01, 0.1, (rows, 8192)).astype(np.float32)
    exact = np.cumsum(x.astype(np.float64), 1)
    found, plain = (
        np.asarray(f(x), np.float64) for f in (te.function(CASES["sum"]), lambda x: jnp.cumsum(x, 1))
    )
    assert np.max(np.abs(found - exact)) <= 2 * np.max(np.abs(plain - exact))


def forms_of(build: Builder, *shape: int) -> list[str]:
    """The forms of the scans, of the gradient too, without compiling them."""
    fn = te.function(build)
    return [
        line for line in fn.source(jax.ShapeDtypeStruct(shape, jnp.float32)).splitlines() if "def " in line
    ]


def test_blocks_of_long_sums() -> None:
    functions = forms_of(CASES["sum"], 64, 2048)
    assert sum("_prefix(x)" in f or "_suffix(x)" in f for f in functions) == 2, functions
    assert not any("_step(" in f for f in functions)
    functions = forms_of(CASES["maps backwards"], 64, 1000)
    assert any("P_step(total, x)" in f for f in functions), "two values are handed on"


def test_blocks_read_as_they_would_be_written() -> None:
    text = te.function(affine, forms={"P": "blocked scan"}).source(
        jax.ShapeDtypeStruct((64, 2048), jnp.float32)
    )
    assert (
        """
        def P_prefix(x):
            n = x[0].shape[1]
            if n <= 1:
                return x[1]
            ends = ((0, 0), (0, -n % 4))
            x = (jnp.pad(x[0], ends, constant_values=1.0), jnp.pad(x[1], ends))
            parts = [(x[0][:, k::4], x[1][:, k::4]) for k in range(4)]
            before = P_prefix(functools.reduce(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), parts))
            total = jnp.pad(before[:, :-1], ((0, 0), (1, 0)))
            totals = []
            for part in parts:
                total = total * part[0] + part[1]
                totals.append(total)
            return jnp.stack(totals, axis=2).reshape(x[0].shape)[:, :n]
"""
        in text
    )


@pytest.mark.parametrize("backwards", [False, True])
def test_what_comes_before_a_block_is_added_once(backwards: bool) -> None:
    """Sums within blocks first: three small numbers and a large one are rounded once where they are large."""
    k = te.reduce_axis((0, 65536), "k")
    inside = (lambda j: k >= j) if backwards else (lambda j: k <= j)
    build = lambda x: te.compute((2, 65536), lambda i, j: te.sum(x[i, k], axis=k, where=inside(j)), "P")  # noqa: E731
    x = np.random.default_rng(0).uniform(size=(2, 65536)).astype("float32")
    found = np.asarray(te.function(build, forms={"*": "blocked scan"})(x), "float64")
    turned = x[:, ::-1] if backwards else x
    exact = np.cumsum(turned.astype("float64"), axis=1)
    assert np.abs(found - (exact[:, ::-1] if backwards else exact)).max() < 2.2 * 2.0**-23 * exact.max()


@pytest.mark.parametrize("form", FORMS)
def test_infinite_and_missing_elements_count_from_their_place_on(form: str) -> None:
    x = np.ones((2, 70), np.float32)
    x[0, 37], x[1, 20] = np.inf, np.nan
    found = np.asarray(te.function(CASES["sum"], forms={"*": form})(x))
    np.testing.assert_array_equal(found, np.cumsum(x, axis=1))


@pytest.mark.parametrize("shape", [(5,), (5, 1), (17, 2, 3), (2, 17, 3), (2, 3, 16), (2, 3, 21)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "bool"])
def test_blocks_along_any_axis(shape: tuple[int, ...], dtype: str) -> None:
    axis = shape.index(max(shape))

    def build(x: Tensor) -> Tensor:
        j = te.reduce_axis((0, shape[axis]), "j")

        def body(*i: Any) -> Any:
            return te.max(x[(*i[:axis], j, *i[axis + 1 :])], axis=j, where=j >= i[axis])

        return te.compute(shape, body, "P")

    x = (100 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    found = te.function(build, forms={"*": "blocked scan"})(x)
    assert found.dtype == dtype
    expected = np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis)
    np.testing.assert_array_equal(found, expected)


def test_blocks_of_a_symbolic_length() -> None:
    n, x = te.var("n"), np.arange(13, dtype=np.float32)
    X = te.placeholder((n,), name="X")
    j = te.reduce_axis((0, n), "j")
    Y = te.compute((n,), lambda i: te.sum(X[j], axis=j, where=j <= i), "Y")
    program = lower("forward", [X], [Y], Policy(forms={"*": "blocked scan"}))
    scope: dict[str, Any] = {}
    exec(module_text([program]), scope)
    for length in (0, 1, 13):
        np.testing.assert_allclose(scope["forward"](x[:length]), np.cumsum(x[:length]), rtol=1e-6)


def test_a_step_reads_as_it_would_be_written() -> None:
    x = jax.ShapeDtypeStruct((8, 100_000), jnp.float32)
    text = te.function(prefix(te.sum), forms={"*": "sequential scan"}).source(x)
    assert "def P_step(total, x):\n            total = total + x\n            return total, total\n" in text
    moved = "x.T"
    assert f"P = lax.scan(P_step, jnp.zeros((8,), jnp.float32), {moved}, unroll=4)[1].T" in text


def test_a_step_hands_on_only_what_is_read_later() -> None:
    """The slope of a composition is made from slopes alone, the offset from both."""
    x = jax.ShapeDtypeStruct((8, 7), jnp.float32)
    offsets = te.function(affine_backwards, forms={"*": "sequential scan"}).source(x)
    assert "total = total * x[0]" not in offsets and "total = (" in offsets
    product = te.function(prefix(te.prod), forms={"*": "sequential scan"}).source(x)
    assert "total = x[1] + x[0] * total" in product


@pytest.mark.parametrize("suffix, mirrored", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("reduce, plain", [(te.prod, jnp.cumprod), (te.max, jax.lax.cummax)])
def test_the_output_stands_for_the_states(reduce: Any, plain: Any, suffix: bool, mirrored: bool) -> None:
    """The adjoint reads the cumulative values that the forward pass has made."""
    fn = te.function(prefix(reduce, suffix=suffix, mirrored=mirrored))
    x = jax.random.uniform(jax.random.key(0), (3, 7), minval=0.5, maxval=1.5)
    backward = fn.source(x).split("def backward")[1]
    assert backward.startswith("(x, P, H)") and " state_P =" not in backward
    flip = (lambda a: a[:, ::-1]) if suffix else (lambda a: a)
    turn = (lambda a: a[:, ::-1]) if mirrored else (lambda a: a)

    def expected(x: jax.Array) -> jax.Array:
        return turn(flip(plain(flip(x), axis=1)))

    seed = jnp.cos(jnp.arange(21.0)).reshape(3, 7)
    np.testing.assert_allclose(
        jax.vjp(fn, x)[1](seed)[0], jax.vjp(expected, x)[1](seed)[0], rtol=2e-5, atol=1e-6
    )


@pytest.mark.parametrize("shift", [-2, 2])
def test_states_that_the_output_lacks_are_made_again(shift: int) -> None:
    fn = te.function(prefix(te.prod, shift))
    x = jax.random.uniform(jax.random.key(0), (3, 7), minval=0.5, maxval=1.5)
    assert " state_P =" in fn.source(x).split("def backward")[1]


def test_products_of_gathered_elements() -> None:
    """Elements at positions that are data are read where a later one stands, behind the end nowhere."""

    def build(x: Tensor, at: Tensor) -> Tensor:
        j = te.reduce_axis((0, at.shape[0]), "j")
        return te.compute(at.shape, lambda i: te.prod(x[at[j]], axis=j, where=j <= i), "P")

    x = jax.random.uniform(jax.random.key(0), (5,), minval=0.5, maxval=1.5)
    at = jnp.array([4, 0, 0, 2, 3, 1, 4, 2], jnp.int32)
    seed = jnp.cos(jnp.arange(8.0))
    found = jax.vjp(lambda x: te.function(build)(x, at), x)[1](seed)[0]
    expected = jax.vjp(lambda x: jnp.cumprod(x[at]), x)[1](seed)[0]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_steps_keep_no_more_than_the_cumulative_function() -> None:
    shape = jax.ShapeDtypeStruct((8, 100_000), jnp.float32)
    temporaries = [
        Fused(jax.jit(fn).lower(shape)).memory_analysis().temp_size_in_bytes
        for fn in (te.function(prefix(te.sum)), lambda x: lax_associative(x))
    ]
    assert temporaries[0] <= temporaries[1]


def lax_associative(x: Any) -> Any:
    return jax.lax.associative_scan(jnp.add, x, axis=1)


def up_to_each_digit(x: Tensor) -> Tensor:
    """Over all positions of which no digit is above that of the result."""
    i = te.reduce_axis((0, 81), "i")

    def body(b: Any, s: Any) -> Any:
        digits = [(i // 3**k) % 3 <= (s // 3**k) % 3 for k in range(4)]
        return te.sum(x[b, i], axis=i, where=digits[0] & digits[1] & digits[2] & digits[3])

    return te.compute(x.shape, body, "y")


def test_of_several_short_axes_each_is_an_array(rng: np.random.Generator) -> None:
    """In one loop each element of four axes would be 81 others; XLA counts an addition and a choice of each position of an axis once."""
    x = jnp.asarray(rng.standard_normal((64, 81)), "float32")
    fn = te.function(up_to_each_digit)
    told = te.explain(fn, x)
    assert "prefix written out" in str(told)
    forward = str(fn.source(x)).split("def backward(")[0]
    assert forward.count("_apart(") == 4  # its definition, and three of four axes
    digits = np.asarray(x, "float64").reshape(64, 3, 3, 3, 3)
    for axis in range(1, 5):
        digits = digits.cumsum(axis)
    np.testing.assert_allclose(fn(x), digits.reshape(64, 81), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_few_positions_of_what_is_dear_are_computed_once(reverse: bool) -> None:
    """Of 400 x 5 exponentials, not 15 for each row."""

    def build(x: Tensor) -> Tensor:
        k = te.reduce_axis((0, 5), "k")
        return te.compute(
            x.shape, lambda i, c: te.sum(te.exp(x[i, k]), axis=k, where=k >= c if reverse else k <= c), "y"
        )

    x = jax.ShapeDtypeStruct((400, 5), "float32")
    counted = Fused(jax.jit(te.function(build, forms={"*": "prefix written out"})).lower(x)).cost_analysis()
    assert counted["transcendentals"] == 400 * 5


def test_what_few_positions_leave_out_may_be_infinite() -> None:
    x = jnp.asarray([[1.0, jnp.inf, 2.0], [jnp.nan, 1.0, 1.0]])
    found = te.function(CASES["sum"], forms={"*": "prefix written out"})(x)
    np.testing.assert_array_equal(found, np.cumsum(x, 1))
