"""Functions of the corpus with symbols for their sizes: value and gradients at sizes that their names choose, called and exported.

``python -m tests.symbolic_corpus`` runs all of them at all sizes. The code that is emitted for symbols is looked at in
``tests/tensors/test_symbolic_sizes.py``.
"""

from __future__ import annotations

import zlib

import pytest

from harness.case import CORPUS, names
from tests.symbolic_corpus import EXPORTED, MODES, REFUSED, SIZES, arguments, difference, symbolic

_ONE_IN = 26  # of the functions, modes and sizes


def _chosen() -> list[tuple[str, str, str]]:
    every = [(name, mode, size) for name in names(CORPUS) for mode in MODES for size in SIZES]
    return [
        row for row in every if zlib.crc32(" ".join(row).encode()) % _ONE_IN == 0 and row[:2] not in REFUSED
    ]


@pytest.mark.parametrize(("name", "mode", "size"), _chosen())
def test_value_and_gradients(name: str, mode: str, size: str) -> None:
    function = symbolic(name, mode)
    args = arguments(function, size)
    if args is not None:
        assert difference(function, args) == ""


@pytest.mark.parametrize("name", ["dct_blocks", "wavelet_db4", "block_matching"])
def test_what_jax_compares_as_text_is_exported(name: str) -> None:
    assert symbolic(name, EXPORTED).least


@pytest.mark.parametrize(("name", "mode"), REFUSED)
def test_what_is_refused(name: str, mode: str) -> None:
    with pytest.raises(Exception, match=REFUSED[name, mode]):
        symbolic(name, mode)
