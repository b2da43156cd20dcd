"""How te.explain tells what tensors were lowered to: the form, what it takes beside others, tiles, rewrites and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lower.code.vocabulary import Amounts, Choice, Estimate, TilePass

_LONGEST_STEP = 12  # tensors of a step that is told once
_FEWEST_STEPS = 3  # how often it has to stand there


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
    for length in range(1, min(_LONGEST_STEP, len(told) - at) + 1):
        step, times = told[at : at + length], 1
        while told[at + length * times : at + length * (times + 1)] == step:
            times += 1
        if times >= _FEWEST_STEPS:
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
