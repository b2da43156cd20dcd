"""The hash of a program by what it computes: operations, types and parameters, with what jaxte emits for each of its calls.

Two programs of one key are the same program to XLA. Names of functions and places in files are left out, as are arrays that a program closes over:
they are arguments to it where values are asked. Its text holds them, so that ``key_of_text`` has them too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxte.bridge.primitive.primitive import jaxte_p

SAYS_NOTHING = {"name", "inline", "keep_unused", "compiler_options_kvs", "ctx_mesh", "debug", "sharding"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_keys: WeakKeyDictionary[ClosedJaxpr, str] = WeakKeyDictionary()


def key(program: ClosedJaxpr) -> str:
    if program not in _keys:
        digest = hashlib.blake2b(digest_size=6)
        for token in _tokens(program.jaxpr):
            digest.update(f"{token};".encode())
        _keys[program] = digest.hexdigest()
    return _keys[program]


def key_of_text(program: ClosedJaxpr) -> str:
    digest = hashlib.blake2b(key(program).encode(), digest_size=6)
    for array in _closed_over(program):
        digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()


def emitted(equation: Any) -> ClosedJaxpr:
    """What jaxte emits on this platform for one of its calls, which is traced once."""
    program = equation.params["program"].on(jax.default_backend())
    return program.traced([v.aval for v in equation.invars])  # type: ignore[no-any-return]


def _tokens(jaxpr: Jaxpr) -> Iterator[Any]:
    numbers: dict[Any, int] = {}

    def told(variables: Sequence[Any]) -> Iterator[str]:
        for v in variables:
            yield v.aval.str_short()
            yield (
                f"{np.asarray(v.val).tobytes()!r}"
                if isinstance(v, Literal)
                else f"{numbers.setdefault(v, len(numbers))}"
            )

    yield from told([*jaxpr.constvars, *jaxpr.invars])
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        yield from told(equation.invars)
        if equation.primitive is jaxte_p:
            yield from _tokens(emitted(equation).jaxpr)
        else:
            for name, value in sorted(equation.params.items()):
                if name not in SAYS_NOTHING:
                    yield name
                    yield from _told_of(value)
        yield from told(equation.outvars)
    yield from told(jaxpr.outvars)


def _closed_over(value: Any) -> Iterator[Any]:
    """The arrays of a program, and of those that its operations have for parameters."""
    if isinstance(value, ClosedJaxpr):
        yield from value.consts
        yield from _closed_over(value.jaxpr)
    elif isinstance(value, Jaxpr):
        for equation in value.eqns:
            is_own = equation.primitive is jaxte_p
            yield from _closed_over(emitted(equation) if is_own else tuple(equation.params.values()))
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _closed_over(part)


def _told_of(value: Any) -> Iterator[Any]:
    """What a parameter says; of functions, by which a derivative would be taken, nothing."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        yield from _tokens(getattr(value, "jaxpr", value))
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _told_of(part)
    elif isinstance(value, np.ndarray):
        yield value.tobytes()
    elif isinstance(value, type) or not callable(value):
        yield ADDRESS.sub("", repr(value))
