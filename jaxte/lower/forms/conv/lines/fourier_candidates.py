"""The form of a convolution by Fourier transforms, with what it costs and why it is not taken by itself."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.body.write_form import operands_of
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.conv.lines.fourier import fourier_source, fourier_spec, fourier_windows, points_of
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.lower.forms.conv.spec import Window

FORM = "Fourier transform"
CAUTION = "rounds relative to the largest result, and an inf or nan anywhere is nan everywhere"


def fourier_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """The product of transforms, where operands and result are long."""
    axes, node = wanted.axes, wanted.node
    windows = fourier_windows(found.match, node.dtype)
    if isinstance(windows, Refusal):
        return

    def write(windows: list[Window] = windows) -> Search:
        spec = fourier_spec(found.match, windows, axes, node.dtype, found.outer, found.guards)
        operands = yield from operands_of(body, spec.operands, wanted.scope)
        body.report.note(FORM)
        return Value(fourier_source(spec, operands, body.step), axes, (node.dtype, False))

    yield Candidate(FORM, _work(found, windows), write, CAUTION)


def _work(found: Matched, windows: list[Window]) -> Work:
    """Three transforms of every sequence that there is, and the product of complex numbers.

    Stated: the nodes are made where the form is written, since it is taken only by name or as measured. A transform does eight times the
    time of a matrix product with as many operations (measured).
    """
    match, spatial = found.match, frozenset(a for w in windows for a in (w.spatial.t, w.spatial.z))
    others = [a for own in match.outputs for a in own if a not in spatial]
    reduced = [a for a in match.reduced if a not in spatial]
    count = points_of(windows)
    sequences = (
        points(a for a in (*others, *reduced) if a in match.lhs.axes)
        + points(a for a in (*others, *reduced) if a in match.rhs.axes)
        + points(others)
    )
    transforms = 2.5 * count * log2(count) * sequences
    product = 4.0 * count * points((*others, *reduced))
    return Work(dot=8 * transforms + product, stream=16.0 * count * sequences, kernel=6)
