"""How te.explain tells what tensors were lowered to: the form, what it takes beside others, tiles, rewrites and refusals, in lines and as an HTML table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from jaxte.lang.limits import LEVELS, SEVERAL
from jaxte.lower.code.choice import Amounts, Choice, Estimate, TilePass


def called(choice: Choice) -> str:
    """The name of a tensor in the emitted code, or its own where it is no variable there."""
    return choice.target or choice.tensor


def lines_of(choices: Sequence[Choice]) -> list[str]:
    """The lines of all tensors of a pass; steps that are told alike are told once, with how many there are."""
    passes: list[TilePass] = []
    told = [_choice_lines(choice, passes) for choice in choices]
    labels: list[str] = []
    shown: list[list[str]] = []
    at = 0
    while at < len(told):
        length, times = _repetition(told, at)
        for n in range(at, at + length):
            names = [called(choices[m]) for m in range(n, n + length * times, length)]
            labels.append(names[0] if times == 1 else f"{names[0]} ... {names[-1]}")
            first, *rest = told[n]
            shown.append([first if times == 1 else f"{first}  x {times}", *rest])
        at += length * times
    width = max(map(len, labels), default=0)
    lines = []
    for label, (first, *rest) in zip(labels, shown, strict=True):
        lines.append(f"    {label:<{width}}  {first}")
        lines += [f"    {'':<{width}}    {line}" for line in rest]
    return lines


def _repetition(told: Sequence[object], at: int) -> tuple[int, int]:
    """How many entries from ``at`` on are a step that follows itself, and how many times it stands there."""
    # Tensors of a step that is told once.
    for length in range(1, min(LEVELS, len(told) - at) + 1):
        step, times = told[at : at + length], 1
        while told[at + length * times : at + length * (times + 1)] == step:
            times += 1
        # The step has to stand there so often.
        if times >= SEVERAL:
            return length, times
    return 1, 1


def _choice_lines(choice: Choice, passes: list[TilePass]) -> list[str]:
    """What is told of a tensor; ``passes`` are those that were told before, at another tensor that they make."""
    reason = f" ({choice.reason})" if choice.reason else ""
    told = []
    own = choice.tiles() if choice.tiles is not None else None
    if own is not None and not any(own is p for p in passes):
        told += _pass_lines(own)
        passes.append(own)
    one = "one block, " if own is not None else ""
    told += [f"{one}{_offered(offers)}" for offers in _by_reduction(choice.estimates)]
    told += [f"rewritten: {', '.join(choice.rewrites)}"] if choice.rewrites else []
    told += [f"not {form}: {why}" for form, why in choice.refused]
    return [f"{choice.form}{reason}", *told]


def _pass_lines(own: TilePass) -> list[str]:
    """What a pass costs, and what it would cost without tiles, with the limit that this is above."""
    makes = f" for {' and '.join(own.made)}" if len(own.made) > 1 else ""
    held = own.whole.temporaries
    above = ""
    if own.max_memory is not None and held > own.max_memory:
        above = f", above max_memory={own.max_memory:,}"
    elif held > own.cache:
        above = f", above the cache of {own.cache:,.0f}"
    worse = above or own.whole.seconds > own.tiles.seconds
    return [
        f"{own.count} tiles{makes}: {_amounts(own.tiles)}",
        f"{'not whole' if worse else 'whole'}: {_amounts(own.whole)}{above}",
    ]


def _amounts(own: Amounts) -> str:
    return (
        f"{milliseconds(own.seconds)} estimated, {own.flops:,} flops, {own.bytes:,} bytes, "
        f"{own.temporaries:,} bytes of temporaries"
    )


def _by_reduction(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """The estimates of each reduction, in order."""
    found: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        found.setdefault(estimate.key, []).append(estimate)
    return list(found.values())


def _offered(estimates: Sequence[Estimate]) -> str:
    """The form taken, with what it costs, and the others: ``convolution: 0.8 ms estimated; general 2 ms``."""
    taken = next(e for e in estimates if e.chosen)
    others = sorted((e for e in estimates if not e.chosen), key=lambda e: e.measured or e.seconds)
    rest = ", ".join(f"{e.form} {milliseconds(e.measured or e.seconds)}" for e in others)
    return f"{taken.form}: {_times(taken)}" + (f"; {rest}" if rest else "")


def _times(estimate: Estimate) -> str:
    """What a form takes, as ``0.9 ms measured, 1.2 ms estimated``."""
    told = [] if estimate.measured is None else [f"{milliseconds(estimate.measured)} measured"]
    told.append(f"{milliseconds(estimate.seconds)} estimated")
    if estimate.temporaries:
        told.append(f"{estimate.temporaries:,.0f} bytes of temporaries")
    return ", ".join(told)


def milliseconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-4 else f"{1e6 * seconds:.3g} us"


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
