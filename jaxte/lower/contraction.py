"""Sums of products: one einsum over operands that are each evaluated on their own dimensions.

The steps, each of which hands a smaller sum to the next: sums of products become sums; conditions on one dimension
shorten it; conditions without reduced dimensions leave the sum; a dimension that is divided by a stride is taken
apart into digits; overlapping indices (``i + k``) are unrolled over their short dimension; what is left is an einsum, with
triangular and other remaining conditions as a mask on one operand.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from jaxte.affine import from_linear, linear
from jaxte.expr import ONE, Axis, Call, Const, Expr, Read, as_expr, cast, conjunction, conjuncts
from jaxte.lower.axis_views import join_digits
from jaxte.lower.body import Body, Task
from jaxte.lower.bounds import dims_of, known, plus, simplify
from jaxte.lower.boxes import box_of, condition_dims, is_empty, split_conditions, usable
from jaxte.lower.factors import Factor, multiplied
from jaxte.lower.ops import ALL, Code, Index, Range, Step, Value
from jaxte.lower.overlaps import overlapping
from jaxte.lower.scopes import Scope
from jaxte.lower.selects import guarded, keeps_in_range
from jaxte.lower.specs import Refusal
from jaxte.lower.writing import product_text
from jaxte.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.walk import free_axes, postorder, reads_of

_MOST_UNROLLED = 64


@dataclass(frozen=True)
class Job:
    """The sum of a product of ``factors`` over the dimensions ``reduced``, where ``guards`` hold.

    ``budget`` is how many copies unrolling may still make.
    """

    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]
    reduced: tuple[Axis, ...]
    zero: Const
    budget: int = _MOST_UNROLLED

    @property
    def dtype(self) -> str:
        return self.zero.dtype


Next = Callable[[Body, Job, Scope], Task]


def sum_value(
    body: Body, expr: Expr, conditions: Sequence[Expr], scope: Scope, reduced: Sequence[Axis], zero: Const
) -> Task:
    """The sum of ``expr`` over the dimensions ``reduced``, the last ones of ``scope``."""
    terms = _addends(expr)
    if len(terms) == 1 or not any(_is_contraction(term, scope) for term, _ in terms):
        return (yield from _product(body, expr, conditions, scope, reduced, zero))
    total: Value | None = None
    for term, sign in terms:
        value = yield from _product(body, term, conditions, scope, reduced, zero)
        if total is None:
            total = value if sign > 0 else body.combine(NEGATIVE, [value], (zero.dtype, False), scope)
        else:
            total = body.combine(ADD if sign > 0 else SUBTRACT, [total, value], (zero.dtype, False), scope)
    assert total is not None
    return total


def _addends(expr: Expr) -> list[tuple[Expr, int]]:
    found: list[tuple[Expr, int]] = []
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case Call(op, (a, b)) if op is ADD and node.dtype == expr.dtype:
                stack += [(b, sign), (a, sign)]
            case Call(op, (a, b)) if op is SUBTRACT and node.dtype == expr.dtype:
                stack += [(b, -sign), (a, sign)]
            case _:
                found.append((node, sign))
    return found


def _is_contraction(term: Expr, scope: Scope) -> bool:
    """Whether a product has no factor over all of its dimensions, so that it would be larger than its operands."""
    factors = _factors(term)
    dims = [set(dims_under(f.expr, scope)) for f in factors]
    return len(factors) > 1 and all(d != set().union(*dims) for d in dims)


def dims_under(expr: Expr, scope: Scope) -> list[Axis]:
    """The dimensions of ``scope`` that ``expr`` depends on."""
    found: dict[Axis, None] = {}
    for axis in free_axes(expr):
        for dim in dims_of(scope.table[axis]) if axis in scope.table else (axis,):
            found[dim] = None
    return [d for d in scope.order if d in found]


def _product(
    body: Body, expr: Expr, conditions: Sequence[Expr], scope: Scope, reduced: Sequence[Axis], zero: Const
) -> Task:
    guards = tuple(g for condition in conditions for g in conjuncts(condition))
    job = Job(tuple(_factors(expr)), guards, tuple(reduced), zero)
    return (yield from _conditions(body, job, scope))


def _factors(expr: Expr) -> list[Factor]:
    """``expr`` as a product. Choices stay whole: what they exclude may be infinite."""
    found: list[Factor] = []
    stack = [(expr, False)]
    while stack:
        node, inverse = stack.pop()
        match node:
            case Call(op, (a, b)) if op is MULTIPLY:
                stack += [(b, inverse), (a, inverse)]
            case Call(op, (a, b)) if op is DIVIDE and not inverse:
                stack += [(b, True), (a, False)]
            case Call(op, (a,)) if op is NEGATIVE:
                stack.append((a, inverse))
                found.append(Factor(as_expr(-1)))
            case _:
                found.append(Factor(node, inverse))
    return found


# --- conditions


def _conditions(body: Body, job: Job, scope: Scope) -> Task:
    """Shortens reduced dimensions and moves conditions without them out of the sum."""
    guards = split_conditions(conjunction(job.guards), scope)
    if guards is None or any(known(d.hi) == 0 for d in job.reduced):
        return (yield job.zero, scope)
    for guard in guards:
        box = box_of(guard, scope)
        if box is None or box.dim not in job.reduced or not usable(box):
            continue
        if is_empty(box):
            return (yield job.zero, scope)
        inner, part = scope.restrict(box.dim, from_linear(box.start), box.step, box.count)
        reduced = tuple(part if d is box.dim else d for d in job.reduced)
        rest = tuple(g for g in guards if g is not guard)
        return (yield from _conditions(body, replace(job, guards=rest, reduced=reduced), inner))
    outer = [g for g in guards if not any(d in job.reduced for d in _guard_dims(g, scope))]
    inside = replace(job, guards=tuple(g for g in guards if g not in outer))
    if outer:
        return (
            yield from guarded(body, outer, job.zero, scope, lambda part: _conditions(body, inside, part))
        )
    return (yield from _strides(body, inside, scope))


def _guard_dims(guard: Expr, scope: Scope) -> list[Axis]:
    """The dimensions that a condition depends on."""
    return condition_dims(guard, scope) or dims_under(guard, scope)


# --- strides


def _strides(body: Body, job: Job, scope: Scope) -> Task:
    """Takes an output dimension apart into digits where an index mixes its quotient with other dimensions."""
    found = _divided(job, scope)
    if found is None:
        return (yield from _overlaps(body, job, scope))
    dim, base, shift = found
    total = plus(dim.hi, shift)
    count = from_linear(linear((total + (base - 1)) // base))
    q, r = Axis(dim.name, 0, count), Axis(dim.name, 0, base)
    inner = scope.replace(dim, base * q + r - shift, [q, r])
    value = yield from _conditions(body, job, inner)
    return _joined(body, value, dim, (q, r), shift)


def _divided(job: Job, scope: Scope) -> tuple[Axis, int, int] | None:
    """An output dimension that stands divided in an index together with another dimension.

    Or whose quotient is read by one factor and whose remainder by another: the sum is then one over fewer points.
    """
    seen: dict[tuple[Axis, int, int], str] = {}
    for factor in job.factors:
        own = _digits_read(factor, job, scope)
        for key, digit in own.items():
            if seen.setdefault(key, digit) != digit:
                return key
    for factor in job.factors:
        for read in reads_of(factor.expr):
            for index in read.indices:
                if reads_of(index):
                    continue
                form = scope.index(index)
                if len(dims_of(form)) < 2:
                    continue
                for node in postorder(form):
                    found = _division(node, job)
                    if found is not None:
                        return found
    return None


def _digits_read(factor: Factor, job: Job, scope: Scope) -> dict[tuple[Axis, int, int], str]:
    """For each output dimension that one factor reads divided, whether only its quotient or its remainder is read."""
    found: dict[tuple[Axis, int, int], set[str]] = {}
    others: set[Axis] = set()
    for read in reads_of(factor.expr):
        for index in read.indices:
            if reads_of(index):
                return {}
            form = scope.index(index)
            for node in postorder(form):
                key = _division(node, job)
                if key is not None and isinstance(node, Call):
                    found.setdefault(key, set()).add(node.op.name)
            others |= {a for a in linear(form).terms if isinstance(a, Axis)}
    return {k: next(iter(ops)) for k, ops in found.items() if len(ops) == 1 and k[0] not in others}


def _division(node: Expr, job: Job) -> tuple[Axis, int, int] | None:
    match node:
        case Call(op, (numerator, Const(int() as base))) if op.name in ("floor_divide", "mod"):
            form = linear(numerator)
            if len(form.terms) == 1:
                ((dim, coefficient),) = form.terms.items()
                if (
                    isinstance(dim, Axis)
                    and coefficient == 1
                    and dim not in job.reduced
                    and form.constant >= 0
                ):
                    return dim, int(base), form.constant
    return None


def _joined(body: Body, value: Value, dim: Axis, digits: tuple[Axis, Axis], shift: int) -> Value:
    """``value`` over the digits of ``dim`` as an array over ``dim``."""
    own = tuple(d for d in value.dims if d in digits)
    if not own:
        return value
    position = value.dims.index(own[0])
    before, after = value.dims[:position], value.dims[position + len(own) :]
    q, r = digits
    steps: list[Step] = []
    for step in join_digits(own, q, r):
        steps.append(_placed(step, before, after))
    whole = as_expr(0) + q.hi * known(r.hi)
    stop = plus(dim.hi, shift)
    if shift or stop is not simplify(whole, {}):
        entry = Range(as_expr(shift) if shift else None, stop)
        steps.append(Index((ALL,) * len(before) + (entry,) + (ALL,) * len(after)))
    return body.with_steps(value, steps, (*before, dim, *after))


def _placed(step: Step, before: Sequence[Axis], after: Sequence[Axis]) -> Step:
    """A step of one dimension between others."""
    first, last = len(before), len(after)
    fields = {f: getattr(step, f) for f in step.__slots__}
    if "shape" in fields:
        fields["shape"] = (*(d.hi for d in before), *step.shape, *(d.hi for d in after))  # type: ignore[union-attr]
    if "axis" in fields:
        fields["axis"] = first
    if "ndim" in fields:
        fields["ndim"] = first + 1 + last
    return type(step)(**fields)


# --- overlaps


def _overlaps(body: Body, job: Job, scope: Scope) -> Task:
    """Unrolls a short reduced dimension that shares an index with another one without being a digit of it."""
    dim = overlapping([f.expr for f in job.factors], job.reduced, scope, job.budget)
    if dim is None:
        outer = [d for d in scope.order if d not in job.reduced]
        small = overlapping([f.expr for f in job.factors], outer, scope, job.budget) if job.reduced else None
        if small is None:
            return (yield from _contraction(body, job, scope))
        return (yield from _stacked(body, job, scope, small))
    body.note("shift-and-add")
    count = known(dim.hi) or 0
    smaller = replace(job, reduced=tuple(d for d in job.reduced if d is not dim), budget=job.budget // count)
    total: Value | None = None
    for position in range(count):
        value = yield from _conditions(body, smaller, scope.replace(dim, as_expr(position), [], deeper=0))
        if value.literal:
            continue
        total = value if total is None else body.combine(ADD, [total, value], (job.dtype, False), scope)
    return total if total is not None else (yield job.zero, scope)


def _stacked(body: Body, job: Job, scope: Scope, dim: Axis) -> Task:
    """One sum for each position of a short output dimension, stacked."""
    count = known(dim.hi) or 0
    smaller = replace(job, budget=job.budget // count)
    values: list[Value] = []
    for position in range(count):
        value = yield from _conditions(body, smaller, scope.replace(dim, as_expr(position), [], deeper=0))
        values.append(body.cast(value, job.dtype) if value.literal else value)
    body.note("stacked sums")
    return body.stack(values, dim, scope)


# --- the einsum


def _contraction(body: Body, job: Job, scope: Scope) -> Task:
    outer = [f for f in job.factors if not _meets(f.expr, job.reduced, scope)]
    inner = [f for f in job.factors if f not in outer]
    values = yield from _operands(body, _groups(inner, scope), job, scope)
    total = _summed(body, values, job, scope)
    return (yield from _scaled(body, total, outer, job, scope))


def _meets(expr: Expr, dims: Sequence[Axis], scope: Scope) -> bool:
    return any(d in dims for d in dims_under(expr, scope))


def _groups(factors: Sequence[Factor], scope: Scope) -> list[list[Factor]]:
    """Factors over the same dimensions together; divisors go to the factor that they fit best."""
    groups: list[tuple[set[Axis], list[Factor]]] = []
    for factor in sorted(factors, key=lambda f: f.inverse):
        dims = set(dims_under(factor.expr, scope))
        home = next((g for g in groups if g[0] == dims), None)
        if home is None and factor.inverse:
            home = next((g for g in groups if dims <= g[0]), None)
        if home is None:
            groups.append((dims, [factor]))
        else:
            home[1].append(factor)
    return [members for _, members in groups]


def _operands(
    body: Body, groups: list[list[Factor]], job: Job, scope: Scope
) -> Generator[tuple[Expr, Scope], Value, list[Value]]:
    """The value of each group of factors, masked by the conditions that are left."""
    if not groups and job.guards:
        groups = [[Factor(cast(ONE, job.dtype))]]
    masks: list[list[Expr]] = [[] for _ in groups]
    for guard in job.guards:
        for number in _masked_groups(body, guard, groups, scope):
            masks[number].append(guard)
    values: list[Value] = []
    for members, tests in zip(groups, masks, strict=True):
        expr = multiplied(members, tests)
        values.append((yield expr, scope.arranged(natural_order(expr, scope))))
    return values


def _masked_groups(
    body: Body, guard: Expr, groups: Sequence[Sequence[Factor]], scope: Scope
) -> Sequence[int]:
    """The operands to mask by ``guard``: one is enough for a zero, unless another one is infinite or NaN there.

    That is so for functions of what is read out of range, and may be so for any function. Plain reads are masked only if
    they are all there is; where a plain read is out of range, and thus zero, whenever ``guard`` fails, no mask is needed.
    """
    wanted = set(_guard_dims(guard, scope))
    own = [{d for f in members for d in dims_under(f.expr, scope)} for members in groups]
    chosen = [
        n
        for n, members in enumerate(groups)
        if not _is_plain(members) and _may_mask(body, members, wanted, own[n])
    ]
    plain = [f.expr for members in groups if _is_plain(members) for f in members]
    if chosen or any(isinstance(e, Read) and keeps_in_range(guard, e, scope) for e in plain):
        return chosen
    return [max(range(len(own)), key=lambda n: (len(wanted & own[n]), -len(own[n]), -n))]


def _is_plain(members: Sequence[Factor]) -> bool:
    return all(isinstance(f.expr, (Read, Const)) and not f.inverse for f in members)


def _may_mask(body: Body, members: Sequence[Factor], wanted: set[Axis], own: set[Axis]) -> bool:
    """Whether a group can be infinite where the condition on ``wanted`` fails."""
    return wanted <= own or (bool(wanted & own) and any(body.leaks(f.expr) for f in members))


def natural_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in the order in which the largest read has them, so that it need not be transposed."""
    best: tuple[Axis, ...] = ()
    for read in reads_of(expr):
        if any(reads_of(i) for i in read.indices):
            continue
        found = scope.view(read)
        if not isinstance(found, Refusal) and len(found.dims) > len(best):
            best = found.dims
    return (*best, *(d for d in scope.order if d not in best))


