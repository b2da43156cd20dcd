"""Measured seconds of forms, for the whole process."""

from __future__ import annotations

from collections.abc import Mapping

Measurements = Mapping[str, Mapping[str, float]]

_measured: dict[str, dict[str, float]] = {}


def measurements() -> Measurements:
    """Seconds of each form by the signature of the reduction."""
    return _measured


def remember(found: Measurements) -> None:
    """Adds ``found``; it guides the functions that are compiled from now on."""
    for key, seconds in found.items():
        _measured[key] = dict(seconds)
