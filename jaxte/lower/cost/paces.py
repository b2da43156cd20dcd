"""How fast a platform does what programs are made of, as XLA compiles them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paces:
    """Units a second, fitted to programs that were measured (``benchmarks/prices.py``), where ``Rates`` are those of forms by themselves.

    Attributes:
        moved: bytes read and written by loops, most of them in the cache.
        start: loops and routines started.
        cheap, tested: additions and their like in loops, and in those that test each element for where it comes from.
        division, exponential, power: elements of these functions.
        row, column: elements reduced along the last axis, and along others.
        branch: elements of pads and concatenations.
        gathered, turned: elements read at positions that are computed, and of transpositions.
        window, winner: elements met by ``reduce_window``, and by ``select_and_scatter``.
        scattered, scattered_row: elements that are scattered, and the rows they are in.
        scan: elements of cumulative reductions, for each level of them.
        turn, step: turns of loops, and what is started in each.
        product, small_product: operations of matrix products, and of many small ones.
        convolution, few_convolution, group_convolution, volume_convolution: the same of convolutions, those of few features or of arrays with
            zeros between their elements, in groups, and of three dimensions.
        sort, fft: elements for each level.
    """

    moved: float
    start: float
    cheap: float
    tested: float
    division: float
    exponential: float
    power: float
    row: float
    column: float
    branch: float
    gathered: float
    turned: float
    window: float
    winner: float
    scattered: float
    scattered_row: float
    scan: float
    turn: float
    step: float
    product: float
    small_product: float
    convolution: float
    few_convolution: float
    group_convolution: float
    volume_convolution: float
    sort: float
    fft: float


CPU_PACES = Paces(
    moved=7e10,
    start=1.9e5,
    cheap=4.8e10,
    tested=2.3e10,
    division=3.4e10,
    exponential=3.3e9,
    power=1.4e8,
    row=9.7e8,
    column=9.8e8,
    branch=3.1e10,
    gathered=6.4e9,
    turned=3.4e10,
    window=9.2e8,
    winner=2.5e7,
    scattered=8.1e8,
    scattered_row=1.9e8,
    scan=3.7e9,
    turn=1.4e7,
    step=1.2e7,
    product=5.4e10,
    small_product=5e9,
    convolution=2.1e10,
    few_convolution=1.8e9,
    group_convolution=4.4e8,
    volume_convolution=1.4e8,
    sort=1e8,
    fft=1e9,
)