def _summed(body: Body, values: Sequence[Value], job: Job, scope: Scope) -> Value:
    """The values multiplied and summed over the reduced dimensions."""
    used = [d for v in values for d in v.dims]
    lost = [d for d in job.reduced if d not in used]
    values = [v for v in values if not (v.literal and v.code.text in ("1", "1.0"))]
    out = tuple(d for d in scope.order if d in used and d not in job.reduced)
    kind = (job.dtype, False)
    if not values:
        result = Value(Code("1"), (), ("int32", True), literal=True)
    elif len(values) == 1:
        result = _plain_sum(body, values[0], job, scope)
    else:
        result = _einsum(body, values, out, job)
    for dim in lost:
        size = Value(body.sizes.code(dim.hi), (), ("int32", True), literal=True)
        if result.literal:
            result = size if result.code.text == "1" else _times_size(result, size)
        elif dim.hi is not ONE:
            result = body.combine(MULTIPLY, [result, size], kind, scope)
    return result


def _times_size(a: Value, b: Value) -> Value:
    return Value(product_text([a.code, b.code]), (), a.kind, literal=True)


def _plain_sum(body: Body, value: Value, job: Job, scope: Scope) -> Value:
    if not any(d in job.reduced for d in value.dims):
        return body.in_order(value, scope)
    return reduced_call(body, "jnp.sum", value, job.reduced, scope, job.dtype)


