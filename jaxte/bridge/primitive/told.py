"""Definitions that cost many times what they have to are told of, once each."""

from __future__ import annotations

import warnings

from jaxte.lang.errors import PerformanceWarning
from jaxte.lower.code.vocabulary import Program, Verdict

_told: set[Verdict] = set()


def told(label: str, program: Program) -> Program:
    """``program``, after a :class:`te.PerformanceWarning` for each tensor of it that is dense or large."""
    for choice in program.choices:
        verdict = choice.verdict
        if verdict is not None and (verdict.is_dense or verdict.is_large) and verdict not in _told:
            _told.add(verdict)
            warnings.warn(
                f"{label}: {choice.tensor} ({choice.form}) is {verdict}. te.explain shows what else was considered; "
                'warnings.filterwarnings("ignore", category=te.PerformanceWarning) turns this off',
                PerformanceWarning,
                stacklevel=2,
            )
    return program
