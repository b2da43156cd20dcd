"""Tensors read at several places: zeros around them once, and no computation again for each slice."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lower.program.across.materialised import materialised
from jaxte.lower.program.across.padded_once import paddings
from jaxte.tensors.structure import topological_order
from tests.lowered import check, text_of
from tests.xla_counts import Fused

X = te.placeholder((7, 9), name="X")
X_VALUE = np.ones((7, 9), np.float32)
BARRIER = "lax.optimization_barrier"


def five_points(u: te.Tensor) -> te.Tensor:
    n, m = u.shape

    def step(i, j):
        rows = te.select(i > 0, u[i - 1, j], 0.0) + te.select(i < n - 1, u[i + 1, j], 0.0)
        columns = te.select(j > 0, u[i, j - 1], 0.0) + te.select(j < m - 1, u[i, j + 1], 0.0)
        return 0.2 * (u[i, j] + rows + columns)

    return te.compute((n, m), step, "Y")


def test_a_stencil_reads_one_padded_array() -> None:
    Y = five_points(X)
    assert paddings(Y.body) == {X: ((1, 1), (1, 1))}
    source = check(Y)
    assert source[0] == f"{BARRIER}(jnp.pad(X, ((1, 1), (1, 1))))"
    assert sum("jnp.pad" in line for line in source) == 1


def test_its_adjoint_does_too() -> None:
    H = te.placeholder((7, 9), name="H")
    (dX,) = te.differentiate(five_points(X), (X,), head=H)
    source = check(dX)
    assert source[0] == f"{BARRIER}(jnp.pad(H, ((1, 1), (1, 1))))"
    assert sum("pad(" in line for line in source) == 1


def test_one_read_is_padded_where_it_stands() -> None:
    Y = te.compute((8,), lambda i: te.select(i >= 2, te.select(i < 7, X[0, i - 2], 0.0), 0.0), "Y")
    assert not paddings(Y.body)
    assert BARRIER not in text_of(Y)


def test_reads_inside_are_plain_slices() -> None:
    Y = te.compute((5, 9), lambda i, j: X[i, j] + X[i + 2, j], "Y")
    assert not paddings(Y.body)
    assert "jnp.pad" not in text_of(Y)


def test_zeros_wider_than_the_tensor_are_not_put_around_it() -> None:
    v = te.placeholder((4,), name="V")
    k = te.reduce_axis((0, 40), "k")
    Y = te.compute((40,), lambda i: te.sum(te.select((i - k >= 0) & (i - k < 4), v[i - k], 0.0), axis=k), "Y")
    assert not paddings(Y.body)


def test_what_is_costly_and_sliced_is_computed_once() -> None:
    Z = te.compute((7, 9), lambda i, j: te.exp(X[i, j]) / (1.0 + X[i, j] * X[i, j]), "Z")
    Y = te.compute((5, 9), lambda i, j: Z[i, j] * Z[i + 2, j], "Y")
    assert materialised([Z, Y], frozenset([Y])) == {Z}
    text = text_of(Y)
    assert text.count("= _apart(") == 1
    jitted = Fused(jax.jit(te.function([X], Y)).lower(np.ones((7, 9), np.float32))).as_text()
    assert jitted.count(" exponential(") == 1
    check(Y)


@pytest.mark.parametrize(("size", "calls"), [(3, 0), (5, 1)])
def test_windows_that_several_read_are_computed_once(size: int, calls: int) -> None:
    """By way of what is cheap, too; where the caller reads them as well, that is one of several. Small ones are computed again."""
    k, m = te.reduce_axis((0, size), "k"), te.reduce_axis((0, size), "m")
    Z = te.compute((3, 4), lambda i, j: te.sum(X[i + k, j + m], axis=[k, m]), "Z")
    A = te.compute((3, 4), lambda i, j: Z[i, j] / size, "A")
    Y = te.compute((3, 4), lambda i, j: te.exp(A[i, j]), "Y")
    assert materialised([Z, A, Y], frozenset([Y])) == frozenset()
    expected = frozenset([Z]) if calls else frozenset()
    assert materialised([Z, A, Y], frozenset([Y, A])) == expected
    assert te.source(te.function([X], [Y, A]), X_VALUE).count("= _apart(") == calls


@pytest.mark.parametrize("places", ["one place", "a sum"])
def test_what_is_cheap_or_read_once_is_not_kept_apart(places: str) -> None:
    Z = te.compute((7, 9), lambda i, j: te.exp(X[i, j]), "Z")
    k = te.reduce_axis((0, 9), "k")
    if places == "a sum":
        Y = te.compute((7,), lambda i: te.sum(Z[i, k], axis=k), "Y")
    else:
        Y = te.compute((5, 9), lambda i, j: Z[i + 2, j] + 1.0, "Y")
    assert not materialised(topological_order([Y]), frozenset([Y]))
    assert BARRIER not in text_of(Y)


def test_what_each_slice_has_elements_of_its_own_of_is_kept_apart_where_it_is_expensive() -> None:
    """``S`` has an element for each tap and each position: taps written out read each of them once."""
    k, w = te.reduce_axis((0, 3), "k"), te.placeholder((3, 5), name="w")
    cheap = lambda k, i: te.select((i > k) & (i + k < 5), 2.0 * w[k, i] * w[k, i] + 1.0, 0.0)  # noqa: E731
    S = te.compute((3, 5), cheap, "S")
    Y = te.compute((9, 5), lambda r, i: te.sum(S[k, i] * te.select(i + k < 5, X[0, i + k], 0.0), axis=k), "Y")
    Z = te.compute((9, 5), lambda r, i: te.sum(S[r % 3, k] * X[0, i + k], axis=k), "Z")
    assert not materialised([S, Y], frozenset([Y])) and materialised([S, Z], frozenset([Z])) == {S}
    E = te.compute((3, 5), lambda k, i: te.exp(S[k, i]), "E")
    Y = te.compute((5,), lambda i: te.sum(E[k, i] * X[0, i + k], axis=k), "Y")
    assert materialised([E, Y], frozenset([Y])) == {E}


def test_a_function_is_not_padded_instead_of_masked() -> None:
    """exp(0) is not 0: only plain reads are zero outside."""
    k = te.reduce_axis((0, 3), "k")
    Y = te.compute(
        (9,),
        lambda i: te.sum(te.exp(X[0, i + k - 1]), axis=k, where=(i + k >= 1) & (i + k < 10)),
        "Y",
    )
    check(Y)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_stencils(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    u = te.placeholder((n, 4), name="U")
    moves = data.draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(-2, 2)), min_size=1, max_size=4))
    stride = data.draw(st.integers(1, 2))

    def body(i, j):
        total = 0.5 * u[stride * i - stride * i, j]
        for number, (a, b) in enumerate(moves, 1):
            row, column = stride * i + a, j + b
            inside = (row >= 0) & (row < n) & (column >= 0) & (column < 4)
            total = total + number * te.select(inside, u[row, column], 0.0)
        return total

    Y = te.compute((-(-n // stride), 4), body, "Y")
    H = te.placeholder(Y.shape, name="H")
    check(Y)
    check(*te.differentiate(Y, (u,), head=H))


@pytest.mark.parametrize(
    "element", [te.exp, lambda x: te.tanh(x) * x, lambda x: x**2], ids=["exp", "tanh", "square"]
)
def test_windows_of_what_is_expensive_have_it_behind_a_call(element) -> None:
    """XLA on the CPU drops barriers before it fuses loops; a call stays."""
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")
    x = te.placeholder((300, 300), name="x")
    y = te.compute((298, 298), lambda i, j: te.sum(element(x[i + a, j + b]), axis=(a, b)), "y")
    text = text_of(y)
    assert text.count("= _apart(") == ("**" not in text) and BARRIER not in text
    own = np.random.default_rng(0).standard_normal((300, 300)).astype("float32")
    made = np.asarray(te.evaluate(te.compute((300, 300), lambda i, j: element(x[i, j]), "z"), {x: own}))
    expected = sum(made[k : 298 + k, m : 298 + m] for k in range(3) for m in range(3))
    np.testing.assert_allclose(te.evaluate(y, {x: own}), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_shifts_keep_their_extent_where_pads_cost_nothing(platform: str, rng: np.random.Generator) -> None:
    def definition(u: te.Tensor) -> te.Tensor:
        return five_points(u)

    own, u = te.function(definition, platform=platform), rng.normal(size=(7, 9)).astype(np.float32)
    text = str(te.source(own, u))
    # four reads, those of the adjoint, and the function itself
    assert text.count("_shifted(") == 9 and "jnp.pad" not in text
    np.testing.assert_allclose(own(u), np.asarray(te.function(definition)(u)), rtol=1e-6)
    head = rng.normal(size=(7, 9)).astype(np.float32)
    found, expected = (jax.vjp(f, u)[1](head)[0] for f in (own, te.function(definition)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_shifts_of_sizes_known_later(rng: np.random.Generator) -> None:
    own = te.function(five_points, platform="tpu")
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 2"])
    exported = jax.export.export(jax.jit(own))(jax.ShapeDtypeStruct((n, 9), "float32"))
    u = rng.normal(size=(7, 9)).astype(np.float32)
    np.testing.assert_allclose(exported.call(u), te.function(five_points)(u), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("count", "shift"), [(6, 2), (6, -3), (9, 0), (4, 7), (11, -1)])
def test_a_slice_and_its_zeros_are_one_pad(count: int, shift: int, rng: np.random.Generator) -> None:
    def read(v: te.Tensor) -> te.Tensor:
        inside = lambda i: (i + shift >= 0) & (i + shift < 8)  # noqa: E731
        return te.compute((count,), lambda i: te.select(inside(i), v[i + shift], 0.0), "Y")

    v = rng.normal(size=8).astype(np.float32)
    expected = [v[i + shift] if 0 <= i + shift < 8 else 0 for i in range(count)]
    np.testing.assert_array_equal(te.function(read, platform="tpu")(v), np.float32(expected))


def test_a_choice_within_a_sum_is_met_by_zeros(rng: np.random.Generator) -> None:
    """``sum over s of select(t - 1 - s >= 0, w[s] * x[n, t - 1 - s], 0)``: slices of one padded array, as where the condition is one of the sum."""
    s = te.reduce_axis((0, 9), "s")

    def past(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        inside = lambda t: t - 1 - s >= 0  # noqa: E731
        return te.compute(
            x.shape, lambda n, t: te.sum(te.select(inside(t), w[s] * x[n, t - 1 - s], 0.0), axis=s), "Y"
        )

    x, w = rng.normal(size=(20, 40)).astype(np.float32), rng.normal(size=9).astype(np.float32)
    own = te.function(past, forms={"Y": "general"})
    text = str(te.source(own, x, w))
    assert text[text.index("def forward") : text.index("def backward")].count("jnp.pad") == 1
    wide = np.pad(x, ((0, 0), (9, 0)))
    expected = sum(w[k] * wide[:, 8 - k : 48 - k] for k in range(9))
    np.testing.assert_allclose(own(x, w), expected, rtol=1e-5, atol=1e-5)


def test_zeros_that_no_read_meets_are_not_put_around(rng: np.random.Generator) -> None:
    def inside(x: te.Tensor) -> te.Tensor:
        held = lambda i: te.select((i >= 4) & (i < 16), x[i - 4] + x[i + 4] - 2 * x[i], 0.0)  # noqa: E731
        return te.compute((20,), held, "Y")

    x = rng.normal(size=20).astype(np.float32)
    own = te.function(inside)
    text = str(te.source(own, x))
    assert "x_padded" not in text
    np.testing.assert_allclose(own(x)[4:16], x[:12] + x[8:] - 2 * x[4:16], rtol=1e-5, atol=1e-6)


def fields(x: te.Tensor) -> te.Tensor:
    """Mean fields of neighbours on a plane."""
    return five_points(te.compute(x.shape, lambda i, j: te.tanh(x[i, j] + 1.0), "T"))


def weighted(x: te.Tensor) -> te.Tensor:
    """A short filter of weights along rows."""
    n, m = x.shape
    w = te.compute((n, m), lambda i, j: te.exp(-x[i, j] * x[i, j]) * x[i, j], "T")
    inside = lambda j: te.select(j >= 0, te.select(j < m, 1, 0), 0)  # noqa: E731
    at = lambda i, j: te.select(inside(j) > 0, w[i, te.clip(j, 0, m - 1)], 0.0)  # noqa: E731
    return te.compute((n, m), lambda i, j: at(i, j - 1) * 0.25 + w[i, j] * 0.5 + at(i, j + 1) * 0.25, "Y")


def products(x: te.Tensor) -> te.Tensor:
    """Logarithms of neighbours in rows, multiplied."""
    n, m = x.shape
    t = te.compute((n, m), lambda i, j: te.log(2.0 + x[i, j] ** 2), "T")
    above = lambda i, j: te.select(i > 0, t[i - 1, j], 0.0)  # noqa: E731
    below = lambda i, j: te.select(i < n - 1, t[i + 1, j], 0.0)  # noqa: E731
    return te.compute((n, m), lambda i, j: above(i, j) * below(i, j) + t[i, j], "Y")


def halved(x: te.Tensor) -> te.Tensor:
    """Cheap elements, which are as well computed in the pad."""
    return five_points(te.compute(x.shape, lambda i, j: x[i, j] / (1.0 + x[i, j] * x[i, j]), "T"))


@pytest.mark.parametrize(
    ("build", "is_kept"), [(fields, True), (weighted, True), (products, True), (halved, False)]
)
def test_functions_are_computed_before_zeros_are_put_around(build, is_kept: bool, rng) -> None:
    """XLA on the CPU computes what it pads in the loop of the pad, with a condition for each element and not in vectors."""
    x = rng.normal(size=(40, 50)).astype(np.float32)
    own = te.function(build)
    text = str(te.source(own, x))
    text = text[text.index("def forward") : text.index("def backward")]
    assert "jnp.pad(T" in text
    (made,) = (line for line in text.splitlines() if line.strip().startswith("T = "))
    assert made.strip().startswith("T = _apart(") is is_kept
    own_x = te.placeholder((40, 50), name="x")
    (expected,) = te.interpret([build(own_x)], {own_x: x})
    np.testing.assert_allclose(jax.jit(own)(x), expected, rtol=1e-5, atol=1e-6)


def stepped(u: te.Tensor, k: te.Tensor, ends: str) -> te.Tensor:
    """Three steps of a function that is chosen inside, so that it has a name of its own."""
    n, m = u.shape
    for step in range(3):

        def element(i, j, u=u):
            inside = (i >= 1) & (i < n - 1) & (j >= 1) & (j < m - 1)
            near = k[()] * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
            if ends == "halved":
                return te.select(inside, te.exp(-(near**2)), 0.5 * u[i, j])
            return te.select(inside, te.tanh(u[i, j] + near), u[i, j] if ends == "held" else -u[i, j])

        u = te.compute((n, m), element, f"u{step}")
    return u


@pytest.mark.parametrize("ends", ["held", "halved", "turned"])
def test_functions_within_choices_are_computed_once_in_both_passes(ends: str) -> None:
    """What the backward pass keeps apart, the forward pass keeps apart as well: XLA would take them for two values."""
    own = te.function(lambda u, k: stepped(u, k, ends))
    both = jax.jit(jax.value_and_grad(lambda u, k: (own(u, k) ** 2).sum(), argnums=(0, 1)))
    structs = jax.ShapeDtypeStruct((60, 50), np.float32), jax.ShapeDtypeStruct((), np.float32)
    compiled = Fused(both.lower(*structs))
    assert compiled.cost_analysis()["transcendentals"] <= 3 * 60 * 50
