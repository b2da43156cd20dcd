"""What is measured: each function as jaxte has it and as plain JAX has it, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from exact.figures import GROUPS  # noqa: F401
from exact.sums import LOSSES, SUMS
from harness.case import CORPUS, IDIOMATIC, JAXTE, SUITE, Case, load, names
from harness.inputs import draw
from harness.sides import function, with_gradients
from operators import basic_rows, further_rows, image_rows
from operators.row import ROWS
from raised import EXAMPLES, Example

# importing the rows registers them
assert basic_rows and image_rows and further_rows

SIZE = "quick"  # of the suite and of the corpus


@dataclass(frozen=True)
class Subject:
    """A function in both forms.

    Attributes:
        ours, theirs: of ``*arguments(seed)`` to values and gradients, two lists.
        arguments: a tree of NumPy arrays, float32 where they are floating, drawn from a seed.
    """

    group: str
    name: str
    ours: Callable[..., tuple[list[Any], list[Any]]]
    theirs: Callable[..., tuple[list[Any], list[Any]]]
    arguments: Callable[[int], Sequence[Any]]


def subjects(group: str) -> Iterator[Subject]:
    """The functions of a group, in the order of its page."""
    if group == "raised":
        yield from (_of_example(group, example) for example in EXAMPLES.values())
    elif group == "operators":
        yield from (_of_case(group, row.case, "full") for row in ROWS.values())
    elif group == "sums":
        yield from (_of_case(group, case, "full") for case in SUMS)
        yield from (_of_example(group, example) for example in LOSSES)
    else:
        folder = {"suite": SUITE, "corpus": CORPUS}[group]
        yield from (_of_case(group, load(name), SIZE) for name in names(folder))


def _of_case(group: str, case: Case, size: str) -> Subject:
    """The gradients are those of the sum of the outputs times heads, which are drawn too and come first among the arguments."""

    def arguments(seed: int) -> list[Any]:
        args = draw(case.inputs_at(size), seed)
        shapes = jax.tree.leaves(jax.eval_shape(case.sides[IDIOMATIC], *args))
        rng = np.random.default_rng(seed + 1000)
        if any(not jnp.issubdtype(s.dtype, jnp.floating) for s in shapes):
            return [[], *args]
        return [[rng.standard_normal(s.shape).astype("float32") for s in shapes], *args]

    def side(name: str) -> Callable[..., tuple[list[Any], list[Any]]]:
        def run(heads: Sequence[Any], *args: Any) -> tuple[list[Any], list[Any]]:
            wanted = case.with_respect_to or tuple(n for n, a in enumerate(args) if _is_floating(a))
            if not heads or not wanted:
                return jax.tree.leaves(function(case, name)(*args)), []
            shapes = jax.tree.leaves(jax.eval_shape(function(case, name), *args))
            fitting = [h.astype(s.dtype) for h, s in zip(heads, shapes, strict=True)]
            found = with_gradients(function(case, name), wanted)(fitting, *args)
            return found[: len(heads)], found[len(heads) :]

        return run

    return Subject(group, case.name, side(JAXTE), side(IDIOMATIC), arguments)


def _of_example(group: str, example: Example) -> Subject:
    def side(differentiate: Callable[..., Any]) -> Callable[..., tuple[list[Any], list[Any]]]:
        def run(*args: Any) -> tuple[list[Any], list[Any]]:
            floats = tuple(n for n, a in enumerate(args) if all(_is_floating(x) for x in jax.tree.leaves(a)))
            value, gradients = differentiate(example.loss, floats)(*args)
            return [value], jax.tree.leaves(gradients)

        return run

    return Subject(
        group,
        example.name,
        side(te.value_and_grad),
        side(jax.value_and_grad),
        lambda seed: example.make(np.random.default_rng(seed)),
    )


def _is_floating(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))
