"""Why a row holds more than plain JAX while it runs: what lies between two passes, for the time that it saves."""

from __future__ import annotations

from operators.measure import Result

POSITIONS = "positions, of which those that count from the end are made to count from the start, are an array that both passes read"
PASSES = "what one axis makes lies between the passes over two axes"
PADDED = "the zeros or values around the array are a copy of it"
ROWS_OF_SUMS = "XLA's CPU library adds rows of arrays, which are written for it; JAX's own order of operations has one array fewer"
REASONS = {
    "mod": ROWS_OF_SUMS,
    "logaddexp": ROWS_OF_SUMS,
    "prelu": ROWS_OF_SUMS,
    "rms_norm": "both gradients are products with H * x, which is made once",
    "conv2d.groups": "the groups lie next to each other, so that one product serves all (over a hundred times as fast)",
    "depthwise_conv2d": PADDED,
    "conv3d": "planes next to each other make it a convolution in two dimensions, for which the CPU has a library",
    "max_pool2d.overlapping": PASSES,
    "max_pool2d.ceil_mode": PASSES,
    "avg_pool2d.overlapping": PASSES,
    "avg_pool2d.blur": PASSES,
    "lrn": PASSES,
    "resize.smaller": PASSES,
    "pad.edge": PADDED,
    "pad.reflect": PADDED,
    "pad.symmetric": PADDED,
    "pad.wrap": PADDED,
    "take_along_axis": POSITIONS,
    "top_k": POSITIONS,
    "prod": "products before and after each element, which are exact beside zeros",
    "prod.first": "products before and after each element, which are exact beside zeros",
    "nms": "overlaps of all pairs are made at once, not those of one box after the other",
}
_SLACK, _BYTES = 1.05, 8192


def holds_more(result: Result) -> bool:
    """Whether a pass has more temporaries than plain JAX's, beyond what XLA's alignment makes of a few small arrays."""
    held = [p["temporaries"] for p in result["passes"].values()]
    return any(h["jaxte"] > _SLACK * h["idiomatic"] + _BYTES for h in held)


def note_of(name: str, result: Result, note: str) -> str:
    """What the page says of a row: its own note, and why it holds more."""
    own = REASONS.get(name, "") if holds_more(result) else ""
    return "; ".join(part for part in (note, own and f"temporaries: {own}") if part)