def reduced_call(
    body: Body,
    function: str,
    value: Value,
    reduced: Sequence[Axis],
    scope: Scope,
    dtype: str,
    extra: str = "",
) -> Value:
    """A reducing function of jnp over some of the dimensions of ``value``."""
    axes = [n for n, d in enumerate(value.dims) if d in reduced]
    left = tuple(d for d in value.dims if d not in reduced)
    arguments = [value.code.text]
    if left:
        arguments.append(f"axis={axes[0] if len(axes) == 1 else tuple(axes)}")
    if function in ("jnp.sum", "jnp.prod") and not dtype.startswith(("f", "b", "c")):
        arguments.append(f"dtype=jnp.{dtype}")  # under x64 JAX would widen integers
    if extra:
        arguments.append(extra)
    body.note(function.removeprefix("jnp."))
    result = Value(Code(f"{function}({', '.join(arguments)})"), left, (dtype, False))
    result = body.in_order(result, scope)
    return body.cast(result, dtype) if value.dtype == dtype else body.cast(result, dtype, always=True)


def _einsum(body: Body, values: Sequence[Value], out: tuple[Axis, ...], job: Job) -> Value:
    letters = _letters([d for v in values for d in v.dims])
    inputs = ",".join("".join(letters[d] for d in v.dims) for v in values)
    result = "".join(letters[d] for d in out)
    operands = ", ".join(v.code.text for v in values)
    code = Code(f'jnp.einsum("{inputs}->{result}", {operands})')
    while len(code.text) > 110:
        longest = max(range(len(values)), key=lambda n: len(values[n].code.text))
        if values[longest].code.is_name:
            break
        values = [body.named(v) if n == longest else v for n, v in enumerate(values)]
        code = Code(f'jnp.einsum("{inputs}->{result}", {", ".join(v.code.text for v in values)})')
    body.note("einsum")
    value = Value(code, out, (values[0].dtype, False))
    return body.cast(value, job.dtype, always=any(v.dtype != job.dtype for v in values))


