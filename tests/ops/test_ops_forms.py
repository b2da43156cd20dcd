"""What operators are made of: symbolic sizes, the code that they become, and the errors of wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte import ops
from jaxte.tensors.structure import topological_order

X = te.placeholder((2, 3, 4), name="X")
IMAGE = te.placeholder((1, 2, 10, 10), name="X")
KERNEL = te.placeholder((2, 2, 3, 3), name="W")


def adjoints(output: te.Tensor, *inputs: te.Tensor) -> list[te.Tensor]:
    return list(te.differentiate(output, inputs, head=te.placeholder(output.shape, name="H")))


@pytest.mark.parametrize("shape", [(6, 4), (24,), (4, 6), (2, 2, 6), (3, 8)])
def test_reshape_and_its_adjoint_are_reshapes(shape: tuple[int, ...]) -> None:
    Y = ops.reshape(X, shape)
    for tensor in (Y, *adjoints(Y, X)):
        written = te.source(tensor)
        assert "reshape(" in written and "%" not in written.rpartition('"""')[2], written
        assert te.cost(tensor).iterations <= 48


def test_only_the_axes_that_change_are_renumbered() -> None:
    assert te.formula(ops.reshape(X, (2, 12)), ranges=False) == "reshape[i0, i1] = X[i0, i1 // 4, i1 % 4]"
    assert te.formula(ops.reshape(X, (2, 1, 3, 4, 1)), ranges=False).endswith("= X[i0, i2, i3]")


@pytest.mark.parametrize(
    "build",
    [
        lambda: ops.transpose(X),
        lambda: ops.flip(X),
        lambda: ops.tile(X, 2),
        lambda: ops.repeat(X, 2, 1),
        lambda: ops.pad(X, 1),
        lambda: ops.pad(X, 1, "reflect"),
        lambda: ops.concatenate([X, X], 1),
        lambda: ops.strided_slice(X, (0, 0, 0), (2, 3, 4), (1, 2, 3)),
        lambda: ops.broadcast_to(X, (5, 2, 3, 4)),
        lambda: ops.cumsum(X, 1),
    ],
)
def test_no_scatter_and_no_gather(build: Callable[[], te.Tensor]) -> None:
    """In XLA's eyes too."""
    Y = build()
    (dX,) = adjoints(Y, X)
    assert not te.explain([Y, dX]).scatters
    run = te.function([t for t in topological_order([dX]) if not t.inputs], dX)
    text = jax.jit(run).lower(np.ones(Y.shape, np.float32)).as_text()
    assert "scatter" not in text and "stablehlo.gather" not in text


@pytest.mark.parametrize(("stride", "iterations", "memory"), [(1, 6105, 437), (2, 2273, 599), (3, 1049, 599)])
def test_cost_of_the_adjoints_of_conv2d(stride: int, iterations: int, memory: int) -> None:
    both = te.cost(adjoints(ops.conv2d(IMAGE, KERNEL, stride), IMAGE, KERNEL))
    assert both.iterations <= iterations and both.memory <= memory


def test_softmax_has_no_instruction_for_the_adjoint_of_the_maximum() -> None:
    x = te.placeholder((4, 5), name="x")
    for op in (ops.softmax, ops.log_softmax):
        Y = op(x)
        (dx,) = adjoints(Y, x)
        assert not [t for t in topological_order([dx]) if t.name == "dlargest"]
        assert "dlargest" not in te.source(dx)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_gradient_of_a_product_transposes_nothing(axis: int) -> None:
    """Products before and after each element have its axes in its own order, whichever is reduced."""
    (dx,) = adjoints(ops.prod(X, axis), X)
    assert ".T" not in te.source(dx) and "transpose" not in te.source(dx)
    before = next(t for t in topological_order([dx]) if t.name.startswith("before"))
    assert before.shape == X.shape


