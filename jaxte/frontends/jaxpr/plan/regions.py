"""Which equations are raised: groups that no path leaves and enters again, each around something that gains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from jax.extend.core import Literal

from jaxte.bridge.jaxprs import GROUPS
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Step, has_symbols, returns_operand
from jaxte.frontends.jaxpr.equations.table import RULES
from jaxte.frontends.jaxpr.gains.convolutions import gain_of_patches
from jaxte.frontends.jaxpr.gains.gains import (
    MOVES,
    gain_of,
    has_complex,
    is_foreign,
    keeps,
    reduces,
)
from jaxte.frontends.jaxpr.gains.matrices import (
    TRANSPOSES,
    gain_of_layer,
    gain_of_square,
    gain_of_sum,
    squared,
    summed_product,
)
from jaxte.frontends.jaxpr.gains.sums import chooses_of_many, gain_of_wide_rows, is_pairwise
from jaxte.frontends.jaxpr.gains.worth import worth
from jaxte.lower.cost.platform import Platform

SYMBOLS = "an array has a size that is a symbol of jax.export: what raising gains is compared in numbers"
ASKED_FOR = "asked for"


class Fate(Enum):
    """What an equation may become: raised for its own sake, by itself, raised beside others, computed now, kept."""

    GAINS = "gains"
    ALONE = "alone"
    NEUTRAL = "neutral"
    KNOWN = "known"
    KEPT = "kept"


GAINING = frozenset([Fate.GAINS, Fate.ALONE])


class Choice(Enum):
    """What is raised of what has a rule: nothing, regions that gain by estimate, all around something that may gain, all."""

    NOTHING = "nothing"
    ESTIMATED = "estimated"
    GAINING = "gaining"
    EVERYTHING = "everything"


@dataclass
class Equation:
    """One equation of the outermost list, with the steps that it is made of.

    Attributes:
        reason: why it gains, or why it is kept.
        again: steps before it that are raised once more with it, because it reads them better so.
    """

    index: int
    eqn: Any
    steps: list[Step]
    fate: Fate = Fate.KEPT
    reason: str = ""
    readers: list[Equation] = field(default_factory=list)
    sources: list[Equation] = field(default_factory=list)
    again: list[Step] = field(default_factory=list)

    def become(self, fate: Fate, reason: str) -> None:
        """From now on this is what becomes of it, and why."""
        self.fate, self.reason = fate, reason

    def raise_again(self, steps: list[Step]) -> None:
        """``steps`` before it are raised once more with it."""
        self.again = steps


def equations(
    groups: Iterable[tuple[Any, list[Step]]],
    facts: Platform,
    choice: Choice = Choice.ESTIMATED,
    left: Set[int] = frozenset(),
    looped: bool = False,
) -> list[Equation]:
    """The equations with their readers and sources, and what each may become on a platform with these ``facts``; those at ``left`` stay, and
    those of the body of a loop are ``looped``.
    """
    found = [Equation(n, eqn, steps) for n, (eqn, steps) in enumerate(groups)]
    makers = {v: e for e in found for v in e.eqn.outvars}
    for entry in found:
        made = (makers.get(atom) for atom in entry.eqn.invars if not isinstance(atom, Literal))
        for source in {e.index: e for e in made if e is not None}.values():
            entry.sources.append(source)
            source.readers.append(entry)
    for entry in found:
        entry.become(*_fate(entry, choice is Choice.EVERYTHING, facts))
        if entry.index in left and entry.fate is not Fate.KNOWN:
            entry.become(Fate.KEPT, "slower raised, as measured")
    if choice is Choice.ESTIMATED and not looped and all(e.fate is not Fate.GAINS for e in found):
        # beside others that gain such a sum is a part of their regions, and what is raised once more is a part of that
        again = {step for entry in found for step in entry.again}
        for entry in (e for e in found if e.fate is Fate.NEUTRAL):
            steps = [step for step in entry.steps if not step.is_known and step not in again]
            if gain := gain_of_wide_rows(steps):
                entry.become(Fate.ALONE, gain)
    return found


def _fate(entry: Equation, everything: bool, facts: Platform) -> tuple[Fate, str]:
    if entry.eqn.effects:
        return Fate.KEPT, "it has side effects"
    if entry.steps and all(step.is_known for step in entry.steps) and not returns_operand(entry.eqn):
        return Fate.KNOWN, ""
    if has_symbols(entry.eqn) or any(step.has_symbols for step in entry.steps):
        return Fate.KEPT, SYMBOLS
    if not entry.steps and entry.eqn.primitive.name not in GROUPS:
        return Fate.KEPT, f"{entry.eqn.primitive.name} has no rule"
    if not everything and (own := _own_gain(entry, facts)):
        return Fate.ALONE, own
    gain = ""
    for step in entry.steps:
        if step.is_known:
            continue
        if step.name not in RULES and step.name not in OWN_DERIVATIVES:
            return Fate.KEPT, f"{step.name} has no rule"
        reason = is_foreign(step) or ("" if everything else keeps(step))
        if reason:
            return Fate.KEPT, reason
        gain = gain or gain_of(step) or (ASKED_FOR if everything else "")
    return (Fate.GAINS, gain) if gain else (Fate.NEUTRAL, "")


def _own_gain(entry: Equation, facts: Platform) -> str:
    """What an equation gains by itself: a product of matrices that would stay else, with nothing but transpositions around it."""
    steps = [step for step in entry.steps if not step.is_known]
    products = [step for step in steps if step.name not in MOVES]
    if not products or any(map(has_complex, steps)):
        return ""
    if (own := gain_of_sum(products[-1], facts)) and set(products) <= {*_summed(products[-1]), products[-1]}:
        entry.raise_again([s for s in _summed(products[-1]) if s not in steps])
        return own
    if len(products) != 1 or not keeps(products[0]):
        return ""
    if own := gain_of_patches(products[0], facts):
        return own
    found = squared(products[0])
    before = [s for e in entry.sources if all(t.name in TRANSPOSES for t in e.steps) for s in e.steps]
    if found is not None and all(s in steps or s in before for s in found):
        entry.raise_again([s for s in before if s in found])
        return gain_of_square(products[0])
    return gain_of_layer(products[0])


def _summed(step: Step) -> list[Step]:
    """The steps that make the product of which ``step`` is the sum."""
    return summed_product(step) or []


def cut(
    listed: Sequence[Equation], choice: Choice = Choice.ESTIMATED, looped: bool = False
) -> list[list[Equation]]:
    """Regions: equations that gain by themselves, and those that gain and the neutral ones around them, such that regions and the
    rest can run one after the other; ``looped`` as for :func:`equations`.
    """
    if choice is Choice.NOTHING:
        return []
    return [*([e] for e in listed if e.fate is Fate.ALONE), *_joined(listed, choice, looped)]


def _joined(listed: Sequence[Equation], choice: Choice, looped: bool) -> list[list[Equation]]:
    """Regions of equations that gain and the neutral ones around them."""
    while True:
        chosen = _around(listed)
        stages = _stages(listed, chosen)
        groups = _connected(listed, chosen, stages)
        if choice is Choice.EVERYTHING:
            return groups
        if _put_off(groups, stages):
            groups = _connected(listed, chosen, stages)
        hanging = [e for group in groups for e in _hanging_reductions(group)]
        if not hanging:
            break
        for entry in hanging:
            entry.become(Fate.KEPT, "a reduction, which XLA and its own derivative do well")
    if choice is Choice.GAINING:
        return groups
    return [g for g in groups if worth([s for entry in g for s in entry.steps if not s.is_known], looped)]


def _hanging_reductions(group: Sequence[Equation]) -> list[Equation]:
    """Neutral reductions to more than one number that are not on the way from something that gains to something that gains.

    They begin the norms and softmaxes around a region, whose derivatives are better left to JAX. Sums over pairs do not, but of many
    pairs the least is dear to be found again.
    """
    if any(is_pairwise(s) for e in group for s in e.steps):
        return [e for e in group if e.fate is Fate.NEUTRAL and any(map(chooses_of_many, e.steps))]
    members = {e.index for e in group}
    before: set[int] = set()
    after: set[int] = set()
    for entry in group:
        if any(s.index in before or s.fate is Fate.GAINS for s in entry.sources if s.index in members):
            before.add(entry.index)
    for entry in reversed(group):
        if any(r.index in after or r.fate is Fate.GAINS for r in entry.readers if r.index in members):
            after.add(entry.index)
    return [
        e
        for e in group
        if e.fate is Fate.NEUTRAL
        and not (e.index in before and e.index in after)
        and any(map(reduces, e.steps))
    ]


def _around(listed: Sequence[Equation]) -> set[int]:
    """The equations that gain, and the neutral ones that are reached from them through neutral ones."""
    chosen = {e.index for e in listed if e.fate is Fate.GAINS}
    stack = [e for e in listed if e.fate is Fate.GAINS]
    while stack:
        entry = stack.pop()
        for other in (*entry.readers, *entry.sources):
            if other.fate is Fate.NEUTRAL and other.index not in chosen:
                chosen.add(other.index)
                stack.append(other)
    return chosen


def _stages(listed: Sequence[Equation], chosen: set[int]) -> dict[int, int]:
    """The number of changes between raised and kept equations on the way to each."""
    stages: dict[int, int] = {}
    for entry in listed:
        own = entry.index in chosen
        stages[entry.index] = max(
            (
                stages[s.index] + (own != (s.index in chosen))
                for s in entry.sources
                if s.fate is not Fate.KNOWN
            ),
            default=0 if own else 1,
        )
    return stages


def _put_off(groups: Sequence[Sequence[Equation]], stages: dict[int, int]) -> bool:
    """Whether a group with something that gains, which equations of one later stage alone read, was put off to that stage, in which it is a part of what reads it.

    Powers of a decay are no region of their own because the input of the scan that they are for is a product, which stays.
    """
    found = False
    raised = {stages[e.index] for group in groups for e in group}
    for group in reversed(groups):
        members = {e.index for e in group}
        later = {stages[r.index] for e in group for r in e.readers if r.index not in members}
        if len(later) == 1 and later <= raised and any(e.fate is Fate.GAINS for e in group):
            found = True
            stages.update(dict.fromkeys(members, *later))
    return found


def _connected(listed: Sequence[Equation], chosen: set[int], stages: dict[int, int]) -> list[list[Equation]]:
    """The chosen equations of one stage that are read by each other, or read the same array."""
    groups: list[list[Equation]] = []
    done: set[int] = set()
    for entry in listed:
        if entry.index not in chosen or entry.index in done:
            continue
        group, stack = [], [entry]
        done.add(entry.index)
        while stack:
            own = stack.pop()
            group.append(own)
            for other in (*own.readers, *own.sources):
                if (
                    other.index in chosen
                    and other.index not in done
                    and stages[other.index] == stages[own.index]
                ):
                    done.add(other.index)
                    stack.append(other)
        groups.append(sorted(group, key=lambda e: e.index))
    return groups
