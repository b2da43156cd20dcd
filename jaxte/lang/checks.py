"""Arguments of public functions, checked where they come in: what is wrong, in which argument, and what would do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_overloads

from jaxte.lang.errors import OF_VALUES, PARAMETERS, ArgumentError, JaxteError, shorten

F = TypeVar("F", bound=Callable[..., Any])


def described(value: object) -> str:
    """A value in an error message: its type, and itself where that is short."""
    if value is None:
        return "None"
    shown = repr(value)
    kind = type(value)
    name = kind.__name__ if kind.__module__.startswith("jaxte.") else f"{kind.__module__}.{kind.__name__}"
    name = name.removeprefix("builtins.")
    return f"{name} {shown}" if len(shown) < 60 else f"a {name}"


def counted(number: object, one: str, several: str) -> str:
    """``1 axis``, ``2 axes``."""
    return f"{number} {one if number == 1 else several}"


def for_users(fn: F) -> F:
    """``fn``, whose errors have the frames of its users alone."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except JaxteError as error:
            shorten(error)
            raise

    return call  # type: ignore[return-value]


def no_attribute(module: str, name: str, known: Iterable[str], elsewhere: str = "") -> AttributeError:
    """That ``module`` has no ``name``, with what is ``elsewhere``, or the name that was meant where one is near."""
    near = (
        [elsewhere]
        if elsewhere
        else []
        if name.startswith("_")
        else get_close_matches(name, list(known), n=1, cutoff=0.6)
    )
    hint = f"; did you mean {near[0]}?" if near else ""
    return AttributeError(f"module '{module}' has no attribute {name!r}{hint}")


def typed(fn: F, front: Callable[..., Any] | None = None) -> F:
    """``fn`` with the types of the overloads of ``front``, by default its own, where it has none: what help() and inspect.signature show.

    What the overloads name one by one, ``fn`` may take as ``*args``, which are objects then.
    """
    overloads = get_overloads(front or fn)
    types = fn.__annotations__
    for name in [name for name, kind in types.items() if overloads and kind in ("Any", Any)]:
        types[name] = union_of(each.__annotations__.get(name) for each in overloads)
    return fn


def union_of(types: Iterable[object]) -> str:
    """The text of the union of ``types``, those that are None left out; of nothing it is object."""
    members = dict.fromkeys(member for kind in types if kind is not None for member in _members(str(kind)))
    return " | ".join(members) or "object"


def _members(union: str) -> list[str]:
    """The members of ``A | B[C | D]``, of which there are two."""
    found: list[str] = []
    for piece in union.split(" | "):
        if found and found[-1].count("[") > found[-1].count("]"):
            found[-1] += f" | {piece}"
        else:
            found.append(piece)
    return found


def wants_arguments(fn: F) -> F:
    """``fn``, whose missing and unknown arguments are an :class:`ArgumentError` that shows its parameters."""
    signature = inspect.signature(typed(fn))
    bare = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )

    public = "te.ops" if fn.__module__.startswith("jaxte.ops.") else "te"

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return fn(*args, **kwargs)
            except JaxteError:
                raise
            except TypeError:
                misfit = _misfit(signature, args, kwargs)
                if misfit is None:
                    raise
            if "too many positional" in misfit and fn.__name__ in OF_VALUES:
                misfit += f"; {OF_VALUES[fn.__name__]}"
            raise ArgumentError(f"{public}.{fn.__name__}{bare}: {misfit}")
        except JaxteError as error:
            shorten(error)
            raise

    return call  # type: ignore[return-value]


def _misfit(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why the arguments do not fit the parameters, None where they do."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return misfit(error, signature, kwargs)
    return None


def _meant(signature: inspect.Signature, kwargs: Mapping[str, Any]) -> str:
    """The parameter that an unknown keyword stands for, as the end of a message."""
    known = list(signature.parameters)
    for name in (n for n in kwargs if n not in known):
        other = PARAMETERS.get(name)
        close = [other] if other in known else get_close_matches(name, known, n=1, cutoff=0.6)
        if close:
            return f"; did you mean {close[0]}=?"
    return ""


def misfit(error: TypeError, signature: inspect.Signature, kwargs: Mapping[str, Any]) -> str:
    """``error``, that arguments do not fit ``signature``, with the keyword that was meant."""
    parameters = signature.parameters
    wrong = [name for name in kwargs if name not in parameters]
    if wrong and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return f"got an unexpected keyword argument {wrong[0]!r}{_meant(signature, kwargs)}"
    return str(error)


def one_of_type(value: Any, kinds: type | tuple[type, ...], what: str, remedy: str) -> Any:
    """``value``, an instance of ``kinds``."""
    if not isinstance(value, kinds):
        raise ArgumentError(f"{what} is {described(value)}; give {remedy}")
    return value


def several(value: Any, kinds: type | tuple[type, ...], what: str, remedy: str) -> list[Any]:
    """One value of ``kinds``, or each of several, as a list."""
    if isinstance(value, kinds):
        return [value]
    if isinstance(value, (str, bytes, Mapping, type)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{what} is {described(value)}; give {remedy}")
    found = list(value)
    for item in found:
        if not isinstance(item, kinds):
            raise ArgumentError(f"{what} has {described(item)}; give {remedy}")
    return found


def a_mapping(value: Any, what: str, remedy: str) -> Mapping[Any, Any]:
    """``value``, a dict or the like."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{what} is {described(value)}; give {remedy}")
    return value


def a_label(name: Any, what: str) -> str | None:
    """A label: any text, or None."""
    if not (name is None or isinstance(name, str)):
        raise ArgumentError(f"{what} is {described(name)}; give a string")
    return name


def called(fn: Callable[..., Any], args: Iterable[Any], what: str) -> Any:
    """What ``fn``, which the user wrote, returns; arguments that it does not take are an error of ours."""
    given = tuple(args)
    try:
        return fn(*given)
    except TypeError as error:
        try:
            inspect.signature(fn).bind(*given)
        except TypeError:
            raise ArgumentError(f"{what} does not take {len(given)} arguments: {error}") from None
        except ValueError:  # a builtin without a signature
            raise ArgumentError(f"{what}: {error}") from None
        raise
