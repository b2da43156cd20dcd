"""What random definitions have found, and that the checks behind them can fail."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.terms import support
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import (
    Pullback,
    assert_close,
    at_random,
    check,
    check_differences,
    check_nodes,
    inputs_of,
    interpreted,
    pullback_of,
)
from tests.random_definitions import Definition

pytestmark = pytest.mark.usefixtures("x64")

FOUND: dict[str, Callable[[], Tensor]] = {}


def found(make: Callable[[], Tensor]) -> Callable[[], Tensor]:
    FOUND[make.__name__] = make
    return make


def x(*shape: int, name: str = "X") -> Placeholder:
    return te.placeholder(shape, "float64", name)


@found
def extremum_of_elements_that_are_rounded() -> Tensor:
    """Computed again with a fused multiplication and addition, no element equalled the minimum: inf."""
    a, k = x(2), te.reduce_axis((0, 2), "k")
    return te.compute((), lambda: te.min(a[te.maximum(0, k - 1)] - 0.7 * a[k], k))


@found
def equal_elements_of_a_combiner() -> Tensor:
    """Where all are equal, halves at both sides of each element added up to more than what flows back."""
    a, k = x(3), te.reduce_axis((0, 4), "k")
    largest = te.comm_reducer(te.maximum, lambda t: te.const(float("-inf"), t), name="largest")
    return te.compute((3,), lambda i: largest(a[i] * a[i // 2], axis=k))


@found
def product_of_two_numbers() -> Tensor:
    """A factor that is no number was looked for in it, where two elements are combined: StopIteration."""
    a, number = x(1, 1), 0.5 * te.const(-1.25, "float64")
    chosen = te.select(number > 0.1, te.exp(-te.tanh(number)), te.tanh(number))
    return te.compute((), lambda: te.minimum(a[0, 0], te.maximum(a[0, 0] * 0.5, 0.25)) + chosen * a[0, 0])


@found
def weights_that_leave_their_factor() -> Tensor:
    """A sum of numbers of Python and positions alone was of 32 bits, beside a factor of 64."""
    a, k = x(5), te.reduce_axis((0, 3), "k")
    return te.compute((4,), lambda t: te.sum(a[0] * (0.5 + 0.1 * k), axis=k))


@found
def sum_with_edges_that_begins_elsewhere() -> Tensor:
    """Its interior and its faces were counted from 0, so that the element before the first one was added, too."""
    a, b, k = x(8), x(5, name="W"), te.reduce_axis((1, 5), "k")
    return te.compute((), lambda: te.sum(b[k] * a[-k % 3] * te.cos(a[te.minimum(k, 1)]), k))


@found
def window_between_bounds_that_have_its_own_axis() -> Tensor:
    """A window took the place of an axis that stood in a quotient of its bounds, too, where nothing bound it any more."""
    a, i, m = x(13), te.reduce_axis((1, 13), "i"), te.reduce_axis((0, 3), "m")

    def element(j: te.Expr) -> te.Expr:
        number = 4 * j + 3 * i - m + 4
        low, moved = 16 * (number // 16) + m, 16 * j + 3 * i
        return te.sum(a[i] ** 2, axis=[i, m], where=(low <= moved) & (moved <= low + 15) & (number % 16 < 12))

    return te.compute((2,), element)


@found
def banded_maximum_of_a_function() -> Tensor:
    """Where tanh of a window and tanh of the whole array were rounded differently, an adjoint got lost."""
    a, k = x(2, 4, 3, 2), te.reduce_axis((0, 4), "k")
    top = te.compute(
        (2, 4, 3, 2),
        lambda i, j, m, n: te.max(te.tanh(a[i, k, m, n]), k, where=(k <= j + 1) & (k >= j - 1)),
    )
    return te.compute((2, 4, 3, 2), lambda i, j, m, n: te.sin(top[i, j, m, n]) * top[i, 0, m, 0])


@found
def first_maximum_of_padded_windows() -> Tensor:
    """Positions of 64 bits were padded with one of 32."""
    a, k = x(1), te.reduce_axis((0, 3), "k")
    flat = te.compute((5,), lambda i: a[0] * (i + 1))
    inside = lambda i: (i + 2 * k - 2 >= 0) & (i + 2 * k - 2 < 5)  # noqa: E731
    return te.compute((5,), lambda i: te.max(flat[i + 2 * k - 2], k, where=inside(i), ties="first"))


@found
def guarded_position_beside_an_overlap() -> Tensor:
    """A choice among positions was taken for an affine index."""
    a, table = x(5, 4), te.placeholder((4,), "int32", "I")
    m = te.reduce_axis((0, 4), "m")

    def body(i):
        row = te.select(3 - (-1 * i) < 4, table[3 - (-1 * i)], 0)
        return te.sum(te.select((row >= 0) & (row < 5), a[row, (3 * i + 2 * m) % 4], 0.0), m)

    return te.compute((4,), body)


@found
def position_that_is_data_in_the_condition_of_a_maximum() -> Tensor:
    """Where a choice took the maximum apart, the read of each part was checked at the places of the other, too."""
    a, table, k = x(4), te.placeholder((2,), "int32", "I"), te.reduce_axis((0, 4), "k")
    at = te.select(1 - k >= 0, table[1 - k], 0)
    where = te.select((at >= 0) & (at < 4), a[at], 0.0) > 0.1
    return te.compute((3,), lambda i: te.max(a[k] * 2.0 + i, k, where=where))


@found
def reads_of_an_empty_tensor() -> Tensor:
    """JAX gathers nothing from an axis of no elements, even where no element is wanted."""
    a, b, table = x(1, 0), x(3, name="B"), te.placeholder((4,), "int32", "I")

    def body(i, j):
        place, row = (te.maximum(i, i + 2 * j - 1), te.minimum(0, -1 * j)), table[i]
        guarded = te.select((place[0] < 1) & (place[1] >= 0) & (place[1] < 0), a[place], 0.0)
        return b[j] + guarded + te.select((row >= 0) & (row < 0), a[0, row], 0.0)

    return te.compute((4, 3), body)


@found
def product_over_two_axes_of_which_one_has_no_element() -> Tensor:
    """The positions of its points are digits by the number of rows, which is zero."""
    a, b = x(2, 0), x(3, name="B")
    k, m = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 0), "m")
    return te.compute((3,), lambda i: b[i] * te.prod(a[k, m], [k, m]))


@found
def minimum_over_no_element() -> Tensor:
    """The adjoint was divided by the zero ties outside of the sum, which is empty."""
    a, b, k, m = x(3), x(3, name="B"), te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 3), "m")
    least = te.compute((), lambda: te.min(a[k], [k, m], where=b[m] > 5))
    return te.compute((2,), lambda i: a[i] / (1.3 + te.minimum(least[()], 3.5) ** 2))


@found
def position_out_of_range_beside_a_function() -> Tensor:
    """An element read at a position that is data is NaN out of range, and the mask went to the other factor."""
    a, b, table = x(3, 4), x(5, 4, name="B"), te.placeholder((5,), "int32", "I")
    i, j = te.reduce_axis((0, 5), "i"), te.reduce_axis((0, 4), "j")
    inside = (table[i] >= 0) & (table[i] < 4)
    return te.compute(
        (), lambda: te.sum(te.select(inside, a[0, 0] * a[1, table[i]], 0.0) * te.sin(b[i, j]), [i, j])
    )


@found
def argmax_of_a_sum() -> Tensor:
    """Only the last summand was reshaped."""
    a, b = x(4, 3), x(3, name="B")
    k, m = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 3), "m")
    return te.compute((2,), lambda i: te.cast(te.argmax(a[k, m] * (i + 1) + b[m], [k, m]), "float64") * b[i])


@found
def position_that_is_data_beside_remainders() -> Tensor:
    """A choice among remainders asks whether reads have quotients, and took data for an index."""
    a, table = x(4, 6), te.placeholder((2,), "int32", "I")

    def body(i, j):
        row = te.select((3 * j + i) % 2 < 1, table[(3 * j + i) % 2], 0)
        guarded = te.select((row >= 0) & (row < 6), a[i, row], 0.0)
        return te.select(te.equal(j % 2, 0), guarded, a[i, j])

    return te.compute((4, 5), body)


@found
def limit_that_is_a_quotient_of_two_positions() -> Tensor:
    """The slice of k was as long as a quotient of i says, and no size."""
    a = x(4, 6)

    def body(i, k):
        near = (k - (i - 1) // 3 - 1) // 3 <= 0
        return te.select(near, a[i, k - (i - 1) // 3], 0.0)

    return te.compute((4, 6), body)


@found
def prefix_with_a_condition_on_another_axis() -> Tensor:
    """Each prefix was reduced anew in the adjoint, n * n points for n."""
    a, k = x(3, 7), te.reduce_axis((0, 7), "k")
    return te.compute(
        (3, 7), lambda i, j: te.prod(te.sin(a[i, k]), k, where=(k <= j) & (~(k % 3 < i) | (i > 1)))
    )


@found
def inputs_of_one_name() -> Tensor:
    """Whether one function of a module does all that another does asked two tensors for their equality."""
    a, b, c = x(), x(1, 1, 1, name="C"), x(1, 1, name="C")
    return te.compute((4,), lambda i: (a[()] + b[0, 0, 0]) / (1.3 + a[()] * c[0, 0] * (a[()] * c[0, 0])))


@found
def maximum_over_no_element_at_some_positions() -> Tensor:
    """The zero ties were divided by outside of an inner sum, at each position of an outer one."""
    a, k = x(4, 6), te.reduce_axis((0, 3), "k")

    def body(i, j):
        where = te.select(2 * j < 1, a[3, k], 0.0) > 0.1137
        return te.maximum(te.max(a[te.minimum(i + j, 3), 0], k, where=where), -3.5)

    return te.compute((4, 5), body)


@found
def condition_on_reads_that_are_out_of_range() -> Tensor:
    """XLA's compiler died of a maximum behind the comparison of two numbers."""
    a, b, k = x(1, 2, 2), x(name="B"), te.reduce_axis((1, 6), "k")
    where = te.select((3 * k < 1) & (-k >= 0), a[3 * k, te.minimum(-k, 0), 3 * k], 0.0) > 0.1137
    element = te.sin(te.maximum(b[()], a[0, te.minimum(k // 2, 1), te.minimum(k // 2, 1)]))
    return te.compute((), lambda: te.maximum(te.max(element, k, where=where), -3.5))


@found
def maximum_in_a_corner_at_positions_that_are_held() -> Tensor:
    """Ties beyond the end, zeros, were divided by outside of a sum that had no point there."""
    a, b, k = x(5, 1, 4, 5), x(3, name="Y"), te.reduce_axis((0, 2), "k")

    def body(i, j):
        at = te.minimum(te.maximum(i - j + 3, 0), 2)
        return te.maximum(te.max(b[at] * a[i, 0, j, k + 2 * j], k, where=k + 2 * j < 5), -3.5)

    return te.compute((3, 4), body)


@found
def window_that_no_tap_of_hits() -> Tensor:
    """A convolution with every second element of one, from the second on: XLA takes no window of no element."""
    a, b, k = x(1, 1, 2, 3), x(1, name="B"), te.reduce_axis((0, 1), "k")
    place = lambda i: 2 * i + 2 * k - 3  # noqa: E731

    def body(i, j, m, n):
        return te.sum(a[place(i), j, m, n] * b[k], k, where=(place(i) >= 0) & (place(i) < 1))

    return te.compute((4, 1, 2, 3), body)


@found
def strided_read_held_at_an_end_that_it_steps_over() -> Tensor:
    """The last step, 1 for 2, was not looked at: zeros stood for the element at the end."""
    a = x(6)
    return te.compute((5,), lambda i: a[te.minimum(te.maximum(5 - 2 * i, 0), 5)] * 2.0)


@found
def condition_on_a_sum_over_an_axis_of_its_own() -> Tensor:
    """The solver was asked for the axis of the sum, which the definition does not have."""
    a, k = x(4, 5), te.reduce_axis((0, 3), "k")
    return te.compute(
        (4,),
        lambda i: te.leaky_relu(
            te.sum(a[i, te.sign(k) + 1], k) / (1.3 + a[te.maximum(0, i - 2), i] ** 2), 0.3
        ),
    )


@found
def ties_of_bits_at_positions_that_are_data() -> Tensor:
    """The points of an adjoint are counted by its conditions; bits are none that tell a position."""
    a, b, k = x(5), x(4, name="B"), te.reduce_axis((0, 4), "k")
    return te.compute((5,), lambda i: te.max(te.tanh(a[i] * b[k]), k, ties="first"))


@found
def digits_that_end_before_the_first_element() -> Tensor:
    """Two halves that change places, but for one position: index -1 is left out by the condition, and the others are not half of the extent away."""
    a = x(4)
    back = lambda i: 2 - (1 - i) % 4  # noqa: E731
    return te.compute((4,), lambda i: te.select((1 - i) % 4 < 3, a[back(i)], 0.0))


def fixed(make: Callable[[], Tensor], seed: int) -> Pullback:
    output = make()
    assert isinstance(output, Compute)
    definition = Definition(output, seed)
    return pullback_of(output, definition.feeds(), definition.variables, seed)


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_found(name: str, residuals: bool, optimised: bool) -> None:
    for seed in (1, 6):
        check(fixed(FOUND[name], seed), residuals, optimised)


def product_at_a_hidden_multiple() -> Tensor:
    """The sums at multiples had one that reads beyond the end, which nothing used but a derivative."""
    a, b, k, m = x(), x(5, 1, 4, name="Y"), te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 1), "m")

    def body(i, j, n):
        at = te.maximum(m - 2 * n, -2 * j) % 4
        return te.sum(a[()] * b[m, 0, at], [k, m], where=te.equal(k + 2, j))

    return te.compute((2, 3, 4), body)


def combiner_of_equal_elements() -> Tensor:
    """A nested sum was evaluated over its own axes twice."""
    a, k, m = x(6), te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 5), "m")
    add = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")
    return te.compute((2, 3, 3, 1), lambda i, j, n, q: add(te.tanh(a[2 * n % 2]) * 0.1, [k, m]))


