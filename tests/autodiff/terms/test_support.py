"""Where heads are other than zero: few conditions are told, and many are not looked for."""

from __future__ import annotations

import pytest

import jaxte as te
from jaxte.autodiff.terms import support as module
from jaxte.autodiff.terms.support import support
from jaxte.tensors.tensor import Compute


def spread(x: te.Tensor, name: str) -> Compute:
    """The adjoint of a stencil between zeros: each element is a sum of guarded reads."""
    guarded = lambda i, s: te.select(te.logical_and(i + s >= 0, i + s < 32), x[i + s], 0.0)  # noqa: E731
    made = te.compute((32,), lambda i: guarded(i, -1) + guarded(i, 0) + guarded(i, 1), name=name)
    assert isinstance(made, Compute)
    return made


def test_a_short_condition_is_told() -> None:
    x = te.placeholder((16,), name="x")
    head = te.compute((32,), lambda i: te.select(i % 2 == 0, x[i // 2], 0.0), name="head")
    assert isinstance(head, Compute)
    where = support(head)
    assert where is not None and "i % 2" in str(where)


def test_many_terms_are_not_moved_through_many_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight steps of a stencil have 3 ** 8 terms; the search ends at the first nine."""
    moves = 0
    own = module._Term.moved

    def moved(self: object, table: object) -> object:
        nonlocal moves
        moves += 1
        return own(self, table)  # type: ignore[arg-type]

    monkeypatch.setattr(module._Term, "moved", moved)
    made: te.Tensor = te.placeholder((32,), name="x")
    for n in range(8):
        made = spread(made, f"step{n}")
    assert isinstance(made, Compute)
    assert support(made) is None
    assert moves < 64


def test_a_guard_of_a_head_holds_however_much_it_reads() -> None:
    """The search ends within what is read, which is not asked then: neither are zeros, wherever it ends."""
    x = te.placeholder((32,), name="x")
    long: te.Tensor = x
    for n in range(60):
        before = long
        long = te.compute((32,), lambda i, t=before: te.sin(t[i]) * t[i], name=f"long{n}")
    head = te.compute(
        (32,), lambda i: te.select(i % 2 == 0, long[i], 0.0) + te.select(i % 4 == 1, long[i], 0.0)
    )
    assert isinstance(head, Compute)
    where = support(head)
    assert where is not None and where is not module.TRUE
