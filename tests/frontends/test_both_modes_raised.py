"""Forward and reverse mode agree in the first and second order for JAX functions that are raised; ``python -m tests.raised_modes`` takes all of them."""

import pytest

from tests.raised_modes import check

SOME = (
    "sobel",
    "morphological_gradient",
    "haar_wavelet",
    "convolve_1d",
    "last_logits",
    "signed_distances",
    "ising_energy",
)


@pytest.mark.parametrize("name", SOME)
def test_raised_functions(name: str) -> None:
    assert check(name) == []
