"""The text of tiles: a function of one row, and ``lax.map`` of it over several rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxte.expr import Axis
from jaxte.lower.body import Body
from jaxte.lower.names import Names
from jaxte.lower.ops import Choice, Code, Statement, Value
from jaxte.lower.reduces import full
from jaxte.lower.scopes import Scope
from jaxte.lower.specs import Array
from jaxte.lower.tile_passes import Tiles
from jaxte.lower.writing import tuple_text
from jaxte.tensor import Compute, Tensor

MakeBody = Callable[[str, str, str, Mapping[Tensor, str]], Body]
Lower = Callable[[Body, Compute], list[Statement]]


@dataclass(frozen=True)
class Written:
    """One pass as text.

    Attributes:
        statements: what computes its members.
        names: of its members.
        choices: what became of the members and of the tensors inside.
    """

    statements: list[Statement]
    names: dict[Tensor, str]
    choices: list[Choice]


def tile_statements(
    tiles: Tiles, idents: Mapping[Tensor, str], names: Names, make_body: MakeBody, lower: Lower
) -> Written:
    """The text of one pass.

    Args:
        tiles: the pass.
        idents: names of the tensors that exist before it.
        names: gives new ones.
        make_body: makes a body for (label, target, name of the tensor, names of tensors).
        lower: the statements that compute a tensor.
    """
    targets: dict[Tensor, str] = {member: names.new(member.name) for member, _ in tiles.members}
    label = next(iter(targets.values()))
    known = dict(idents)
    statements, operands = _operands(tiles, known, make_body, label)
    for handed in tiles.handed:
        known[handed.row] = names.new(handed.row.name)
    bodies: dict[Compute, Body] = {}
    lines: list[str] = []
    for row in tiles.rows:
        known[row] = names.new(row.name)
        bodies[row] = make_body(label, known[row], row.name, known)
        bodies[row].in_tiles = True
        lines += [line for s in lower(bodies[row], row) for line in s.lines]
    parameter, function = known[tiles.handed[0].row], names.new(f"{label}_row")
    if len(tiles.handed) > 1:
        parameter = names.new("row")
        lines.insert(0, f"{', '.join(known[h.row] for h in tiles.handed)} = {parameter}")
    lines = _returning(lines, [known[row] for row in tiles.results])
    batch = f", batch_size={tiles.count}" if tiles.count > 1 else ""
    mapped = operands[0] if len(operands) == 1 else tuple_text(operands)
    statements.append(Statement(label, f"{function}({parameter})", "", tuple(lines)))
    statements.append(Statement(label, ", ".join(targets.values()), f"lax.map({function}, {mapped}{batch})"))
    for member, position in tiles.members:
        if position:
            target = targets[member]
            statements.append(Statement(label, target, f"jnp.moveaxis({target}, 0, {position})"))
    return Written(statements, targets, _choices(tiles, bodies))


def _returning(lines: list[str], results: list[str]) -> list[str]:
    """``lines`` with a return of ``results``."""
    if len(results) == 1 and lines[-1].startswith(f"{results[0]} = "):
        return [*lines[:-1], f"return {lines[-1].removeprefix(f'{results[0]} = ')}"]
    return [*lines, f"return {', '.join(results)}"]


def choice_of(tensor: str, body: Body, prefix: str = "") -> Choice:
    """What became of a tensor, as its body noted it."""
    form = prefix + (" + ".join(body.forms) or "elementwise")
    return Choice(tensor, form, tuple(body.refused), body.reason, tuple(body.estimates))


def _choices(tiles: Tiles, bodies: Mapping[Compute, Body]) -> list[Choice]:
    first, at = tiles.members[0]
    shown = " and ".join(member.name for member, _ in tiles.members)
    inside = [Choice(t.name, f"inside the tiles of {shown}") for t in tiles.inside]
    prefix = f"tiles of {tiles.count} {first.axes[at].name}: "
    own = [
        choice_of(member.name, bodies[row], prefix)
        for (member, _), row in zip(tiles.members, tiles.results, strict=True)
    ]
    return [*inside, *own]


def _operands(
    tiles: Tiles, known: Mapping[Tensor, str], make_body: MakeBody, label: str
) -> tuple[list[Statement], list[str]]:
    """The arrays that rows are slices of."""
    statements: list[Statement] = []
    texts: list[str] = []
    for handed in tiles.handed:
        body = make_body(label, label, handed.row.name, known)
        code = _whole(body, handed.array)
        statements += body.statements
        texts.append(code.text)
    return statements, texts


def _whole(body: Body, array: Array) -> Code:
    axes: tuple[Axis, ...] = array.axes
    value = body.cast(body.evaluate(array.body, Scope(axes)), array.dtype)
    return full(body, Value(value.code, value.dims, value.kind, value.literal), axes)
