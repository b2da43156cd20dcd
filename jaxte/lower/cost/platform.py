"""What is known of a platform: the rates behind the choice among forms, and what XLA does there."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.scalars.times import ALIKE, FunctionTimes
from jaxte.lower.arrays.data import MOSAIC
from jaxte.lower.cost.paces import CPU_ASKED, Asked, Paces
from jaxte.planning.asked import Intermediates

_BYTES = 8  # of a float32 that is written and read


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
        kernel: operations started.
        written: terms that a form writes out one by one, as many as XLA compiles a second; see ``long_text`` for how they are charged.
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
    kernel: float
    written: float
    cache: float
    spill: float


@dataclass(frozen=True, slots=True)
class DenseGroups:
    """What a convolution of all features of a register takes in place of one of a single feature for each group.

    Attributes:
        products: how many multiplications at a time the pass has that takes one for each feature of a register.
        of_filter: the same for the gradient of the filter.
        copies: how often what is read and written is copied.
        copies_of_filter: the same for the gradient of the filter.
        copies_of_few: the same where parts of the rows stand in place of a batch of fewer than ``batch``.
        batch: images that fill a register.
    """

    products: float
    of_filter: float
    copies: float
    copies_of_filter: float
    copies_of_few: float
    batch: int


@dataclass(frozen=True, slots=True)
class Platform:
    """One row. Facts are named after what XLA does; the form that each is for stands behind it.

    Attributes:
        rates: units of work a second.
        functions: how many times as long as exp other functions take (what is shared, held or written out).
        drops_barriers: barriers are gone before loops are fused, so that what is to exist stands behind a call.
        copies_for_products: products of matrices and vectors are calls that read arrays, so that two of them share one
            (products of sums over rows and over columns).
        fuses_places: the places of maxima are fused into what reads them, and computed for each element (maxima by comparisons).
        computes_positions: positions of gathers are computed in the loop of each, one after the other and not in vectors (rounded positions are arrays).
        fuses_pads: a padded array is read in the loop that pads it (windows padded apart).
        convolves_alone: a convolution of two dimensions uses other cores for many output features only (a product for each image).
        combines_singly: a reduction of several arrays at once takes one element after the other, with a branch for each value (a pass for
            each value that comes with an extremum).
        finds_singly: so does ``lax.argmax`` (256 rows of 256 take 250 us there, and 60 in passes; elsewhere it is one kernel).
        copies_reduced_slices: a reduction and what is computed for it are the call of a library, which reads whole arrays: slices are copied (what is
            reduced is one array).
        vector_terms: terms of a sum of slices that a loop computes in vectors; of three times as many and more it may not (long sums are taken in parts).
        lays_out_sums: what is summed of operands over different axes is written as an array of all points (products with a mask, whose operands other
            platforms would round more than the sum does), and so is what is reduced of comparisons or choices (tiles).
        divides_positions: reading an array in another shape divides the position of each element (bands of tiles as matrices).
        computes_again: what several slices read is fused with each of them, and computed for each (barriers around it, and around what pads it); elsewhere it is
            an array (differences in one of both orders).
        tests_pads: an element of a pad, or one around an end, is tested for in a loop that is then not vectorised (edges apart, zeros around an
            array once, copies with their ends continued, sums of shifts by masks); elsewhere a shift by a constant is one pad, negative where elements are cut off.
        fuses_products: what is computed over all dimensions of a product is fused with the sum of it, and no array (no columns apart, no tiles).
        copies_overlaps: rows that overlap, as windows beside each other, are an array of their own, since another shape has other tiles (blocks of bands).
        reads_windows_again: each position of a window is read from memory once more, or moved in registers, with whatever chooses there (extrema over windows one
            dimension after the other, and their adjoints, which compare in one loop; raised ones of overlapping windows).
        pads_rows: the last axis of an array is padded to the length of a register (what is scattered has its short axes first).
        copies_transposed: what is read with its axes in another order is copied before it is reduced (dimensions in the order that most operands have).
        moves_lanes_apart: elements of a register that are moved against each other, as strided slices and repeated elements are, take loops of their own,
            where products with a known matrix, and convolutions, have a unit for themselves (raised resizing, filters of few features, sums along rows, ends that
            are held as choices).
        groups_in_loops: a convolution in groups is a plain loop, whatever is in a group; elsewhere only one of a single feature for each is
            (a convolution for each group).
        groups_as_dense: a convolution in groups of one feature is one of all features of a register, whose kernel has zeros (depthwise filters, and their
            gradients, as convolutions: by the cycles that the compiler states, 9 taps of 64 channels 69,498 for 103,231 of slices, their gradient 27,030 for 110,360).
        sums_columns: several sums along columns are taken together, element by element in vectors; elsewhere a core holds a tile of each, for which it
            has no memory (sums in one pass).
        narrow_products: 16-bit numbers are multiplied by units of their own; elsewhere as float32 ones (partial sums in float32).
        adds_rows: a product of a matrix and a vector along the rows is added up one row after the other, which rounds more than a product of
            columns or a sum does (these for them).
        groups_by_library: a library, or the compiler, has convolutions of two dimensions in groups, channels last, and their gradients (raised ones).
        joins_apart: arrays side by side are an array of their own, which little is fused with (rolls as a choice between two pads).
        keeps_tables: what is added to a small table is added in the cache (tables that all pairs read, raised).
        transposes_apart: what flows back through a slice, a pad or shifted slices side by side takes loops of its own, and so does the transpose
            of a cumulative sum (raised stencils, sums beside their ends and cumulative sums).
        holds_pairs: differences of all pairs are written for each that reads them, although they would be computed again (raised pair sums of fewer
            than are too many to be held).
        scatters_rows: rows are scattered in vectors, so that each takes as long as an element, and what moving it takes.
        keeps_on_chip: arrays of up to ``rates.cache`` bytes stay in a memory on the chip, from which all pairs are faster than blocks of a band (attention in a
            band: by the compiler's cycles for heads of 8, 32 and 128 MiB blocks are 0.67, 1.0 and 3.3 times as fast).
        fuses_rows: sums along rows are one kernel with what they are taken of, and with what reads them, unless that waits for another sum (sums of
            quotients without their divisors).
        sums_apart: a sum is fused with nothing that reads it, so that a number that it is multiplied by is a kernel more, and what adds several sums
            (numbers within sums, sums that are added as the sum of what is).
        multiplies_nan: a choice between what is gathered and NaN keeps functions of it from being computed in vectors; a product with NaN does not.
        branches: one of two programs is run by a number that is computed, without waiting for it (products that are taken where they are finite).
        cheap_steps: a step of a loop takes no longer to start than a sum takes to add; elsewhere longer than a kernel (sums with geometric weights in
            steps, and columns that steps read as rows).
        kernels: what runs Pallas kernels: its interpreter, which takes whatever is in them, or one of its compilers, for types of up to four bytes; Triton
            takes no slices of what is loaded, and extents that are powers of two.
        pairs: differences that are rather not held, where fewer are.
        intermediate: operations of a sum in the time that an element of an intermediate takes to be written and read.
        loop: the same in the time that one more loop takes to start (partial sums that others share).
        chain: elements of a step of a loop up to which it takes no longer as a step of ``lax.scan`` than written out; 0 where each trip takes longer than a kernel.
        cumulative_call: kernels that a call of ``jnp.cumsum`` takes as long as, whatever is in it; XLA's CPU makes it of many small loops.
        scan_call: the same for a loop of ``lax.scan`` over an axis.
        window_call: kernels that a call of ``lax.reduce_window`` takes as long as.
        window_extrema: elements that a call of it for an extremum, or with strides or spacings, meets in the time of one of a sum at each position.
        lanes: output features that a convolution computes at the same time, whether there are as many or not.
        cores: how many a convolution with many output features has; with up to ``features_alone``, or kernels of fewer than
            ``kernel_shared`` elements, it has one.
        call: kernels that the call of one more convolution takes as long as.
        convolution_call: kernels that any convolution takes as long as, with the copies into the layout that its library asks for.
        kernel_positions: positions of a long kernel that a convolution in groups, or with a stride, takes in the time of a kernel.
        turn: kernels that a turn of a loop over images takes as long as, whatever is in it.
        wide_step: steps of a loop over few elements in the time of one over a vector, which starts a loop of its own.
        channel_taps: elements that are added in the time of one of a product with a filter that each channel has for itself.
        line: values side by side that share a line of the cache.
        near: bytes of the first cache, from which columns are read again for the next row.
        kernel_memory: bytes of the largest array of a block of a Pallas kernel, of which several are held at a time.
        kernel_wholes: bytes of all arrays that each block reads in whole, or loads windows of: the memory of a core.
        paces: how fast whole programs are; None where none were measured.
        asked: of which functions the price is asked by these paces.
    """

    rates: Rates
    functions: FunctionTimes = ALIKE
    drops_barriers: bool = False
    copies_for_products: bool = False
    fuses_places: bool = False
    computes_positions: bool = False
    fuses_pads: bool = False
    convolves_alone: bool = False
    combines_singly: bool = False
    finds_singly: bool = False
    copies_reduced_slices: bool = False
    vector_terms: int = 0
    lays_out_sums: bool = False
    divides_positions: bool = False
    computes_again: bool = False
    tests_pads: bool = False
    fuses_products: bool = True
    copies_overlaps: bool = False
    reads_windows_again: bool = False
    pads_rows: bool = False
    copies_transposed: bool = False
    moves_lanes_apart: bool = False
    groups_in_loops: bool = False
    groups_as_dense: DenseGroups | None = None
    sums_columns: bool = False
    narrow_products: bool = True
    adds_rows: bool = False
    scatters_rows: bool = False
    groups_by_library: bool = False
    joins_apart: bool = False
    keeps_tables: bool = False
    transposes_apart: bool = False
    holds_pairs: bool = False
    keeps_on_chip: bool = False
    fuses_rows: bool = False
    sums_apart: bool = False
    multiplies_nan: bool = False
    branches: bool = False
    cheap_steps: bool = False
    kernels: str = MOSAIC
    pairs: int = 1 << 21
    intermediate: int = 24
    loop: int = 25_000_000
    chain: int = 0
    cumulative_call: int = 2
    scan_call: int = 6
    window_call: int = 1
    window_extrema: int = 1
    lanes: int = 16
    cores: int = 2
    features_alone: int = 64
    kernel_shared: int = 100_000
    call: int = 20
    convolution_call: int = 1
    kernel_positions: float = float("inf")
    turn: int = 100
    wide_step: int = 30
    channel_taps: int = 1
    line: int = 16
    near: int = 2**15
    kernel_memory: int = 2**20
    kernel_wholes: int = 2**23
    paces: Paces | None = None
    asked: Asked = CPU_ASKED

    @property
    def intermediates(self) -> Intermediates:
        """What plans of sums reckon with."""
        return Intermediates(
            self.intermediate,
            self.loop,
            self.narrow_products,
            self.reads_windows_again,
            self.fuses_rows,
            self.fuses_products,
            self.chain,
            self.intermediate * self.rates.stream / (_BYTES * self.rates.transcendental),
            self.cheap_steps,
            self.functions,
        )
