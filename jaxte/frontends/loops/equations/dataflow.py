"""From a program to equations: each statement is a tensor over its loops, and each read finds the elements of these that it sees.

What is overwritten is another element of another tensor. Additions (``+=``, ``*=``, ``min=``, ``max=``) have no tensor: who reads what they add to
sees a reduction over those that came before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jaxte.frontends.loops.equations.flows import Flows, Reads
from jaxte.frontends.loops.program import Cell, Equation, Program, Stand, Statement, Variable
from jaxte.frontends.loops.reading.recorder import FOLDS, identity
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce, as_expr, cast, conjunction
from jaxte.lang.functions import select
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import SEVERAL
from jaxte.lang.walk import free_axes, rewrite, substitute
from jaxte.sets.accesses import Access, Content, Source
from jaxte.sets.domain import IntegerSet
from jaxte.tensors.reducers import builtin_reducer


class Dataflow(Reads):
    """The equations of ``program``.

    Args:
        plain: numbers of statements of which additions are taken for what they are written as, a new value.
        nested: whether reads of more elements than another sees are equations of their own, of which the other is a part.
        whole: whether what several reads of an iteration see of a whole array is one equation.
        flows: what other readings of the program have found.
    """

    def __init__(
        self,
        program: Program,
        plain: Collection[int] = (),
        nested: bool = False,
        whole: bool = True,
        flows: Flows | None = None,
    ) -> None:
        super().__init__(program, plain, Flows() if flows is None else flows)
        self._is_nested = nested
        self._has_wholes = whole
        self._contents = self._found()
        self._equations: dict[object, Equation] = {}
        self._parts: dict[Statement, Expr] = {}
        self.results = [self._result(v) for v in program.results]
        marked = [program.statements[n] for own in program.regions for n in own.whole]
        self.roots = [*self.results, *map(self.equation, marked)]
        while self._leave_out_axes():
            pass

    def _found(self) -> dict[Access, Content]:
        """What each read sees: that of those with additions for all at once that see the same."""
        found: dict[Access, Content] = {}
        groups: dict[str, list[Access]] = {}
        shapes = {self.array_of(v): [as_expr(e) for e in v.shape] for v in self.program.variables}
        for access in [*self.reads.values(), *self.outputs.values()]:
            if self.flow(access).has_additions(access):
                groups.setdefault(access.array, []).append(access)
            else:
                found[access] = self.flow(access).content(access)
        for whole, others in self._versions(found).items() if self._has_wholes else ():
            around = len(whole.axes) - len(whole.indices)
            content = self.flow(whole).shared_contents([whole, *others], shapes[whole.array], around)[0]
            if len(content.reads) > 1:
                found.update((r, content) for r in content.reads)
        for array, reads in groups.items():
            own = self.by_array[array]
            ask = own.nested_contents if self._is_nested else own.shared_contents
            for content in ask(reads, shapes[array]):
                found.update((r, content) for r in content.reads)
        return found

    def _versions(self, found: Mapping[Access, Content]) -> dict[Access, list[Access]]:
        """Reads of whole arrays that several writes of an iteration have put together, each with the later ones in that iteration, which may see the same."""
        by_access = {access: statement for (statement, _), access in self.reads.items()}
        reads = [a for a in by_access if a in found and not self.positions[a]]
        groups: dict[Access, list[Access]] = {}
        for whole in reads:
            around = len(whole.axes) - len(whole.indices)
            taken = any(whole in others for others in groups.values())
            # Writes, those of the edges among them, that a read chooses between element by element.
            if taken or len(found[whole].written) < SEVERAL or not around or not self._is_whole(whole):
                continue
            own, loops = by_access[whole], whole.axes[:around]
            groups[whole] = [
                a
                for a in reads
                if a is not whole
                and a.array == whole.array
                and identical(a.axes[:around], loops)
                and (by_access[a] is own or by_access[a].places[around] > own.places[around])
            ]
        return {whole: others for whole, others in groups.items() if others}

    def _is_whole(self, access: Access) -> bool:
        """Whether each element is read once in each iteration of the loops around."""
        variable = self.program.variables[int(access.array[1:])]
        inner = access.axes[len(access.axes) - len(access.indices) :]
        return (
            not access.conditions
            and len(inner) == len(access.indices)
            and all(
                index is axis and axis.extent is as_expr(extent)
                for index, axis, extent in zip(access.indices, inner, variable.shape, strict=True)
            )
        )

    def _result(self, variable: Variable) -> Equation:
        access = self.outputs[variable]
        content = self._contents[access]
        return self._equation_of(content, variable)

    def _equation_of(self, content: Content, variable: Variable) -> Equation:
        if content not in self._equations:
            own = Equation(variable.name, content.axes, content.domain, variable.dtype)
            self._equations[content] = own
            own.says(self._seen(content, variable))
        return self._equations[content]

    def equation(self, statement: Statement) -> Equation:
        """The values that a statement writes."""
        if statement not in self._equations:
            domain = conjunction(statement.conditions)
            own = Equation(
                statement.variable.name, statement.axes, domain, statement.variable.dtype, statement
            )
            self._equations[statement] = own
            own.says(self._resolved(statement))
        return self._equations[statement]

    def _resolved(self, statement: Statement) -> Expr:
        """What a statement writes, or adds, over the axes of its loops."""
        known: dict[Expr, Expr] = {}

        def rule(node: Expr) -> Expr:
            if node in known:
                return known[node]
            if isinstance(node, Read) and isinstance(node.tensor, Cell):
                found = self._at(statement, node, [rule(i) for i in node.indices])
            elif node.children:
                found = node.rebuild([rule(c) for c in node.children])
            else:
                found = node
            known[node] = found
            return found

        value = statement.alone if statement in self.unkept else None
        return rule(self.value_of(statement) if value is None else value)

    def _at(self, statement: Statement, read: Read, indices: Sequence[Expr]) -> Expr:
        access, variable = self.reads[statement, read], self.variable_of(read)
        content = self._contents[access]
        if content.shared:
            around = statement.axes[: content.around]
            return Read(self._equation_of(content, variable).stand, [*around, *indices])
        places = {n: a for a in self.positions[access] for n, i in enumerate(access.indices) if i is a}
        table = {axis: indices[n] for n, axis in places.items()}
        if not content.added:
            return substitute(self._seen(content, variable), table)
        stand = self._equation_of(content, variable).stand
        return Read(stand, [table.get(a, a) for a in content.axes])

    def _seen(self, content: Content, variable: Variable) -> Expr:
        """What elements of a variable hold, over the axes of ``content``."""
        result: Expr | None = None
        is_open = any(self._may_hold_nothing(r) for r in content.reads) and bool(content.written)
        if is_open and all(s.condition is not TRUE for s in content.written):
            result = as_expr(cast(0, variable.dtype))
        for source in content.written:
            own = self._element(source)
            result = own if result is None else select(source.condition, own, result)
        for source in content.added:
            op = self.adds[self._statement(source)]
            term = self._term(source, op)
            if source.condition is not TRUE:
                term = select(source.condition, term, identity(op, variable.dtype))
            result = term if result is None else as_expr(FOLDS[op](result, term))
        for part, where in content.parts:
            seen = Read(self._equation_of(part, variable).stand, content.axes)
            result = seen if result is None else select(where, seen, result)
        if result is None:  # of an element that the other branch of an if writes
            return as_expr(cast(0, variable.dtype))
        return result

    def _may_hold_nothing(self, access: Access) -> bool:
        """Whether ``access`` is what a branch keeps of an element that the other branch writes, and that nothing was written to before."""
        return access in self.keeps and self.flow(access).unwritten(access) is not None

    def _statement(self, source: Source) -> Statement:
        own = self.writes[source.write]
        assert isinstance(own, Statement)
        return own

    def _element(self, source: Source) -> Expr:
        own = self.writes[source.write]
        if isinstance(own, Variable):
            assert own.initial is not None
            return Read(own.initial, source.at)
        equation = self.equation(own)
        return Read(equation.stand, source.at)

    def _term(self, source: Source, op: str) -> Expr:
        """What the additions of one source come to."""
        statement = self._statement(source)
        if statement not in self._parts:
            self._parts[statement] = cast(self._resolved(statement), statement.variable.dtype)
        table: Mapping[Expr, Expr] = dict(zip(statement.axes, source.at, strict=True))
        part = substitute(self._parts[statement], table)
        if not source.free:
            return part
        reducer = builtin_reducer(op, statement.variable.dtype)
        return Reduce(reducer, [part], source.free, source.where)

    def _leave_out_axes(self) -> bool:
        """Whether contents at the points of one read do not depend on all of its axes, which they have no more then: a local number, read in an inner loop."""
        fewer: dict[Equation, tuple[Equation, list[int]]] = {}
        for key, own in self._equations.items():
            if isinstance(key, Content) and not key.shared and own not in self.results:
                domain, axes = _needed(own)
                if len(axes) < len(own.axes):
                    places = [n for n, axis in enumerate(own.axes) if among(axis, axes)]
                    fewer[own] = Equation(own.name, axes, domain, own.dtype, body=own.body), places

        def rule(node: Expr) -> Expr:
            if isinstance(node, Read) and isinstance(node.tensor, Stand) and node.tensor.equation in fewer:
                new, places = fewer[node.tensor.equation]
                return Read(new.stand, [node.indices[n] for n in places])
            return node

        for key, old in list(self._equations.items()) if fewer else ():
            own = self._equations[key] = fewer[old][0] if old in fewer else old
            own.says(rewrite(own.body, rule))
        return bool(fewer)

    def additions_in(self, equations: Collection[Equation]) -> set[int]:
        """The numbers of the statements whose additions ``equations`` hold."""
        return {self._statement(s).number for content in self.contents_of(equations) for s in content.added}

    def additions_over_outermost(self, equations: Collection[Equation]) -> set[int]:
        """The numbers of those whose sums run over the iterations of the loop that stands around all statements of ``equations``."""
        around = {s.counters[:1] for e in equations if (s := e.statement) is not None}
        found: set[int] = set()
        for source in (s for content in self.contents_of(equations) for s in content.added):
            own = self._statement(source)
            if (
                own.counters
                and around == {own.counters[:1]}
                and any(a in free_axes(source.at[0]) for a in source.free)
            ):
                found.add(own.number)
        return found

    def contents_of(self, equations: Collection[Equation]) -> list[Content]:
        """What arrays hold, of which ``equations`` are."""
        held = {id(e) for e in equations}
        return [key for key, own in self._equations.items() if id(own) in held and isinstance(key, Content)]


def _needed(equation: Equation) -> tuple[Expr, tuple[Axis, ...]]:
    """The axes that the body of ``equation`` has, and its domain over these: where it has a value for some point of the others."""
    used = set(free_axes(equation.body))
    own = tuple(a for a in equation.axes if a in used)
    others = [a for a in equation.axes if a not in used]
    if any(among(a, others) for a in free_axes(equation.domain)):
        shadow = IntegerSet([*own, *others], [equation.domain]).shadow(own)
        if shadow is not None:
            return shadow, own
        used.update(free_axes(equation.domain))
        own = tuple(a for a in equation.axes if a in used)
    return equation.domain, own
