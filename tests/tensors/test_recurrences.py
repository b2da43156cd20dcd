"""Definitions of tensors that read themselves: what they mean, how they are shown, what is refused and what the message says."""

import operator

import jax
import numpy as np
import pytest
from jax import export

import jaxte as te
from jaxte.tensors.recurrences.earlier import fixed_at, points_around

X = te.placeholder((6, 4), name="x")


def _sum_so_far(**kwargs):
    return te.recurrence((6, 4), lambda h, t, i: h[t - 1, i] + x(t, i), **kwargs)


def x(t, i):
    return X[t, i]


def test_it_reads_itself_at_earlier_positions():
    value = np.arange(24, dtype="float32").reshape(6, 4)
    np.testing.assert_array_equal(te.interpret(_sum_so_far(init=1.0), {X: value}), 1 + value.cumsum(0))


def test_from_the_other_end():
    value = np.arange(24, dtype="float32").reshape(6, 4)
    made = te.recurrence((6, 4), lambda h, t, i: h[t + 1, i] + X[t, i], init=0.0, reverse=True)
    np.testing.assert_array_equal(te.interpret(made, {X: value}), value[::-1].cumsum(0)[::-1])


def test_values_before_the_first_position_are_numbers_functions_or_tensors():
    zeros = np.zeros((6, 4), "float32")
    start = te.placeholder((4,), name="start")
    two = te.placeholder((2, 4), name="two")
    first = np.arange(4, dtype="float32")
    assert te.interpret(_sum_so_far(init=start), {X: zeros, start: first})[0].tolist() == [0, 1, 2, 3]
    assert te.interpret(_sum_so_far(init=lambda i: start[3 - i]), {X: zeros, start: first})[0].tolist() == [
        3,
        2,
        1,
        0,
    ]
    fibonacci = te.recurrence((6, 4), lambda h, t, i: h[t - 1, i] + h[t - 2, i], init=two)
    ones = np.ones((2, 4), "float32")
    assert te.interpret(fibonacci, {two: ones})[:, 0].tolist() == [2, 3, 5, 8, 13, 21]