def test_symbolic_sizes() -> None:
    n = te.var("n")
    S = te.placeholder((n, 3, 4), name="S")
    assert ops.flatten(S).shape == (n, 12)
    assert ops.reshape(S, (n, -1)).shape == (n, 12)
    assert [te.formula(ops.reshape(S, -1), ranges=False)] == [
        "reshape[i0] = S[i0 // 12, i0 // 4 % 3, i0 % 4]"
    ]
    assert ops.concatenate([S, S]).shape[0] is (2 * n)
    assert ops.reshape(S, (-1, 6)).shape == (2 * n, 6)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for Y, expected in (
        (ops.flatten(S), x.reshape(2, 12)),
        (ops.concatenate([S, S]), np.concatenate([x, x])),
        (ops.mean(S, 0), x.mean(0)),
        (ops.reshape(S, -1), x.reshape(-1)),
        (ops.softmax(S, 0), jax.nn.softmax(x, 0)),
    ):
        np.testing.assert_allclose(te.interpret(Y, {S: x}), expected, rtol=1e-6)
        np.testing.assert_allclose(te.evaluate(Y, {S: x}), expected, rtol=1e-6)


def test_constants() -> None:
    np.testing.assert_array_equal(te.evaluate(ops.arange(7, 1, -2), {}), np.arange(7, 1, -2))
    np.testing.assert_array_equal(te.evaluate(ops.arange(3), {}), np.arange(3))
    for made, expected in (
        (ops.zeros((2, 3)), jnp.zeros((2, 3))),
        (ops.ones((2,), "int32"), jnp.ones(2, "int32")),
    ):
        found = te.evaluate(made, {})
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_static_arguments_that_are_equal_but_differ_in_type() -> None:
    x = np.int32([1, 2])
    assert ops.add(x, 1).dtype == "int32" and ops.add(x, 1.0).dtype == "float32"
    assert ops.full_like(x, True, "bool").dtype == "bool"
    assert np.signbit(ops.multiply(np.float32([1]), -0.0)) and not np.signbit(
        ops.multiply(np.float32([1]), 0.0)
    )


def test_scalars_of_numpy_are_arrays_and_beside_tensors_numbers() -> None:
    for made in (ops.relu(np.float32(2)), ops.sum(np.float32(2)), ops.reshape(np.float32(2), (1, 1))):
        assert isinstance(made, jax.Array) and made.ravel()[0] == 2
    assert ops.argmax(np.float32(2)) == 0
    assert isinstance(ops.add(X, np.float32(2)), te.Tensor)


@pytest.mark.parametrize("padding", [1, (1, 1), ((1, 1), (1, 1)), "SAME"])
def test_spellings_of_padding(padding: Any) -> None:
    assert ops.conv2d(IMAGE, KERNEL, padding=padding).shape == (1, 2, 10, 10)


