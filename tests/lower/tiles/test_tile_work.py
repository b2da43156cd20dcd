"""What te.explain tells of tensors in tiles: the cost of all tiles beside that of the whole."""

from __future__ import annotations

import pytest

import jaxte as te
from tests.lower.tiles.test_tiles import LARGE, attention, gaussian_sum, shapes

N = 4096  # points of LARGE, in three dimensions
OPERATIONS = 13  # of exp(-sum((x - y)**2)) * b, summed: 3 times (-, **2, +), then -, exp, *, +


def test_all_blocks_beside_the_whole() -> None:
    report = te.function(gaussian_sum).explain(*LARGE)
    own = report.tiles["K"]
    assert own.count * own.size == N
    assert report.forms["K"].startswith(f"tiles of {own.size} i")
    block = 4 * own.size * N  # of exp(...), written and read
    assert own.tiles.temporaries == block
    assert own.whole.temporaries == 4 * N * N
    assert own.tiles.flops == own.whole.flops == OPERATIONS * N * N
    assert own.tiles.bytes == own.count * (2 * block + 4 * (3 * own.size + 3 * N + N + own.size))
    assert own.whole.bytes == 2 * 4 * N * N + 4 * (3 * N + 3 * N + N + N)
    assert own.tiles.seconds < own.whole.seconds


@pytest.mark.parametrize(
    ("budget", "limit"), [(None, "the cache of 16,000,000"), (1_000_000, "max_memory=1,000,000")]
)
def test_the_text_tells_the_limit_that_the_whole_is_above(budget: int | None, limit: str) -> None:
    report = te.function(gaussian_sum, max_memory=budget).explain(*LARGE)
    own = report.tiles["K"]
    text = str(report).partition("  backward")[0]
    assert f"  {own.count} tiles: " in text
    assert f"flops, {own.tiles.bytes:,} bytes, {own.tiles.temporaries:,} bytes of temporaries\n" in text
    assert f"flops, {own.whole.bytes:,} bytes, 67,108,864 bytes of temporaries, above {limit}\n" in text
    assert "not whole: " in text


def test_a_pass_of_several_tensors_is_told_once() -> None:
    report = te.function(gaussian_sum).explain(*LARGE)
    assert report.tiles["dx"] is report.tiles["db"]
    assert report.tiles["dx"].made == ("dx", "dy_sum", "db")
    assert set(report.tiles) == {"K", "dx", "dy_sum", "db"}
    assert str(report).count(" tiles for dx and dy_sum and db: ") == 1
    assert str(report).count("not whole: ") == 2


def test_carried_results_are_no_temporaries() -> None:
    """dy is carried in whole and larger than a block of two rows: only such blocks count."""
    report = te.function(gaussian_sum, forms={"*": "tiles"}).explain(*shapes(4, 400, 3))
    (own,) = {id(p): p for p in report.tiles.values() if "dy_sum" in p.made}.values()
    assert (own.axis, own.size) == ("i", 2)
    assert own.tiles.temporaries == 4 * own.size * 400


def test_tiles_in_tiles() -> None:
    own = te.function(gaussian_sum, max_memory=4_000).explain(*LARGE).tiles["K"]
    assert 1_000 < own.tiles.temporaries <= 4_000
    assert own.whole.flops <= own.tiles.flops <= 1.2 * own.whole.flops  # each tile is added to what is there
    assert own.tiles.seconds > te.function(gaussian_sum).explain(*LARGE).tiles["K"].tiles.seconds


def test_blocks_that_overlap_count_twice() -> None:
    own = te.function(gaussian_sum, max_memory=8_000).explain(*shapes(307, 200, 3)).tiles["K"]
    assert own.count == -(-307 // own.size)
    assert own.tiles.flops == OPERATIONS * own.count * own.size * 200 > own.whole.flops


def test_tiles_by_name_where_the_whole_is_cheaper() -> None:
    small = shapes(30, 25, 3)
    report = te.function(gaussian_sum, forms={"*": "tiles"}).explain(*small)
    assert report.tiles["K"].whole.seconds < report.tiles["K"].tiles.seconds
    assert "  whole: " in str(report)
    assert "not whole" not in str(report)
    assert "above" not in str(report)
    assert te.function(gaussian_sum).explain(*small).tiles == {}


def test_the_whole_has_all_that_the_tiles_keep_from_existing() -> None:
    """Scores and weights of attention, of which the tiles hold blocks, and the results that read them."""
    n, m, d = 64, 96, 3
    report = te.function(attention, max_memory=4_000).explain(*shapes(n, m, d))
    assert "inside the tiles" in report.forms["S"]
    assert report.tiles["M"].made == ("M", "O_0", "Z")
    assert report.tiles["M"].whole.temporaries == 4 * n * m
    assert 2_000 < report.tiles["M"].tiles.temporaries <= 4_000
    assert report.tiles["M"].whole.bytes > 2 * 3 * 4 * n * m  # three of them, each written and read
