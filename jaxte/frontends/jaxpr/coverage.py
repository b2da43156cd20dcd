"""What becomes of each primitive of the installed JAX: raised, a construct with raised bodies, or kept, and why.

python -m jaxte.frontends.jaxpr.coverage     # the table of docs/results/primitives.md
"""

from __future__ import annotations

import inspect
from types import ModuleType

from jax.extend.core import Primitive, primitives

from jaxte.bridge.jaxprs import GROUPS
from jaxte.frontends.jaxpr import rules
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES
from jaxte.frontends.jaxpr.equations.table import RULES
from jaxte.frontends.jaxpr.plan.plan import BODIES

_ = rules  # fills the table

# why primitives without a row stay as they are
_KEPT = {
    "it computes on whole arrays (linear algebra, transforms, sorting): JAX's own derivative": (
        "cholesky cholesky_update eig eigh fft geqrf geqp3 hessenberg householder_product lu lu_pivots_to_permutation ormqr qr schur "
        "sort svd symmetric_product top_k approx_top_k triangular_solve tridiagonal tridiagonal_solve custom_lin linear_solve "
        "custom_linear_solve linear_call"
    ),
    "older names of calls with their own derivatives": (
        "custom_vjp_call_jaxpr custom_vjp_call_jaxpr_p custom_jvp_call_jaxpr"
    ),
    "random bits have no derivative": (
        "random_bits random_fold_in random_gamma random_gamma_grad random_seed random_split random_unwrap random_wrap threefry2x32 "
        "rng_bit_generator rng_uniform"
    ),
    "special functions without a row in the table of scalar functions": ("polygamma zeta nextafter complex"),
    "bits and integers have no derivative": (
        "bitcast_convert_type clz population_count shift_left shift_right_arithmetic shift_right_logical reduce_xor mulhi"
    ),
    "rounding to fewer bits": "reduce_precision",
    "a reduction by a function of the user": "reduce reduce_window scatter_apply",
    "JAX makes it of windows that it differentiates; these are raised": (
        "select_and_gather_add select_and_scatter select_and_scatter_add"
    ),
    "it has no reverse derivative": "while",
    "it reads or writes a reference": "get swap addupdate",
    "it says how to compile, place or communicate": (
        "after_all all_gather all_gather_reduced all_to_all axis_index call core_call create_token device_put empty2 eval_jaxpr name "
        "optimization_barrier pbroadcast pcast pmax pmin ppermute psum psum2 psum_invariant pvary ragged_all_to_all reduce_scatter "
        "reshard sharding_constraint shard_map dce_sink platform_index psend precv"
    ),
    "sizes and comparisons of total orders": "dimension_size eq_to le_to lt_to",
    "products of ragged or scaled parts: JAX's own derivative": "ragged_dot ragged_dot_general scaled_dot scaled_matmul_wrapper",
}


def primitive_names() -> list[str]:
    """The names of the primitives that JAX exports."""
    return sorted({p.name for p in _members(primitives)} | set(RULES) & {"split", "stack", "tile", "unstack"})


def _members(module: ModuleType) -> list[Primitive]:
    return [value for _, value in inspect.getmembers(module) if isinstance(value, Primitive)]


def row(name: str) -> tuple[str, str]:
    """What becomes of a primitive, and the notation or the reason."""
    if name in RULES:
        return "raised", RULES[name].notation
    if name in OWN_DERIVATIVES:
        return "raised", "an override, for functions of single elements"
    if name in GROUPS:
        return "opened", "its equations stand in place of it where they are raised, else it stays a call"
    if name in BODIES:
        return "kept around raised bodies", "its reverse pass is JAX's"
    return "kept", next((reason for reason, names in _KEPT.items() if name in names.split()), "")


def table() -> str:
    """The table of docs/results/primitives.md."""
    rows = {name: row(name) for name in primitive_names()}
    lines = ["| primitives | become | notation, or why |", "|---|---|---|"]
    for kind, text in sorted(set(rows.values()), key=lambda r: (r[0] != "raised", r)):
        names = ", ".join(f"`{n}`" for n, found in rows.items() if found == (kind, text))
        lines.append(f"| {names} | {kind} | {text} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
