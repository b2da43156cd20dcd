"""What is said of arrays, arguments and results that do not fit."""

import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import dense


@pytest.fixture
def graph():
    X, W = te.placeholder((2, 3), name="X"), te.placeholder((3, 4), name="W")
    return X, W, dense(X, W)


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    ("x", "w", "words"),
    [
        (ones(2, 3), ones(4, 4), ["axis 0 of W(3, 4)", "3 elements", "has 4"]),
        (ones(2, 3), ones(3), ["W", "2 axes", "(3,)"]),
        (ones(2, 3), ones(3, 4, dtype="int32"), ["W", "int32", ".astype('float32')"]),
        (ones(2, 3), ones(3, 4, dtype="float16"), ["W", "float16", ".astype('float32')"]),
        (ones(2, 3, dtype="float64"), ones(3, 4), ["X", "float64", "jax_enable_x64", '.astype("float32")']),
        (ones(2, 3, dtype="complex128"), ones(3, 4), ["X", "complex128", "jax_enable_x64"]),
        (ones(2, 3), np.array([["a"] * 4] * 3), ["W", "dtype <U1"]),
        (ones(2, 3), np.array([[None] * 4] * 3), ["W", "dtype object"]),
        (ones(2, 3), object(), ["W", "object"]),
        (ones(2, 3), "array", ["W", "str 'array'"]),
        (ones(2, 3), None, ["W", "None"]),
    ],
)
def test_arrays_that_do_not_fit(graph, x, w, words) -> None:
    X, W, Y = graph
    for call in (lambda: te.function([X, W], Y)(x, w), lambda: te.evaluate(Y, {X: x, W: w})):
        with pytest.raises(te.FeedError) as caught:
            call()
        for word in words:
            assert word in str(caught.value), str(caught.value)


def test_missing_extra_and_doubled_arrays(graph) -> None:
    X, W, Y = graph
    f, x, w = te.function([X, W], Y), ones(2, 3), ones(3, 4)
    with pytest.raises(te.FeedError, match=r"no array for W: float32\(3, 4\)"):
        f(x)
    with pytest.raises(te.FeedError, match=r"takes 2 arrays \(X, W\), but 3"):
        f(x, w, w)
    with pytest.raises(te.FeedError, match="no input V; its inputs are X, W"):
        f(x, V=w)
    with pytest.raises(te.FeedError, match="X is given twice"):
        f(x, X=x)
    with pytest.raises(te.FeedError, match="no array for W"):
        te.evaluate(Y, {X: x})
    with pytest.raises(te.FeedError, match="no input"):
        te.evaluate(Y, {X: x, W: w, te.placeholder((1,), name="V"): ones(1)})
    with pytest.raises(te.FeedError, match="the key 'X'"):
        te.evaluate(Y, {"X": x, W: w})


def test_names_shared_by_placeholders_are_no_keywords() -> None:
    A, B = te.placeholder((2,), name="X"), te.placeholder((2,), name="X")
    f = te.function([A, B], te.compute((2,), lambda i: A[i] - B[i]))
    np.testing.assert_array_equal(f(2 * ones(2), ones(2)), ones(2))
    with pytest.raises(te.FeedError, match="2 inputs named X; pass their arrays by position"):
        f(X=ones(2))


def test_sizes_that_contradict_each_other() -> None:
    n = te.var("n")
    X, Y = te.placeholder((n,), name="X"), te.placeholder((2 * n,), name="Y")
    f = te.function([X, Y], te.compute((n,), lambda i: X[i] + Y[2 * i]))
    assert f(ones(3), ones(6)).shape == (3,)
    with pytest.raises(te.FeedError, match=r"axis 0 of Y\(2 \* n,\) has 6 elements \(with n = 3"):
        f(ones(3), ones(7))


def test_numbers_and_lists_are_arrays_of_a_graph() -> None:
    s, X = te.placeholder((), name="s"), te.placeholder((2,), name="X")
    f = te.function([s, X], te.compute((2,), lambda i: s[()] * X[i]))
    np.testing.assert_array_equal(f(2, [1.0, 2.0]), [2, 4])
    np.testing.assert_array_equal(f(2.5, X=[1, 2]), [2.5, 5])
    with pytest.raises(te.FeedError, match="X"):
        f(2, [1.0, "a"])


def test_64_bit_integers_are_narrowed_as_by_jax_if_they_fit() -> None:
    rows = te.placeholder((2,), "int32", name="rows")
    Y = te.compute((2,), lambda i: rows[i] + 1)
    for f in (te.function([rows], Y), te.function(lambda i: te.compute(i.shape, lambda a: i[a] + 1))):
        assert f(np.array([1, 2])).dtype == jnp.int32
        with pytest.raises(te.FeedError, match=r"do not fit int32"):
            f(np.array([1, 2**40]))


@pytest.mark.parametrize("known", [True, False], ids=["after a good call", "first"])
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda x: x.astype(x.dtype.newbyteorder()), r"has dtype [<>]f4.*\.astype\(\"float32\"\)"),
        (lambda x: np.ma.masked_array(x, x > 1), r"masked array.*\.filled"),
    ],
    ids=["bytes the other way round", "masked"],
)
def test_arrays_that_jax_misreads_once_it_has_compiled(known: bool, made, message: str) -> None:
    x = np.arange(3, dtype="float32")
    X = te.placeholder((3,), name="X")
    for f in (te.function([X], X + 1), te.function(lambda x: x + 1)):
        if known:
            f(x)
        with pytest.raises(te.FeedError, match=message):
            f(made(x))
    with pytest.raises(te.FeedError, match=message):
        te.evaluate(X + 1, {X: made(x)})


