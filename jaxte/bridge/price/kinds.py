"""What XLA does with each primitive: computes it for each element, moves elements, reduces, or calls a routine."""

from __future__ import annotations

CHEAP = frozenset(
    [
        "abs",
        "add",
        "add_any",
        "and",
        "clamp",
        "copy",
        "eq",
        "floor",
        "ceil",
        "ge",
        "gt",
        "imag",
        "integer_pow",
        "is_finite",
        "le",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "not",
        "nextafter",
        "or",
        "real",
        "reduce_precision",
        "round",
        "select_n",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "square",
        "sub",
        "xor",
        "complex",
        "conj",
        "population_count",
    ]
)
FREE = frozenset(["convert_element_type", "stop_gradient"])  # a part of the instruction that loads, or none
DIVISIONS = frozenset(["div", "rem", "sqrt", "rsqrt", "cbrt"])
EXPONENTIALS = frozenset(
    [
        "exp",
        "exp2",
        "log",
        "log1p",
        "expm1",
        "tanh",
        "logistic",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
    ]
)
POWERS = frozenset(
    ["pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "lgamma", "digamma", "erf_inv"]
)
FOR_EACH = CHEAP | FREE | DIVISIONS | EXPONENTIALS | POWERS
DEAR = DIVISIONS | EXPONENTIALS | POWERS  # which XLA does not compute twice
REDUCTIONS = frozenset(
    ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin"]
)
VIEWS = frozenset(["reshape", "squeeze", "expand_dims"])
# large reductions of floats are done by a routine, which takes in these functions and no others: comparisons and choices become arrays before
BY_ROUTINE = frozenset(["reduce_sum", "reduce_max", "reduce_min"])
TAKEN_BY_ROUTINE = (
    VIEWS
    | FREE
    | DIVISIONS
    | EXPONENTIALS
    | frozenset(
        [
            "abs",
            "add",
            "add_any",
            "broadcast_in_dim",
            "ceil",
            "copy",
            "floor",
            "integer_pow",
            "max",
            "min",
            "mul",
            "neg",
            "pad",
            "pow",
            "round",
            "sign",
            "square",
            "sub",
            "transpose",
        ]
    )
) - {"rem", "cbrt"}
JOINS = frozenset(["concatenate", "stack"])
UPDATE = "dynamic_update_slice"
MOVES = (
    VIEWS
    | JOINS
    | {"broadcast_in_dim", "transpose", "slice", "pad", "rev", "iota", "dynamic_slice", "gather", UPDATE}
)
BRANCHES = JOINS | {
    "pad",
    "gather",
}  # each element is tested for where it comes from, or read at a computed place
FUSED = FOR_EACH | REDUCTIONS | MOVES

APART = "apart"  # a call that XLA enters no loop across
SAME = frozenset(["optimization_barrier", "pvary"])  # on the CPU, barriers are gone before loops are fused
