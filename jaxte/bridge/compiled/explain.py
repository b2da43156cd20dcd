"""What became of each tensor: forms, refusals, scatters with their reasons, residuals, and XLA's own counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import jax
import numpy as np

from jaxte.bridge.calls.outputs import x64_enabled
from jaxte.bridge.compiled.choice_lines import called, lines_of, table
from jaxte.bridge.compiled.compile import Graph
from jaxte.bridge.price.programs import Beside
from jaxte.bridge.primitive.program import BACKWARD, FORWARD, SAVING
from jaxte.lower.code.choice import Choice, Estimate, TilePass, Verdict
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.policy import ANY
from jaxte.lower.cost.work import bytes_of
from jaxte.lower.program.recomputation import needed_for, operations_text
from jaxte.lower.program.residuals import bytes_text, schedule_text
from jaxte.tensors.recurrences.node import Kept
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Compute, Tensor

_SCATTER = "scatter"


@dataclass(frozen=True)
class Counts:
    """What XLA says of a compiled function; None where it says nothing.

    Attributes:
        flops: floating point operations.
        bytes: bytes read and written.
        temporaries: bytes of intermediate buffers.
    """

    flops: float | None
    bytes: float | None
    temporaries: int | None

    def __str__(self) -> str:
        return f"{_number(self.flops)} flops, {_number(self.bytes)} bytes, {_number(self.temporaries)} bytes of temporaries"


@dataclass(frozen=True)
class Saved:
    """A residual: a forward tensor kept for the backward pass, its size, and what computing it again would cost.

    Attributes:
        bytes: None where sizes are symbolic.
        size: the bytes as text, in terms of the sizes.
        again: the operations of computing it again from inputs and the other residuals, as text; empty for an input.
        steps: of a recurrence that is kept at some positions, at how many, and how many steps are computed again; empty for others.
    """

    tensor: Tensor
    bytes: int | None
    size: str = ""
    again: str = ""
    steps: str = ""

    def __str__(self) -> str:
        again = f", {self.again} operations to compute again" if self.again else ""
        again += f", {self.steps}" if self.steps else ""
        return (
            f"{self.tensor.name} {self.tensor.dtype}{shape_text(self.tensor.shape)}: {self.size} bytes{again}"
        )


@dataclass(frozen=True)
class Explanation:
    """A report that prints itself.

    Attributes:
        name: of the function.
        platform: the one that forms were chosen for.
        choices: per pass ("forward", "backward"), what each computed tensor was lowered to.
        saved: the residuals.
        counting: compiles each pass for what XLA counts; see ``counts``.
        asked: the forms that the user named, by the name of a tensor or "*".
        passes: per pass, what changed several definitions together, by the names that ``without=`` takes.
        pricing: estimates both passes beside plain JAX; see ``prices``.
    """

    name: str
    platform: str
    choices: dict[str, tuple[Choice, ...]]
    saved: tuple[Saved, ...]
    counting: Callable[[], dict[str, Counts]] = field(compare=False)
    asked: Mapping[str, str] = field(default_factory=dict)
    passes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pricing: Callable[[], Beside | None] = field(default=lambda: None, compare=False)

    def __reduce__(self) -> Any:
        """With what XLA counts and what is estimated, not with the code that this is of."""
        others = [getattr(self, f.name) for f in fields(self) if f.name not in _ASKED_LATER]
        return _with_counts, (self.counts, self.prices, *others)

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """Per pass, what XLA counts; empty where sizes are symbolic. It compiles when it is first asked for, or printed."""
        return self.counting()

    @cached_property
    def prices(self) -> Beside | None:
        """Seconds of value and gradient by the platform's estimate, beside JAX's transpose of the same forward pass; None without a gradient, of sizes that are symbols, and where nothing was measured."""
        return self.pricing()

    @property
    def forms(self) -> dict[str, str]:
        """The form of each tensor by its name; of tensors of one name, the later ones carry a number."""
        found: dict[str, str] = {}
        for choice in self._all():
            name, number = choice.tensor, 1
            while name in found:
                name, number = f"{choice.tensor}_{number}", number + 1
            found[name] = choice.form
        return found

    @property
    def targets(self) -> dict[str, tuple[str, ...]]:
        """Per pass, what the computed tensors are called in the emitted code and in this report."""
        return {part: tuple(map(called, choices)) for part, choices in self.choices.items()}

    @property
    def scatters(self) -> list[Choice]:
        """The tensors that were lowered to a scatter; empty certifies that there is none."""
        return [c for c in self._all() if _SCATTER in c.form]

    @property
    def gathers(self) -> list[Choice]:
        """The tensors that read through an index array."""
        return [c for c in self._all() if "gather" in c.form]

    @property
    def estimates(self) -> dict[str, tuple[Estimate, ...]]:
        """For each tensor with more than one form, what each of them costs; the one taken is ``chosen``."""
        return {c.tensor: c.estimates for c in self._all() if c.estimates}

    @property
    def tiles(self) -> dict[str, TilePass]:
        """For each tensor that is computed in tiles, what its pass costs and what it would cost in whole."""
        return {c.tensor: c.tiles() for c in self._all() if c.tiles is not None}

    @property
    def refused(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each tensor the forms that were not taken, with the reasons."""
        return {c.tensor: c.refused for c in self._all() if c.refused}

    @property
    def rewrites(self) -> dict[str, tuple[str, ...]]:
        """For each tensor the steps of planning and the rewrites that changed its definition, by the names that ``without=`` takes."""
        return {c.tensor: c.rewrites for c in self._all() if c.rewrites}

    @property
    def unmet(self) -> dict[str, str]:
        """The names in ``forms=`` that changed nothing, with the reason: no such tensor, or no such form of it."""
        found = {}
        for name, form in self.asked.items():
            own = [c for c in self._all() if name in (c.tensor, c.part_of, ANY)]
            offered = dict.fromkeys(e.form for c in own for e in c.estimates)
            if not own:
                found[name] = f"no tensor here is named {name}"
            elif form not in offered and not any(form in c.form for c in own):
                whose = "any tensor here" if name == ANY else name
                there = f" ({', '.join(offered)})" if offered else ""
                found[name] = f"{form} is none of the forms that {whose} offers{there}"
        return found

    def _all(self) -> Iterator[Choice]:
        for choices in self.choices.values():
            yield from choices

    def __str__(self) -> str:
        lines = [f"{self.name}, forms for {self.platform}", *(f"  {line}" for line in self._verdicts())]
        for part, choices in self.choices.items():
            lines.append(f"  {part}")
            lines += lines_of(choices)
            together = self.passes.get(part)
            lines += [f"    rewritten together: {', '.join(together)}"] if together else []
        lines += [
            f"  forms={{{name!r}: {self.asked[name]!r}}} not met: {why}" for name, why in self.unmet.items()
        ]
        dense = [called(c) for c in self._all() if c.verdict is not None and c.verdict.is_dense]
        if dense:
            lines += [f"  dense over positions that do not count: {name}" for name in dense]
        if self.scatters:
            lines += [f"  scatter left: {c.tensor}: {c.reason or 'no reason given'}" for c in self.scatters]
        elif not dense:
            lines.append("  no scatter")
        lines.append(f"  saved for the backward pass: {'nothing' if not self.saved else ''}".rstrip())
        lines += [f"    {entry}" for entry in self.saved]
        lines += [f"  XLA, {part}: {counts}" for part, counts in self.counts.items()]
        return "\n".join(lines)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """For each tensor that is computed in whole, what it computes and holds beside what it has to."""
        return {c.tensor: c.verdict for c in self._all() if c.verdict is not None}

    def _verdicts(self) -> list[str]:
        """A line for each tensor that does more than it has to, and one for all others."""
        known = [(called(c), c.verdict) for c in self._all() if c.verdict is not None]
        bad = [f"{name}: {v}" for name, v in known if v.is_dense or v.is_large]
        flops, asked = (sum(getattr(v, what) for _, v in known) for what in ("flops", "asked"))
        whose = "every other tensor" if bad else "every tensor"
        told = f"{whose} computes and holds what its definition asks for, or a few times as much"
        lines = [*bad, told, f"{flops:,} flops in all, beside {asked:,} of the definitions"]
        return lines if self.prices is None else [*lines, str(self.prices)]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        kept = {entry.tensor.name for entry in self.saved}
        last = [f"saved for the backward pass: {entry}" for entry in self.saved]
        last += [f"XLA, {part}: {counts}" for part, counts in self.counts.items()]
        return table(f"{self.name}, forms for {self.platform}", self.choices, kept, last)


