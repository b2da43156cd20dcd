"""Which tensors of a graph are the steps of one loop: equal definitions, each of which reads those of the step before it.

A step ends with a tensor of the path that leads through all of them, and consists of what that needs and the tensor before it on the path does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import Read
from jaxte.lang.limits import CASES
from jaxte.tensors.structure import Row, Unlike, outline, rows_of, topological_order
from jaxte.tensors.tensor import Compute, Tensor

FEWEST = 12  # steps that are rather written one after the other
_MOST_TENSORS = 24  # of a step; a longer way back is no loop that a user wrote


@dataclass(frozen=True)
class Lagged:
    """A read of the tensor ``role`` of a step ``lag`` steps before."""

    role: int
    lag: int


@dataclass(frozen=True, eq=False)
class Chain:
    """Steps that are alike.

    Attributes:
        roles: the tensors that are equal up to the step, of every step, each after those of the same step that it reads.
        rows: of each role the nodes of its definitions.
        reads: for tensors that are read, one of each step, what these are; reads of one tensor in all steps are not among them.
        starts: what stands for a role some steps before the first one.
        path: the tensors that the steps end with, and those before the first of them that lead there.
    """

    roles: tuple[tuple[Compute, ...], ...]
    rows: tuple[list[Row], ...]
    reads: Mapping[tuple[Tensor, ...], Lagged]
    starts: Mapping[tuple[int, int], Tensor]
    path: tuple[Compute, ...] = ()

    @property
    def furthest(self) -> int:
        """How many steps back a step looks."""
        return max((own.lag for own in self.reads.values()), default=0)

    @property
    def length(self) -> int:
        return len(self.roles[0])

    @property
    def outside(self) -> list[Tensor]:
        """What is read of other tensors, and what the first steps begin with."""
        own = {t for role in self.roles for t in role}
        found = dict.fromkeys(self.starts.values())
        for role in self.roles:
            found |= dict.fromkeys(t for tensor in role for t in tensor.inputs if t not in own)
        return list(found)


def chains_in(order: Sequence[Tensor]) -> list[Chain]:
    """The chains in ``order``, which share no tensor."""
    plain = [t for t in order if type(t) is Compute]
    if len(plain) < FEWEST:
        return []
    found: list[Chain] = []
    taken: set[Tensor] = set()
    for path in _paths(plain):
        if not taken.isdisjoint(path):
            continue
        for chain in _chains_along(path):
            if all(taken.isdisjoint(role) for role in chain.roles):
                found.append(chain)
                taken.update(t for role in chain.roles for t in role)
    return found


def _paths(plain: Sequence[Compute]) -> Iterator[list[Compute]]:
    """Tensors of one structure, each of which needs the one before it; those whose end comes last first."""
    known: dict[Hashable, int] = {}
    groups: dict[Hashable, list[Compute]] = {}
    for tensor in plain:
        key = outline(tensor.body, known), tensor.dtype, tensor.ndim
        groups.setdefault(key, []).append(tensor)
    place = {t: n for n, t in enumerate(plain)}
    alike = [own for own in groups.values() if len(own) >= FEWEST]
    for group in sorted(alike, key=lambda own: place[own[-1]], reverse=True):
        before = {t: _before(t, set(group), place) for t in group}
        used: set[Compute] = set()
        for end in reversed(group):
            path: list[Compute] = []
            at: Compute | None = end
            while at is not None and at not in used:
                path.append(at)
                used.add(at)
                at = before[at]
            if len(path) >= FEWEST:
                yield path[::-1]


def _before(tensor: Compute, group: set[Compute], place: Mapping[Compute, int]) -> Compute | None:
    """The last tensor of ``group`` that ``tensor`` needs, of those that it reaches through no other one."""
    seen: set[Tensor] = set()
    found: list[Compute] = []
    # the nearest first, or it would lead down another chain beside this one
    waiting: deque[Tensor] = deque(tensor.inputs)
    while waiting and len(seen) <= _MOST_TENSORS:
        own = waiting.popleft()
        if own in seen or type(own) is not Compute:
            continue
        seen.add(own)
        if own in group:
            found.append(own)
        else:
            waiting.extend(own.inputs)
    return max(found, key=place.__getitem__, default=None)


def _chains_along(path: list[Compute]) -> Iterator[Chain]:
    """The longest chains of steps of ``path`` that are alike, the last ones first."""
    tries = 0
    # Ends of the path that no chain is found at.
    while len(path) >= FEWEST and tries < CASES:
        owner, first, found = _owners(path), 0, None
        failed = len(path) - 1
        while len(path) - first >= FEWEST and found is None:
            try:
                found = Comparison(path, owner, first).chain()
            except Unlike as unlike:
                failed = first + unlike.number
                first = failed + 1
        if found is not None:
            yield replace(found, path=tuple(path))
            path = path[:first]
        else:
            tries += 1
            path = path[: failed + 1] if failed < len(path) - 1 else path[:-1]


def _owners(path: Sequence[Compute]) -> dict[Tensor, int]:
    """Of each tensor that the path needs, at which step it is needed first."""
    owner: dict[Tensor, int] = {}
    for number, end in enumerate(path):
        stack: list[Tensor] = [end]
        while stack:
            tensor = stack.pop()
            if tensor not in owner:
                owner[tensor] = number
                stack.extend(tensor.inputs)
    return owner


class Comparison:
    """The steps of ``path`` from ``first`` on, compared with the last one."""

    def __init__(self, path: Sequence[Compute], owner: Mapping[Tensor, int], first: int) -> None:
        self._path = tuple(path[first:])
        self._steps = len(self._path)
        # what the first step of a path needs is a part of it, or from before: its rows tell
        self._owner = {t: n - first for t, n in owner.items() if n >= first}
        self._first_is_open = first == 0
        self._roles: dict[tuple[Tensor, ...], int] = {}
        self._role_of: dict[Tensor, tuple[int, int]] = {}
        self._reads: dict[tuple[Tensor, ...], int] = {}

    @property
    def missing(self) -> list[tuple[Tensor, ...]]:
        """What is read of the step before and belongs to no role."""
        return [read for read, lag in self._reads.items() if lag == 1 and read[-1] not in self._role_of]

    def chain(self, others: Sequence[tuple[Tensor, ...]] = ()) -> Chain:
        """The steps as a chain.

        Args:
            others: tensors of each step that its end does not need.

        Raises:
            Unlike: with a step that is not like the last.
        """
        rows: dict[int, list[Row]] = {}
        waiting: list[tuple[Tensor, ...]] = [own for own in (self._path, *others) if self._add(own)]
        while waiting:
            tensors = waiting.pop()
            own = [t for t in tensors if isinstance(t, Compute)]
            axes = list(zip(*(t.axes for t in own), strict=True))
            found = rows[self._roles[tensors]] = rows_of(tuple(t.body for t in own), axes)
            for row in found:
                read = tuple(node.tensor for node in row if isinstance(node, Read))
                if read and read not in self._reads and self._lag(read) == 0 and self._add(read):
                    waiting.append(read)
        return self._checked(rows)

    def _lag(self, read: tuple[Tensor, ...]) -> int | None:
        """How many steps before ``read`` is, one tensor of each step; None where it is the same in all."""
        last = read[-1]
        if all(t is last for t in read):
            if self._inside(last) or last in self._role_of:
                raise Unlike(self._owner[last])
            return None
        if not self._inside(last):
            raise Unlike(max(n for n, t in enumerate(read) if t is not last))
        lag = self._steps - 1 - self._owner[last]
        if lag > CASES:
            raise Unlike(self._steps - 2)
        for number in range(self._steps - 1, -1, -1):
            if number - lag > 0 and self._owner.get(read[number]) != number - lag:
                raise Unlike(number)
            if number - lag == 0 and not self._first_is_open and self._owner.get(read[number]) != 0:
                raise Unlike(number)
            if number - lag < 0 and self._inside(read[number]):
                raise Unlike(number)
        self._reads[read] = lag
        return lag

    def _inside(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` belongs to a step for sure."""
        return self._owner.get(tensor, -1) >= (1 if self._first_is_open else 0)

    def _add(self, tensors: tuple[Tensor, ...]) -> bool:
        """Takes ``tensors`` as one role; whether it is a new one."""
        if tensors in self._roles:
            return False
        for number, tensor in enumerate(tensors):
            if tensor in self._role_of or type(tensor) is not Compute or tensor.override is not None:
                raise Unlike(number if number < self._steps - 1 else number - 1)
            if tensor.facts:
                raise Unlike(number if number < self._steps - 1 else number - 1)
            self._role_of[tensor] = len(self._roles), number
        self._roles[tensors] = len(self._roles)
        return True

    def _checked(self, rows: Mapping[int, list[Row]]) -> Chain:
        """What was found, where reads of earlier steps are of one role, and what is read from before of no step."""
        reads: dict[tuple[Tensor, ...], Lagged] = {}
        starts: dict[tuple[int, int], Tensor] = {}
        for read, lag in self._reads.items():
            if read[-1] not in self._role_of:
                raise Unlike(self._steps - 2)
            role, _ = self._role_of[read[-1]]
            for number, tensor in enumerate(read):
                if number >= lag and self._role_of.get(tensor) != (role, number - lag):
                    raise Unlike(min(number, self._steps - 2))
                if number < lag and (
                    tensor in self._role_of or starts.setdefault((role, lag - number), tensor) is not tensor
                ):
                    raise Unlike(number)
            reads[read] = Lagged(role, lag)
        for row in (row for own in rows.values() for row in own):
            if isinstance(row[-1], Read) and row[-1].tensor in self._role_of and _is_same(row):
                raise Unlike(min(self._role_of[row[-1].tensor][1], self._steps - 2))
        roles = list(self._roles)
        # a role is found by the one that reads it, which may be found again later: each after those of the same step that it reads
        order = _ordered([list(own) for own in roles])
        new = {old: number for number, old in enumerate(order)}
        chain = Chain(
            tuple(tuple(t for t in roles[n] if isinstance(t, Compute)) for n in order),
            tuple(rows[n] for n in order),
            {read: Lagged(new[own.role], own.lag) for read, own in reads.items()},
            {(new[role], depth): tensor for (role, depth), tensor in starts.items()},
        )
        if any(t in self._role_of for t in topological_order(chain.outside)):
            raise Unlike(0)  # what the first step begins with is made of a part of it
        return chain


def _is_same(row: Row) -> bool:
    tensors = [node.tensor for node in row if isinstance(node, Read)]
    return all(t is tensors[-1] for t in tensors)


def _ordered(roles: Sequence[Sequence[Tensor]]) -> list[int]:
    """The numbers of ``roles``, each after those whose tensors its own read in the same step."""
    last = {own[-1]: n for n, own in enumerate(roles)}
    done: dict[int, None] = {}
    stack = [(n, False) for n in range(len(roles))]
    while stack:
        number, ready = stack.pop()
        if ready:
            done[number] = None
        elif number not in done:
            stack.append((number, True))
            stack.extend((last[t], False) for t in roles[number][-1].inputs if t in last)
    return list(done)
