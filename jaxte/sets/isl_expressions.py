"""What isl answers as expressions: affine functions with integer divisions, their pieces, and constraints."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from jaxte.lang.expr import (
    Expr,
    as_expr,
    call,
)
from jaxte.lang.operators import EQUAL, MAXIMUM, MINIMUM
from jaxte.sets.affine import normal


def pw_aff_expr(value: isl.PwAff, nodes: Mapping[str, Expr]) -> Expr | None:
    """A piecewise affine function of sizes; several pieces become their maximum or minimum where that is exact."""
    pieces: list[isl.Aff] = [piece for _, piece in value.get_pieces()]
    exprs = [normal(aff_expr(piece, nodes)) for piece in pieces]
    if len(exprs) == 1:
        return exprs[0]
    for op, union in ((MAXIMUM, "max"), (MINIMUM, "min")):
        whole = isl.PwAff.from_aff(pieces[0])
        for piece in pieces[1:]:
            whole = getattr(whole, union)(isl.PwAff.from_aff(piece))
        if whole.intersect_domain(value.domain()).is_equal(value):
            result = exprs[0]
            for other in exprs[1:]:
                result = call(op, result, other)
            return result
    return None


def constraint_expr(constraint: isl.Constraint, nodes: Mapping[str, Expr]) -> Expr:
    value = normal(aff_expr(constraint.get_aff(), nodes))
    return call(EQUAL, value, 0) if constraint.is_equality() else value >= 0


def aff_expr(aff: isl.Aff, nodes: Mapping[str, Expr]) -> Expr:
    """An isl affine function (with integer divisions) of parameters and set variables as an expression."""
    denominator = aff.get_denominator_val().to_python()
    scaled = aff.scale_val(aff.get_denominator_val())
    result: Expr = as_expr(scaled.get_constant_val().to_python())
    for i in range(scaled.dim(isl.dim_type.param)):
        factor = scaled.get_coefficient_val(isl.dim_type.param, i).to_python()
        if factor:
            result = result + factor * nodes[str(scaled.get_dim_name(isl.dim_type.param, i))]
    for i in range(scaled.dim(isl.dim_type.in_)):
        factor = scaled.get_coefficient_val(isl.dim_type.in_, i).to_python()
        if factor:
            result = result + factor * nodes[f"in{i}"]
    for i in range(scaled.dim(isl.dim_type.div)):
        factor = scaled.get_coefficient_val(isl.dim_type.div, i).to_python()
        if factor:
            result = result + factor * aff_expr(
                scaled.get_div(i), nodes
            )  # a fraction, whose floor it returns
    return result if denominator == 1 else result // denominator
