"""How far things are written out and counted: the limits of all forms in one place, the same on every platform.

They bound the text and what XLA takes to compile it, or say from where on one spelling is faster than another by so much that no
machine was seen to differ. What differs between platforms is in ``cost/platforms.py``. ``make bench`` measures all of them:
a case to compare with stands beside each (``python benchmarks/run.py NAME``), where there is one.
"""

from __future__ import annotations

# --- what is looked at and taken apart: beyond, it stays together, or nothing is said of it
MOST_PARTS = 64  # terms of a sum, factors of a product, pieces of an index; slices, groups, classes or sums in one statement: stencil_25_point
LEVELS = 12  # tensors that read one another, products, guards and choices within each other, digits of one read, functions one after the other that are followed, readings until nothing changes
BEHIND = 100  # tensors, or nodes, behind one factor or condition
PLACES = 4_000  # nodes of one body, each with its conditions or in each part of an axis
CASES = 8  # branches, pieces, turns and leaves that one thing is taken apart into, axes, pivots, addends, values and steps that one looks back: each is looked at by itself
NESTED = 6  # parts of parts that a choice is taken apart into, digits of digits, tangents of tangents: each writes its body once more
ORDERED = 4  # axes all orders, or all subsets, of which are tried
SEARCHED = 6  # axes or arrays of one sum, all orders or paths of which are tried: 2,700 of so many; of more, what costs least goes first
POSITIONS = 2**13  # that are looked at together: what holds at each, all others are compared with
TABLE = 2**20  # positions that are tabulated at a time, or looked at one by one: 8 MB for each index
LARGE_TABLE = 2**24  # numbers that NumPy looks at once, or in pieces, as a mask of 4,096: less than a second
REMEMBERED = 64  # programs of one function, the oldest of which is forgotten: shapes in use are fewer
SEVERAL = 3  # of one kind, from which on they are told, or taken, together

# --- what is worth an array, a product or another order
MARGIN = 1.25  # how many times as many points, elements or seconds the other way has to take: less is within what estimates are off
SLIGHT_MARGIN = 1.15  # the same between orders of one sum, of which estimates are off in the same way: sums of products of three windows gain 1.2 by counts, 1.3 to 5 by the clock
HALVED = 2  # times fewer points, elements or positions, where nothing else is given up for it; of more than one in so many, all is taken
FAR_FEWER = 8  # times fewer points: what is computed at these takes next to nothing beside the others
MOST_LARGER = 3  # times as many elements, points or bytes as there are of what is read, made of, asked for or already held: what waste is worth the other way
MOST_TIMES = 4.0  # the law of cheap gradients: points of what a reader passes on, for each of the reader and of the elements that it reads
AGAIN = 8  # times that an element, or a step of a loop, is computed in place of being kept; for want of memory there are as many slots as that takes
MOST_LAID_OUT = 8  # elements for each one of the array that they are taken from
FUNCTION = 8  # operations that exp and its like count for, and that are worth another order or an array
WORTH_A_TENSOR = 6  # operations of what is computed once for several readers
FEWER = 4  # times fewer elements than points that read them, or than there are: those are computed, once for all, by themselves
MANY_OPERATIONS = 16  # that are saved for a tensor that is written and read, or for one more loop, or where each position reads a row again
WORTH_MULTIPLYING = 2**19  # multiplications or operations, below which nothing is to be gained
NARROW = 16  # rows or columns of matrices that take twice as long as large ones for the same flops; blocks have no fewer
LONG = 128  # positions of an axis, of fewer of which a product over all is as fast as one over a triangle or in blocks
SMALLEST = 1024  # elements or rows, of fewer of which another program gains nothing
SMALL_ARRAY = 2**14  # bytes of an array, smaller ones of which are no loop or array more for any gain
MANY_ELEMENTS = 2**13  # of fewer of which a sum, a softmax, a call or a loop of tests takes no time
FEW_ELEMENTS = 2**12  # that are computed faster than read, and laid out however few are read
MOST_HELD = (
    2**23
)  # bytes of an intermediate: half of a cache; larger ones are in tiles, again in each, or told
MOST_KEPT = 2**28  # bytes of what is kept for all steps of a loop, or laid out of all windows or as one-hot
MOST_BYTES = 10**11  # no machine is asked for more
VECTOR = 8  # positions side by side from which on they are worth being whole vectors

# --- a short axis, one position after the other
FEW = 4  # positions of a sum of products, of what is larger than all it is made from, of a sum in tiles; columns that are summed one by one whatever the sides are: gaussian_sum_4096, soft_rasteriser, contact_map
FEW_POSITIONS = 8  # a loop over so many costs more to start than to run (product_reduction), and is no product of matrices; beyond, an array is stacked of slices
LONGEST_UNROLLED = 32  # positions of an axis that overlaps with another one, as slices: max_pool_7_1, conv2d_depthwise; plain steps of a loop, one after the other
MOST_UNROLLED = (
    100  # terms of one sum over several short axes together: the operator correlation, of 9 by 9 positions
)
MOST_WRITTEN = 200  # reads, or operations, in all pieces or terms of one statement together: each is written out, and compiled
MOST_TERMS = 16  # products of arrays that are written out, one after the other, or columns where both sides are long (mixture_likelihood), and terms whose weights leave a sum: each is text, and a loop to compile
LARGE_ROWS = 2**20  # bytes of rows that a sum gathers, whose weights are multiplied apart: deformable_conv
CALLS = (
    10_000  # calls that the time to compile is shared by: the steps of a short training; chosen, not measured
)


# --- bands and windows

BLOCK = 64  # positions of a block, at most or at first: longer ones multiply more zeros or hold more; and of a line that is taken apart into rows: shorter ones are narrower than vectors
MOST_DIAGONALS = 128  # diagonals, or positions of a kernel, beyond which XLA is slow: attention_window_output
LARGE_RESULT = 2**16  # elements from which on another loop, a copy or other cores count; else text is shorter


# --- tiles

LONG_SUM = 32  # terms of a block, or rows, from which on a sum is worth carrying, by itself at first, or a product of vectors worth starting: gaussian_sum_4096, savitzky_golay
LONG_PRODUCT = 4  # the same where a vector is multiplied by the block
MEMORY_WORTH = 3  # how many times as long as writing and reading it the memory of an intermediate is worth
