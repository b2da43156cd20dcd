"""Rules that look special, each with three functions that it was not made for, and how it is switched off.

The functions are of other fields, ranks and shapes than the one for which a rule was written. ``test_each_mechanism.py`` counts what the
rule gains in each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.band.spec import BandSpec
from jaxte.lower.rewrites import hoist
from jaxte.lower.rules import form_table
from jaxte.lower.tiles import carried_sums
from jaxte.lower.tiles.slices import NoBlock
from jaxte.lower.views import one_axis
from tests.lower import mechanism_flat as flat
from tests.lower import mechanism_functions as of
from tests.lower import mechanism_sums as sums
from tests.lower.mechanism import Mechanism, Positions, Sample, Shape, as_named, replaced
from tests.lower.mechanism_rows import ROWS


def _no_block(*_: object) -> Any:
    raise NoBlock("without")


def _bands(wanted: Callable[[BandSpec], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    """Refuses bands but those that are ``wanted``."""
    recognise = form_table.recognise_band

    def found(*args: Any) -> BandSpec | Refusal:
        spec = recognise(*args)
        return spec if isinstance(spec, Refusal) or wanted(spec) else Refusal("without")

    return replaced(form_table, "recognise_band", found)


def _window(heads: int, rows: int, window: int, features: int) -> tuple[Shape, Shape, Shape]:
    columns = rows + window - 1
    return (heads, rows, features), (heads, columns, features), (heads, columns, features)


TILES, TRANSFORMED = {"*": "tiles"}, {"*": "Fourier transform"}
REWRITTEN = (
    Mechanism(
        "residues apart",
        "flops",
        as_named,
        (
            Sample(of.haar, ((3, 32, 48),), 3),
            Sample(of.gated_pairs, ((20, 64),), 1.5),
            Sample(of.triples, ((270,),), 1.9),
        ),
    ),
    Mechanism(
        "exponentials by the largest",
        "flops",
        as_named,
        (
            Sample(sums.partial_likelihood, ((512, 6), (6,)), 10),
            Sample(sums.listwise, ((16, 128),), 10),
            Sample(sums.attention_free, ((256, 24), (256, 24)), 10),
        ),
    ),
    Mechanism(
        "sums over digits",
        "flops",
        as_named,
        (
            Sample(sums.unions, ((4, 256),), 8),
            Sample(sums.parities, ((256, 12),), 8),
            Sample(sums.sierpinski, ((1024,), (1024,)), 8),
        ),
    ),
    Mechanism(
        "gathers laid out",
        "transpose",
        as_named,
        (
            Sample(of.warped, ((2, 8, 1, 20), (2, 15), (8, 12)), 2),
            Sample(of.looked_up, ((2, 16, 50), Positions((2, 40), 50), (12, 16)), 2),
            Sample(of.picked, ((2, 8, 9, 11), Positions((2, 20), 9), Positions((2, 20), 11), (8, 5)), 2),
        ),
    ),
    Mechanism(
        "stacked terms",
        "temporaries",
        as_named,
        (
            Sample(of.polynomial, ((4, 100, 8), (4, 8, 64)), 3),
            Sample(of.three_inputs, ((200, 16), (200, 16), (200, 16), (3, 16, 64)), 1.5),
            Sample(of.of_differences, ((300, 20), (3, 20, 96)), 1.5),
        ),
    ),
    Mechanism(
        "roots for powers",
        "power",
        as_named,
        (
            Sample(of.wind_power, ((40, 6),), 1),
            Sample(of.flow_rate, ((30,), (30,)), 1),
            Sample(of.quarter_root, ((20, 9),), 1),
        ),
    ),
    Mechanism(
        "factors outside",
        "bytes",
        as_named,
        (
            Sample(of.signed, ((60, 48), (60,)), 2),
            Sample(of.routed, ((60, 32), (40, 32), (60,)), 2),
            Sample(of.clipped, ((60, 40), (40,), (60,)), 1.8),
        ),
    ),
    Mechanism(
        "factors outside",
        "flops",
        as_named,
        (
            Sample(of.mixed_rows, ((50, 16), (200, 16), *(2 * (Positions((200,), 50),)), (200, 2)), 1.3),
            Sample(of.barycentric, ((50, 24), (200, 24), (200, 3), Positions((3, 200), 50)), 1.3),
            Sample(of.attended, ((50, 8), Positions((90, 2), 50), (90, 2), (90, 8)), 1.25),
        ),
        replaced(hoist, "LARGE_ROWS", 0),
    ),
    Mechanism(
        "rows gathered once",
        "gather",
        as_named,
        (
            Sample(of.areas, ((50, 3), Positions((80, 3), 50)), 1.3),
            Sample(of.springs, ((50, 3), Positions((80, 2), 50)), 1.3),
            Sample(of.planes, ((50, 3), Positions((80,), 50), (80, 3)), 1.3),
        ),
    ),
    Mechanism(
        "rotations",
        "gather",
        as_named,
        (
            Sample(of.cyclic_windows, ((2, 20, 20, 3),), 2),
            Sample(of.blocks_of_a_torus, ((12, 12, 6),), 2),
            Sample(of.mirrored_windows, ((28, 28),), 2),
        ),
    ),
    Mechanism(
        "frames",
        "flops",
        as_named,
        (
            Sample(of.filter_bank, ((2, 3, 512), (64, 192)), 1.5),
            Sample(of.seasons, ((24 * 19 + 168, 5), (168, 64)), 1.5),
            Sample(of.cosines, ((1024, 6), (48, 128)), 1.5),
        ),
    ),
    Mechanism(
        "terms apart",
        "bytes",
        as_named,
        (
            Sample(of.relative_values, ((3, 40, 40), (3, 40, 16), (79, 16)), 1.7),  # beside steps
            Sample(of.additive, ((50, 12), (40, 12), (12,)), 8),
            Sample(of.rows_and_columns, ((8, 8, 16), (15, 16), (15, 16)), 2.5),
        ),
    ),
    Mechanism(
        "continued ends",
        "flops",
        as_named,
        (
            Sample(of.derivative, ((24, 20), (7,), (7,)), 2),
            Sample(of.smoothed_volume, ((8, 8, 8), (3,)), 2),
            Sample(of.smoothed_frames, ((2, 24, 30), (9,)), 2),
        ),
    ),
    Mechanism(
        "bands as blocks of matrices",
        "bytes",
        as_named,
        (
            Sample(of.gates, _window(2, 24, 64, 16), 1.3, TILES),
            Sample(of.recent, _window(2, 24, 64, 16), 1.3, TILES),
            Sample(of.every_other, _window(2, 24, 64, 16), 1.3, TILES),
        ),
    ),
    Mechanism(
        "slabs of carried sums",
        "bytes",
        replaced(carried_sums, "_over_slab", _no_block),
        (
            Sample(of.gates, _window(1, 64, 32, 4), 1.25, TILES),
            Sample(of.local_kernel, ((64,), (95,), (95,)), 1.5, TILES),
            Sample(of.robust_distances, ((60, 2), (83, 2)), 1.3, TILES),
        ),
    ),
    Mechanism(
        "bands with a step",
        "bytes",
        _bands(lambda spec: all(abs(band.step) == 1 for band in spec.bands)),
        (
            Sample(of.dilated_scores, ((2, 128, 16), (2, 128 + 2 * 47, 16)), 2.5),
            Sample(of.dilated_sums, ((128, 48), (128 + 3 * 47, 16)), 2.5),
            Sample(of.stepped_scores, ((100, 32), (3 * 99 + 2 * 47 + 1, 32)), 3),
        ),
    ),
    Mechanism(
        "bands along several axes",
        "temporaries",
        _bands(lambda spec: len(spec.bands) == 1),
        (
            Sample(of.neighbours, ((16, 16, 16), (20, 22, 16)), 1.8),
            Sample(of.strided_neighbours, ((20, 24, 16), (44, 32, 16)), 1.8),
            Sample(of.around_in_time, ((2, 16, 20, 16), (2, 20, 28, 16)), 1.8),
        ),
    ),
    Mechanism(
        "strided slices held at an end",
        "gather",
        replaced(one_axis, "_of_continued", lambda *args: Refusal("without")),
        (
            Sample(of.halved, ((30, 5),), 1),
            Sample(of.thirds, ((30,),), 1),
            Sample(of.backwards, ((2, 33),), 1),
        ),
    ),
    Mechanism(
        "pairs",
        "exponential",
        as_named,
        (
            Sample(of.ranked, ((3, 20), (3, 20)), 1.5),
            Sample(of.heard, ((20,), (25,), (25,)), 1.3),
            Sample(of.coupled, ((4, 20),), 1.3),
        ),
    ),
    Mechanism(
        "known matrices",
        "cosine",
        as_named,
        (
            Sample(of.harmonics, ((5, 64),), 2),
            Sample(of.turned, ((2, 70, 128),), 2),
            Sample(of.lapped, ((1024,),), 2),
        ),
    ),
    Mechanism(
        "repeats counted",
        "flops",
        as_named,
        (
            Sample(flat.energies_enlarged, ((40, 50),), 3),
            Sample(flat.loudness_held, ((6, 400),), 1.5),
            Sample(flat.classes_enlarged, ((20, 24, 3),), 4),
        ),
    ),
    Mechanism(
        "shapes of flat tensors",
        "temporaries",
        as_named,
        (
            Sample(flat.flat_images, ((3600,), (5, 5)), 6),
            Sample(flat.flat_volume, ((3840,), (3, 3, 3)), 8),
            Sample(flat.interleaved_channels, ((3200,), (9,)), 4),
        ),
    ),
    Mechanism(
        "narrow reads",
        "flops",
        as_named,
        (
            Sample(flat.causal, ((8, 200, 16), (4, 16)), 1.3),
            Sample(flat.lagged, ((300, 8), (6,)), 1.2),
            Sample(flat.padded_filter, ((40, 50), (3, 3)), 1.3),
        ),
    ),
    Mechanism(
        "contractions in common",
        "flops",
        as_named,
        (
            Sample(flat.decomposition_error, ((60, 50, 40), (60, 8), (50, 8), (40, 8)), 1.3),
            Sample(flat.four_way_error, ((40, 30, 20, 10), (40, 5), (30, 5), (20, 5), (10, 5)), 1.4),
            Sample(flat.components, ((30, 40, 50), (30, 6), (40, 6), (50, 6)), 1.5),
        ),
    ),
    Mechanism(
        "product with a mask",
        "temporaries",
        as_named,
        (
            Sample(flat.lately, ((80, 24), (80,), (30,)), 2),
            Sample(flat.within_reach, ((80, 24), (80, 2), (40, 2)), 2),
            Sample(flat.better_ranked, ((60, 20), (60,), (25,)), 2),
        ),
    ),
    Mechanism(
        "slices of a line",
        "temporaries",
        as_named,
        (
            Sample(flat.delays, ((4, 3000), (4, 2950)), 1.7),
            Sample(flat.covariances, ((20, 1000),), 5),
            Sample(flat.microphones, ((12, 800), (12, 840)), 5),
        ),
    ),
)
MECHANISMS = (*REWRITTEN, *ROWS)