def combiner_of_two_reads() -> Tensor:
    """What several reads shared was made a tensor over the axes of the output, though it stands at points of the reduction."""
    a, b, k = x(2, 5), x(4, name="Y"), te.reduce_axis((0, 2), "k")
    add = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")
    return te.compute((3,), lambda i: add(te.tanh(a[1, k] / (1.3 + b[k] * b[k]) - te.minimum(a[k, i], 1)), k))


def reads_that_bend_in_a_condition() -> Tensor:
    """A condition on no axis of the sum got lost where its bounds move with the output."""
    a = x(3, 1, 2, 6)
    return te.compute(
        (2, 1, 3, 3), lambda i, j, m, n: te.tanh(0.25 + a[m, j, i, te.minimum(m, 3 * i)]) * (n + 1)
    )


def quotient_at_bent_positions() -> Tensor:
    """Twice a guarded adjoint was divided outside of its guard, by what is read beyond the end."""
    a, k = x(5, 6, 2, 2), te.reduce_axis((0, 1), "k")

    def body(i, j, n):
        below = a[j, te.maximum(-2 * j - 2, 3), j, k]
        own = a[j, k // 2, k, k] / (1.3 + below * below)
        return te.sum(te.log1p(own * own), k)

    return te.compute((3, 2, 3), body)


def digits_of_a_short_axis() -> Tensor:
    """Digits as long as the axis were taken apart into digits without end."""
    a, k = x(3, 6), te.reduce_axis((0, 3), "k")

    def body(i, j, m, n):
        return te.max(te.atan(a[te.maximum(2 * n, 3 * m - i) % 3, 1] + 2.0), k, where=abs(m - k) <= 0)

    return te.compute((5, 2, 3, 1), body)


def digits_in_a_nested_sum() -> Tensor:
    """Reads within a sum in a factor were asked for their views in the scope around it."""
    a, b = x(3, 5), x(7, name="C")
    k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 4), "m")
    own = te.select((m - k + 2) // 2 >= 0, a[m // 3, (m - k + 2) // 2], 0.0) / (1.3 + b[3] * b[3])
    return te.compute((), lambda: te.sum(own, [k, m], where=k != 1))


def maximum_along_an_axis_that_nothing_reads() -> Tensor:
    """XLA's compiler died of the reduction that looks for the places of equal elements."""
    a, b, k = x(3), x(name="B"), te.reduce_axis((1, 5), "k")
    return te.compute((3,), lambda i: te.max(a[i] * b[()], k))


@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        product_at_a_hidden_multiple,
        combiner_of_equal_elements,
        combiner_of_two_reads,
        reads_that_bend_in_a_condition,
        quotient_at_bent_positions,
        digits_of_a_short_axis,
        digits_in_a_nested_sum,
        maximum_along_an_axis_that_nothing_reads,
    ],
)
def test_found_second_derivatives(make: Callable[[], Tensor], residuals: bool) -> None:
    output = make()
    assert isinstance(output, Compute)
    definition = Definition(output, 5)
    for order in (1, 2):
        p = at_random(definition, order)
        assert p is not None
        check(p, residuals, optimised=False, tolerance=1e-8)
        if make is maximum_along_an_axis_that_nothing_reads:
            assert "places" not in te.definitions(p.adjoints[0])


