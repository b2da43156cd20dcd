"""Every operator says what it computes, what it refuses and where its definition comes from, and its example runs."""

from __future__ import annotations

import doctest
import re

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

PARSER, RUNNER = doctest.DocTestParser(), doctest.DocTestRunner()


@pytest.mark.parametrize("name", te.ops.__all__)
def test_documentation(name: str) -> None:
    text = getattr(te.ops, name).__doc__
    assert re.search(r"^ *Formula: ``.+?``", text, re.MULTILINE | re.DOTALL), text
    assert re.search(r"^ *Raises:\n +\w+Error: ", text, re.MULTILINE), text
    assert re.search(r"^ *Source: ", text, re.MULTILINE), text
    example = PARSER.get_doctest(text, dict(te=te, np=np, jnp=jnp), name, None, 0)
    assert example.examples
    assert not RUNNER.run(example).failed
