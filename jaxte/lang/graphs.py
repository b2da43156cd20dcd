"""Walks over graphs of any kind of node: loops over an explicit stack, so that depth needs no recursion, and orders that are the same in every process.

Sequences: nodes in them, told apart by identity, and items that are put in place of others.

Equal nodes are one object, and ``==`` between nodes is a predicate of the language without a truth value. So what ``in``, ``==``
and ``.index`` are for other sequences, these functions are for sequences of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

from jaxte.lang.operators import Operand

Node = TypeVar("Node", bound=Hashable)
Item = TypeVar("Item")
_READY = object()


def ordered(roots: Iterable[Node], below: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """``roots`` and all that they need of a graph without circles, each after what is ``below`` it."""
    done: list[Node] = []
    stack: list[Any] = [*reversed(list(roots))]
    entered: set[Node] = set()
    while stack:
        node = stack.pop()
        if node is _READY:  # what the next one needs is done
            done.append(stack.pop())
        elif node not in entered:
            entered.add(node)
            if own := [*below(node)]:
                stack += (node, _READY)
                stack.extend(reversed(own))
            else:
                done.append(node)
    return done


def reached(roots: Iterable[Node], below: Callable[[Node], Iterable[Node]]) -> dict[Node, None]:
    """``roots`` and all that can be reached from them, each once, before what is ``below`` it; what comes last is looked at first."""
    found: dict[Node, None] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack.extend(below(node))
    return found


def circles(nodes: Sequence[Node], below: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """``nodes`` in groups of those that reach each other, each group after all that is below it."""
    reach = {node: set(reached(below(node), below)) for node in nodes}
    groups: list[list[Node]] = []
    done: set[Node] = set()
    for node in sorted(nodes, key=lambda n: len(reach[n] | {n})):  # fewer below: earlier
        if node not in done:
            groups.append([n for n in nodes if n is node or (node in reach[n] and n in reach[node])])
            done.update(groups[-1])
    return groups


def leaves(root: Item, parts: Callable[[Item], Sequence[Item]]) -> list[Item]:
    """What ``root`` is made of, from the left to the right: ``parts`` of a node, until there are none."""
    found: list[Item] = []
    stack = [root]
    while stack:
        node = stack.pop()
        own = parts(node)
        if own:
            stack.extend(reversed(own))
        else:
            found.append(node)
    return found


def components(items: Iterable[Item], keys: Callable[[Item], Iterable[Hashable]]) -> list[list[Item]]:
    """``items`` in groups that have no key in common, groups and items in order of appearance."""
    groups: list[tuple[set[Hashable], list[tuple[int, Item]]]] = []
    for number, item in enumerate(items):
        own, members, apart = set(keys(item)), [(number, item)], []
        for held, others in groups:
            if own.isdisjoint(held):
                apart.append((held, others))
            else:
                own, members = own | held, [*others, *members]
        groups = [*apart, (own, members)]
    listed = [sorted(members, key=lambda member: member[0]) for _, members in groups]
    return [[item for _, item in members] for members in sorted(listed, key=lambda group: group[0][0])]


NOTHING: Mapping[Any, None] = {}


def free_in(children: Iterable[Any], bound: Iterable[Any] = ()) -> Mapping[Any, None]:
    """The axes that one of ``children`` depends on, less those that are ``bound``, in order of appearance.

    A mapping that has them all already is taken as it is, so that a thousand nodes over the same axes hold one.
    """
    found = NOTHING
    for child in children:
        own = child.free
        if own is not found and not own.keys() <= found.keys():
            found = {**found, **own} if found else own
    gone = found.keys() & set(bound)
    return {axis: None for axis in found if axis not in gone} if gone else found


T = TypeVar("T")
Members = AbstractSet[T] | Mapping[T, Any]
"""What ``in`` is asked of as it stands: the nodes of a set, or the keys of a dict, are found by identity."""


def among(item: object, items: Iterable[object]) -> bool:
    """Whether ``item``, a node or a tuple or record of nodes, is one of ``items``.

    >>> i, j = te.reduce_axis((0, 2), "i"), te.reduce_axis((0, 2), "j")
    >>> among(i, [j, i]), among((i, 1), [(j, 1)])
    (True, False)
    """
    if isinstance(item, Operand):
        return any(map(is_, repeat(item), items))
    return any(identical(item, other) for other in items)


def identical(a: object, b: object) -> bool:
    """Whether two nodes are one, or two sequences or records hold the same nodes; what is no node is compared as ever."""
    if a is b:
        return True
    if isinstance(a, Operand) or isinstance(b, Operand):
        return False
    if isinstance(a, (tuple, list)):
        if type(a) is not type(b) or len(a) != len(b):  # type: ignore[arg-type]
            return False
        return all(map(is_, a, b)) or all(map(identical, a, b))  # type: ignore[arg-type]
    if is_dataclass(a):
        return type(a) is type(b) and all(
            identical(getattr(a, name), getattr(b, name)) for name in field_names(a.__class__)
        )
    return bool(a == b)


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a dataclass, found once."""
    return tuple(f.name for f in fields(kind))


def place_of(item: object, items: Sequence[object]) -> int:
    """The position of ``item`` in ``items``, the first one.

    Raises:
        ValueError: it is not there.
    """
    for position, other in enumerate(items):
        if item is other or identical(item, other):
            return position
    raise ValueError(f"{item!r} is not in the sequence")


def filled_in(items: Iterable[Any], places: Iterable[int], values: Iterable[Any]) -> list[Any]:
    """``items`` with ``values`` at ``places``."""
    found = list(items)
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found