def test_condition_on_reads_that_are_out_of_range_is_decided() -> None:
    code = te.source(condition_on_reads_that_are_out_of_range()).rpartition('"""')[2]
    assert "0.1137" not in code


def test_number_of_another_dtype() -> None:
    """A float64 number was written without its dtype, so that float32 came out."""
    a = te.placeholder((3,), "float32", "X")
    output = te.compute((3,), lambda i: a[i] * te.const(0.1, "float64"))
    feeds = {a: np.float32([1, 2, 3])}
    assert_close(np.asarray(te.evaluate(output, feeds)), interpreted(output, feeds), "product")


@pytest.mark.parametrize("residuals", [False, True])
def test_compiled_elements_are_compared_as_they_were_reduced(residuals: bool) -> None:
    """Under XLA's own optimisation; half of these points lost an adjoint when the element was computed again."""
    a, b, k = x(6, 37), x(37, name="B"), te.reduce_axis((0, 37), "k")
    output = te.compute((6,), lambda i: te.max(a[i, k] * b[k] + 0.3 * a[i, 36 - k], k))
    head = te.placeholder((6,), "float64", "H")
    adjoints = list(te.differentiate(output, [a, b], head))
    if residuals:
        own = te.function([a, b], output).custom_vjp
        code = jax.jit(lambda h, *values: jax.vjp(own, *values)[1](h))
    else:
        code = jax.jit(te.function([head, a, b], adjoints))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        feeds = {t: rng.standard_normal(t.shape) for t in (head, a, b)}
        for found, adjoint in zip(code(*feeds.values()), adjoints, strict=True):
            assert_close(np.asarray(found), interpreted(adjoint, feeds), f"seed {seed}")


