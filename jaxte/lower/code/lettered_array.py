"""Expressions with dimensions of known extents, each of which has a letter: what sources made of reshapes are written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis
from jaxte.lower.code.spec import Array, as_atom, tuple_text
from jaxte.lower.printing.numbers import dtype_text


@dataclass(frozen=True)
class Shaped:
    """An expression and its dimensions: a letter and an extent for each."""

    text: str
    letters: str
    extents: tuple[int, ...]

    def reshaped(self, at: int, taken: int, letters: str, extents: Sequence[int]) -> Shaped:
        """``taken`` dimensions from ``at`` on as others with as many elements."""
        own = (*self.extents[:at], *extents, *self.extents[at + taken :])
        named = self.letters[:at] + letters + self.letters[at + taken :]
        if own == self.extents:
            return Shaped(self.text, named, own)
        return Shaped(f"{as_atom(self.text)}.reshape({', '.join(map(str, own))})", named, own)

    def padded(self, at: int, before: int, behind: int) -> Shaped:
        """Zeros before and behind dimension ``at``; elements are cut off where a number is negative."""
        cut = self.sliced(at, max(0, -before), self.extents[at] - max(0, -behind))
        before, behind = max(0, before), max(0, behind)
        if not before and not behind:
            return cut
        widths = ["(0, 0)"] * len(self.extents)
        widths[at] = f"({before}, {behind})"
        extents = (*cut.extents[:at], before + cut.extents[at] + behind, *cut.extents[at + 1 :])
        return Shaped(f"jnp.pad({cut.text}, {widths_text(widths)})", cut.letters, extents)

    def spread(self, at: int, before: int, behind: int, step: int, dtype: str) -> Shaped:
        """The same with the elements of dimension ``at`` ``step`` apart, and zeros between them."""
        if step == 1:
            return self.padded(at, before, behind)
        widths = ["(0, 0, 0)"] * len(self.extents)
        widths[at] = f"({before}, {behind}, {step - 1})"
        length = before + step * (self.extents[at] - 1) + 1 + behind
        extents = (*self.extents[:at], length, *self.extents[at + 1 :])
        zero = f"{dtype_text(dtype)}(0)"
        return Shaped(f"lax.pad({self.text}, {zero}, {tuple_text(widths)})", self.letters, extents)

    def every(self, at: int, start: int, step: int, count: int) -> Shaped:
        """``count`` elements of dimension ``at``, from ``start`` on and ``step`` apart."""
        stop = start + step * (count - 1) + 1
        if step == 1:
            return self.sliced(at, start, stop)
        extents = (*self.extents[:at], count, *self.extents[at + 1 :])
        entry = f"{start or ''}:{stop if stop < self.extents[at] else ''}:{step}"
        return Shaped(self._indexed(at, entry), self.letters, extents)

    def sliced(self, at: int, start: int, stop: int) -> Shaped:
        if (start, stop) == (0, self.extents[at]):
            return self
        entry = f"{start or ''}:{stop if stop < self.extents[at] else ''}"
        extents = (*self.extents[:at], stop - start, *self.extents[at + 1 :])
        return Shaped(self._indexed(at, entry), self.letters, extents)

    def at(self, at: int, name: str) -> Shaped:
        """Without dimension ``at``: its element at the position that ``name`` has."""
        extents = (*self.extents[:at], *self.extents[at + 1 :])
        return Shaped(self._indexed(at, name), self.letters[:at] + self.letters[at + 1 :], extents)

    def moving(self, at: int, start: str, step: int, count: int) -> Shaped:
        """``count`` elements of dimension ``at``, ``step`` apart, from the position on that the text ``start`` is."""
        entry = f"{start}:{start} + {step * (count - 1) + 1}{f':{step}' if step > 1 else ''}"
        return Shaped(
            self._indexed(at, entry), self.letters, (*self.extents[:at], count, *self.extents[at + 1 :])
        )

    def reversed(self, at: int) -> Shaped:
        return Shaped(self._indexed(at, "::-1"), self.letters, self.extents)

    def arranged(self, letters: str) -> Shaped:
        if letters == self.letters:
            return self
        order = tuple(self.letters.index(letter) for letter in letters)
        return Shaped(f"jnp.transpose({self.text}, {order})", letters, tuple(self.extents[n] for n in order))

    def _indexed(self, at: int, entry: str) -> str:
        return f"{as_atom(self.text)}[{', '.join([*[':'] * at, entry])}]"


def widths_text(widths: Sequence[str]) -> str:
    """The pairs of ``jnp.pad``: one of them as it is."""
    return widths[0] if len(widths) == 1 else tuple_text(widths)


def shaped(array: Array, roles: Sequence[str | Axis], text: str, letters: dict[Axis, str]) -> Shaped:
    """The operand ``text`` whose dimensions have ``roles``: a letter, or an axis that has one in ``letters``."""
    named = "".join(letters[r] if isinstance(r, Axis) else r for r in roles)
    return Shaped(text, named, tuple(int(a.hi) for a in array.axes))


def einsum(first: Shaped, second: Shaped, out: str) -> Shaped:
    """Their product, summed over the dimensions that are not in ``out``."""
    known = dict(zip(first.letters + second.letters, first.extents + second.extents, strict=True))
    text = f'jnp.einsum("{first.letters},{second.letters}->{out}", {first.text}, {second.text})'
    return Shaped(text, out, tuple(known[letter] for letter in out))


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
