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
        complex: elements of products, sums and quotients of complex numbers.
        row, column: elements of arrays reduced in loops along the last axis, and along others.
        place: elements among which a loop finds the place of the least or largest one, one by one.
        summed: terms of a sum that the loop which adds them up computes, one after the other.
        reduced, wide, run: elements reduced by a routine, and those in runs that are longer than the cache; and the runs themselves.
        branch: elements of pads and concatenations.
        gathered, turned: elements read at positions that are computed, and of transpositions.
        window, winner: elements met by ``reduce_window``, and by ``select_and_scatter``.
        scattered, scattered_row: elements that are scattered, and the rows they are in.
        scan: elements of cumulative reductions, for each level of them.
        turn, step: turns of loops, and what is started in each.
        product, product_row, vector_row: operations of matrix products, and the rows that they make, of matrices and of vectors.
        small_product, called: operations of many small ones in a loop, and those that are called one by one.
        convolution, few_convolution, plane_convolution, group_convolution, volume_convolution: the same of convolutions, those of few features or
            of arrays with zeros between their elements, of few to few features, in groups, and of three dimensions.
        sort, fft: elements for each level.
    """

    moved: float
    start: float
    cheap: float
    tested: float
    division: float
    exponential: float
    power: float
    complex: float
    row: float
    column: float
    place: float
    summed: float
    reduced: float
    wide: float
    run: float
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
    product_row: float
    vector_row: float
    small_product: float
    called: float
    convolution: float
    few_convolution: float
    plane_convolution: float
    group_convolution: float
    volume_convolution: float
    sort: float
    fft: float


@dataclass(frozen=True, slots=True)
class Asked:
    """Of which functions the price is asked, and by how much another program has to be faster.

    Attributes:
        margin: times by which all that has a rule is.
        of_loops: times by which it is in loops, and as many times as long these have to take: no paces are fitted to loops, and of 43 those of 1.2 to 1.4 were between 0.4 and 1.5.
        taken_back: times by which the program as it stands is, where a rule of structure says that something gains.
        least: seconds, below which what is saved of a call takes thousands of calls to make up for deriving another program.
        passes: times that a gradient may take as long as its function, of which alone the price costs nothing.
        both: times that value and gradient take at least as long as the function, by JAX's transposes.
        each: seconds for each step of such a function that are above the least that they take: deriving one takes some 5 ms, which less than this makes up for in more than 500 calls.
        most_steps: of a function whose derivative is derived to find out, without its views.
        large: steps, beyond which each has to take longer by as much for so many more: deriving them takes longer than tracing most functions.
        most_kept: part of the time in what no program does faster, such as large products and scatters to positions that are data.
    """

    margin: float
    of_loops: float
    taken_back: float
    least: float
    passes: float
    both: float
    each: float
    most_steps: int
    large: int
    most_kept: float

    def each_of(self, steps: int) -> float:
        """Seconds for each of so many steps."""
        return self.each * max(1.0, steps / self.large)


@dataclass(frozen=True, slots=True)
class Sizes:
    """At which sizes XLA compiles something else: parts of the estimate, as the paces are, which decide nothing but by its seconds.

    Attributes:
        written: copies of an operation in the text of one loop, of more of which it is an array.
        called: operations of a function, up to which it is written into its callers.
        reduced: elements, of more of which floats are reduced by a routine.
        places: elements in a row, up to which the place of the least or largest is found in registers.
        wide: elements that are kept side by side, of more of which a reduction does not stay in the cache.
        loop: multiplications of one of many matrix products, up to which they are a loop.
        inner, product: numbers that are added in each element of one of many, and its multiplications, below which each takes a call of its own.
        features: of a convolution, with fewer of which it has a pace of its own.
    """

    written: int
    called: int
    reduced: int
    places: int
    wide: int
    loop: int
    inner: int
    product: int
    features: int


SIZES = Sizes(
    written=15, called=8, reduced=4096, places=16, wide=1 << 14, loop=32, inner=8, product=512, features=4
)

CPU_PACES = Paces(
    moved=4e10,
    start=2.5e5,
    cheap=5.5e10,
    tested=3e10,
    division=2.4e10,
    exponential=2.7e9,
    power=1.6e8,
    complex=5e9,
    row=3e9,
    column=5e9,
    place=2.2e8,
    summed=8e8,
    reduced=3.5e9,
    wide=1.4e8,
    run=2.3e8,
    branch=1.3e10,
    gathered=1.2e10,
    turned=1.2e10,
    window=8e8,
    winner=3e7,
    scattered=4e9,
    scattered_row=6e8,
    scan=2.7e9,
    turn=2e7,
    step=2e7,
    product=4.8e10,
    product_row=9e7,
    vector_row=9e7,
    small_product=6e9,
    called=5e6,
    convolution=1.9e10,
    few_convolution=4e9,
    plane_convolution=8e8,
    group_convolution=4.2e8,
    volume_convolution=5e7,
    sort=6.7e7,
    fft=1.8e9,
)

CPU_ASKED = Asked(
    margin=1.12,
    of_loops=1.5,
    taken_back=1.2,
    least=5e-4,
    passes=5.0,
    both=1.5,  # 1.55 to 26 for 40 functions of the raised corpus, of which it decides 31 as their prices do
    each=1e-5,
    most_steps=200,
    large=50,
    most_kept=0.6,
)
