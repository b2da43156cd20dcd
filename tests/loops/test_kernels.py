"""Kernels of NPBench under ``te.loops``, beside the same functions on NumPy arrays."""

import numpy as np
import pytest

import jaxte as te
from npbench.applications import APPLICATIONS
from npbench.kernels import KERNELS
from npbench.transforms import TRANSFORMS
from tests.loops.agreement import assert_agrees, assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")
EVERY = {**KERNELS, **APPLICATIONS, **TRANSFORMS}
COMPILED = ("trmm", "covariance", "jacobi_1d", "deriche", "durbin", "softmax", "hdiff")


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = EVERY[name]
    assert_agrees(kernel.run, kernel.make(np.random.default_rng(0)))


@pytest.mark.parametrize("name", [n for n in EVERY if n not in COMPILED])
def test_nodes_of_kernels_agree_with_numpy_and_with_differences(name: str) -> None:
    kernel = EVERY[name]
    assert_nodes_agree(kernel.run, kernel.make(np.random.default_rng(0)))


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
