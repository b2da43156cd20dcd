"""Exceptions of jaxte, and what other libraries call things that jaxte has under another name, for the hints of messages.

Each message says what is wrong, where (in the user's own names) and how to mend it. Every class also
derives from the built-in exception that a numpy or JAX user would expect, so ``except ValueError`` works.

Tracebacks with the lines of a user alone, as JAX shows its own: in Python the message stands last, in a notebook first.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import TracebackType


class JaxteError(Exception):
    """Base class of every error that jaxte raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows."""
        return rendered(self)

    def append(self, line: str) -> None:
        """Puts a line behind the message."""
        self.args = (f"{self}\n{line}",)


class DefinitionError(JaxteError, ValueError):
    """A tensor, a body or a reduction that does not mean anything."""


class ShapeError(DefinitionError):
    """Shapes, ranks or extents that do not fit together."""


class ArgumentError(DefinitionError, TypeError):
    """Arguments that are missing, or that an operator does not take."""


class TruthValueError(DefinitionError):
    """The truth value of an expression or a Tensor (``what`` names it) was asked for, which exists only when the code runs."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has no truth value while a tensor is being defined, and `if`, `and`, `or`, `not`, `in`, `assert`, min, max, "
            "sorted and chains like 0 <= i < n ask for one; use te.select(cond, a, b) for a choice, &, |, ~ instead of and, or, "
            "not, (0 <= i) & (i < n) for a chain, where= for the points of a reduction, te.minimum and te.maximum; `is` tells "
            "nodes apart"
        )


class RangeError(DefinitionError, IndexError):
    """A read that can leave its tensor."""


class IndexExpressionError(DefinitionError):
    """Index arithmetic that is not affine (or quasi-affine) where it has to be."""


class DtypeError(JaxteError, TypeError):
    """Element types that do not fit together."""


class DifferentiationError(JaxteError, ValueError):
    """A derivative that does not exist in the way in which it was asked for."""


class FeedError(JaxteError, ValueError):
    """Arrays given to a graph that do not fit its placeholders."""


class LoweringError(JaxteError, ValueError):
    """A tensor that cannot be turned into code."""


class TooLargeError(LoweringError, MemoryError):
    """A tensor, or something on the way to it, of more bytes than any machine has."""


class PerformanceWarning(UserWarning):
    """A definition that costs many times what it has to in every form that jaxte found."""


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def shorten(error: BaseException) -> None:
    """Takes the frames of jaxte out of ``error``; with JAXTE_TRACEBACKS=full in the environment they stay.

    A bare ``raise`` after it adds no frame of its own, as ``raise error`` would.
    """
    if os.environ.get("JAXTE_TRACEBACKS") == "full":
        return
    result: TracebackType | None = None
    for own in reversed(_frames(error)):
        if not own.tb_frame.f_code.co_filename.startswith(_OWN):
            result = TracebackType(result, own.tb_frame, own.tb_lasti, own.tb_lineno)
    error.__traceback__ = result


def rendered(error: BaseException) -> list[str]:
    """What a notebook prints of ``error``: the message, then the lines of its cells and modules, the last call first."""
    shorten(error)
    lines = [f"{type(error).__name__}: {error}"]
    for own in reversed(_frames(error)):
        code = own.tb_frame.f_code
        if f"{os.sep}IPython{os.sep}" in code.co_filename:
            break  # what is before it runs the cell
        (summary,) = traceback.StackSummary.extract([(own.tb_frame, own.tb_lineno)])
        # a cell is a file that is not there
        place = f"{summary.filename}, line" if os.path.exists(summary.filename) else "cell, line"
        scope = "" if code.co_name == "<module>" else f", in {code.co_name}"
        lines.append(f"  {place} {summary.lineno}{scope}\n    {summary.line}")
    return lines


def _frames(error: BaseException) -> list[TracebackType]:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(at)
        at = at.tb_next
    return frames


def _called(**others: str) -> Mapping[str, str]:
    """From each other name to the own one; the other names of one thing stand in one text."""
    return {other: own for own, listed in others.items() for other in listed.split()}


# of einops, einx, KeOps, TVM, Tullio and deep learning frameworks, among the names of te
PUBLIC = _called(
    einsum="rearrange repeat reduce pack get_at contract einx tullio",
    compute="LazyTensor Vi Vj Genred lambda_",
    function="build create_prim_func",
    floor_divide="floordiv indexdiv truncdiv",
    mod="floormod indexmod truncmod",
    reduce_axis="range iter_var thread_axis",
    grad="mgrad gradients backward derivative",
    source="create_schedule",
    sum="reduce_sum",
    recurrence="scan",
    var="size_var",
    constant="array asarray",
    variance="moments",
    formula="print_formula",
)

# among those of te.ops
OPERATORS = _called(
    dense="linear Linear Dense fully_connected",
    conv2d="conv convolution Conv Conv2d",
    conv2d_transpose="conv_transpose2d deconv2d",
    avg_pool2d="avg_pool mean_pool AvgPool2d",
    max_pool2d="max_pool MaxPool2d",
    concatenate="cat concat",
    batch_matmul="bmm",
    attention="scaled_dot_product_attention dot_product_attention",
    resize="interpolate upsample",
    transpose="permute swapaxes moveaxis",
    cast="astype to",
    expand_dims="unsqueeze",
    take_along_axis="gather",
    take="index_select",
    reshape="view",
    variance="var",
    depth_to_space="pixel_shuffle",
    space_to_depth="pixel_unshuffle",
    silu="swish",
    clip="hardtanh",
    lrn="local_response_norm",
    sum="reduce_sum",
    max="reduce_max amax",
    min="reduce_min amin",
    mean="reduce_mean",
    prod="reduce_prod",
)

# parameters
PARAMETERS = _called(
    axis="dim dims",
    keepdims="keepdim",
    strides="stride",
    layout="data_format",
    window="kernel_size",
    padding="pad",
    w="weight kernel",
    x="input",
    b="bias",
    eps="epsilon",
    ord="p",
)

# reductions, and what is not over an axis
OF_VALUES = {
    "max": "of two values it is te.maximum(a, b)",
    "min": "of two values it is te.minimum(a, b)",
    "all": "of several conditions it is te.logical_and(a, b, c)",
    "any": "of several conditions it is te.logical_or(a, b, c)",
}

# functions and reductions that formulas write out
IN_FORMULAS = {
    "sqdist": "a squared distance is sum[c]((x[i, c] - y[j, c]) ** 2)",
    "sqnorm2": "a squared norm is sum[c](x[i, c] ** 2)",
    "argkmin": "the places of the k least of many are te.ops.top_k",
    "kmin": "the k least of many are te.ops.top_k",
    "clamp": "did you mean clip?",
}

# modes of padding
PADS = _called(
    zero="zeros constant same 0",
    edge="replicate nearest border",
    wrap="circular periodic",
    reflect="mirror reflection",
)


def nearest(name: str, known: Iterable[str]) -> str:
    """What a misspelled ``name`` may have meant, in whatever case, as the end of a message."""
    listed = list(known)
    alike = [own for own in listed if own.lower() == name.lower()]
    found = alike or get_close_matches(name, listed, n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