_ASKED_LATER = ("counting", "pricing")


def _with_counts(counts: dict[str, Counts], prices: Beside | None, *others: Any) -> Explanation:
    names = [f.name for f in fields(Explanation) if f.name not in _ASKED_LATER]
    known = dict(zip(names, others, strict=True))
    return Explanation(counting=lambda: counts, pricing=lambda: prices, **known)


def explain_graph(graph: Graph) -> Explanation:
    """The report on ``graph``, its backward pass included where it has one."""
    programs = graph.programs if graph.differentiable else (graph.forward_program,)
    shown = [p for p in programs if p.name != SAVING]
    saved = graph.backward.saved if graph.differentiable else ()
    wide = x64_enabled()

    def counting() -> dict[str, Counts]:
        with jax.enable_x64(wide):
            return _counts(graph, shown)

    return Explanation(
        graph.name,
        graph.policy.platform,
        {p.name: p.choices for p in shown},
        tuple(_saved(t, saved) for t in saved),
        counting,
        graph.policy.forms,
        {p.name: p.passes for p in shown if p.passes},
        lambda: graph.prices,
    )


def _saved(tensor: Tensor, residuals: Sequence[Tensor]) -> Saved:
    if isinstance(tensor, Kept):
        return Saved(tensor, bytes_of(tensor), bytes_text(tensor), steps=schedule_text(tensor))
    others = [t for t in residuals if t is not tensor]
    _, again = needed_for([tensor], set(others), ())
    made = [t for t in again if isinstance(t, Compute)]
    whole = len(made) == len(again)
    work = "" if not again else operations_text(made) if whole else "unknown"
    return Saved(tensor, bytes_of(tensor), bytes_text(tensor), work)


def _counts(graph: Graph, programs: Sequence[Program]) -> dict[str, Counts]:
    module = graph.module if graph.differentiable else graph.forward_module
    found = {}
    for program in programs:
        shapes = [_struct(tensor) for _, tensor in program.params]
        if all(shape is not None for shape in shapes):
            found[program.name] = count(module[program.name], shapes)
    return {name: found[name] for name in (FORWARD, BACKWARD) if name in found}


def _struct(tensor: Tensor) -> jax.ShapeDtypeStruct | None:
    if not all(isinstance(extent, int) for extent in tensor.shape):
        return None
    return jax.ShapeDtypeStruct(tensor.shape, np.dtype(tensor.dtype))


def count(fn: Any, shapes: Sequence[Any]) -> Counts:
    """What XLA counts for ``fn`` on arrays of ``shapes``."""
    compiled = jax.jit(fn).lower(*shapes).compile()
    cost: Any = compiled.cost_analysis() or {}
    memory: Any = compiled.memory_analysis()
    return Counts(cost.get("flops"), cost.get("bytes accessed"), getattr(memory, "temp_size_in_bytes", None))


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{int(value):,}"