def test_an_excluded_element_out_of_range_spoils_no_sum() -> None:
    """A factor that is read at a position of data left the sum under a condition on data: NaN times a sum without points."""
    mask, a, table = x(2, 3, name="M"), x(2, name="A"), x(4, name="T")
    places = te.placeholder((2,), "int32", "I")
    y = te.compute((2, 3), lambda j, k: te.select(mask[j, k] > 0, a[j] * table[places[j]], 0.0))
    feeds = {mask: np.array([[0.0, 0, 0], [0, 1, 1]]), a: np.ones(2), table: np.arange(4.0)}
    p = pullback_of(y, {**feeds, places: np.int32([-1, 2])}, [a, table], 0)
    head = np.asarray(p.feeds[p.head])
    da, dtable = p.adjoints
    np.testing.assert_allclose(interpreted(da, p.feeds), [0.0, 2 * head[1, 1:].sum()])
    np.testing.assert_allclose(interpreted(dtable, p.feeds), [0.0, 0.0, head[1, 1:].sum(), 0.0])
    check(p, residuals=True, optimised=False)


def test_nothing_flows_on_from_an_adjoint_that_is_zero() -> None:
    """No point takes the logarithm, and its slope at 0 was multiplied by 0 all the same."""
    a, k = x(4), te.reduce_axis((0, 4), "k")
    log = te.compute((4,), lambda i: te.log(a[i]), "log")
    y = te.compute((2,), lambda i: a[i] + te.sum(te.select(k + i > 7, log[k], 0.0), axis=k))
    p = pullback_of(y, {a: np.zeros(4)}, [a], 0)
    expected = [*p.feeds[p.head], 0, 0]
    np.testing.assert_array_equal(interpreted(p.adjoints[0], p.feeds), expected)
    assert "log" not in te.formula(p.adjoints[0])


