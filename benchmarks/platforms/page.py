"""docs/platforms.md from its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from platforms.kernels import is_earlier
from platforms.side_by_side import Speeds, summary
from platforms.topology import DEVICES
from timing import markdown

PLATFORMS = ("gpu", "tpu", "cpu")
_BELOW = 0.97
_ALIKE = 0.005  # of the time
_UNSTATED = ("scatter", "select-and-scatter", "sort", "gather", "reduce-window")
_EARLIER = "*"  # figures by an earlier model
_HEADER = ["function", "pass", "speed", "seconds", "kernels", "MB", "temporaries MB", "what stands in it"]
_HEAD = """# Platforms

Programs for a GPU and a TPU, compiled by XLA's own compilers for a described device (`{gpu}`, `{tpu}`), which needs neither: suite,
corpus, functions that `te.grad` raises and operators, beside plain JAX in the same compiler. `make platforms` makes an environment for each compiler and writes this page
(`python benchmarks/platforms --platform gpu --only sobel` takes some functions again). Figures of functions that are not listed were not taken yet. A program that is not compiled within the limit (`--limit`, 60 s) stands as such.

**What is counted.** Kernels of the entry computation and of loops by their trips, bytes that they read and write (slices as slices, arrays of a TPU with
their tiles, nothing for what stays in the memory of the chip), temporaries as XLA plans them. **What is modelled**: the larger of bytes
over bandwidth and products over their rate, plus the start of each kernel (2.5 us on the GPU, 0.3 us on the TPU). On the GPU a convolution of cuDNN counts as ten kernels, and the elements that
`reduce-window` meets at 8e12 a second, as the clock of an H100 says. Copies between the memories of a TPU count what they move; figures with a star are older, and count the whole array once or twice
more for each part that is copied, on both sides. The model knows nothing of atomics, occupancy, caches, of what cuDNN chooses among its algorithms, nor of what a TPU does at the same time, and little of what stays on its chip: there a kernel is its start.
`by cycles` is the ratio of the cycles that the TPU's compiler states of its kernels, by which it chooses among windows of its own (1.5e9 a second: a product of 2,048 x 2,048 matrices 143,032, as the data sheet has it; it states
none of slices, gathers, scatters, windows by themselves and copies between memories, and the ratio is left out where one side has more of these). `speed` is plain JAX's modelled time over jaxte's. By the clock, where there is a device:
`python benchmarks/platforms/clock.py --json clock.json --limit 540`, and `--judge` sets the two beside each other.

Forms are those of the platform that JAX lowers for, whatever the process runs on (docs/running.md). What the rows `gpu` and `tpu` of
`jaxte/lower/cost/platforms.py` say differs from the CPU's: pads, slices and products are left to be fused, a shift is one pad, negative at one end, edges are not apart, nothing is behind barriers,
partial sums have to save what one more kernel costs, sums of shifts are summed along rows. Arrays around their ends are a choice between two pads, and on a GPU nothing is tiled
that its memory holds. `te.grad(f, platform="gpu")` decides by the same rows what is raised; where nothing gains, the program is plain JAX's.

The text that is emitted for each case of the suite and of the corpus is recorded by its hash where figures are taken; a test fails where it is another one by
now, and `python benchmarks/platforms --platform gpu --stale` takes the figures of those again.
"""


_SIDE_BY_SIDE = """## Side by side

![How many times as fast as plain JAX, on each platform](platforms.png)

Suite and corpus beside plain JAX on all three, geometric means; [each function](results/platforms-side-by-side.md).
"""


_REASONS = """## What is missed, and what was tried

No TPU was there: everything about it is XLA's compiler and the model above. One kernel more, of 2.5 us, is 0.8 in a program of five.

An H200 was, for a quarter of an hour. What is listed here is why programs are slower there:

