"""Every function of the corpus with symbols for its sizes: value and gradients are traced as ``jax.export`` traces them.

The code that is emitted for symbols is run at the sizes 1, 2, 3 and primes in ``tests/tensors/test_symbolic_sizes.py``; here stands which
functions have such code, and why others have none.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxte as te
from harness.case import CORPUS, JAXTE, load, names
from tests.symbolic_corpus import symbolic

LEAST = 8  # of each size
MORE = {
    "laplacian_of_gaussian": 18,
    "polyphase_decimation": 64,
    "ssim": 12,
    "stft": 64,
}  # windows as long as that
# what is refused, and why
REFUSED = {
    "dct_blocks": r"reads x\[:, 15\]",  # blocks of eight, which leave the array unless its size is a multiple of eight
    "unfold": r"h\^2 - 4\*h \+ 4.*inconclusive",  # the extent (h - 2) ** 2, which JAX does not know to be one; plain JAX neither
    "wavelet_db4": "incompatible shapes.*floordiv",  # JAX does not know that (n + 1) // 2 + n // 2 are n
}
# derived in many seconds: a polynomial of the size for an extent, three times
SLOW = frozenset({"bspline_3d"})


def loss(f: Any, wanted: tuple[int, ...]) -> Any:
    def total(args: list[Any]) -> Any:
        moving = {n: args[n] for n in wanted}

        def inner(moving: dict[int, Any]) -> Any:
            own = [moving.get(n, a) for n, a in enumerate(args)]
            return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*own)))

        return jax.value_and_grad(inner)(moving)

    return total


def traced(name: str) -> None:
    """Traces the value and the gradients of a function, whose shapes are those of the arguments."""
    case = load(name)
    specs = symbolic(case, MORE.get(name, LEAST))
    if specs is None:
        pytest.skip("its shapes are no linear forms of its sizes")
    wanted = case.differentiated(specs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", te.PerformanceWarning)
        _, found = jax.eval_shape(loss(te.function(case.sides[JAXTE]), wanted), specs)
    assert [found[n].shape for n in wanted] == [specs[n].shape for n in wanted]


@pytest.mark.parametrize("name", [n for n in names(CORPUS) if n not in REFUSED and n not in SLOW])
def test_value_and_gradients(name: str) -> None:
    traced(name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(Exception, match=REFUSED[name]):
        traced(name)
