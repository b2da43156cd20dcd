"""Dataclasses as those of the standard library, which are imported in half of the time.

For a frozen class the standard library compiles five functions or six, of which four differ in the names of the fields alone: with some 440
classes that was two thirds of the time of ``import jaxte``. Here only ``__init__`` is compiled. What ``dataclasses`` itself says of a class
(``fields``, ``replace``, ``asdict``) is said of these too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

_put = object.__setattr__
_LEFT_OUT = object()  # where an argument with a default_factory was not given

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # of which checkers know what it makes
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        slots: bool = False,
        match_args: bool = True,
    ) -> Any:
        """``dataclasses.dataclass`` with the options that are used here.

        Example:
            >>> @dataclass(frozen=True)
            ... class Point:
            ...     x: int
            ...     y: int = 0
            >>> Point(1), Point(1) == Point(1, 0)
            (Point(x=1, y=0), True)
        """

        def made(own: type) -> type:
            if not frozen:
                return dataclasses.dataclass(eq=eq, slots=slots, match_args=match_args)(own)
            own.__doc__ = own.__doc__ or own.__name__  # or the standard library makes a text of the signature
            plain = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=slots, match_args=match_args
            )(own)
            return _frozen(plain, eq, slots)

        return made if cls is None else made(cls)


def _frozen(cls: Any, eq: bool, slots: bool) -> type:
    """``cls``, of which the fields are known, with what frozen dataclasses have; what it defines itself stays."""
    own, fields = cls.__dict__, dataclasses.fields(cls)
    added: dict[str, Any] = {"__init__": _init_of(cls, fields), "__repr__": _repr}
    added |= {"__setattr__": _no_assignment, "__delattr__": _no_deletion}
    if slots:
        added |= {"__getstate__": _state, "__setstate__": _set_state}
    if eq:
        added["__eq__"], added["__hash__"] = _equality([f.name for f in fields if f.compare])
    for name, function in added.items():
        if own.get(name) is None:  # a class with __eq__ has None for its __hash__
            setattr(cls, name, function)
    return cls  # type: ignore[no-any-return]


def _init_of(cls: Any, fields: Sequence[Field[Any]]) -> Callable[..., None]:
    scope: dict[str, Any] = {"_put": _put, "_LEFT_OUT": _LEFT_OUT}
    parameters, lines, given = ["self"], [], [f for f in fields if f.init]
    for f in given:
        value = f.name
        if f.default_factory is not MISSING:
            scope[f"{f.name}_factory"] = f.default_factory
            parameters.append(f"{f.name}=_LEFT_OUT")
            value = f"{f.name}_factory() if {f.name} is _LEFT_OUT else {f.name}"
        elif f.default is not MISSING:
            scope[f"{f.name}_default"] = f.default
            parameters.append(f"{f.name}={f.name}_default")
        else:
            parameters.append(f.name)
        lines.append(f"_put(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), scope)
    made = scope["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {**{f.name: f.type for f in given}, "return": None}
    return made  # type: ignore[no-any-return]


def _equality(names: list[str]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    # of one name attrgetter gives no tuple, which asks whether values are the same object before they are compared
    values: Any = attrgetter(*names) if len(names) > 1 else attrgetter(*names, "__class__")

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equal, hashed


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _no_assignment(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        _put(self, f.name, value)