# --- builders


def test_builders_take_64_bit_arrays_as_jax_does() -> None:
    """A dtype that the arrays say is the one that they have in JAX; one that a placeholder states is checked, in ``te.interpret`` too."""
    f = te.function(dense)
    x, w = np.full((2, 3), 0.1), np.full((3, 4), 0.3)
    like_w = jax.ShapeDtypeStruct((3, 4), "float64")
    assert f(x, w).dtype == f(x.astype("float32"), w).dtype == np.float32
    np.testing.assert_array_equal(f(x, w), f(x.astype("float32"), w.astype("float32")))
    assert jax.grad(lambda p: jnp.sum(f(x, p["w"])))({"w": w})["w"].dtype == np.float32
    assert te.source(f, x, like_w) == te.source(f, jnp.asarray(x), jnp.asarray(w))
    assert te.einsum("i j, j k -> i k", x, w).dtype == te.ops.relu(x).dtype == np.float32
    assert te.einsum("i j -> i", x.astype("complex128")).dtype == np.complex64
    assert te.define("y[i] = max[j](x[i, j])")(x).dtype == np.float32
    assert te.stack([x, x]).dtype == te.concatenate([x, x]).dtype == np.float32
    X = te.placeholder((2, 3), name="X")
    for run in (te.interpret, te.evaluate):
        with pytest.raises(te.FeedError, match=r"X.*float64"):
            run(X + 1, {X: x})
    with jax.enable_x64(True):
        assert f(x, w).dtype == np.float64


def test_a_number_of_python_is_no_tensor_in_a_builder() -> None:
    with pytest.raises(te.DefinitionError, match=r"float 3\.0 has no shape: numbers, .* are static"):
        te.function(lambda x: te.compute(x.shape, lambda i: 2 * x[i]))(3.0)
    with pytest.raises(AttributeError) as caught:
        te.function(lambda x: te.compute((3,), lambda i: x.element(i)))(3.0)
    assert "3.0 is a number of Python" in caught.value.__notes__[0]


def test_builders_name_missing_and_unknown_parameters() -> None:
    f = te.function(dense)
    with pytest.raises(te.FeedError, match=re.escape("dense(x, w): missing a required argument: 'w'")):
        f(ones(2, 3))
    with pytest.raises(te.FeedError, match="too many positional arguments"):
        f(ones(2, 3), ones(3, 4), ones(1))
    with pytest.raises(te.FeedError, match="unexpected keyword argument 'v'"):
        f(ones(2, 3), ones(3, 4), v=1)


def test_arguments_that_are_neither_arrays_nor_static() -> None:
    f = te.function(dense)
    with pytest.raises(te.FeedError, match=r"object.*neither an array nor a Python scalar"):
        f(ones(2, 3), object())
    with pytest.raises(te.FeedError, match=r"fractions\.Fraction"):
        f(ones(2, 3), Fraction(1, 2))
    with pytest.raises(te.FeedError, match="static_argnames has 'v', but the parameters are x, w"):
        te.function(dense, static_argnames=["v"])


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (lambda x: None, "returns None, no Tensor; end the builder with `return`"),
        (lambda x: [], "no Tensor"),
        (lambda x: x[0, 0], r"the scalar expression `x\[0, 0\]`; make it a Tensor with te.compute"),
        (lambda x: 3.0, "float 3.0, no Tensor"),
        (lambda x: (x, {"loss": 1}), r"at \[1\]\['loss'\] int 1, no Tensor"),
        (lambda x: jnp.ones(3), "no Tensor"),
    ],
)
def test_builders_that_return_no_tensor(builder, message: str) -> None:
    with pytest.raises(te.DefinitionError, match=message):
        te.function(builder)(ones(2, 3))


def test_a_builder_that_uses_a_placeholder_from_outside() -> None:
    Z = te.placeholder((2, 3), name="Z")
    f = te.function(lambda x: te.compute((2, 3), lambda i, j: x[i, j] + Z[i, j]))
    with pytest.raises(
        te.DefinitionError, match=r"needs Z: float32\(2, 3\), which is not among its inputs \(x\)"
    ):
        f(ones(2, 3))


def test_graphs_that_are_no_graphs(graph) -> None:
    X, W, Y = graph
    with pytest.raises(te.DefinitionError, match="needs W"):
        te.function([X], Y)
    with pytest.raises(te.DefinitionError, match=r"inputs are made by te\.placeholder"):
        te.function([X, W, Y], Y)
    with pytest.raises(te.DefinitionError, match="stands twice"):
        te.function([X, W, X], Y)
    with pytest.raises(te.DefinitionError, match="no Tensor"):
        te.function([X, W], 3)
    with pytest.raises(te.DefinitionError, match="give a function of Tensors"):
        te.function(Y)
    with pytest.raises(te.DefinitionError, match="static_argnames"):
        te.function([X, W], Y, static_argnames="n")


def test_tracers_are_checked_like_arrays(graph) -> None:
    X, W, Y = graph
    with pytest.raises(te.FeedError, match="axis 0 of W"):
        jax.jit(te.function([X, W], Y))(ones(2, 3), ones(5, 4))
    with pytest.raises(te.ShapeError, match="static argument"):
        jax.jit(lambda n: te.placeholder((n,)))(3)


def test_a_refused_call_leaves_nothing_behind(graph) -> None:
    X, W, Y = graph
    f = te.function([X, W], Y)
    for _ in range(2):
        with pytest.raises(te.FeedError):
            f(ones(2, 3), ones(5, 4))
    np.testing.assert_array_equal(f(ones(2, 3), ones(3, 4)), 3 * ones(2, 4))
