"""Kernels of NPBench under ``te.loops``, beside the same functions on NumPy arrays."""

import numpy as np
import pytest

import jaxte as te
from npbench.applications import APPLICATIONS
from npbench.kernels import KERNELS
from npbench.libraries import LIBRARIES
from npbench.transforms import TRANSFORMS
from tests.loops.agreement import assert_agrees, assert_nodes_agree, leaves, run_python

pytestmark = pytest.mark.usefixtures("x64")
EVERY = {**KERNELS, **APPLICATIONS, **TRANSFORMS, **LIBRARIES}
COMPILED = ("trmm", "covariance", "jacobi_1d", "deriche", "durbin", "softmax", "hdiff")


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = EVERY[name]
    assert_agrees(kernel.run, kernel.make(np.random.default_rng(0)))


@pytest.mark.parametrize("name", [n for n in EVERY if n not in COMPILED])
def test_nodes_of_kernels_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = EVERY[name]
    assert_nodes_agree(kernel.run, kernel.make(np.random.default_rng(0)))


def _by_masks(C, steps, horizon):
    Z, N = np.zeros(C.shape, complex), np.zeros(C.shape, int)
    for n in range(steps):
        inside = np.less(abs(Z), horizon)
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[steps - 1 == N] = 0
    return Z, N


def _until_they_leave(C, steps, horizon):
    Z, N = np.zeros(C.shape, complex), np.zeros(C.shape, int)
    own, at = np.zeros(C.size, complex), np.arange(C.size)
    for n in range(steps):
        own = own**2 + C.ravel()[at]
        out = abs(own) > horizon
        Z.ravel()[at[out]], N.ravel()[at[out]] = own[out], n + 1
        own, at = own[~out], at[~out]
    return Z, N


def _dense(ptr, columns, values, x):
    A = np.zeros((len(ptr) - 1, len(x)))
    A[np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)), columns] = values
    return A @ x


WHOLE = {
    "azimint_hist": lambda data, radius, n: (
        np.histogram(radius, n, weights=data)[0] / np.histogram(radius, n)[0]
    ),
    "cholesky2": lambda A: np.linalg.cholesky(A) + np.triu(A, k=1),
    "covariance2": lambda data: np.cov(data.T),
    "mandelbrot1": _by_masks,
    "mandelbrot2": _until_they_leave,
    "spmv": lambda ptr, columns, values, x, most: _dense(ptr, columns, values, x),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_loops_of_whole_functions_are_what_numpy_says(name: str) -> None:
    kernel = LIBRARIES[name]
    for seed in range(3):
        args = kernel.make(np.random.default_rng(seed))
        expected = WHOLE[name](*args)
        found = run_python(kernel.run, args)
        for a, b in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, 1e-12, 1e-12)


def test_numbers_of_steps_have_no_gradient() -> None:
    C = te.placeholder((2, 2), "complex128", name="C")
    _, steps = te.loops(LIBRARIES["mandelbrot1"].run).builder(C, 3, 2.0)
    with pytest.raises(te.DtypeError, match="N has dtype int64, which has no derivative"):
        te.gradient(steps, [C])


def crc16(data):
    crc = 0xFFFF
    for k in range(len(data)):
        byte = data[k]
        for _bit in range(8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc = crc >> 1
            byte = byte >> 1
    return crc


def test_what_counts_bits_has_values_and_no_gradient() -> None:
    data = np.arange(3, dtype="int32")
    own = te.loops(crc16)
    assert int(own(data)) == crc16(data)
    placeholder = te.placeholder((3,), "int32", name="data")
    with pytest.raises(te.DtypeError, match="crc has dtype int32, which has no derivative"):
        te.gradient(own.builder(placeholder), [placeholder])