def _letters(dims: Sequence[Axis]) -> dict[Axis, str]:
    """One letter for each dimension: the axis's own name where that is a letter, each letter once."""
    found: dict[Axis, str] = {}
    distinct = list(dict.fromkeys(dims))
    for dim in distinct:
        first = dim.name[:1]
        if len(dim.name) == 1 and first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
    spare = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for dim in distinct:
        if dim in found:
            continue
        first = dim.name[:1]
        if first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
        else:
            found[dim] = next(letter for letter in spare if letter not in found.values())
    return found


def _scaled(body: Body, total: Value, outer: Sequence[Factor], job: Job, scope: Scope) -> Task:
    """The sum times the factors that do not depend on what is summed over."""
    kind = (job.dtype, False)
    above = [f.expr for f in outer if not f.inverse]
    below = [f.expr for f in outer if f.inverse]
    if total.literal and above and total.code.text == "1":
        total = body.cast((yield above.pop(0), scope), job.dtype)
    for expr in above:
        factor = yield expr, scope
        if factor.literal and factor.code.text == "-1":
            total = body.combine(NEGATIVE, [total], kind, scope)
        else:
            total = body.combine(MULTIPLY, [factor, total], kind, scope)
    for expr in below:
        divisor = yield expr, scope
        total = body.combine(DIVIDE, [total, divisor], kind, scope)
    return body.cast(total, job.dtype) if total.literal else total
