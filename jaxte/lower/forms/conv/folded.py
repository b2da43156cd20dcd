"""A convolution of three or more dimensions as one of two: the windows of a dimension laid out among batch and features.

For each output ``t`` of a dimension the taps ``k`` meet ``x[gamma * t + beta * k - before]``. Laid out as an array over ``t`` and ``k``,
the outputs are further examples of a batch and the taps further features that are contracted, of the operand and of the kernel:

    y[n, o, t, i, j] = sum over (c, k), p, q of x_laid_out[(n, t), (c, k), i + p, j + q] * w[o, (c, k), p, q]

XLA on the CPU has a fast convolution of two dimensions; its convolutions of three take ten times as long for the same products. What is
laid out is as many times as large as there are taps, so it is the dimension with the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import Const, Expr
from jaxte.lower.code.spec import Refusal, Write, as_atom, reshaped, subscripted, tuple_text, write_extent
from jaxte.lower.forms.conv.per_group import per_group_source
from jaxte.lower.forms.conv.spec import ConvolutionSpec, call_source, finished_source, spatial_letters
from jaxte.sets.affine import normal

RANK = 2  # the dimensions that are left
_MOST_TAPS = 32  # positions that are written as slices of their own

Names = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Fold:
    """One spatial dimension.

    Attributes:
        letter: its name in the dimension numbers.
        taps, outputs: the extent of the kernel and of the result.
        stride, dilation, spacing: of the windows, of the kernel, of the elements of lhs.
        padding: zeros before and behind lhs.
        spec: the convolution that is left.
    """

    letter: str
    taps: int
    outputs: int
    stride: int
    dilation: int
    spacing: int
    padding: tuple[int, int]
    spec: ConvolutionSpec


def folds_of(spec: ConvolutionSpec) -> list[Fold] | Refusal:
    """What to lay out, one dimension after the other, until two are left."""
    found: list[Fold] = []
    while len(spec.strides) > RANK:
        offers = [fold for n in range(len(spec.strides)) if (fold := _fold(spec, n)) is not None]
        if not offers:
            return Refusal("extents depend on sizes")
        found.append(min(offers, key=lambda fold: min(fold.taps, fold.outputs)))
        spec = found[-1].spec
    if not found:
        return Refusal("it has two dimensions at most")
    slices = max(min(fold.taps, fold.outputs) for fold in found)
    if slices > _MOST_TAPS:
        return Refusal(f"its windows are {slices} slices, more than {_MOST_TAPS}")
    return found


def _fold(spec: ConvolutionSpec, number: int) -> Fold | None:
    """The spatial dimension ``number`` of ``spec``; None where its extents are not known."""
    lhs, rhs, out = spec.dimension_numbers
    letter = spatial_letters(spec)[number]
    x, k = lhs_shape(spec)[lhs.index(letter)], rhs_shape(spec)[rhs.index(letter)]
    before, behind = spec.padding[number]
    if not all(isinstance(e, Const) for e in (x, k, before, behind)):
        return None
    outputs = int(_outputs(spec, number))
    left = replace(
        spec,
        lhs_shape=_without(lhs_shape(spec), lhs, letter, {"N": outputs, "C": int(k)}),
        rhs_shape=_without(rhs_shape(spec), rhs, letter, {"I": int(k)}),
        strides=spec.strides[:number] + spec.strides[number + 1 :],
        padding=spec.padding[:number] + spec.padding[number + 1 :],
        lhs_dilation=spec.lhs_dilation[:number] + spec.lhs_dilation[number + 1 :],
        rhs_dilation=spec.rhs_dilation[:number] + spec.rhs_dilation[number + 1 :],
        dimension_numbers=(lhs.replace(letter, ""), rhs.replace(letter, ""), out.replace(letter, "")),
    )
    steps = spec.strides[number], spec.rhs_dilation[number], spec.lhs_dilation[number]
    return Fold(letter, int(k), outputs, *steps, (int(before), int(behind)), left)


def lhs_shape(spec: ConvolutionSpec) -> tuple[Expr, ...]:
    return spec.lhs_shape or spec.lhs.shape


def rhs_shape(spec: ConvolutionSpec) -> tuple[Expr, ...]:
    return spec.rhs_shape or spec.rhs.shape


def _without(shape: Sequence[Expr], dims: str, letter: str, times: dict[str, int]) -> tuple[Expr, ...]:
    """``shape`` without the dimension ``letter``, others ``times`` as large."""
    return tuple(
        normal(extent * times.get(own, 1)) for own, extent in zip(dims, shape, strict=True) if own != letter
    )


# --- text


def folded_source(
    spec: ConvolutionSpec,
    folds: Sequence[Fold],
    operands: Sequence[str],
    names: Names,
    write: Write = write_extent,
    grouped: bool = False,
) -> list[str]:
    """The statements ``name = ...`` of ``spec`` on the texts of ``spec.operands``; the last one assigns the result.

    Args:
        spec: the convolution of all dimensions.
        folds: those that are laid out, from :func:`folds_of`.
        operands: texts of the operands.
        names: gives a new name whenever it is called.
        write: the text of an extent.
        grouped: whether what is left is one convolution for each group.
    """
    lines: list[str] = []
    whole = spec
    lhs, rhs = (
        reshaped(text, shape, write)
        for text, shape in zip(operands[:2], (spec.lhs_shape, spec.rhs_shape), strict=True)
    )
    for fold in folds:
        target = names()
        lines += [f"{target} = {line}" for line in _laid_out(spec, fold, lhs, target, write)]
        lhs, rhs = target, _folded_kernel(spec, fold, rhs, write)
        spec = fold.spec
    left = replace(spec, lhs_shape=None, rhs_shape=None)
    call = per_group_source if grouped else call_source
    target = names()
    lines.append(f"{target} = {call(left, (lhs, rhs), write)}")
    before = [whole, *(fold.spec for fold in folds[:-1])]
    for spec, fold in zip(reversed(before), reversed(folds), strict=True):
        target = _unfolded(spec, fold, target, write)
    return [*lines, f"{names()} = {finished_source(whole, target, operands, write)}"]


def _laid_out(spec: ConvolutionSpec, fold: Fold, lhs: str, target: str, write: Write) -> list[str]:
    """Values of ``target``, one after the other: lhs with zeros around it, its slices stacked, and outputs and taps merged."""
    dims = spec.dimension_numbers[0]
    at = dims.index(fold.letter)
    found = []
    padded = _padded(spec, fold, lhs, at)
    if padded != lhs or not lhs.isidentifier():
        found.append(padded)
        lhs = target
    by_tap = fold.taps <= fold.outputs
    count, step = (fold.taps, fold.dilation) if by_tap else (fold.outputs, fold.stride)
    length, pace = (fold.outputs, fold.stride) if by_tap else (fold.taps, fold.dilation)
    every = f":{pace}" if pace > 1 else ""
    reach = pace * (length - 1) + 1
    place = {d: n for n, d in enumerate(dims)}
    if count == 1:
        target = subscripted(lhs, at, f":{reach}{every}")
        with_them = {"N" if by_tap else "C": at}
    else:
        name = "i" if lhs != "i" else "j"
        start = name if step == 1 else f"{step} * {name}"
        slices = f"[{subscripted(lhs, at, f'{start}:{start} + {reach}{every}')} for {name} in range({count})]"
        found.append(f"jnp.stack({slices}, axis={at})")
        place = {
            d: n + (n > at) for d, n in place.items()
        }  # the slices come before what is left of the dimension
        with_them = {"C": at, "N": at + 1} if by_tap else {"N": at, "C": at + 1}
    order = [
        p for d in dims if d != fold.letter for p in (place[d], *([with_them[d]] if d in with_them else []))
    ]
    found.append(_moved(target, order, fold.spec.lhs_shape, write))
    return found


def _padded(spec: ConvolutionSpec, fold: Fold, lhs: str, at: int) -> str:
    ndim = len(spec.dimension_numbers[0])
    if fold.padding == (0, 0) and fold.spacing == 1:
        return lhs
    if fold.spacing == 1 and min(fold.padding) >= 0:
        widths = [str(fold.padding) if n == at else "(0, 0)" for n in range(ndim)]
        return f"jnp.pad({lhs}, {tuple_text(widths)})"
    entries = [(*fold.padding, fold.spacing - 1) if n == at else (0, 0, 0) for n in range(ndim)]
    return f"lax.pad({lhs}, jnp.{spec.lhs.dtype}(0), {tuple_text(map(str, entries))})"


def _folded_kernel(spec: ConvolutionSpec, fold: Fold, rhs: str, write: Write) -> str:
    """The kernel with the taps of the dimension merged into its input features."""
    dims = spec.dimension_numbers[1]
    at = dims.index(fold.letter)
    order = [p for n, d in enumerate(dims) if n != at for p in ([n, at] if d == "I" else [n])]
    return _moved(rhs, order, fold.spec.rhs_shape or (), write)


def _moved(text: str, order: Sequence[int], shape: Sequence[Expr] | None, write: Write) -> str:
    if list(order) != sorted(order):
        text = f"{as_atom(text)}.transpose({', '.join(map(str, order))})"
    return reshaped(text, shape, write)


def _unfolded(spec: ConvolutionSpec, fold: Fold, result: str, write: Write) -> str:
    """The result with the outputs of the dimension, which are among its batch, at their own place."""
    out, left = spec.dimension_numbers[2], fold.spec.dimension_numbers[2]
    dims = [d for own in left for d in ((own, fold.letter) if own == "N" else (own,))]
    lhs_dims, rhs_dims, _ = spec.dimension_numbers
    extents = {"N": lhs_shape(spec)[lhs_dims.index("N")], "C": rhs_shape(spec)[rhs_dims.index("O")]}
    extents |= {letter: _outputs(spec, n) for n, letter in enumerate(spatial_letters(spec))}
    result = reshaped(result, [extents[d] for d in dims], write)
    return _moved(result, [dims.index(d) for d in out], None, write)


def _outputs(spec: ConvolutionSpec, number: int) -> Expr:
    """The extent of the result in the spatial dimension ``number``."""
    lhs, rhs, _ = spec.dimension_numbers
    letter = spatial_letters(spec)[number]
    x, k = lhs_shape(spec)[lhs.index(letter)], rhs_shape(spec)[rhs.index(letter)]
    before, behind = spec.padding[number]
    room = spec.lhs_dilation[number] * (x - 1) + before + behind - spec.rhs_dilation[number] * (k - 1)
    return normal(room // spec.strides[number] + 1)