ERRORS: list[tuple[str, Callable[[], Any], str]] = [
    ("array and tensor", lambda: ops.add(X, np.ones(3, np.float32)), r"te\.ops\.add of the Tensor X and an array .*placeholder"),
    ("no tensor", lambda: ops.exp(2.0), r"te\.ops\.exp of numbers only"),
    ("number", lambda: ops.argmax(2.0), r"te\.ops\.argmax of numbers only"),
    ("numbers", lambda: ops.mean([1.0, 2.0]), r"te\.ops\.mean of numbers only"),
    ("no axes", lambda: ops.softmax(np.float32(1)), r"te\.ops\.softmax: axis=-1, but there are 0 axes; give a tensor with at least one"),
    ("axis of mean", lambda: ops.mean(X, 3), r"te\.ops\.mean: axis=3"),
    ("axis of variance", lambda: ops.variance(X, 3), r"te\.ops\.variance: axis=3"),
    ("axis of logsumexp", lambda: ops.logsumexp(X, 3), r"te\.ops\.logsumexp: axis=3"),
    ("axis of layer_norm", lambda: ops.layer_norm(X, axis=3), r"te\.ops\.layer_norm: axis=3"),
    ("axis of log_softmax", lambda: ops.log_softmax(X, 3), r"te\.ops\.log_softmax: axis=3"),
    ("axis", lambda: ops.sum(X, 3), r"te\.ops\.sum: axis=3, but there are 3 axes; give -3 to 2"),
    ("axis twice", lambda: ops.sum(X, (1, -2)), "names an axis twice"),
    ("axis type", lambda: ops.sum(X, 1.5), "axis=1.5 is no axis number"),
    ("reshape", lambda: ops.reshape(X, (5, 5)), r"X \(2, 3, 4\) and \(5, 5\) have different numbers of elements"),
    ("reshape -1", lambda: ops.reshape(X, (-1, 5)), r"no extent fits -1 in \(-1, 5\) for X"),
    ("reshape two", lambda: ops.reshape(X, (-1, -1)), "-1 more than once"),
    ("broadcast", lambda: ops.broadcast_to(X, (2, 3, 5)), r"X \(2, 3, 4\) does not broadcast to \(2, 3, 5\)"),
    ("transpose", lambda: ops.transpose(X, (0, 0, 1)), "is no order of the 3 axes of X"),
    ("squeeze", lambda: ops.squeeze(X, 0), "axis 0 of X .* has not the extent 1"),
    ("concatenate", lambda: ops.concatenate([X, ops.transpose(X)]), "differ on axis 2"),
    ("concatenate nothing", lambda: ops.concatenate([]), "of nothing"),
    ("split", lambda: ops.split(X, 2, 1), "axis 1 of X has 3 elements, which is not 2 equal parts"),
    ("pad mode", lambda: ops.pad(X, 1, "mirror"), "mode='mirror'; the modes are"),
    ("pad reflect", lambda: ops.pad(te.placeholder((0, 2), name="E"), 1, "reflect"), "extent of axis 0 of E with mode 'reflect'=0: give at least 1"),
    ("take dtype", lambda: ops.take(X, X), "indices are integers"),
    ("take number", lambda: ops.take(X, 9, 0), "there is no element 9 along axis 0 of X"),
    ("take mode", lambda: ops.take(X, te.placeholder((2,), "int32"), 0, "raise"), "mode='raise'; the modes are"),
    ("matmul", lambda: ops.matmul(X, X), r"4 and 3 elements"),
    ("tensordot", lambda: ops.tensordot(X, X, 2), "axis 1 of X and axis 0 of X"),
    ("tensordot axes", lambda: ops.tensordot(X, X, 4), "axes=4, but X has 3 axes"),
    ("dense", lambda: ops.dense(X, X), "X has 3 axes and X 3"),
    ("conv channels", lambda: ops.conv2d(IMAGE, te.placeholder((2, 3, 3, 3), name="W")), "has 2 channels and W .* takes 3"),
    ("conv groups", lambda: ops.conv2d(IMAGE, te.placeholder((3, 1, 3, 3), name="W"), groups=2), "3 output channels, which is not 2"),
    ("conv padding", lambda: ops.conv2d(IMAGE, KERNEL, padding="FULL"), "padding='FULL'; give 'SAME', 'VALID'"),
    ("conv stride", lambda: ops.conv2d(IMAGE, KERNEL, strides=0), "strides=0: give at least 1"),
    ("conv layout", lambda: ops.conv2d(IMAGE, KERNEL, layout="CNHW"), "layout='CNHW' for 4 axes"),
    ("pool padding", lambda: ops.max_pool2d(IMAGE, 2, padding=2), "hold no element; pad less"),
    ("argmax of nothing", lambda: ops.argmax(te.placeholder((0,), name="E")), "E along an axis of extent 0"),
    ("gather_nd", lambda: ops.gather_nd(X, te.placeholder((4, 2), "int32", name="I")), "I gives 4 indices, but X has 3"),
    ("batch_norm", lambda: ops.batch_norm(X, None, None), "give mean and var, or training=True"),
    ("missing", lambda: ops.conv2d(IMAGE), r"te.ops.conv2d\(x, w, .*\): missing a required argument: 'w'"),
    ("missing axis", lambda: ops.cumsum(X), r"te.ops.cumsum\(x, axis\): missing a required argument: 'axis'"),
    ("missing axis of arrays", lambda: ops.cumsum(np.ones(3)), r"te.ops.cumsum\(x, axis\): missing"),
    ("unknown", lambda: ops.cumsum(X, 0, dim=1), r"te.ops.cumsum\(x, axis\): .*'dim'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS])
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(te.JaxteError, match=message):
        call()


def test_arguments_that_do_not_fit_are_a_type_error() -> None:
    with pytest.raises(TypeError) as found:
        ops.cumsum(X)
    assert isinstance(found.value, te.ArgumentError)
