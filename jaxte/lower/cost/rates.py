"""What each platform does in a second: the numbers behind the choice among forms.

``python benchmarks/rates.py`` measures them where it runs and prints the row. The cpu row was measured on two cores of an
AMD EPYC with AVX2 in float32. The gpu and tpu rows are estimates from data sheets (H200, TPU v4), not measured: they
order the forms, and ``te.autotune`` measures what matters on the machine at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.errors import LoweringError


@dataclass(frozen=True, slots=True)
class Rates:
    """Units of work a second.

    Attributes:
        dot: floating point operations of matrix products.
        convolution: floating point operations of dense convolutions.
        grouped_convolution: the same in convolutions with a feature group count.
        volume_convolution: the same in dense convolutions of three dimensions or more.
        stream: bytes read and written by elementwise code, one pass.
        tap: elements combined by slices, shifted and added in one fused loop.
        window: elements met by ``lax.reduce_window``.
        scan: elements of cumulative reductions.
        step: iterations of a loop over few elements.
        transcendental: evaluations of exp, log, tanh and their like.
        gather: elements read at positions that are data.
        scatter: elements accumulated at positions that are data.
        gathered_row: elements of short rows read at positions that are data, and written as they are.
        scattered_row: elements of short rows written at positions that are data, each once, over a copy of others.
        kernel: operations started.
        cache: bytes that an intermediate may have without being slower than what is in cache.
        spill: bytes a second of intermediates that are larger than the cache.
    """

    dot: float
    convolution: float
    grouped_convolution: float
    volume_convolution: float
    stream: float
    tap: float
    window: float
    scan: float
    step: float
    transcendental: float
    gather: float
    scatter: float
    gathered_row: float
    scattered_row: float
    kernel: float
    cache: float
    spill: float


RATES = {
    "cpu": Rates(
        dot=4e10,
        convolution=3e10,
        grouped_convolution=5e8,
        volume_convolution=3e9,
        stream=1e10,
        tap=1e10,
        window=1.5e9,
        scan=2e8,
        step=5e8,
        transcendental=2e9,
        gather=3e8,
        scatter=4e8,
        gathered_row=7e8,
        scattered_row=1.5e9,
        kernel=3e5,
        cache=1.6e7,
        spill=3e9,
    ),
    "gpu": Rates(
        dot=5e13,
        convolution=3e13,
        grouped_convolution=2e12,
        volume_convolution=3e13,
        stream=4e12,
        tap=1e12,
        window=2e11,
        scan=5e10,
        step=2e5,
        transcendental=4e12,
        gather=2e11,
        scatter=5e10,
        gathered_row=2e11,
        scattered_row=5e10,
        kernel=3e5,
        cache=5e7,
        spill=4e12,
    ),
    "tpu": Rates(
        dot=1e14,
        convolution=1e14,
        grouped_convolution=5e12,
        volume_convolution=1e14,
        stream=1e12,
        tap=5e11,
        window=2e11,
        scan=1e10,
        step=1e6,
        transcendental=1e12,
        gather=1e10,
        scatter=5e9,
        gathered_row=1e10,
        scattered_row=5e9,
        kernel=3e5,
        cache=1e8,
        spill=1e12,
    ),
}
_ALIASES = {"cuda": "gpu", "rocm": "gpu"}


def is_known(platform: str) -> bool:
    """Whether there is a row for ``platform``."""
    return _ALIASES.get(platform, platform) in RATES


def rates_of(platform: str) -> Rates:
    """The row of a platform, by the name that JAX gives it.

    Raises:
        LoweringError: there is no such row.
    """
    row = RATES.get(_ALIASES.get(platform, platform)) if isinstance(platform, str) else None
    if row is None:
        raise LoweringError(f"platform {platform!r} is unknown; give one of {', '.join(RATES)}")
    return row
