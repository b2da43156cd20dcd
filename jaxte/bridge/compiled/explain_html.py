"""A report of ``te.explain`` as an HTML table: a row for each tensor, coloured where it is dense, scattered or computed twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from jaxte.bridge.compiled.choice_lines import called, milliseconds
from jaxte.lower.code.vocabulary import Choice, Estimate

# Light tints over whatever is behind them, so that text has contrast on white and on black.
_TINTS = {
    "dense": "rgba(220,50,50,.22)",
    "scatter": "rgba(230,140,0,.25)",
    "computed again": "rgba(60,130,230,.2)",
}
_HEAD = ("tensor", "form", "why", "estimated", "measured", "flops", "bytes held", "kept")
_WHY = _HEAD.index("why")
_WIDE = ' style="white-space:normal;text-align:left;min-width:10em;max-width:22em"'


def table(
    title: str, choices: Mapping[str, Sequence[Choice]], kept: Collection[str], last: Sequence[str]
) -> str:
    """The rows of each pass below one another, and ``last`` as lines below the table."""
    rows = [f"<tr>{''.join(f'<th>{h}</th>' for h in _HEAD)}</tr>"]
    before: set[str] = set()
    for part, own in choices.items():
        rows.append(f'<tr><th colspan="{len(_HEAD)}" style="text-align:left">{escape(part)}</th></tr>')
        rows += [_row(choice, before, kept) for choice in own]
        before |= {choice.tensor for choice in own}
    legend = " ".join(
        f'<span style="background:{tint}">&nbsp;{word}&nbsp;</span>' for word, tint in _TINTS.items()
    )
    below = "".join(f"<div>{escape(line)}</div>" for line in last)
    return (
        f'<div class="jaxte" style="overflow-x:auto"><b>{escape(title)}</b> {legend}'
        f'<table class="jaxte">{"".join(rows)}</table>{below}</div>'
    )


def _row(choice: Choice, before: Collection[str], kept: Collection[str]) -> str:
    verdict = choice.verdict
    taken = [e for e in choice.estimates if e.chosen]
    why = [choice.reason] if choice.reason else []
    why += [f"not {form}: {reason}" for form, reason in choice.refused]
    cells = [
        called(choice),
        choice.form,
        "; ".join(why),
        _sum([e.seconds for e in taken]),
        _sum([e.measured for e in taken if e.measured is not None]),
        "" if verdict is None else f"{verdict.flops:,}",
        _held(taken, choice),
        "yes" if choice.tensor in kept else "",
    ]
    kind = _kind(choice, before)
    style = f' style="background:{_TINTS[kind]}" title="{kind}"' if kind else ""
    own = [f"<td{_WIDE if n == _WHY else ''}>{escape(c)}</td>" for n, c in enumerate(cells)]
    return f"<tr{style}>{''.join(own)}</tr>"


def _kind(choice: Choice, before: Collection[str]) -> str | None:
    if choice.verdict is not None and (choice.verdict.is_dense or choice.verdict.is_large):
        return "dense"
    if "scatter" in choice.form:
        return "scatter"
    return "computed again" if choice.tensor in before else None


def _sum(seconds: Sequence[float]) -> str:
    return milliseconds(sum(seconds)) if seconds else ""


def _held(taken: Sequence[Estimate], choice: Choice) -> str:
    if choice.verdict is not None:
        return f"{choice.verdict.held:,}"
    return f"{sum(e.temporaries for e in taken):,.0f}" if taken else ""
