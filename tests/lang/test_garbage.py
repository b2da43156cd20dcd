"""The collector of reference cycles waits while something is derived, and goes on as it was set."""

from __future__ import annotations

import gc

import pytest

import jaxte as te
from jaxte.lang.budget import bounded


def test_no_cycles_are_collected_while_something_is_derived() -> None:
    assert gc.isenabled()
    with bounded(1):
        with bounded(1):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(te.JaxteError), bounded(1):
        raise te.JaxteError("none")
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with bounded(1):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
