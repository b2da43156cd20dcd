"""What is emitted for a platform, as a hash beside its figures: where the text changed, the figures are those of another program.

No compiler is asked. Operators and raised functions have no hash: the figures of these are taken again with those of the platform.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

import jaxte as te
from harness.case import CORPUS, JAXTE, SUITE, load
from harness.inputs import draw

HASHED = (SUITE, CORPUS)
TEXTS = "texts"
_DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)


def text_hash(name: str, platform: str, size: str = "full") -> str:
    """The hash of the module that jaxte writes for a case of the suite or of the corpus, without its docstrings: formulas do not run."""
    case = load(name)
    args = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), list(draw(case.inputs_at(size)))
    )
    text = str(te.source(te.function(case.sides[JAXTE], platform=platform), *args))
    return hashlib.sha256(_DOCSTRING.sub("", text).encode()).hexdigest()[:16]


def recorded(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The platform, the name and the hash of each function whose figures were taken with one."""
    for platform, names in sorted(data.get(TEXTS, {}).items()):
        for name, own in sorted(names.items()):
            yield platform, name, own
