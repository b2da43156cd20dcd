"""Arrays of known extents with a letter for each dimension: what forms made of reshapes are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import ZERO, Axis, Expr, as_expr
from jaxte.lower.arrays import products
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, Index, Pad, Range, Reshape, Spread, Step, Transpose, View
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Array

NO_WIDTH: tuple[Expr, Expr] = (ZERO, ZERO)


@dataclass(frozen=True)
class Shaped:
    """A node and its dimensions: a letter and an extent for each."""

    node: Node
    letters: str
    extents: tuple[int, ...]

    def reshaped(self, at: int, taken: int, letters: str, extents: Sequence[int]) -> Shaped:
        """``taken`` dimensions from ``at`` on as others with as many elements."""
        own = (*self.extents[:at], *extents, *self.extents[at + taken :])
        named = self.letters[:at] + letters + self.letters[at + taken :]
        if own == self.extents:
            return Shaped(self.node, named, own)
        return Shaped(apply_steps(self.node, [Reshape(tuple(map(as_expr, own)))]), named, own)

    def padded(self, at: int, before: int, behind: int) -> Shaped:
        """Zeros before and behind dimension ``at``; elements are cut off where a number is negative."""
        return self.padded_by({at: (before, behind)})

    def padded_by(self, widths: Mapping[int, tuple[int, int]]) -> Shaped:
        """The same in several dimensions, in one pad."""
        cut, entries, extents = self, [NO_WIDTH] * len(self.extents), list(self.extents)
        for at, (before, behind) in widths.items():
            cut = cut.sliced(at, max(0, -before), cut.extents[at] - max(0, -behind))
            entries[at] = as_expr(max(0, before)), as_expr(max(0, behind))
            extents[at] += before + behind
        return Shaped(apply_steps(cut.node, [Pad(tuple(entries))]), self.letters, tuple(extents))

    def spread(self, at: int, before: int, behind: int, step: int, dtype: str) -> Shaped:
        """The same with the elements of dimension ``at`` ``step`` apart, and zeros between them."""
        if step == 1:
            return self.padded(at, before, behind)
        widths: list[tuple[Expr, Expr, int]] = [(*NO_WIDTH, 0)] * len(self.extents)
        widths[at] = as_expr(before), as_expr(behind), step - 1
        length = before + step * (self.extents[at] - 1) + 1 + behind
        extents = (*self.extents[:at], length, *self.extents[at + 1 :])
        return Shaped(Spread(self.node, Typed(Number(0), dtype), tuple(widths)), self.letters, extents)

    def every(self, at: int, start: int, step: int, count: int) -> Shaped:
        """``count`` elements of dimension ``at``, from ``start`` on and ``step`` apart."""
        stop = start + step * (count - 1) + 1
        return self.sliced(at, start, stop) if step == 1 else self._range(at, start, stop, step, count)

    def sliced(self, at: int, start: int, stop: int) -> Shaped:
        if (start, stop) == (0, self.extents[at]):
            return self
        return self._range(at, start, stop, 1, stop - start)

    def _range(self, at: int, start: int, stop: int, step: int, count: int) -> Shaped:
        first = as_expr(start) if start else None
        last = as_expr(stop) if stop < self.extents[at] else None
        return self._indexed(at, Range(first, last, step), count)

    def at(self, at: int, position: Expr) -> Shaped:
        """Without dimension ``at``: its element at ``position``."""
        extents = (*self.extents[:at], *self.extents[at + 1 :])
        node, order = self.node, tuple(range(len(self.extents)))
        match node:
            case View(array, Transpose(moved)):  # XLA on the CPU copies what it moves as a whole
                node, order = array, moved
        index, order = Index((*(ALL,) * order[at], position)), (*order[:at], *order[at + 1 :])
        steps: list[Step] = [index, Transpose(tuple(map(sorted(order).index, order)))]
        node = apply_steps(node, steps if [*order] != sorted(order) else [index])
        return Shaped(node, self.letters[:at] + self.letters[at + 1 :], extents)

    def moving(self, at: int, start: Expr, step: int, count: int) -> Shaped:
        """``count`` elements of dimension ``at``, ``step`` apart, from the position ``start`` on."""
        return self._indexed(at, moving(start, step * (count - 1) + 1, step), count)

    def reversed(self, at: int) -> Shaped:
        return self._indexed(at, Range(step=-1), self.extents[at])

    def named(self, assign: Callable[[Node], Node]) -> Shaped:
        """The same with what ``assign`` makes of its node, a name."""
        return Shaped(assign(self.node), self.letters, self.extents)

    def arranged(self, letters: str) -> Shaped:
        if letters == self.letters:
            return self
        order = tuple(self.letters.index(letter) for letter in letters)
        extents = tuple(self.extents[n] for n in order)
        return Shaped(apply_steps(self.node, [Transpose(order)]), letters, extents)

    def _indexed(self, at: int, entry: Range, count: int) -> Shaped:
        extents = (*self.extents[:at], count, *self.extents[at + 1 :])
        return Shaped(apply_steps(self.node, [Index((*(ALL,) * at, entry))]), self.letters, extents)


def moving(start: Expr, reach: Expr | int, step: int = 1) -> Range:
    """The slice from ``start`` on, of ``reach`` positions, every ``step``-th of them."""
    return Range(start, start + reach, step)


def shaped(array: Array, roles: Sequence[str | Axis], node: Node, letters: dict[Axis, str]) -> Shaped:
    """The operand ``node`` whose dimensions have ``roles``: a letter, or an axis that has one in ``letters``."""
    named = "".join(letters[r] if isinstance(r, Axis) else r for r in roles)
    return Shaped(node, named, tuple(int(a.hi) for a in array.axes))


def einsum(first: Shaped, second: Shaped, out: str) -> Shaped:
    """Their product, summed over the dimensions that are not in ``out``."""
    known = dict(zip(first.letters + second.letters, first.extents + second.extents, strict=True))
    node = products.Einsum(f"{first.letters},{second.letters}->{out}", (first.node, second.node))
    return Shaped(node, out, tuple(known[letter] for letter in out))


def letters_of(axes: Sequence[Axis], reserved: str) -> dict[Axis, str]:
    """A letter for each of ``axes``, none of those ``reserved``: its own where that is free."""
    found: dict[Axis, str] = {}
    taken = set(reserved)
    spare = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for axis in axes:
        letter = axis.name[:1]
        if not (letter.isascii() and letter.isalpha()) or letter in taken:
            letter = next(c for c in spare if c not in taken)
        found[axis] = letter
        taken.add(letter)
    return found