def test_nothing_flows_on_through_a_matrix_product() -> None:
    """Rows of the product are not chosen, and the root before it has an infinite slope there."""
    a, w, mask = x(3, 2, name="A"), x(2, 4, name="W"), x(3, name="M")
    root, k = te.compute((3, 2), lambda i, k: te.sqrt(a[i, k]), "root"), te.reduce_axis((0, 2), "k")
    product = te.compute((3, 4), lambda i, j: te.sum(root[i, k] * w[k, j], axis=k), "product")
    y = te.compute((3, 4), lambda i, j: te.select(mask[i] > 0, product[i, j], 0.0), "y")
    numbers = np.array([[1.0, 4.0], [0.0, 0.0], [4.0, 0.25]])
    p = pullback_of(y, {a: numbers, w: np.ones((2, 4)), mask: np.array([1.0, -1.0, 1.0])}, [a], 0)
    head = p.feeds[p.head].sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        expected = np.where([[1], [0], [1]], head * 0.5 / np.sqrt(numbers), 0.0)
    np.testing.assert_allclose(interpreted(p.adjoints[0], p.feeds), expected)
    check_nodes(p)


def test_a_tensor_that_may_be_infinite_stays_under_its_condition() -> None:
    """A logarithm of 0 left the sum that a mask empties: 0 times minus infinity, where the value is finite."""
    mask, a = x(2, 3, name="M"), x(2, name="A")
    log = te.compute((2,), lambda j: te.log(a[j]), "log")
    own = x(2, name="B")
    y = te.compute((2, 3), lambda j, k: te.select(mask[j, k] > 0, own[j] * log[j], 0.0))
    feeds = {mask: np.array([[0.0, 0, 0], [0, 1, 1]]), a: np.array([0.0, 2.0]), own: np.ones(2)}
    p = pullback_of(y, feeds, [own, a], 0)
    total = p.feeds[p.head][1, 1:].sum()
    for adjoint, expected in zip(p.adjoints, ([0, total * np.log(2)], [0, total / 2]), strict=True):
        np.testing.assert_allclose(interpreted(adjoint, p.feeds), expected)
    check(p, residuals=True, optimised=False)


