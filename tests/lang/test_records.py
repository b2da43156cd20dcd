"""Dataclasses of jaxte beside those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from typing import Any

import pytest

from jaxte.lang.records import dataclass


@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[int, ...] = ()
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    y: int = 2


@dataclass(frozen=True, eq=False)
class ByIdentity(Point):
    z: int = 3

    def __repr__(self) -> str:
        return "one's own"


@dataclass(frozen=True)
class Empty:
    pass


@dataclass
class Open:
    x: int


def _standard(kind: Any) -> Any:
    """The class as the standard library makes it."""
    options = {"frozen": True, "slots": kind is Slotted, "eq": kind is not ByIdentity}
    bases = (_standard(Point),) if kind is ByIdentity else ()
    own = {name: value for name, value in vars(kind).items() if name == "__repr__" and kind is ByIdentity}
    fields = {
        f.name: dataclasses.field(default=f.default, default_factory=f.default_factory, compare=f.compare)
        for f in dataclasses.fields(kind)
        if f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
    }
    types = {"__annotations__": {f.name: f.type for f in dataclasses.fields(kind)}}
    return dataclasses.dataclass(**options)(type(kind.__name__, bases, {**own, **fields, **types}))


@pytest.mark.parametrize("kind", [Point, Slotted, ByIdentity, Empty])
def test_values_are_those_of_the_standard_library(kind: Any) -> None:
    standard = _standard(kind)
    args = range(len(dataclasses.fields(kind)) and 1)
    own, other = kind(*args), standard(*args)
    assert repr(own) == repr(other)
    assert dataclasses.asdict(own) == dataclasses.asdict(other)
    assert (own == kind(*args)) == (other == standard(*args))
    assert (hash(own) == hash(kind(*args))) == (hash(other) == hash(standard(*args)))
    assert own != other
    assert kind.__match_args__ == standard.__match_args__
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(standard).parameters)
    assert hasattr(own, "__dict__") == hasattr(other, "__dict__")


def test_what_is_compared_and_what_is_shared() -> None:
    assert Point(1, tags=["a"]) == Point(1)
    assert Point(1) != Point(1, (2,))
    assert Point(1).tags is not Point(1).tags
    assert dataclasses.replace(Point(1, tags=["a"]), x=2) == Point(2)
    assert {Point(1): "found"}[Point(1)] == "found"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open(1))


@pytest.mark.parametrize("record", [Point(1), Slotted(1), ByIdentity(1)])
def test_a_frozen_record_is_not_changed(record: Any) -> None:
    for name in ("x", "another"):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
            setattr(record, name, 3)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete"):
            delattr(record, name)


@pytest.mark.parametrize("record", [Point(1, (2,), ["a"]), Slotted(1), Empty()])
def test_records_are_copied_and_pickled(record: Any) -> None:
    for made in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert made == record


def test_wrong_arguments_are_errors_of_the_class() -> None:
    with pytest.raises(TypeError, match=r"Slotted\.__init__\(\) missing 1 required positional argument: 'x'"):
        Slotted()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Slotted(1, z=2)  # type: ignore[call-arg]


def test_jaxte_has_no_frozen_class_of_the_standard_library() -> None:
    made = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("jaxte.")
        for value in vars(module).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == name
    ]
    assert len(made) > 400
    assert [kind for kind in made if kind.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]
