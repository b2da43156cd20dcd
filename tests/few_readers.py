"""Rows that change at most two of the functions of tests/reach.py, and are no mechanism of tests/lower/mechanisms.py: what is known of each.

A row that is not here changes three functions of tests/reach.json or more, or gains by counts in three functions that it was not made for. Seconds are
ratios of processor time on a busy machine, without the row and with it, in turn, forward and backward together.
"""

FEW_READERS = {
    "windows for prefixes": "rolling means take 1.5 times as long without it, sums of boxes by integral images 3.1, rolling variances of 30 elements 2.1; counts say nothing",
    "conditions around": "for values, not for time: what may be infinite where no condition holds is not multiplied by zeros",
    "extrema one axis after the other": "on TPUs alone, where max_pool_7_1 has it",
    "winners by doubling": "envelopes take 1.8 times as long without it, draw-downs 1.7, dilated images 1.2; forward alone draw-downs take 0.65",
    "winners by comparison": "pools of two positions take 1.8 times as long without it, of three 3.6, of a function 1.4; with channels last they have it for nothing",
    "products in common": "the two normalisations of the record; a layer with a scale for each row and column has it for nothing",
    "halos": "lattices, rings and products at ten distances: half of the text, 1.6, 2.0 and 5.8 times less to compile, and 1.1, 1.3 and 1.5 times the speed",
    "one-hot product": "on TPUs, where gathers and scatters are slow; on the CPU sums of four clusters take 0.9 to 0.96 without it",
    "associative scan": "on TPUs alone, where prefix_maximum and prefix_product have it",
    "product of two stacks": "the gradient of a large kernel takes 0.4 to 1.4 times as long without it for one image, by what else the memory is used for; four images and more are a convolution",
    "products of rows": "an image under 31 x 31 taps takes 19 times as long without it, four templates of 13 x 13 4.9, three channels under 15 x 15 1.7, four images under 25 x 25 1.6; counts say nothing",
}
