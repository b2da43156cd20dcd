"""From tensors to a program: each tensor in turn, in the order in which they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxte.autodiff.terms.beside import owners
from jaxte.autodiff.terms.held import Held
from jaxte.lang.budget import bounded
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Call, Const, Expr, Read, Var, as_expr
from jaxte.lang.rules import applied
from jaxte.lang.walk import postorder
from jaxte.lower.apart.graph import with_differences_apart
from jaxte.lower.arrays.data import Call as FunctionCall
from jaxte.lower.arrays.data import Output
from jaxte.lower.arrays.leaves import Full, Name, Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.assignment import Assignment, Rules, Shared
from jaxte.lower.body.candidates import noted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.identifiers import Names, identifier
from jaxte.lower.code.lines import lines_of
from jaxte.lower.code.verify_program import verify_program
from jaxte.lower.code.vocabulary import WHEN_TRACED, AnyStatement, Choice, Program, Statement, Value
from jaxte.lower.cost.policy import Policy
from jaxte.lower.forms.data.scatter_chains import chained
from jaxte.lower.forms.pieces.kept_around import kept_around, write_into
from jaxte.lower.forms.pieces.peeled_edges import peeled, write_pieces
from jaxte.lower.printing.printer import Printer
from jaxte.lower.program.across.computed_once import put_together, read_by_one, with_one_gather
from jaxte.lower.program.across.materialised import materialised
from jaxte.lower.program.across.padded_once import (
    behind_barrier,
    held,
    keep_apart,
    paddings,
    with_calls,
    without_barriers,
)
from jaxte.lower.program.across.table import PASSES, Within
from jaxte.lower.program.formulas import formulas
from jaxte.lower.program.repeated import Repeated
from jaxte.lower.program.verdicts import verdict_in_tiles
from jaxte.lower.recurrences.changes import renewed
from jaxte.lower.recurrences.segments import loop_statements
from jaxte.lower.recurrences.sums import within_loops
from jaxte.lower.rewrites.rewrite import Place
from jaxte.lower.rewrites.table import AFTER_PADDING, BEFORE_PADDING
from jaxte.lower.rules.gather import gather_value
from jaxte.lower.rules.literal import literal_of
from jaxte.lower.rules.powers import whole_power
from jaxte.lower.rules.reduce import reduce_value
from jaxte.lower.rules.select import select_value
from jaxte.lower.tiles.costs import with_costs
from jaxte.lower.tiles.planner import tiling
from jaxte.lower.tiles.sizes import TILES
from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.lower.tiles.write import Writer, Written, tile_statements
from jaxte.lower.tiles.write_kernel import kernel_statements
from jaxte.lower.views.scope import Scope
from jaxte.meaning.told import Told, sizes_in, told_sizes
from jaxte.planning.indices.known import Known
from jaxte.sets.affine import from_linear
from jaxte.sets.intervals import known
from jaxte.tensors.copies import Extended
from jaxte.tensors.graph import topological_order
from jaxte.tensors.recurrences.node import Recurrent, definitions_in
from jaxte.tensors.tensor import Compute, Extern, Tensor

_RULES = Rules(
    select=select_value, reduce=reduce_value, gather=gather_value, power=whole_power, total=chained
)
_WIDE = ("float64", "complex128")


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
    order = _order(params, results)
    with bounded(len(order)):
        program = _lowered(name, params, results, order, policy)
    if policy.debug:
        verify_program(program)
    return program


def _order(params: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
    """What ``results`` need, without what lies behind ``params``."""
    given = frozenset(params)  # the tuple would be searched with ==, which builds tensors
    return topological_order(results, lambda tensor: () if tensor in given else tensor.inputs)


def _lowered(
    name: str, params: Sequence[Tensor], results: Sequence[Tensor], order: Sequence[Tensor], policy: Policy
) -> Program:
    names = Names()
    own = names.new(name)
    idents = {tensor: names.new(tensor.name) for tensor in dict.fromkeys(params)}
    sizes, reads = _sizes(params, idents, names, order)
    changed = within_loops(order, idents, frozenset(results), policy)
    made = [changed.get(t, t) for t in results]
    sides = with_differences_apart(_order(params, made) if changed else order, idents, policy)
    changed = renewed(changed, sides.changed)
    made = [changed.get(t, t) for t in results]
    returned = frozenset(made)
    within = Within(returned, policy)
    own_order = _order(params, made) if changed else order
    planned = applied(tiling(own_order, idents, returned, policy), PASSES, within)
    own_policy = policy.for_parts({t.name: t.part_of for t in planned.order if isinstance(t, Compute)})
    lowering = _Lowering(
        Shared(names, Printer(sizes), own_policy, _RULES), name, params, returned, sides.refused
    )
    written = lowering.written(planned, idents)
    for (
        statement
    ) in written.statements:  # a size that no input has is an error here, not where the text is asked for
        lines_of(statement, lowering.shared.printer)
    idents |= written.names
    idents |= {old: idents[new] for old, new in changed.items() if new in idents}
    return Program(
        own,
        tuple((idents[p], p) for p in params),
        reads,
        tuple(written.statements),
        tuple(idents[r] for r in results),
        tuple(formulas(order, params, idents)),
        tuple(written.choices),
        tuple(lowering.functions),
        tuple(results),
        lowering.shared.printer,
        tuple(within.fired),
    )


class _Lowering:
    """What the parts of a program share, and the functions that it calls."""

    def __init__(
        self,
        shared: Shared,
        name: str,
        params: Sequence[Tensor],
        results: frozenset[Tensor],
        refused: Mapping[str, tuple[tuple[str, str], ...]],
    ) -> None:
        self.shared = shared
        self.name = name
        self.params = params
        self.results = results
        self.refused = refused
        self.externs: dict[object, str] = {}
        self.functions: list[tuple[str, Callable[..., Any]]] = []

    def written(self, planned: Tiling, given: Mapping[Tensor, str], tile_of: str = "") -> Written:
        """The statements of ``planned`` where ``given`` exist; those of a single tile if they are part of a pass."""
        idents = dict(given)
        statements: list[AnyStatement] = []
        choices: list[Choice] = []
        names, policy = self.shared.names, self.shared.policy
        shared = replace(self.shared, written={})  # the bodies of one function
        before_calls = replace(self.shared, written={})  # those of what is known before it is called
        tensors = [t for t in planned.order if isinstance(t, Tensor)]
        again = policy.facts.computes_again
        shifted = materialised(tensors, self.results) if again and not tile_of else ()
        by_call = policy.facts.drops_barriers and not tile_of
        in_one = read_by_one(tensors, self.results) if by_call else ()
        original = {stand_in: tensor for tensor, stand_in in planned.stand_ins.items()}
        repeated, owned = Repeated(lower_tensor), owners()
        for tensor in planned.order:
            if isinstance(tensor, Tiles):
                writer = Writer(self.shared, lower_tensor, self.written)
                as_kernel = tensor.is_kernel and not tile_of
                found = (
                    kernel_statements(tensor, idents, writer)
                    if as_kernel
                    else tile_statements(tensor, idents, writer, tile_of)
                )
                statements += found.statements
                idents |= found.names
                choices += found.choices if tile_of else _told(found.choices, tensor, policy)
                continue
            if isinstance(tensor, Recurrent):
                if tensor not in idents:
                    together = [t for t in tensors if isinstance(t, Recurrent) and t.group is tensor.group]
                    writer = Writer(self.shared, lower_tensor, self.written)
                    found = loop_statements(together, idents, writer)
                    statements += found.statements
                    idents |= found.names
                    choices += found.choices
                continue
            if isinstance(tensor, Extern):
                statements += _extern(tensor, idents, names, self.externs, self.functions)
                choices.append(Choice(tensor.name, "extern"))
                continue
            if not isinstance(tensor, Compute):
                raise _missing(self.name, tensor, self.params)
            target = names.new(tensor.name)
            label = WHEN_TRACED if isinstance(tensor, Known) else tile_of or target
            own = Assignment(label, target, tensor.name, idents, in_tiles=bool(tile_of))
            made = repeated.lowered(own, before_calls if label == WHEN_TRACED else shared, tensor)
            part_of = tensor.part_of if tensor.part_of != tensor.name else ""
            choice = replace(made.choice, part_of=part_of, beside=_named(tensor, owned))
            if tensor in planned.refused:
                choice = replace(choice, refused=(*choice.refused, (TILES, planned.refused[tensor])))
            if tensor.name in self.refused:
                choice = replace(choice, refused=(*choice.refused, *self.refused[tensor.name]))
            own_statements = made.statements if again else without_barriers(made.statements)
            statements += with_calls(own_statements) if by_call else own_statements
            if isinstance(tensor, Held):
                target = held(statements, policy.facts.drops_barriers)
            elif tensor in shifted:
                statements[-1] = behind_barrier(statements[-1], policy.facts.drops_barriers)
            if tensor in in_one:
                statements[-1] = put_together(statements[-1])
            for sliced in made.sliced:
                if again:
                    keep_apart(statements, sliced, idents[sliced], by_call)
            idents[original.get(tensor, tensor)] = target
            choices.append(choice)
        idents |= {tensor: idents[new] for tensor, new in planned.renewed.items() if new in idents}
        return Written(with_one_gather(statements), idents, choices)


def _told(choices: Sequence[Choice], tiles: Tiles, policy: Policy) -> list[Choice]:
    """``choices``, those of the pass ``tiles``, with what it costs, and with a verdict where most of what it computes does not count."""
    *others, last = with_costs(choices, tiles, policy)
    verdict = verdict_in_tiles(tiles)
    return [*others, last if verdict is None else replace(last, verdict=verdict)]


def _missing(name: str, tensor: Tensor, params: Sequence[Tensor]) -> LoweringError:
    given = ", ".join(p.name for p in params)
    return LoweringError(f"{name}: {tensor.name} is needed but is none of the parameters {given}; pass it in")


def lower_tensor(own: Assignment, shared: Shared, tensor: Compute) -> Body:
    """The body that has lowered ``tensor``; the last of its statements assigns it."""
    scope, policy = Scope(tensor.axes), shared.policy
    if any(known(as_expr(e)) == 0 for e in tensor.shape):
        body = Body(own, shared)
        body.assign(body.target, Full(tuple(a.hi for a in tensor.axes), Number(0), tensor.dtype))
        return body
    if (numbers := literal_of(tensor)) is not None:
        body = Body(own, shared)
        body.assign(body.target, numbers)
        return body
    place = Place(tensor.axes, scope, policy, own.in_tiles)
    root = applied(tensor.body, BEFORE_PADDING, place)
    # the pieces of a copy with continued ends lie inside, one after the other
    padded = {} if isinstance(tensor, Extended) else paddings(root)
    wide = any(dtype in _WIDE for dtype in (tensor.dtype, *(t.dtype for t in tensor.inputs)))
    while isinstance(root, Call) and root.op.name == "cast" and isinstance(root.args[0], Const):
        root = root.args[0]
    root = applied(root, AFTER_PADDING, place)
    own = replace(own, axes=tensor.axes, padded=padded, wide=wide)
    around = kept_around(root, own, tensor.dtype, scope)
    peeling = peeled(root, own, policy, scope)
    if peeling.is_chosen or around is not None:
        own = replace(own, padded={}, sliced=tuple(padded))
    body = Body(own, shared)
    body.report.fired([*tensor.planned_by, *place.fired])
    if peeling.choice is not None:
        noted(body, peeling.choice)
    if around is not None:
        write_into(body, around, tensor.dtype)
    elif peeling.is_chosen:
        write_pieces(body, root, tensor.axes, tensor.dtype, peeling.pieces)
    else:
        body.finish(_code(body, body.evaluate(root, scope), tensor))
    return body


def _code(body: Body, value: Value, tensor: Compute) -> Node:
    """``value`` as an array of the dtype and over all axes of ``tensor``."""
    if value.literal:
        return _constant(tensor, value.code)
    return body.full(body.typed(value, tensor.dtype), tensor.axes)


def _constant(tensor: Compute, number: Node) -> Node:
    if not tensor.axes:
        return Typed(number, tensor.dtype)
    return Full(tuple(a.hi for a in tensor.axes), number, tensor.dtype)


# --- sizes


def _sizes(
    params: Sequence[Tensor], idents: Mapping[Tensor, str], names: Names, order: Sequence[Tensor]
) -> tuple[dict[Var, str], tuple[tuple[str, str], ...]]:
    """The symbolic sizes, each read off the shape of a parameter."""
    told = told_sizes([param.shape for param in params])
    used = _sizes_used(order, frozenset(params))
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
        found |= {n for n in postorder(*exprs) if isinstance(n, Var)}
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


# --- the rest


def _named(tensor: Compute, owned: Mapping[Compute, Compute]) -> str:
    """What the user calls the tensor that ``tensor`` is beside; nothing where there is none."""
    owner = owned.get(tensor)
    while owner is not None and owner in owned:
        owner = owned[owner]
    return "" if owner is None else owner.part_of


def _extern(
    tensor: Extern,
    idents: dict[Tensor, str],
    names: Names,
    groups: dict[object, str],
    functions: list[tuple[str, Callable[..., Any]]],
) -> list[AnyStatement]:
    """A call of the function once for all its outputs, then the output that ``tensor`` is."""
    statements: list[AnyStatement] = []
    scope = identifier(tensor.name)
    if tensor.group not in groups:
        function = names.new(
            f"{scope}_fn"
        )  # never "fn" alone, which is the name of the module's own function
        functions.append((function, tensor.fn))
        groups[tensor.group] = names.new(f"{scope}_out")
        arguments = tuple(Name(idents[t], _extents(t), (t.dtype, False)) for t in tensor.inputs)
        statements.append(Statement(scope, groups[tensor.group], FunctionCall(function, arguments)))
    target = names.new(tensor.name)
    outputs = Name(groups[tensor.group])
    source = Output(outputs, tensor.position, _extents(tensor), (tensor.dtype, False))
    statements.append(Statement(scope, target, source))
    idents[tensor] = target
    return statements


def _extents(tensor: Tensor) -> tuple[Expr, ...]:
    return tuple(as_expr(e) for e in tensor.shape)
