"""The page docs/exactness.md and those of its groups in docs/results, from the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from exact.figures import Known, breaks, shown
from exact.measure import DTYPES, TIMES, UNITS
from exact.reasons import CAUSES

PAGE = Path(__file__).parents[2] / "docs" / "exactness.md"
TITLES = {
    "sums": "Sums and products of 65,536 terms",
    "suite": "Cases of the suite",
    "corpus": "Functions of the corpus",
    "raised": "Raised functions of JAX, by te.grad's default",
    "operators": "Operators",
}
GROUP_PAGES = {
    "exactness-cases": ("suite", "corpus"),
    "exactness-raised": ("raised",),
    "exactness-operators": ("operators",),
}
GROUP_HEAD = """# How exact results are: {title}

Written by `make exact`; do not edit. What the figures mean, and what the law is, is said on [the first page](../exactness.md).
"""
HEAD = """# How exact results are

Written by `make exact`; do not edit. Each function is computed by jaxte and by plain JAX in float32 and in bfloat16, and by plain JAX in float64 of the
same arguments, for four draws of these. An error is the largest difference from float64 over the largest element, in units in the last place of the
dtype (2^-23 in float32, 2^-7 in bfloat16); the worst of all values and of all gradients is shown, *jaxte / plain JAX*. Where four draws break the
law, sixteen are taken, and their root mean square is shown and counts, so that one draw that falls well for one of both is not the measure. What a user may expect is said in
[Checking](checking.md#what-is-rounded). The tables of functions are pages of their own: [the suite and the corpus](results/exactness-cases.md),
[raised functions](results/exactness-raised.md) and [operators](results/exactness-operators.md).

The law: no value and no gradient is more than {times:.0f} times as far off as plain JAX's, or {units:.0f} units in the last place. {summary}
"""


def pages(known: Known) -> dict[Path, str]:
    """The text of each page."""
    head = HEAD.format(times=TIMES, units=UNITS, summary=_summary(known))
    found = {PAGE: "\n".join([head, *_tables(known, ("sums",)), *_left_out(known)])}
    for name, groups in GROUP_PAGES.items():
        title = " and ".join(TITLES[group][0].lower() + TITLES[group][1:] for group in groups)
        parts = [GROUP_HEAD.format(title=title), *_tables(known, groups)]
        found[PAGE.parent / "results" / f"{name}.md"] = "\n".join(parts)
    return found


def _tables(known: Known, groups: Sequence[str]) -> Iterator[str]:
    for group in groups:
        if known[group]:
            yield f"## {TITLES[group]}\n"
            yield _table(known[group])


def _summary(known: Known) -> str:
    found = [
        (n, d, f) for own in known.values() for n, by in own.items() for d, f in by.items() if "worst" in f
    ]
    kept = sum(not breaks(f) for *_, f in found)
    ahead = sum(f["worst"] <= 1 and _less(f) for *_, f in found)
    broken = [
        f"- `{n}` in {d}, {f['worst']:.2f} times what is allowed: {CAUSES.get(n, 'not looked into')}"
        for n, d, f in found
        if breaks(f)
    ]
    text = f"{kept} of {len(found)} measurements keep it, in {ahead} jaxte is nearer to float64 than plain JAX in all that is shown."
    again = [f"`{n}` in {d}" for n, d, f in found if "draws" in f and not breaks(f)]
    if again:
        text += f" Sixteen draws were taken of {', '.join(again)}, which keep it."
    return "\n".join([f"{text} Beyond it:\n", *broken]) if broken else text


def _less(found: Mapping[str, Any]) -> bool:
    pairs = [found[what] for what in ("values", "gradients") if what in found]
    return all(ours <= theirs for ours, theirs in pairs) and any(ours < theirs for ours, theirs in pairs)


def _table(own: Mapping[str, Mapping[str, Any]]) -> str:
    head = [f"{d}: {what}" for d in DTYPES for what in ("values", "gradients")]
    lines = [f"| function | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name, by in own.items():
        if any("worst" in f for f in by.values()):
            cells = [_cell(by.get(d, {}), what) for d in DTYPES for what in ("values", "gradients")]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _cell(found: Mapping[str, Any], what: str) -> str:
    if "error" in found:
        return "**fails**"
    if what not in found:
        return ""
    text = " / ".join(map(shown, found[what]))
    return f"**{text}**" if breaks(found) and found[what][0] > max(TIMES * found[what][1], UNITS) else text


def _left_out(known: Known) -> Iterator[str]:
    """A line for each reason why functions have no figures."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for own in known.values():
        for name, by in own.items():
            for dtype, found in by.items():
                if "reason" in found:
                    reasons.setdefault((dtype, found["reason"]), []).append(f"`{name}`")
    if reasons:
        yield "## Not measured\n"
        yield from (f"- {dtype}, {', '.join(names)}: {reason}" for (dtype, reason), names in reasons.items())
        yield ""