def test_what_a_condition_excludes_stays_zero_beside_a_nan() -> None:
    """Ties of a NaN are NaN, and the share of an element that the number beats was 0 / NaN in some forms, 0 in others."""
    above, below, k = x(2, name="B"), x(3, name="C"), te.reduce_axis((0, 3), "k")
    least = te.compute((2,), lambda i: te.min(above[i] / below[k], axis=k), "least")
    y = te.compute((2,), lambda i: te.maximum(least[i], -3.5), "y")
    p = pullback_of(y, {above: np.array([0.0, 1.0]), below: np.array([0.0, 2.0, 3.0])}, [above, below], 0)
    head = np.asarray(p.feeds[p.head])
    code = jax.jit(te.function(inputs_of(p.adjoints), p.adjoints))
    for found, expected in zip(
        code(*(p.feeds[t] for t in inputs_of(p.adjoints))),
        [[0, head[1] / 3], [0, 0, -head[1] / 9]],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected)
    for adjoint, expected in zip(p.adjoints, [[0, head[1] / 3], [0, 0, -head[1] / 9]], strict=True):
        np.testing.assert_allclose(interpreted(adjoint, p.feeds), expected)


def test_no_position_out_of_range_is_read_for_a_choice_that_axes_of_one_element_decide() -> None:
    """The zero that a choice leaves was multiplied by what is read out of range, and was NaN."""
    a, b, at, k = x(1), x(1, name="W"), te.placeholder((1,), "int32", "I"), te.reduce_axis((0, 3), "k")
    t = te.compute((1, 1, 3), lambda i, j, m: a[i] * b[at[i]], "t")
    y = te.compute(
        (1, 1),
        lambda i, j: te.sum(te.select((i != j) & (k != j), t[i, j, k] * t[i, j, k], 0.0), axis=k),
        "y",
    )
    head = te.placeholder((1, 1), "float64", "H")
    feeds = {a: np.ones(1), b: np.ones(1), at: np.int32([-1]), head: np.ones((1, 1))}
    for adjoint in te.differentiate(y, [a, b], head=head):
        own = {t: feeds[t] for t in inputs_of([adjoint])}
        for run in (te.interpret, te.evaluate):
            np.testing.assert_array_equal(run(adjoint, own), [0.0])


def padded_window() -> Tensor:
    a, k = x(6), te.reduce_axis((0, 3), "k")
    return te.compute((2,), lambda i: te.sum(a[3 * i + k] ** 2 * (k + 1), k, where=3 * i + k >= 1))


def shifted() -> Tensor:
    a = x(6)
    return te.compute((4,), lambda i: a[i + 2] * a[i])


@pytest.mark.parametrize("make", [padded_window, shifted])
def test_a_dropped_guard_is_seen(make: Callable[[], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    check(fixed(make, 1), residuals=False, optimised=False)
    monkeypatch.setattr(support, "guard", lambda condition, value: value)
    with pytest.raises(AssertionError, match="adjoint of X"):
        check(fixed(make, 1), residuals=False, optimised=False)


def test_differences_see_a_wrong_adjoint() -> None:
    p = fixed(shifted, 1)
    derived = [interpreted(a, p.feeds) for a in p.adjoints]
    check_differences(p, derived)
    with pytest.raises(AssertionError, match="differences give"):
        check_differences(p, [derived[0] * 1.001])
