"""What is known of each platform, as rows of one table: the rates behind the choice among forms, and what XLA does there.

``python benchmarks/rates.py`` measures the rates where it runs and prints the row, ``python benchmarks/platform_facts.py`` what each
fact is worth: a case with it and without it, and with ``written`` the rate of that name. The cpu row was measured on two cores of an AMD EPYC with
AVX2 in float32. The rates of gpu and tpu are from data sheets (H100, TPU v5e; ``written`` is that of the cpu row), their facts from programs that XLA's
own compilers make for a described device, whose kernels and bytes ``python benchmarks/platforms`` counts beside plain JAX's. What the gpu row says of
convolutions, taps, windows and scatters was set by 206 reductions that ``python benchmarks/platforms/forms.py`` timed in each of their forms on an
H100: the form that the row chooses takes 1.04 times as long as the fastest in the geometric mean, 1.08 with the rates of the data sheet. Its cache is
memory that needs no tiles: attention in windows took 1.3 times as long in tiles on an H200. What it says of rolls, groups and pairs was timed there, too. ``te.autotune`` measures what matters
on the machine at hand. No other module asks which platform it is for
(``tests/lower/cost/test_platforms.py``).
"""

from __future__ import annotations

from jaxte.lang.errors import LoweringError
from jaxte.lang.scalars.times import IN_VECTORS
from jaxte.lower.arrays.data import INTERPRETER, TRITON
from jaxte.lower.cost.paces import CPU_PACES
from jaxte.lower.cost.platform import DenseGroups, Platform, Rates

CPU = Platform(
    Rates(
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
        kernel=3e5,
        written=1.1e3,
        cache=1.6e7,
        spill=3e9,
    ),
    functions=IN_VECTORS,
    drops_barriers=True,
    copies_for_products=True,
    fuses_places=True,
    computes_positions=True,
    fuses_pads=True,
    convolves_alone=True,
    combines_singly=True,
    finds_singly=True,
    copies_reduced_slices=True,
    vector_terms=32,  # 128 terms of 8,192 elements 0.72 ms, in parts 0.08; 256 of 131,072 29 ms and 1.3; up to 96 it is about the same
    lays_out_sums=True,
    divides_positions=True,
    computes_again=True,
    tests_pads=True,
    fuses_products=False,
    groups_in_loops=True,
    sums_columns=True,
    narrow_products=False,
    adds_rows=True,
    scatters_rows=True,
    keeps_tables=True,
    transposes_apart=True,
    holds_pairs=True,
    multiplies_nan=True,
    branches=True,
    cheap_steps=True,
    kernels=INTERPRETER,
    intermediate=4,
    loop=0,
    chain=512,
    cumulative_call=9,
    scan_call=1,
    window_call=4,
    paces=CPU_PACES,
)
GPU = Platform(
    Rates(
        dot=5e13,
        convolution=3e13,
        grouped_convolution=3e11,
        volume_convolution=3e13,
        stream=3.3e12,
        tap=1.2e12,
        window=1.5e12,
        scan=5e10,
        step=2e5,
        transcendental=4e12,
        gather=5e11,
        scatter=2e10,
        kernel=4e5,
        written=1.1e3,
        cache=4e9,
        spill=4e12,
    ),
    combines_singly=True,
    groups_by_library=True,
    joins_apart=True,
    fuses_rows=True,
    sums_apart=True,
    pairs=1 << 28,
    transposes_apart=True,
    lanes=64,
    call=6,
    convolution_call=10,
    kernel_positions=8,
    kernels=TRITON,
    kernel_memory=2**16,
    kernel_wholes=2**17,
)
TPU = Platform(
    Rates(
        dot=5e13,
        convolution=5e13,
        grouped_convolution=2.5e10,
        volume_convolution=5e13,
        stream=8.1e11,
        tap=2e12,
        window=2e11,
        scan=1e11,
        step=1e6,
        transcendental=1e12,
        gather=1e10,
        scatter=5e9,
        kernel=3e6,
        written=1.1e3,
        cache=1e8,
        spill=1e12,
    ),
    groups_by_library=True,
    copies_overlaps=True,
    reads_windows_again=True,
    pads_rows=True,
    copies_transposed=True,
    moves_lanes_apart=True,
    keeps_on_chip=True,
    # by the cycles of 16,320 rows of 64 channels: 4,080 a tap and 30,000 for copies, of the gradient 680 and 21,000; 86,000 for copies of a batch of four
    groups_as_dense=DenseGroups(2, 12, copies=2, copies_of_filter=0.5, copies_of_few=6, batch=8),
    joins_apart=True,
    lanes=128,
    channel_taps=8,
    window_extrema=10,
    intermediate=8,
    loop=15_000_000,
)
PLATFORMS = {"cpu": CPU, "gpu": GPU, "tpu": TPU}
OTHER = "gpu"  # a backend that no rates are known of is an accelerator of some kind
_ALIASES = {"cuda": "gpu", "rocm": "gpu"}


def is_known(platform: str) -> bool:
    """Whether there is a row for ``platform``."""
    return _ALIASES.get(platform, platform) in PLATFORMS


def platform_of(name: str) -> Platform:
    """The row of a platform, by the name that JAX gives it.

    Raises:
        LoweringError: there is no such row.
    """
    row = PLATFORMS.get(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if row is None:
        raise LoweringError(f"platform {name!r} is unknown; give one of {', '.join(PLATFORMS)}")
    return row
