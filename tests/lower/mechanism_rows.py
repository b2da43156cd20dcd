"""Rules that look special in planning, across the statements of a program and among forms, each with three functions that it was not made for."""

from __future__ import annotations

from jaxte.autodiff.rules import extrema
from jaxte.lower.program import plan
from jaxte.lower.rules import operand_order
from tests.lower import mechanism_dear as dear
from tests.lower import mechanism_few as few
from tests.lower import mechanism_phases as phases
from tests.lower import mechanism_plans as plans
from tests.lower import mechanism_steps as steps
from tests.lower import mechanism_sums as sums
from tests.lower import mechanism_tables as tables
from tests.lower import mechanism_windows as windows
from tests.lower.mechanism import Mechanism, Positions, Sample, as_named, replaced

TILES, TRANSFORMED = {"*": "tiles"}, {"*": "Fourier transform"}
ROWS = (
    Mechanism(
        "functions in common",
        "transcendentals",
        as_named,
        (
            Sample(dear.interference, ((40, 50), (16,), (50,)), 1.45),
            Sample(dear.angles_apart, ((40, 12), (48, 12), (48,)), 1.3),
            Sample(dear.encoded, ((3, 40, 20), (16,), (20,)), 1.3),
        ),
    ),
    Mechanism(
        "differences apart",
        "bytes",
        as_named,
        (
            Sample(sums.laplacian, ((60, 60), (60, 16)), 4),
            Sample(sums.repelled, ((60, 24),), 1.3),
            Sample(sums.residuals, ((600, 16), (600, 32), (16, 32)), 3),
        ),
    ),
    Mechanism(
        "steps",
        "temporaries",
        as_named,
        (
            Sample(sums.saturating, ((320, 320), (320, 16)), 8),
            Sample(sums.intersections, ((256, 24), (192, 24)), 4),
            Sample(sums.canberra, ((400, 20), (300, 20)), 8),
        ),
    ),
    Mechanism(
        "masks in place of pads",
        "pad",
        as_named,
        (
            Sample(sums.guided, ((6, 600), (6, 600)), 3),
            Sample(sums.soft_ranks, ((60, 64),), 3),
            Sample(sums.shifted_means, ((16, 18, 20),), 3),
        ),
    ),
    Mechanism(
        "order of operands",
        "temporaries",
        replaced(operand_order, "_summed_first", lambda *args: None),
        (
            Sample(sums.pooled, ((24, 30, 48), (24, 30)), 3),
            Sample(sums.moments, ((9, 10, 11, 40), (9, 10, 11)), 3),
            Sample(sums.weighted, ((3, 20, 24, 18), (3, 20)), 1.5),
        ),
    ),
    Mechanism(
        "product per image",
        "temporaries",
        as_named,
        (
            Sample(sums.spectrograms, ((12, 32, 44, 40), (48, 32, 3, 5)), 1.3),
            Sample(sums.upright, ((12, 16, 48, 52), (5, 3, 16, 64)), 1.3),
            Sample(sums.sparse_windows, ((8, 32, 52, 48), (64, 32, 3, 3)), 1.3),
        ),
    ),
    Mechanism(
        "folded convolution",
        "bytes",
        as_named,
        (
            Sample(sums.video, ((2, 9, 10, 10, 4), (3, 3, 3, 4, 8)), 4),
            Sample(sums.light_field, ((4, 4, 10, 10), (8, 2, 2, 3, 3)), 5),
            Sample(sums.holes_in_a_volume, ((2, 6, 9, 12, 12), (8, 6, 3, 3, 3)), 2),
        ),
    ),
    Mechanism(
        "geometric sums",
        "flops",
        as_named,
        (
            Sample(sums.returns, ((4, 256),), 10),
            Sample(sums.leaky, ((256, 6), (1,)), 10),
            Sample(sums.decayed, ((300,),), 10),
        ),
    ),
    Mechanism(
        "a pass for each value",
        "reductions of several arrays",
        as_named,
        (
            Sample(sums.hausdorff, ((90, 2), (80, 2)), 1),
            Sample(sums.late_interaction, ((10, 8), (6, 40, 8)), 1),
            Sample(sums.lower_envelope, ((12, 48), (48,)), 1),
        ),
        replaced(extrema, "may_be_held", lambda *args: False),
    ),
    Mechanism(
        "distances",
        "flops",
        as_named,
        (
            Sample(plans.novelty, ((100, 16),), 4),
            Sample(plans.bond_angles, ((80, 3),), 10),
            Sample(plans.walks, ((80, 24),), 4),
        ),
    ),
    Mechanism(
        "read in part",
        "flops",
        as_named,
        (
            Sample(plans.thinned, ((4, 1000), (33,)), 3),
            Sample(plans.matched, ((60, 32), (60, 32)), 20),
            Sample(plans.pyramid, ((2, 64, 64), (5, 5)), 3),
        ),
    ),
    Mechanism(
        "solved equations",
        "bytes",
        as_named,
        (
            Sample(plans.one_hot_rows, ((100, 32), Positions((400,), 100)), 2),
            Sample(plans.losses_of_labels, ((400, 50), Positions((400,), 50)), 1.2),
            Sample(plans.sums_of_classes, ((400, 16), Positions((400,), 30)), 2),
        ),
    ),
    Mechanism(
        "elements of windows",
        "flops",
        as_named,
        (
            Sample(plans.envelopes, ((4, 1000),), 2.1),  # copies of short lines count as operations, too
            Sample(plans.dilated, ((60, 70),), 2.5),
            Sample(plans.below_the_peak, ((4, 1000),), 2.5),
        ),
    ),
    Mechanism(
        "tables first",
        "flops",
        as_named,
        (
            Sample(plans.kinds, ((20, 64), (64, 48), Positions((1000,), 20)), 10),
            Sample(plans.unigrams, ((50, 32), Positions((40, 60), 50), (32,)), 10),
            Sample(plans.energies_of_codes, ((12, 80), Positions((1000,), 12)), 10),
        ),
    ),
    Mechanism(
        "rows of tables apart",
        "bytes",
        as_named,
        (
            Sample(plans.relations, ((800, 32), (4, 32, 32), Positions((800,), 4)), 2),
            Sample(plans.species, ((40, 30, 24), (3, 24, 16), Positions((40, 30), 3)), 2),
            Sample(plans.tasks, ((600, 20), (5, 20, 40), (5, 40), Positions((600,), 5)), 2),
        ),
    ),
    Mechanism(
        "turned factors",
        "bytes",
        as_named,
        (
            Sample(plans.musical_keys, ((1000, 12), (12, 2)), 2.5),
            Sample(plans.tariffs, ((365, 24), (24,)), 3),
            Sample(plans.rings, ((500, 6, 16), (6,)), 3),
        ),
    ),
    Mechanism(
        "all but one",
        "temporaries",
        as_named,
        (
            Sample(plans.messages, ((8, 30),), 5),
            Sample(plans.rates, ((8, 40),), 5),
            Sample(plans.left_out, ((40, 16),), 5),
        ),
    ),
    Mechanism(
        "powers of factors",
        "flops",
        as_named,
        (
            Sample(sums.demodulated, ((3, 3, 16, 16), (8, 16)), 3),
            Sample(sums.outer_energies, ((12, 64), (12, 60)), 20),
            Sample(sums.joint_moments, ((30, 40), (30, 48)), 9),
        ),
    ),
    Mechanism(
        "lines of weights",
        "bytes",
        as_named,
        (
            Sample(plans.memories, ((300,), (6,)), 5),
            Sample(plans.excitations, ((300, 6), (6,), (6,)), 10),
            Sample(plans.interference, ((300,), (1,)), 4),
        ),
    ),
    Mechanism(
        "masked weights",
        "bytes",
        as_named,
        (
            Sample(plans.earlier_pixels, ((4, 30, 30, 8), (5, 5, 8, 16)), 4),
            Sample(plans.upper_taps, ((4, 30, 30, 8), (5, 5, 8, 16)), 1.5),
            Sample(plans.hexagons, ((4, 30, 30, 8), (5, 5, 8, 16)), 1.5),
        ),
    ),
    Mechanism(
        "steps in a loop",
        "bytes",
        as_named,
        (
            Sample(plans.relaxed, ((300,),), 4),
            Sample(plans.recurrent, ((64,), (64, 64)), 2),
            Sample(plans.pendulums, ((200,), (200,)), 2),
        ),
    ),
    Mechanism(
        "idle axes of states",
        "temporaries",
        as_named,
        (
            Sample(plans.likelihood, ((20, 16, 12), (12, 12)), 1.3),
            Sample(plans.normalised_cells, ((20, 16, 12), (12, 12)), 1.35),
            Sample(plans.scores_of_paths, ((20, 16, 12), (12, 12)), 3),
        ),
    ),
    Mechanism(
        "functions before loops",
        "functions in steps",
        as_named,
        (
            Sample(plans.left_to_right, ((40, 12),), 2),
            Sample(plans.coupled_phases, ((30,), (30,)), 2),
            Sample(plans.stirred_ring, ((30,),), 2),
        ),
    ),
    Mechanism(
        "several positions at once",
        "steps of loops",
        as_named,
        (
            Sample(plans.plucked_string, ((300, 4),), 20),
            Sample(plans.dilated_cells, ((60, 8, 6), (6, 6)), 3.9),
            Sample(plans.same_month, ((40, 3), (2,)), 6),
        ),
    ),
    Mechanism(
        "convolution per group",
        "bytes",
        as_named,
        (
            Sample(plans.grouped, ((4, 24, 24, 32), (3, 3, 8, 32)), 2),
            Sample(plans.own_kernels, ((8, 20, 20, 16), (8, 5, 5, 16, 16)), 3),
            Sample(plans.voices, ((8, 300, 16), (8, 9, 16, 16)), 2),
        ),
    ),
    Mechanism(
        "folded convolution per group",
        "flops",
        as_named,
        (
            Sample(plans.grouped_volumes, ((4, 10, 12, 12, 16), (3, 3, 3, 4, 16)), 1.3),
            Sample(plans.own_volumes, ((4, 10, 12, 12, 4), (4, 3, 3, 3, 4, 8)), 2),
            Sample(plans.grouped_films, ((2, 6, 14, 12, 8), (2, 5, 3, 4, 8)), 1.3),
        ),
    ),
    Mechanism(
        "sequential scan",
        "flops",
        as_named,
        (
            Sample(plans.records, ((3000, 8),), 1.5),
            Sample(plans.growth, ((8, 3000),), 2),
            Sample(plans.lows_ahead, ((8, 3000),), 1.3),
        ),
    ),
    Mechanism(
        "Fourier transform",
        "flops",
        as_named,
        (
            Sample(plans.reverb, ((2, 4000), (600,)), 2, TRANSFORMED),
            Sample(plans.point_spread, ((1, 80, 80), (31, 31)), 2, TRANSFORMED),
            Sample(plans.lags, ((4000,), (3000,)), 3, TRANSFORMED),
        ),
    ),
    Mechanism(
        "doubling slices",
        "flops",
        as_named,
        (
            Sample(plans.highest, ((4, 3000),), 1.3),
            Sample(plans.eroded, ((8, 1500),), 1.3),
            Sample(plans.ranges, ((4, 3000),), 1.3),
        ),
    ),
    Mechanism(
        "flat windows",
        "gather",
        as_named,
        (
            Sample(plans.hours_of_days, ((20, 8, 24), (5, 8, 6)), 2),
            Sample(plans.blocks_of_pixels, ((2, 16, 17, 32), (3, 3, 8, 8)), 2),
            Sample(plans.tiled_image, ((4, 5, 6, 8),), 2),
        ),
    ),
    Mechanism(
        "winners by doubling",
        "flops",
        as_named,
        (
            Sample(windows.closed, ((60, 70),), 2),
            Sample(windows.peaks, ((20, 22, 24),), 2),
            Sample(windows.dark_channel, ((3, 40, 50),), 2),
        ),
    ),
    Mechanism(
        "winners by comparison",
        "select",
        as_named,
        (
            Sample(windows.pooled, ((4, 8, 32, 32),), 4),
            Sample(windows.blocks, ((4, 33, 32),), 4),
            Sample(windows.cells, ((16, 16, 16),), 4),
        ),
    ),
    Mechanism(
        "extrema one axis after the other",
        "flops",
        as_named,
        (
            Sample(windows.wide_pool, ((2, 32, 32, 8),), 3),
            Sample(windows.hollows, ((24, 25, 26),), 3),
            Sample(windows.ridge, ((40, 64),), 3),
        ),
        platform="tpu",
    ),
    Mechanism(
        "windows for prefixes",
        "while",
        as_named,
        (
            Sample(windows.rolling_mean, ((8, 250),), 2),
            Sample(windows.integral_image, ((60, 70),), 2),
            Sample(windows.rolling_variance, ((4, 250),), 2),
        ),
    ),
    Mechanism(
        "halos",
        "slice",
        as_named,
        (
            Sample(windows.lattice, ((40, 50),), 3),
            Sample(windows.coupled_ring, ((300,),), 3),
            Sample(windows.corners, ((16, 18, 20),), 3),
        ),
    ),
    Mechanism(
        "products of rows",
        "bytes",
        as_named,
        (
            Sample(windows.pointed, ((128, 128), (31, 31)), 2),
            Sample(windows.blurred, ((4, 64, 64), (25, 25)), 2),
            Sample(windows.seen_backwards, ((100, 110), (29, 31)), 2),
        ),
    ),
    Mechanism(
        "product of two stacks",
        "temporaries",
        as_named,
        (
            Sample(windows.registered, ((80, 80), (64, 64)), 2),
            Sample(windows.pointed, ((78, 80), (15, 15)), 2),
            Sample(windows.seen_backwards, ((64, 66), (11, 13)), 2),
        ),
    ),
    Mechanism(
        "products in common",
        "temporaries",
        as_named,
        (
            Sample(windows.balanced, ((256, 512), (512,), (256,)), 1.9),
            Sample(windows.gated, ((256, 512), (512,), (512,)), 1.9),
            Sample(windows.standardised, ((256, 512), (512,), (512,)), 1.9),
        ),
    ),
    Mechanism(
        "conditions around",
        "values that are not finite",
        as_named,
        (
            Sample(windows.heat, ((60,), (50,), (3,), (60,)), 100),
            Sample(windows.ages, ((40,), (3,), (2,), (40,)), 5),
            Sample(windows.growth, ((40,), (4,), (20,), (40,)), 100),
        ),
    ),
    Mechanism(
        "one-hot product",
        "scatter",
        as_named,
        (
            Sample(windows.few_bins, ((500, 40), Positions((500,), 8)), 2),
            Sample(windows.clusters, ((1000, 64), Positions((1000,), 4)), 2),
            Sample(windows.embedded, ((30, 16), Positions((2000,), 30)), 2),
        ),
        platform="tpu",
    ),
    Mechanism(
        "product of a table",
        "gather",
        as_named,
        (
            Sample(tables.categories, ((20, 16, 10), Positions((2000, 20), 10)), 1),
            Sample(tables.positions_on_a_board, ((12, 64, 16), Positions((800, 64), 12)), 1),
            Sample(tables.quantised, ((8, 64, 12), Positions((2000, 8), 12)), 1),
        ),
    ),
    Mechanism(
        "prefix written out",
        "while",
        as_named,
        (
            Sample(few.below_each_category, ((300, 5),), 2),
            Sample(few.weight_above, ((8, 6, 7), (8,)), 2),
            Sample(few.left_of_each_stage, ((16, 6, 24),), 2),
        ),
    ),
    Mechanism(
        "phases as one",
        "dot_general",
        as_named,
        (
            Sample(phases.pruned, ((32, 50, 6), (32, 6, 6)), 2),
            Sample(phases.gated, ((64, 40), (40, 30)), 1.6),
            Sample(phases.triplets, ((96, 40), (40, 30)), 2),
        ),
    ),
    Mechanism(
        "interiors",
        "flops",
        replaced(plan, "with_interiors", list),
        (
            Sample(steps.membrane, ((40, 50), (40, 50)), 1.3),
            Sample(steps.string, ((4000,), (4000,)), 1.2),
            Sample(steps.sound, ((12, 14, 16), (12, 14, 16)), 1.5),
        ),
    ),
    Mechanism(
        "associative scan",
        "while",
        as_named,
        (
            Sample(windows.discounted, ((8, 100),), 1),
            Sample(windows.phases, ((8, 100), (8, 100)), 1),
            Sample(windows.propagated, ((8, 100), (8, 100)), 1),
        ),
        platform="gpu",
    ),
)