- Losses ([by the clock](results/clock-gpu-losses.md): 1.27 of `jax.grad`'s speed on the device as they are written, 1.32 with 16 copies): small stencils whose kernels are fewer by JAX's transposes (`advection_lax_wendroff`, `heat_neumann`, whose edges are repeated), windows of three dimensions in passes along one axis after the other (`pool3d`), and branches that are made safe from infinite slopes (`lambda_loss`).
- Suite and operators ([by the clock](results/clock-gpu-operators.md)): products of a row by what is before and behind each element (`prod` 0.06: XLA computes both cumulative products in one reduction), filters of convolutions in groups of several features, one convolution for each (0.29), one reduction more (`softmax`, mended since, and `group_norm`). Small tables read at data (`take` 0.47) are a product with ones and zeros.
- Facts of the row turned round, for seven functions that were slow: barriers 0.9 of the speed of what is chosen, variadic extrema 0.9, coordinates apart 0.5 (1.3 for `chain_contacts`).

An H100 was, for another. [On a GPU by the clock](results/clock-gpu.md) has what 30 functions of the suite and the corpus take there: 1.16 and 1.19 of plain JAX's speed forward,
1.57 and 1.28 with gradients. The model ranked 212 passes of these functions with a correlation of 0.30 before a convolution of cuDNN counted as ten kernels, and with 0.53 since; 79 passes of
the suite on the H200 with 0.35 and 0.49, and by the time of its kernels alone with 0.45 and 0.48. It knows nothing of the fusions that make an emitted copy cost nothing. `python benchmarks/platforms/forms.py` timed 206 reductions in each
of their forms. The row `gpu` has from it that a convolution takes ten kernels to start, that a long kernel in groups takes its positions one after the other, and what
taps, windows and scatters take; a chosen form takes 1.04 times as long as the fastest in the mean now, 1.08 before. Functions that moved: cross-correlation 0.15 to
2.5, gradients of windowed attention 0.4 to 3.8, of causal and dilated convolutions 1.0 to 5 and 6, circulant products 0.6 to 1.0. No value was wrong in 1,700 tests
that ran on it; 52 of them failed, on texts and counts that are the CPU's, and where JAX has no derivative of dilated windows there.

- GPU, sums of products with shifts of an array (gradients of filters for their taps: Sobel, Savitzky-Golay, unsharp masks, SSIM). Several sums along columns in
  one kernel took more shared memory than a core has, and `ptxas` refused nine programs; stacks of shifts for a product of matrices moved three times the bytes.
  Each row is summed by itself now, all shifts in one kernel, and the sums of rows at last.
- GPU, `te.grad`: differences of pairs that fit into memory are left to JAX, and so are convolutions of images in groups with channels last, for whose gradients the library has kernels
  (raised, a depthwise layer took 40 times as long). Stencils and cumulative sums are raised since XLA does not make an array of each roll any more: those of rings were 0.8 to
  0.9 with slices side by side. Prices of whole programs, fitted to 259 programs of an H200, rank them with 0.57 and tell nothing of stencils, so that no price is asked there.
- GPU, convolutions: **the gradient of a filter in groups is one convolution whose groups are of the batch** (`batch_group_count`, of which XLA makes one call of cuDNN): `conv2d_groups_4` with
  gradients 0.51 to 1.0 by the model (a convolution for each group was 0.3 and 0.9 by the clock), `conv_per_example_gradients` 0.13 to 0.91 (30 products before, by the clock 1.2: whether one call is faster there no device has said). `conv1d` is 1.4 and 1.7 of plain JAX's speed by the call on an H100; the kernels
  alone, which the profiler of an H200 sees, take it to 0.57 and 0.86: cuDNN's are faster, and take longer to be called. `impulse_response` multiplied by a matrix of 67 MB; it is a product of two of 2 MB
  together now, 0.63 to 2.7 and with gradients 1.04 to 3.0 of plain JAX by the model.
- GPU, where plain JAX has one kernel and jaxte two (`radial_features`, `mixture_of_experts`, each of 3 to 20 us): what several read is written once. The model counts bytes and 2.5 us for the second kernel, and nothing for functions that the one computes again. `group_norm` has one reduction more. Open.
- GPU: **sums of what a sum divided are taken without the divisor**, `sum(H * e) / t` for `sum(H * (e / t))`: XLA makes one kernel of a softmax and one of its gradient where the latter divides by the sum again, and three where it reads what was divided. `softmax` with gradients 0.68 to 1.0, `attention` 0.88 to 1.0 (8 kernels for 9). On a TPU the quotient is better (1.18), and the CPU keeps it, too.
- GPU, tried: dimensions of what is reduced in the order of most operands, as on a TPU (`contact_map` 0.88 to 1.0, `mixture_likelihood` 0.74 to 0.94 with gradients, but 1.45 to 1.19 without, and `histogram_intersection` 0.82 to 0.57): not kept.
- A hundred random definitions of the tests, with their adjoints, were compiled for the GPU, and sixty for the TPU: none failed, and none has a scatter or a sort that the CPU's program has not.
- TPU: `te.grad` leaves stencils to JAX there (1.0 each), sums over windows along rows (`harris_corners` 0.88 raised), maxima of overlapping windows (`max_pool_3` 0.83) and of those that are computed before and stay on the chip (`cnn` 0.78, `unet` 0.90), where JAX has a `select_and_scatter`, which it has not for windows of all dimensions but one (`morphological_gradient` compiles raised only), and sums beside their ends (`trapezoid` 0.81); `local_attention` raised is 35 times as fast, whose plain gradient scatters rows.
  Mended: a shift is one pad, arrays around their ends are choices of pads (`advection_upwind` forward 12.6 us for 78.8), cumulative sums are XLA's. **Maxima are `lax.reduce_window`**,
  of which XLA makes one kernel, and sums of windows slices (`local_contrast` 1.8 for 0.7); maxima over windows of several dimensions are taken one dimension after the other, as definitions, so that
  their adjoints compare 14 elements of 7 x 7 (gradients 0.15 of plain JAX, now 0.97, compiled in 16 s for 38). **Rows that overlap are arrays**, since another shape has other tiles: scores
  of short bands are sums of slices side by side (`cost_volume` forward 0.04 to 0.97, with gradients 0.10 to 1.7). **The last axis is padded to 128 lanes**: what is scattered has its short axes first
  (`trilinear` with gradients 2,347 us, now 73; `grid_sample` 290, now 47). Convolutions in groups, channels last, are left to JAX (`depthwise` raised 0.76, now 1.0). Weights that are computed sooner than a loop starts are computed within the product (`discounted_returns` 0.26, now 1.0).
- TPU, mended since: **what is reduced has its dimensions as most of its operands lie** (`histogram_intersection` with gradients 0.48 to 0.71, `mahalanobis` forward 0.84 to 1.0, six others 0 to 7 % less;
  `graph_laplacian` with gradients 0.95 to 0.71, since its weights are copied to the chip once more). **Elements are repeated by one sum over windows** of what has zeros between them (`nearest_upsampling` with gradients 1.21, four
  kernels for ten; a fifth of the bytes that XLA counts of `jnp.repeat`; `bilinear_resize` forward 1.11 to 1.20, `block_matching` with gradients 0.67 to 0.78). Strided windows are one call. `te.grad` leaves products with known matrices
  (resizing: `resize_bilinear` 0.65, `pyramid_loss` 0.54), short filters (`correlate` 0.80, `depthwise_conv1d` 0.74) and strided sums along rows (`laplacian_pyramid` 0.72) to JAX: now 1.0 each.
- TPU and GPU: **what a sum has in common with another is one tensor**: the divisor of `linear_attention` sums scores that exist (0.53 / 0.69 to 1.0 / 1.03 on the TPU, 0.89 / 0.90 to 1.0 / 1.0 on the GPU). Convolutions in groups are left to the TPU's compiler, not one for each group, however few features a group has: `conv_per_example_gradients` 0.60 / 0.37 to 1.0 / 1.0, `conv2d_groups_4` with gradients 0.99 to 1.02.
- TPU, open: gradients of a stencil of 25 points (0.60); strided slices along the last axis are kernels of their own (the gradient of `bilinear_resize`, where plain JAX multiplies by a matrix: one strided slice of the shifts' sum would take two kernels for five); what is reduced twice is copied to the chip's memory twice (`layer_norm`, `gelu_pool`); rows of 16 channels that are scattered (`deformable_conv`). Some programs are not compiled within the limit by either side.
- TPU and GPU: **a sum over 32 terms for four positions of a filter is four products**, or one over the shifts side by side, where terms would be products of their own: `bspline_3d` with gradients 5.2 to 9.9 on the TPU (152 kernels to 63), 0.90 to 2.4 on the GPU (44 to 12), `strided_dilated_conv2d` with gradients 1.0 to 1.35 there. A depthwise filter, which is no product of matrices, is summed along rows as before.
- TPU, **filters of channels and their gradients** (depthwise, correlations of rows with each other): the vector unit takes 5 cycles for each tap of a register, the unit of matrices 2 for one of all channels, and a third of one for the gradient of the filter
  (9 taps of 64 channels 103,231 and 69,498 cycles, gradients 110,360 and 27,030), so that long filters of many channels are convolutions in groups, and gradients of filters those with `batch_group_count`: `conv1d_depthwise` with gradients 0.73 to 0.99 (0.42 to 1.0 by
  cycles), `conv2d_depthwise` 0.76 to 0.99 (0.21 to 1.0), `cross_correlation` 0.46 / 0.68 to 1.5 / 1.4 (8.6 / 1.7 by cycles), `autocorrelation` 2.1 / 0.82 to 3.6 / 0.96. Filters of 16 channels, and those of a batch of two to seven, are slices as before (`conv1d_short_causal` with
  such a gradient took 28 us for 22). Tried: slices along the last dimension charged four times as much, which blocks of lines took over (`autocorrelation` 2,383,822 cycles for 171,464): their estimate is too low on a TPU. Open.
- TPU, losses by both counts, open: `adaptive_avg_pool` (a product with a matrix of ones and zeros in plain JAX, in which one NaN spoils what does not read it; jaxte leaves out what is outside of the bounds), `bilinear_resize` (strided slices, of which the model sees less than the compiler:
  666,015 cycles and four windows without any for 108,822), `fold`, `perona_malik` forward (differences along both axes are read at two places each, and written: three kernels for two, 0.69 by cycles; with gradients 1.2 and 1.4), `vlad_residuals` (plain JAX takes the sums over the centres in the kernel
  of the residuals, 2 kernels for 5), `non_local_means` with gradients (what flows back through two copies with continued ends), `finite_elements` (its sums over corners are slices of one
  padded array, those of plain JAX pads of slices, 34,133 cycles for 9,860), `embedding` and `letter_projection` (what is read out of range is NaN, a test of the positions and a choice among the rows, where plain JAX moves positions into the range), `factorisation_machine` (its strict triangle is cut by a column, so that one more
  array is copied). `gelu_pool`, `max_pool_2_2` and `max_pool_3_2` with gradients compare what the window has with its maximum, one dimension after the other, where plain JAX has one `select-and-scatter`, of which no cycles
  are stated and which the model takes for one kernel; `stft` has a sort, a scatter and two gathers in plain JAX that no cycles are stated of, and two kernels more; `framing` and `relative_gate` forward
  have gathers there, and reshapes of overlapping rows or of a shifted table in jaxte. `saturating_interactions` with gradients (0.85) has the opposite of what flows in as an array of its own, with a copy into another layout (0.3 us each), beside one kernel of 41,238 cycles for 34,248; `triplet_loss` (0.90) one kernel of 0.3 us more, for the opposites of labels.
- TPU, losses by the model alone, which counts bytes of what one kernel more reads: `banded_product`, `layer_norm`, `fractional_pool` (2.1 forward by cycles), `bond_angles` forward (4.0); `gaussian_sum_4096` forward 5.4 by cycles (coordinates are sliced apart, two kernels of 0.3 us before one of 113), `pair_energies` 4.4 and 1.8, `mesh_normals` 6.7 and 1.2, `gray_scott` 1.2, `chamfer` 4.6 and 1.2, `relative_positions` 1.2 and 1.5, `histogram_intersection` and `graph_laplacian` 0.95 to 0.97; `transposed_convolution` raised 1.5; `near_ranks` (0.13 / 0.12 by the model, 2.7 and 1.4 by cycles: slices of ranks side by side, 17 and 36 kernels of 0.3 us, for one array of all pairs that stays on the chip); `advection_upwind` and `weno_flux` 0.92 and 0.93, `walsh_hadamard` 0.92 and 1.0.
- TPU: **sums over windows with strides, and what flows back through them, are `lax.reduce_window`**: each strided slice along rows is an array (nine of a pool of 3 x 3 take 340,384 cycles and more that are not stated, the call 135,597 with what is around it). `average_pool` by `te.grad` 0.76 to 1.8, 5 kernels for 24; `avg_pool_3_2` with gradients 0.97 to 1.0, 6 kernels for 12. Windows at each position are slices as before: by the model `local_contrast` would be 0.7. Tried: the same charge for slices that are multiplied by weights, for which `bspline_3d` and `wavelet_db4` became other programs; `bspline_3d` was not compiled in two minutes.
- GPU: **sums over the same positions that are added are the sum of what is**, with what each is multiplied by: a sum along columns is a kernel, and so is what adds several. With gradients `local_regression` 0.56 to 1.11 (6 kernels for 12), `genomic_relations` 0.77 to 0.96 (9 for 12), `sobel` 3.2 to 3.6; `batch_norm` 1.34 to 1.29, whose two sums read different arrays. **Filters that several features share are sums along rows of shifts**, not a product with an array of all shifts: `wavelet_db4` with gradients 0.54 to 1.17 (3 kernels for 6). **Partial sums have the axes of one factor after those of the other**, as a product of matrices has them: `tensor_train` 0.52 to 1.0. **Slices that lie askew, each multiplied by a number, are one loop** up to 64 of them: `delay_and_sum` 0.43 / 1.44 to 1.0 / 2.4 (on a TPU 3.3 / 2.1 to 1.0 / 0.85, not there).
- All platforms: **what is held or reflected at an end stands around the whole of an array**, not around what is left of it, and what flows back to single positions is one array beside what is everywhere: `savitzky_golay` on the GPU 0.69 / 1.6 to 1.0 / 2.0, with 8 % fewer bytes on the CPU (`unsharp_mask` there 8 %), `wave_equation` with gradients on the GPU 1.06 to 1.22. On the TPU `savitzky_golay` is 1.0 / 1.15 by the model, 1.7 before, which counted a slice of all but one column as staying on the chip: by cycles 124,835 and 431,381, 148,243 and 459,490 before.
- GPU and TPU: **what alternates along one dimension is pads that are added**, not a stack in another shape, as in an associative scan: `mamba_like` raised on the GPU 0.68 to 0.77 (31 kernels for 35). Two arrays of 256 columns that alternate by rows take 53,957 cycles on a TPU for 158,384.
- TPU: **elements one position on that are held at an end are a choice between the array and its shift**, where a slice with its last element repeated is four arrays: `wave_equation` 0.83 / 0.88 to 2.55 / 1.42 (12 kernels for 50; 1.8 / 1.2 by cycles). A stencil of five points on 768 x 768 takes 41,146 cycles so, 45,157 with one array with its edges around it, and 70,397 before; on a GPU all are one kernel.
- GPU and TPU: **functions of windows are computed within the sums over them**, with sums over up to four coordinates term by term, and shared between no sums: a weight by a distance of colours is computed for each slice in the loop that adds it, as plain JAX does. On the GPU `chain_contacts` 0.31 / 0.47 to 1.0 / 1.0 (1 and 2 kernels for 3 and 4), `colour_bilateral` 0.43 / 0.65 to
  1.0 / 1.0; on the TPU 1.2 / 0.75 to 1.8 / 1.0, and 0.54 / 0.34 to 5.8 / 1.15 (0.77 / 0.57 to 2.8 / 0.90 by cycles).
- GPU: **a number that a sum is multiplied by is within the sum**, where nothing else is computed of it: XLA fuses a sum with what it is taken of and with nothing that reads it. With gradients `squared_distances` 0.75 to 1.0 (5 kernels for 7), `mixture_likelihood` 0.74 to 0.85, `chamfer` 0.67 to 0.71, `gaussian_sum_4096` 1.19 to 1.25.
  Tried: within each sum that is a part of something, which costs what sums share (`contact_map` 0.88 to 0.6, `pair_energies` 1.8 to 1.0).
- GPU, one or two kernels more, open: `factorisation_machine` (two pads of the strict triangle), `vlad_residuals` (the sum of a column by itself, which plain JAX takes within the kernel of the residuals), `graph_laplacian` (a difference expanded into two sums), `quaternion_rotation` (three stacks, 27 MB for 24), `envelope` and `chamfer` (ties are counted in arrays of comparisons, where plain JAX scatters to the first maximum, or divides what `eq` says), `window_attention_scores` (blocks of bands, where plain JAX has 33 sums along rows in four kernels), `alibi_attention` forward (the
  divisor of the softmax stands behind the product, so that XLA makes no kernel of it), `masked_convolution` (the rows that the mask leaves are a slice of the image), `relative_positions` (blocks of the table are copied side by side and transposed), `attention_window_output` forward
  (scores times values as a product of blocks of bands, three kernels and 23 MB for 65 slices multiplied and added in one of 6.5 MB; with gradients 5.3), `soft_rasteriser` (distances to the edges are computed in three reductions, 169, 152 and 135 MB for 176, 98 and 78), `circulant` (sums along diagonals in place of
  a scatter, whose atomics the model does not know). `cumprod` with gradients (0.83) and `cumulative` raised (0.84) have one kernel more, for the products, or the sums, of blocks that XLA makes of a cumulative reduction, computed
  once forward and once backward, and padded in between; `local_attention` raised (0.90) has blocks of bands where plain JAX has windows and two scatters, whose atomics the model does not know (22 MB for 17). Raised stencils with edges (`gradient` 0.74, `kuramoto_sivashinsky` 0.80, `sobel` 0.87, `heat_dirichlet` 0.88, `yee_tm` 0.92, `burgers_upwind` 0.85, `burgers_weno` and `advection_lax_wendroff` 0.71) have one kernel more than JAX's transposes, the last four, since they are raised by what the clock of an H200 said of others; `mamba_like` (0.77) seven: what flows back through an associative scan is put together with the first position of each of its eight levels, side by side, where the transposes of JAX are pads that are added within others (`heat_variable_conductivity` 1.36, `cahn_hilliard` 1.44, `cost_volume` 2.0). `ssim` with gradients, 0.83 before, was beside figures of an earlier model.
- TPU, one feature: `polyphase_decimation` is 0.47 of plain JAX by the model, which counts kernels of what stays on the chip, and 15 times as fast by the cycles that the compiler states: 85,517 for 32 strided slices multiplied and added, 1,319,738 for the convolution,
  whose single feature is one lane of 128 (the row's estimates, 7 and 671 us, agree with these). Blocks of 128 samples times a matrix of 256 x 32 would take 27,945, not built. A gradient that is read at digits of a last axis of few positions is charged as what it is padded to, where fewer rows than 128 stand beside it: `polyphase_decimation` 621 to 28 us (0.03 to 0.61; 4,463,475
  cycles to 1,282,669, plain JAX 2,499,902), `turning_taps` 31.3 to 21.6 us (514,584 cycles to 119,874), `wavelet_db4` 36 to 26 us. With more rows these are the last dimension instead (`bspline_3d`, which a convolution made slower).
  Of `mean_shift` and `mixture_of_experts`, too, the model and these cycles disagree; so they do, the other way, of `bspline_3d` (0.63 by cycles: taps of axes of 35 elements). Of `unsharp_mask` (9.7 and 23.9 us) plain JAX's programs are not compiled in 300 s.
- GPU, `group_norm` (0.73 / 0.86): XLA makes one Triton kernel of both means and the quotient where groups are rows of one dimension from the first sum to the last product (`x.reshape(8, 8, 6272)`: two kernels, three with `(8, 8, 8, 28, 28)`, or where the sums alone are of rows).
  A norm of each channel, `x.reshape(8, 64, 784)`, takes three kernels either way, since the reshape is undone before. A definition over digits gains nothing by itself; not built for groups alone.
- TPU, operators: `top_k` forward (0.61) gathers the values at the positions that the sort gives, `gather_nd` (0.91 / 0.95) tests whether positions are in range, `batch_norm` with gradients (0.85) writes 50 us of arrays for 43; `attention` forward (0.81), `max` and `min` with gradients (0.91), `prod` with gradients (0.92), and `tile` (0.95)
  have one or two kernels of 0.3 us more, `group_norm` with gradients (0.90) as above; `attention.window` (0.39 forward; with gradients not compiled in 40 s) is blocks of bands as `attention_window_output` on the GPU.
- TPU, operators: `fold` (0.49 / 0.84) reads its columns as rows that overlap, in arrays of other shapes, and tests three positions of each, 66,433 and 140,496 cycles for 254,829 and 343,723 of plain JAX's convolutions with ones and zeros; `grid_sample` (0.78 / 0.93), `bilinear` (0.89 / 0.89) and `warp` with gradients (0.84) test each of four
  positions for itself, five to sixteen kernels of 0.3 us, with as many gathers and scatters.
- GPU and TPU: **sums over many shifts are pads of what is computed**, each term where it counts, on all sides in one pad, which both ends of a difference share; by masks, for the CPU's compiler, each end computed its own. `non_local_means` with gradients on the GPU 0.81 to 0.99 (4 kernels for 5), on the TPU `bilateral_filter` 0.72 to 1.0 (8 for 15; by cycles 0.49 to 0.62), `colour_bilateral` 1.15 to 1.81, `non_local_means` 0.81 to 0.84 (0.44 to 0.56 by cycles: the copy with continued ends is made
  once for the weights and once for their sum, and what flows back through each is an array).
- GPU and TPU: **differences of two arrays are computed in one order**, the other being nothing less that: with gradients `perona_malik` on the GPU 1.12 to 1.46, with half of its temporaries (8.4 MB for 16.7; 12.6 in plain JAX), `local_regression` 1.11 to 1.43. On the TPU nothing changes, whose compiler finds them.
- Temporaries of more than 1.1 times those of plain JAX and 64 kB more, where the time is as good or better, on the GPU, by the arrays that are alive at the peak of the compiled schedule:
  products of matrices where plain JAX calls cuDNN, with shifts side by side, or what all taps make of an array before it is shifted and added (`conv1d` 7.5 MB, `conv1d_causal_dilated`, `conv1d_causal_select`, `impulse_response`, `moving_average`, `wide_kernel`, gradients of filters of `conv2d_dilation_2`, 34 MB for 10, and `strided_dilated_conv2d`, all 1.04 to 3 times as fast or more); what each tap is multiplied by before it is summed along
  columns (`depthwise_conv1d` raised, 3.5); an array between windows of one dimension and of the next (`box_blur_15`, `max_pool_7_1`, `laplacian_of_gaussian`, `unsharp_mask`); blocks of bands and their neighbours (`attention_window_scores`); values that one kernel writes for several, which plain JAX computes again (`mean_shift`: weights beside
  what they are made of, 4 MB; `weno_flux`: six arrays for four, but none between the flux and its differences, the same bytes in all; `skipgram`, 0.2 MB; `wavelet_db4`, a strided slice; `gru` and `lstm`, gates of all steps; `lattice_boltzmann` raised, one array of nine, 0.6 MB; `wave_equation`, two arrays of a step, 0.5 MB; `non_local_means`, what flows back through two copies, 0.3 MB), or adds up where it gathers (`bilinear`, `grid_sample`, `warp`: four corners written for three, 0.2 MB);
  and as many bytes alive as in plain JAX, of which XLA puts an array into the memory of a result there (`rms_norm`, `phase_field`, `sobel`: 33.3 MB on both sides). On the TPU `bspline_3d` (9.9 times as fast) (0.8 MB, a copy of the coefficients, whose rows of 35 elements are padded to 128) and `grid_sample` (1.4 MB, the positions of all four corners in one sort for four).
- Not compiled within the limit, by either side: see the tables.

## Facts

`python benchmarks/platforms/facts.py --platform tpu --write` compiles a case for each fact of a row, as the row says and the other way round: [of the GPU](results/platforms-facts-gpu.md),
[of the TPU](results/platforms-facts-tpu.md). Where the other way is as fast the text is the shorter one. Three stand against the model. `chamfer` would be 1.9 times as fast on a GPU with extrema that come with their positions in one reduction, which reads 68 MB for 178; on an H200 it was 0.9, whose cache holds what is read again. A 3 x 3 maximum with gradients would be 1.23 times as fast on a TPU with slices, but
0.65 of plain JAX without gradients. What is scattered would be 1.46 times as fast on a GPU with its short axes first: the model knows nothing of atomics, for which
neighbours side by side are one transaction, so that this waits for a device.
A trip of a `while` is two kernels at least, of what it computes and of its counter: 5.0 us on a GPU and 0.6 on a TPU for a vector (`step` of the rows, 5 and 1); a row that is written, or a product with a matrix, one or two more.

## Kernels

`forms={"*": "kernel"}` makes Pallas kernels of tiles (docs/tuning.md). A pair sum of 1,024 by 1,024 points and causal attention of 1,024 positions and 64 features, forward and
derived backward, are compiled for the TPU, with no temporaries. The same two were tried for the GPU: Triton takes no slices of loaded values, and attention of 1,024 positions, whose
keys a block holds in whole, needs 262,144 bytes of the 232,448 that a core has. Such passes keep their other forms there. A loop over blocks of keys within the kernel is open.

## Several chips

`python benchmarks/platforms/chips.py --write` compiles stencils, convolutions, local attention, pair sums and contractions, sharded along batch, space and features, for `v5e:2x4`,
beside a `shard_map` by hand: [all rows](results/platforms-chips.md). Eight of ten send what is sent by hand. A shift is one pad, negative at one end, so that its result has the shards
of the array itself: a stencil of 1,024 x 1,024 sharded by rows has 4 permutes of 16.4 kB, where zeros around the array, which has other shards, took 10 of 205 kB. Above: local
attention (84 permutes, 62 kB for 8: each of nine positions of a window is a slice, and XLA sends rows for each), a convolution sharded by rows (401 kB for 270). Both open. Of the scores of such a window alone, partitioned for eight
devices of a CPU, slices of a padded array are 15 permutes of 16.1 kB, a pad for each position 8 of 9.2 kB, each shift a pad of the one before 8 of 2.0 kB, and rows in blocks with what the block before ends with in front of them one of 2.0 kB.
With pads for all positions of both passes 90 permutes of 69 kB became 80 of 75: not kept.
"""


def page(data: Mapping[str, Any], beside: Speeds | None = None) -> str:
    """The page of all platforms that there are figures of, with those of the clock ``beside`` them."""
    parts = [_HEAD.format(**DEVICES)]
    if beside is not None:
        parts.append(f"{_SIDE_BY_SIDE}\n{summary(beside)}\n")
    for platform in PLATFORMS:
        if platform in data:
            found = ", ".join(f"[{group}]({_path(platform, group)})" for group in data[platform])
            parts.append(
                f"## {platform}: {DEVICES[platform]}\n\n{_means(data[platform], platform)}\n\nAll figures: {found}.\n"
            )
    return "\n".join([*parts, _REASONS])


def tables(data: Mapping[str, Any]) -> dict[str, str]:
    """The table of each group on each platform, by the path of its page."""
    return {
        _path(
            platform, group
        ): f"# Platforms: {group}, {platform}\n\nFigures as in [platforms](../platforms.md), jaxte / plain JAX; a star: by an earlier model.\n\n{_whole(group, found, platform)}\n"
        for platform in PLATFORMS
        for group, found in data.get(platform, {}).items()
    }


def _whole(group: str, functions: Mapping[str, Any], platform: str) -> str:
    """The table of a group; of operators, which are many, those that are not as plain JAX's."""
    alike = [n for n, found in sorted(functions.items()) if group == "operators" and all(map(_is_alike, found.values()))]  # fmt: skip
    table = _table({group: {n: f for n, f in functions.items() if n not in alike}}, platform)
    named = ", ".join(f"`{n}`" for n in alike)
    return (
        f"As many kernels and the same time as plain JAX's in each pass, {len(alike)} operators: {named}.\n\n{table}"
        if alike
        else table
    )


def _is_alike(found: Mapping[str, Any]) -> bool:
    own = ratio(found)
    return (
        own is not None
        and abs(own - 1) < _ALIKE
        and len({found[side]["kernels"] for side in ("jaxte", "plain")}) == 1
    )


def _path(platform: str, group: str) -> str:
    return f"results/platforms-{platform}-{group}.md"


def ratio(found: Mapping[str, Any]) -> float | None:
    """Plain JAX's time over jaxte's; None where one of them was not compiled."""
    sides = [found.get(side, {}).get("seconds") for side in ("plain", "jaxte")]
    return None if None in sides else float(sides[0]) / float(sides[1])


def by_cycles(found: Mapping[str, Any]) -> float | None:
    """The same by the cycles that the compiler states; None where they were not taken, or where one side has more of what none are stated of."""
    own, other = (found.get(side, {}).get("operations", {}) for side in ("jaxte", "plain"))
    if any(own.get(kind, 0) != other.get(kind, 0) for kind in _UNSTATED):
        return None
    sides = [found.get(side, {}).get("cycles") for side in ("plain", "jaxte")]
    return None if None in sides else float(sides[0]) / float(sides[1])


def _passes(functions: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name in sorted(functions):
        for which, found in functions[name].items():
            yield name, which, found


def _means(groups: Mapping[str, Any], platform: str) -> str:
    """The geometric mean of each group and pass, and what is below."""
    lines = []
    for group, functions in groups.items():
        for which in sorted({w for _, w, _ in _passes(functions)}):
            own = {n: r for n, w, f in _passes(functions) if w == which and (r := ratio(f)) is not None}
            if not own:
                continue
            mean = math.exp(sum(map(math.log, own.values())) / len(own))
            below = [
                f"{n} {r:.2f}{_mark(functions[n][which], platform)}{_stated(functions[n][which])}"
                for n, r in sorted(own.items(), key=lambda item: item[1])
                if r < _BELOW
            ]
            lines.append(
                f"- {group}, {which}: {len(own)} functions, geometric mean {mean:.2f}; below {_BELOW}: {', '.join(below) or 'none'}"
            )
    return "\n".join(lines)


def _mark(found: Mapping[str, Any], platform: str) -> str:
    return _EARLIER if is_earlier(found, platform) else ""


def _stated(found: Mapping[str, Any]) -> str:
    cycles = by_cycles(found)
    return "" if cycles is None else f" ({cycles:.2g} by cycles)"


def _table(groups: Mapping[str, Any], platform: str) -> str:
    rows = [
        _row(name, which, found, platform)
        for functions in groups.values()
        for name, which, found in _passes(functions)
    ]
    return markdown(_HEADER, rows)


def _row(name: str, which: str, found: Mapping[str, Any], platform: str) -> list[str]:
    """Each figure as jaxte / plain JAX."""
    sides = [found[side] for side in ("jaxte", "plain")]
    if any("error" in side for side in sides):
        return [f"`{name}`", which, "", *[""] * 4, "; ".join(s["error"] for s in sides if "error" in s)[:80]]
    own = ratio(found)
    return [
        f"`{name}`",
        which,
        f"{own:.2f}{_mark(found, platform)}{_stated(found)}" if own else "",
        _pair(sides, "seconds", 1e6, " us"),
        _pair(sides, "kernels", 1, ""),
        _pair(sides, "bytes", 1e-6, ""),
        _pair(sides, "temporaries", 1e-6, ""),
        " / ".join(_operations(side) for side in sides),
    ]


def _pair(sides: Sequence[Mapping[str, Any]], what: str, scale: float, unit: str) -> str:
    digits = 0 if what == "kernels" else 1
    return " / ".join(f"{scale * side[what]:.{digits}f}" for side in sides) + unit


def _operations(side: Mapping[str, Any]) -> str:
    found = [f"{n} {k}" for k, n in side["operations"].items()]
    return ", ".join([*found, *([f"{side['trips']} trips"] if side["trips"] else [])]) or "none"