def test_one_number_stands_before_all_of_the_other_axes():
    start = te.placeholder((), name="start")
    value = np.arange(24, dtype="float32").reshape(6, 4)
    made = _sum_so_far(init=start)
    np.testing.assert_array_equal(te.interpret(made, {X: value, start: np.float32(2)}), 2 + value.cumsum(0))
    fn = te.function(
        lambda x, h0: te.recurrence(x.shape, lambda h, t, i: 0.5 * h[t - 1, i] + x[t, i], init=h0)
    )

    def scan(x, h0):
        return jax.lax.scan(lambda h, row: (0.5 * h + row,) * 2, jax.numpy.full(4, h0), x)[1]

    found, expected = (
        jax.jit(jax.grad(lambda x, h, f=f: (f(x, h) ** 2).sum(), (0, 1)))(value, 2.0) for f in (fn, scan)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_sum_over_lags_is_written_out():
    a, k = te.placeholder((2,), name="a"), te.reduce_axis((0, 2), "k")
    y = te.recurrence((5,), lambda y, t: te.sum(a[k] * y[t - 1 - k], axis=k), init=1.0)
    assert te.interpret(y, {a: np.ones(2, "float32")}).tolist() == [2, 3, 5, 8, 13]


def test_integers_and_what_reads_at_data():
    index = te.placeholder((6,), "int32", name="index")
    made = te.recurrence((6,), lambda h, t: (h[t - 1] * 3 + index[index[t]]) % 7, init=1, dtype="int32")
    data = np.int32([3, 1, 1, 0, 2, 2])
    state, expected = 1, []
    for position in data:
        state = (state * 3 + data[position]) % 7
        expected.append(state)
    assert te.interpret(made, {index: data}).tolist() == expected
    assert te.evaluate(made, {index: data}).tolist() == expected


def test_it_is_shown_by_its_definition():
    made = _sum_so_far(init=0.0)
    assert (
        te.formula(made)
        == "h[t, i] = (h[t - 1, i] if t - 1 >= 0 else h_init[t, i]) + x[t, i]  (t < 6, i < 4)"
    )
    assert te.definitions(made).splitlines()[-1] == te.formula(made)
    assert "h_{t - 1,\\,i}" in te.latex(made)
    assert te.cost(made).iterations == 28  # four of them values before the first position


def test_several_read_each_other():
    h, c = te.recurrence((6, 4), lambda h, c, t, i: (c[t, i] * 2, h[t - 1, i] + X[t, i]), init=0.0)
    assert (h.name, c.name) == ("h", "c")
    values = te.interpret([h, c], {X: np.ones((6, 4), "float32")})
    assert values[0][:3, 0].tolist() == [2, 6, 14]


def _refused(kind, pattern, make):
    with pytest.raises(kind, match=pattern):
        make()


def test_a_later_position_is_refused():
    _refused(
        te.DefinitionError,
        r"h reads h\[t \+ 1, i\], a later position along t, which is not known yet.*reverse=True",
        lambda: te.recurrence((6, 4), lambda h, t, i: h[t + 1, i], init=0.0),
    )
    _refused(
        te.DefinitionError,
        r"an earlier position along t.*reverse=False",
        lambda: te.recurrence((6, 4), lambda h, t, i: h[t - 1, i], init=0.0, reverse=True),
    )


def test_values_before_the_first_position_have_to_be_given():
    _refused(
        te.RangeError,
        r"h\[t - 1, i\] reads h\[-1\] at t=0.*\n.*\n.*\n.*give te.recurrence\(..., init=...\)",
        _sum_so_far,
    )
    guarded = te.recurrence((6, 4), lambda h, t, i: te.select(t >= 1, h[t - 1, i], 2.0) * 2)
    assert te.interpret(guarded, {})[:, 0].tolist() == [4, 8, 16, 32, 64, 128]


def test_circles_are_refused():
    _refused(
        te.DefinitionError,
        r"a circle at one position: h -> h \(by h\[t, i\]\)",
        lambda: te.recurrence((6, 4), lambda h, t, i: h[t, i] + 1, init=0.0),
    )
    _refused(
        te.DefinitionError,
        r"a circle at one position: h -> c -> h \(by c\[t, i\], h\[t, i\]\)",
        lambda: te.recurrence((6, 4), lambda h, c, t, i: (c[t, i], h[t, i] + c[t - 1, i]), init=0.0),
    )


def test_positions_that_may_not_be_known_yet_are_refused():
    k, places = te.reduce_axis((0, 6), "k"), te.placeholder((6,), name="places", dtype="int32")
    _refused(
        te.DefinitionError,
        "a fixed number of positions before",
        lambda: te.recurrence((6, 4), lambda h, t, i: te.sum(h[k, i], axis=k, where=k < t + 2), init=0.0),
    )
    _refused(
        te.DefinitionError,
        r"a circle at one position: h -> h",
        lambda: te.recurrence((6, 4), lambda h, t, i: te.sum(h[k, i], axis=k, where=k <= t), init=0.0),
    )
    _refused(
        te.DefinitionError,
        r"h reads h\[places\[t\], i\]: along t a recurrence reads its tensors a fixed number of positions before",
        lambda: te.recurrence((6, 4), lambda h, t, i: te.select(t > 0, h[places[t], i], 0.0), init=0.0),
    )


def test_all_earlier_positions_are_read_from_what_the_loop_hands_on(x64: None):
    """A triangular solve, from either end, without a copy of what is known for each step."""
    k = te.reduce_axis((0, 5), "k")
    rng = np.random.default_rng(0)
    L, b = rng.normal(size=(5, 5)) + 3 * np.eye(5), rng.normal(size=5)
    for reverse in (False, True):

        def solve(L, b, reverse=reverse):
            def row(x, t):
                known = k > t if reverse else k < t
                return (b[t] - te.sum(L[t, k] * x[k], axis=k, where=known)) / L[t, t]

            return te.recurrence((5,), row, reverse=reverse)

        triangle = np.triu(L) if reverse else np.tril(L)
        fn = te.function(solve)
        assert te.source(fn, L, b).count("lax.dynamic_update_slice_in_dim(") == 2  # one forward, one backward
        value, (dL, db) = jax.value_and_grad(lambda L, b, fn=fn: fn(L, b).sum(), (0, 1))(L, b)
        solution, adjoint = np.linalg.solve(triangle, b), np.linalg.solve(triangle.T, np.ones(5))
        np.testing.assert_allclose(value, solution.sum(), 1e-12)
        np.testing.assert_allclose(db, adjoint, 1e-12)
        np.testing.assert_allclose(dL, np.where(triangle != 0, -np.outer(adjoint, solution), 0), 1e-10, 1e-12)


def test_a_recurrence_within_a_step_is_refused():
    def cell(h, t, i):
        rows = te.recurrence((6,), lambda r, m: r[m - 1] + te.select(m >= 1, h[m - 1, 0], 0.0), init=0.0)
        return rows[t] + X[t, i]

    _refused(
        te.DefinitionError,
        "r, a recurrence, depends on one over t within that, and has no axis for the positions of t",
        lambda: te.recurrence((6, 4), cell),
    )


def test_wrong_shapes_and_counts_are_refused():
    wrong = te.placeholder((3,), name="wrong")
    _refused(te.ShapeError, r"init of h has shape \(3,\); give \(4,\)", lambda: _sum_so_far(init=wrong))
    short = te.placeholder((1, 4), name="short")
    _refused(
        te.ShapeError,
        "it holds the 2 values that h looks back at",
        lambda: te.recurrence((6, 4), lambda h, t, i: h[t - 2, i], init=short),
    )
    _refused(
        te.DefinitionError,
        r"takes 2 arguments \(t, i\) for 2 axes",
        lambda: te.recurrence((6, 4), lambda t, i: 1.0),
    )
    _refused(
        te.DefinitionError,
        "returns 1 expressions for 2 tensors",
        lambda: te.recurrence((6, 4), lambda h, c, t, i: h[t - 1, i], init=0.0),
    )
    _refused(
        te.ArgumentError,
        "init has 3 entries for 2 tensors",
        lambda: te.recurrence((6,), lambda h, c, t: (1.0, 2.0), init=(0, 0, 0)),
    )
    _refused(te.ArgumentError, "axis=2", lambda: _sum_so_far(init=0.0, axis=2))
    _refused(
        te.ShapeError,
        "5 positions along axis 0|6 and 5",
        lambda: te.recurrence([(6,), (5,)], [lambda a, b, t: 1.0, lambda a, b, t: 2.0]),
    )


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_size_that_is_a_symbol_is_compared_with_a_position(name, turned):
    """On the left of ``==``, a symbol of JAX's export would say that it is no traced position, wherever that is."""

    def last(v):
        def body(h, t):
            sides = (t, v.shape[0] - 2) if turned else (v.shape[0] - 2, t)
            return te.select(getattr(operator, name)(*sides), 2.0, 0.5) * h[t - 1] + v[t]

        return te.recurrence(v.shape, body, init=1.0)

    fn, (size,) = te.function(last), export.symbolic_shape("m")
    step = jax.jit(jax.grad(lambda v: fn(v)[-1] ** 2))
    called = export.export(step)(jax.ShapeDtypeStruct((size,), "float32")).call
    v = np.arange(5, dtype="float32")
    np.testing.assert_allclose(called(v), step(v), rtol=1e-6)


def test_arrays_are_values_before_the_first_position():
    """An array of numbers is a Tensor of them there, of the axes beside the one that the recurrence runs along, or with it."""
    made = te.recurrence((3, 2), lambda h, t, i: h[t - 1, i] + h[t - 2, i], init=np.arange(4.0).reshape(2, 2))
    assert te.evaluate(made, {}).tolist() == [[2, 4], [4, 7], [6, 11]]
    h, g = te.recurrence(
        (2, 3), lambda h, g, t, i: (2 * h[t - 1, i], g[t - 1, i]), init=(np.arange(3), np.array(5.0))
    )
    assert (h.dtype, g.dtype) == ("int32", "float32")
    assert [a.tolist() for a in te.evaluate([h, g], {})] == [[[0, 2, 4], [0, 4, 8]], [[5] * 3] * 2]


@pytest.mark.parametrize("dtype", ["float64", "complex64", "float16", "int32"])
def test_a_function_before_the_first_position_says_the_dtype(dtype):
    """A body that reads the tensor alone was of float32, whatever it began with."""
    x = te.placeholder((3,), dtype, name="x")
    body = lambda h, t, i: h[t - 1, i] + h[t - 1, 0]  # noqa: E731
    assert {te.recurrence((4, 3), body, init=init).dtype for init in (x, lambda i: x[i])} == {dtype}


def test_no_imaginary_part_is_lost_before_the_first_position():
    z = te.placeholder((3,), "complex64", name="z")
    with pytest.raises(
        te.DtypeError, match=r"init of h .* complex64, h is float32; .* or give a complex dtype"
    ):
        te.recurrence((4, 3), lambda h, t, i: 2 * h[t - 1, i], init=z, dtype="float32")


def test_a_body_may_take_all_axes_at_once():
    h = te.recurrence((2, 3), lambda h, *at: 2 * h[at[0] - 1, at[1]], init=1.0)
    assert te.evaluate(h, {}).tolist() == [[2] * 3, [4] * 3]
    g, h = te.recurrence((2,), lambda g, h, *at: (h[at[0] - 1], g[at[0] - 1] + 1), init=(1.0, 3.0))
    assert [a.tolist() for a in te.evaluate([g, h], {})] == [[3, 2], [2, 4]]


@pytest.mark.parametrize("init", ["a", (0.0, 1.0), [[1.0] * 4]])
def test_what_is_no_value_before_the_first_position_is_named(init):
    with pytest.raises(te.ArgumentError, match=r"init of h is .*give a number, .*an array or a Tensor"):
        _sum_so_far(init=init)


def test_reads_that_init_does_not_stand_for_are_told_so():
    for body in (lambda h, t: h[2 * t - 1], lambda h, t: h[t - te.var("n")]):
        with pytest.raises(te.RangeError, match=r"init is what reads .* such as h\[t - 1\], find") as raised:
            te.recurrence((4,), body, init=0.0)
        assert "give te.recurrence" not in str(raised.value)


def test_points_around_a_read_are_of_the_axes_that_say_something() -> None:
    """Long bodies have dozens of axes, and isl takes time for each of them."""
    t, j, *others = (te.reduce_axis((0, 5), n) for n in "tjabcdefg")
    points = points_around([*others, t, j], [j <= t], t - 2)
    assert {a.name for a in points.variables} == {"t", "j"}
    assert fixed_at(points_around([*others, t], [t >= 3, t <= 3], t - 1), t - 1) == 2
