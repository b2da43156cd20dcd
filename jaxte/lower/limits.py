"""How far things are written out and counted: the limits of all forms in one place, the same on every platform.

They bound the text and what XLA takes to compile it, or say from where on one spelling is faster than another by so much that no
machine was seen to differ. What differs between platforms is in ``cost/platforms.py``. ``make bench`` measures all of them:
a case to compare with stands beside each (``python benchmarks/run.py NAME``), where there is one.
"""

from __future__ import annotations

# --- a short axis, one position after the other

FEW = 4  # positions of a sum of products, of what is larger than all it is made from, of a sum in tiles; columns that are summed one by one whatever the sides are: gaussian_sum_4096, soft_rasteriser, contact_map
MOST_COLUMNS = 16  # the same where both sides are long: mixture_likelihood; each is a term of the text and a loop to compile
FEW_POSITIONS = 8  # a loop over so many costs more to start than to run: product_reduction; beyond, an array is stacked of slices
LONGEST_UNROLLED = (
    32  # positions of an axis that overlaps with another one, as slices: max_pool_7_1, conv2d_depthwise
)
MANY_ROWS = 32  # rows of what is summed that are summed by themselves at first, where sums of several shifts are wanted: savitzky_golay
MOST_COPIES = 64  # slices, groups, classes or sums in one statement: stencil_25_point
MOST_UNROLLED = (
    100  # terms of one sum over several short axes together: the operator correlation, of 9 by 9 positions
)
MOST_TERMS = (
    16  # products of arrays that are written out, one after the other, and terms whose weights leave a sum
)
CALLS = (
    10_000  # calls that the time to compile is shared by: the steps of a short training; chosen, not measured
)

LARGE_ROWS = (
    2**20
)  # bytes of all rows that a sum gathers from which on its weights are multiplied apart: deformable_conv

# --- bands and windows

FEWEST_DIAGONALS, MOST_DIAGONALS = (
    5,
    128,
)  # fewer are written out one by one; XLA makes slow code of more: attention_window_output
FEW_TAPS = 3  # positions of a window for which slices are always best: box_blur_5
LARGE_RESULT = 2**16  # elements of a window's result; smaller arrays keep the shorter text

SHORT_LINE = (
    2**15
)  # elements of a line whose interior is written last, which keeps it on one core: kuramoto_sivashinsky; of 2**16 two are faster

# --- tiles

LONG_SUM = 32  # terms of a block from which on a sum is worth carrying, or a product of vectors worth starting: gaussian_sum_4096
LONG_PRODUCT = 4  # the same where a vector is multiplied by the block
RATIO = 3  # how many times as large as what it is made from an intermediate is that is computed again
CHOSEN_RATIO = 16  # the same of what is chosen by conditions and then reduced, which XLA on the CPU writes to memory: from a quarter of the cache on
MEMORY_WORTH = 3  # how many times as long as writing and reading it the memory of an intermediate is worth
