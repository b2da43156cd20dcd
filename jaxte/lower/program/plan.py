"""From tensors to a program: each tensor in turn, in the order in which they are needed, under the head of the function.

The head of an emitted function: the formulas of its docstring, and its symbolic sizes, each read off the shape of a parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from jaxte.lang.budget import bounded
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Expr, Read, Var
from jaxte.lang.rules import applied
from jaxte.lang.scalars.times import taking
from jaxte.lang.text import definition_text
from jaxte.lang.walk import all_of, postorder
from jaxte.lower.apart.digit_sums import with_sums_over_digits
from jaxte.lower.apart.exponentials import with_sums_of_exponentials
from jaxte.lower.apart.graph import with_differences_apart
from jaxte.lower.apart.mirrored import with_mirrored_sums
from jaxte.lower.body.assignment import Rules, Shared
from jaxte.lower.code.lines import Names, docstring_text, lines_of
from jaxte.lower.code.vocabulary import Program, verify_program, with_sources
from jaxte.lower.cost.policy import Policy
from jaxte.lower.forms.data.chains import chained
from jaxte.lower.printing.printer import Printer
from jaxte.lower.program.across.equal_values import (
    Naming,
    with_equal_functions_once,
    with_equal_values_once,
    with_one_gather,
)
from jaxte.lower.program.across.interiors import with_interiors
from jaxte.lower.program.across.once_within import with_alike_parts_in_loops, with_masked_once, with_opposites
from jaxte.lower.program.across.outside_rows import with_rows_multiplied
from jaxte.lower.program.across.without_copies import without_idle_pads
from jaxte.lower.program.part import Part, Whole
from jaxte.lower.program.rows import PASSES, Within
from jaxte.lower.recurrences.finals import StandIns
from jaxte.lower.recurrences.sums import within_loops
from jaxte.lower.rules.gather import gather_value
from jaxte.lower.rules.powers import whole_power
from jaxte.lower.rules.reduce import reduce_value
from jaxte.lower.rules.select import select_value
from jaxte.lower.tiles.planner import tiling
from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.lower.tiles.write import Written
from jaxte.meaning.feeds import Told, sizes_in, told_sizes
from jaxte.sets.affine import from_linear
from jaxte.tensors.recurrences.node import Recurrent, definitions_in
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

_RULES = Rules(
    select=select_value, reduce=reduce_value, gather=gather_value, power=whole_power, total=chained
)


def lower(
    name: str, params: Sequence[Tensor], results: Sequence[Tensor], policy: Policy | None = None
) -> Program:
    """One function of ``params`` that computes ``results``.

    Args:
        name: what the function is called.
        params: the tensors that are passed in; computed ones are not computed again.
        results: the tensors that are returned.
        policy: how forms are chosen; by default for the CPU.

    Raises:
        LoweringError: a result needs a placeholder, or a size, that no parameter gives.
    """
    policy = policy or Policy()
    given = frozenset(params)  # the tuple would be searched with ==, which builds tensors
    order = topological_order(results, lambda tensor: () if tensor in given else tensor.inputs)
    with bounded(len(order)), taking(policy.facts.functions):
        program = _lowered(name, params, results, order, policy)
    if policy.debug:
        verify_program(program)
    return program


def _lowered(
    name: str, params: Sequence[Tensor], results: Sequence[Tensor], order: Sequence[Tensor], policy: Policy
) -> Program:
    names = Names()
    own = names.new(name)
    idents = {tensor: names.new(tensor.name) for tensor in dict.fromkeys(params)}
    sizes, reads = read_sizes(params, idents, names, order)
    stands = StandIns(order, frozenset(params), results, {})
    stands.change(within_loops(order, idents, frozenset(results), policy))
    looped = any(isinstance(t, Recurrent) for t in order)
    shown = order if looped else [stands.changed.get(t, t) for t in order]
    for step in (with_mirrored_sums, with_sums_over_digits, with_sums_of_exponentials):
        stands.change(step(stands.needed, idents, policy))
    sides = with_differences_apart(stands.needed, idents, policy)
    stands.change(sides.changed)
    within = Within(stands.results, policy)
    planned = applied(tiling(stands.needed, idents, stands.results, policy), PASSES, within)
    own_policy = policy.for_parts({t.name: t.part_of for t in planned.order if isinstance(t, Compute)})
    shared = Shared(names, Printer(sizes), own_policy, _RULES)
    lowering = _Lowering(shared, stands.results, sides.refused, name=name, params=params)
    written = lowering.written(planned, idents)
    for statement in written.statements:  # an error of a size that no input has belongs here, not to text
        lines_of(statement, lowering.shared.printer)
    idents |= written.names
    idents |= {old: idents[new] for old, new in stands.changed.items() if new in idents}
    return Program(
        own,
        tuple((idents[p], p) for p in params),
        reads,
        tuple(written.statements),
        tuple(idents[r] for r in results),
        tuple(formulas(shown, params, idents)),
        tuple(written.choices),
        tuple(lowering.functions),
        tuple(results),
        lowering.shared.printer,
        tuple(within.fired),
    )


@dataclass(eq=False)
class _Lowering(Whole):
    """A function under way: its parts one after the other, and what is done to the statements of each as a whole."""

    name: str
    params: Sequence[Tensor]

    def written(self, planned: Tiling, given: Mapping[Tensor, str], tile_of: str = "") -> Written:
        """The statements of ``planned`` where ``given`` exist; those of a single tile if they are part of a pass."""
        part = Part(self, self.written, planned, given, tile_of)
        for tensor in planned.order:
            match tensor:
                case Tiles():
                    part.write_tiles(tensor)
                case Recurrent():
                    part.write_loop(tensor)
                case Extern():
                    part.write_extern(tensor)
                case Compute():
                    part.write_definition(tensor)
                case _:
                    raise _missing(self.name, tensor, self.params)
        idents = part.idents
        idents |= {tensor: idents[new] for tensor, new in planned.renewed.items() if new in idents}
        own, shared = frozenset(idents.values()), self.shared
        statements, sliced = without_idle_pads(with_one_gather(part.statements), own)
        part.keep_sliced(statements, sliced)
        if self.shared.policy.facts.multiplies_nan:
            statements = with_rows_multiplied(statements, self.shared.names)
        if not self.shared.policy.facts.computes_again:
            statements = with_opposites(statements, shared.printer.text)
        statements = with_equal_values_once(
            with_masked_once(statements, shared.names),
            own,
            Naming(shared.names.numbered, shared.printer.text),
        )
        if self.shared.policy.facts.tests_pads:
            statements = with_interiors(statements)
        text = shared.printer.text
        statements = with_sources(
            with_equal_functions_once(statements), lambda source: with_alike_parts_in_loops(source, text)
        )
        return Written(statements, idents, part.choices)


def _missing(name: str, tensor: Tensor, params: Sequence[Tensor]) -> LoweringError:
    given = ", ".join(p.name for p in params)
    return LoweringError(f"{name}: {tensor.name} is needed but is none of the parameters {given}; pass it in")


_LONGEST = 600  # characters of a formula in a docstring


def formulas(
    order: Sequence[Tensor], params: Sequence[Tensor], idents: Mapping[Tensor, str]
) -> Iterator[str]:
    """The definition of each tensor of ``order`` that is computed, as text that is safe in a docstring.

    Tensors of one label are called as in the code, by ``idents``, which tells them apart.
    """
    given = frozenset(params)
    computed = [t for t in order if t not in given]
    own = definitions_in(computed)
    whole = _states(computed)
    read = (t for tensor in own for t in tensor.inputs)
    shown = dict.fromkeys(whole.get(t, t) for t in (*params, *own, *read))
    labels = Counter(t.name for t in shown)
    written = {idents[t]: t for t in shown if t in idents}
    called: dict[Tensor, str] = {}
    for tensor in shown:
        if labels[tensor.name] > 1 or written.get(tensor.name, tensor) is not tensor:
            called[tensor] = idents.get(tensor) or _free_name(tensor, {*labels, *written, *called.values()})
    called |= {part: called[t] for part, t in whole.items() if t in called}
    for tensor in own:
        safe = docstring_text(
            definition_text(called.get(tensor, tensor.name), tensor.axes, tensor.body, called)
        )
        yield safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


def _states(tensors: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """What stands for a tensor of a recurrence in its definition, and the definition itself, by that tensor."""
    found: dict[Tensor, Tensor] = {}
    for tensor in tensors:
        if isinstance(tensor, Recurrent):
            own = tensor.group
            for state, definition, whole in zip(own.states, own.definitions, own.tensors, strict=True):
                found |= {state: whole, definition: whole}
            found |= _states(own.inside)
    return found


def _free_name(tensor: Tensor, taken: set[str]) -> str:
    """A name for what is no variable of the code, as it is part of what reads it."""
    return next(name for n in count(1) if (name := f"{tensor.name}_{n}") not in taken)


def read_sizes(
    params: Sequence[Tensor], idents: Mapping[Tensor, str], names: Names, order: Sequence[Tensor]
) -> tuple[dict[Var, str], tuple[tuple[str, str], ...]]:
    """The symbolic sizes, each read off the shape of a parameter."""
    told = told_sizes([param.shape for param in params])
    used = _sizes_used(order, frozenset(params)) if told else set()
    for size in reversed(told):
        used.update(sizes_in([from_linear(size.rest)]) if size.size in used else ())
    found: dict[Var, str] = {}
    reads: list[tuple[str, str]] = []
    for size in told:
        if size.size in used:
            text = _size_read(size, f"{idents[params[size.array]]}.shape[{size.axis}]", Printer(found))
            found[size.size] = names.new(size.size.name)
            reads.append((found[size.size], text))
    return found, tuple(reads)


def _sizes_used(order: Sequence[Tensor], given: frozenset[Tensor]) -> set[Expr]:
    """The sizes that the definitions mention, or the shapes of what they read."""
    found: set[Expr] = set()
    for tensor in order:
        exprs = [e for e in tensor.shape if isinstance(e, Expr)]
        for own in definitions_in([] if tensor in given else [tensor]):
            exprs.append(own.body)
            exprs += [e for n in postorder(own.body) for e in _extents_at(n)]
        found |= set(all_of(Var, *exprs))
    return found


def _extents_at(node: Expr) -> list[Expr]:
    if isinstance(node, Read):
        return [e for e in node.tensor.shape if isinstance(e, Expr)]
    axes = getattr(node, "axes", ())
    return [e for axis in axes for e in (axis.lo, axis.hi)]


def _size_read(told: Told, shape: str, printer: Printer) -> str:
    """The code of a size, by an extent that is ``shape`` at run time: ``(x.shape[0] - 1) // 2`` for ``2 * n + 1``."""
    rest = told.rest
    text = shape
    if rest.terms:
        text = f"{shape} - ({printer.text(from_linear(rest))})"
    elif rest.constant:
        text = f"{shape} - {rest.constant}" if rest.constant > 0 else f"{shape} + {-rest.constant}"
    if told.factor == 1:
        return text
    return f"{text} // {told.factor}" if text is shape else f"({text}) // {told.factor}"
