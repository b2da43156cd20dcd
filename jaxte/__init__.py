"""Index expressions, their exact gradients, and JAX code without scatters.

Write what one element of a tensor is; differentiate it; use it as a JAX function::

    import jaxte as te

    @te.function
    def dense(x, w):
        k = te.reduce_axis((0, x.shape[1]), "k")
        return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jaxte.autodiff.sums.blocks import diff_building_block
from jaxte.bridge.compiled.sparse import SparseJacobian
from jaxte.bridge.functions.custom_gradient import custom_gradient
from jaxte.bridge.functions.evaluate import evaluate, explain, source
from jaxte.bridge.functions.function import function
from jaxte.bridge.given.array_gradient import array_gradient
from jaxte.bridge.given.extern import extern
from jaxte.derivatives.linear_maps import Linearization, hvp, transpose
from jaxte.derivatives.regions import (
    Region,
    clip_gradient,
    gradient,
    region,
    reverse_gradient,
    scale_gradient,
    straight_through,
)
from jaxte.derivatives.reverse import DifferentiationResult, differentiate
from jaxte.derivatives.verify import Verification, verify_override
from jaxte.lang.checks import no_attribute
from jaxte.lang.errors import (
    PUBLIC,
    ArgumentError,
    DefinitionError,
    DifferentiationError,
    DtypeError,
    FeedError,
    IndexExpressionError,
    JaxteError,
    LoweringError,
    PerformanceWarning,
    RangeError,
    ShapeError,
    TooLargeError,
    TruthValueError,
)
from jaxte.lang.expr import Axis, Expr, ScalarLike
from jaxte.lang.functions import (
    abs,
    acos,
    acosh,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    cbrt,
    ceil,
    choose,
    clip,
    conj,
    conjugate,
    const,
    cos,
    cosh,
    divide,
    elu,
    equal,
    exp,
    exp2,
    expit,
    expm1,
    floor,
    floor_divide,
    gelu,
    greater,
    greater_equal,
    heaviside,
    hypot,
    if_then_else,
    imag,
    invert,
    isfinite,
    isinf,
    isnan,
    leaky_relu,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    log_sigmoid,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    pow,
    power,
    real,
    reciprocal,
    relu,
    relu6,
    remainder,
    right_shift,
    round,
    rsqrt,
    select,
    sigmoid,
    sign,
    silu,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    stop_gradient,
    subtract,
    swish,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from jaxte.lang.functions import composed as _composed
from jaxte.lang.functions import special as _special
from jaxte.lang.functions.composed import *  # noqa: F403
from jaxte.lang.functions.special import *  # noqa: F403
from jaxte.meaning.cost import Cost, cost
from jaxte.meaning.fact_checks import check_facts
from jaxte.meaning.interpret import interpret
from jaxte.sets.solving.solve import simplify_domain, solve_linear_equations, solve_linear_inequalities
from jaxte.sets.transformation import Domain, DomainTransformation
from jaxte.show.printing import definitions, formula, html, latex
from jaxte.tensors import facts
from jaxte.tensors.bodies.open_ranges import axis, indices
from jaxte.tensors.composed import logsumexp, mean, norm, softmax, std, variance
from jaxte.tensors.compute import compute
from jaxte.tensors.custom_reductions import comm_reducer
from jaxte.tensors.inputs import Placeholder, assume, constant, placeholder, var
from jaxte.tensors.recurrences.define import recurrence
from jaxte.tensors.reductions import all, any, argmax, argmin, max, min, prod, reduce_axis, sum
from jaxte.tensors.tensor import Compute, Extern, Tensor

if TYPE_CHECKING:
    from jaxte import draw, ops, testing
    from jaxte.bridge.tuning import Tuning, autotune
    from jaxte.bridge.tuning_file import load_tuning
    from jaxte.frontends.gradients import grad, value_and_grad
    from jaxte.frontends.jacobians import Jacobian, diagonal, hessian, jacobian
    from jaxte.frontends.jaxpr.adjoint import adjoint
    from jaxte.frontends.loops.loops import loops
    from jaxte.frontends.text.define import Formulas, define
    from jaxte.frontends.text.einsum import einsum
    from jaxte.frontends.transforms import everywhere, jvp, linearize, vjp
    from jaxte.joining import concatenate, stack
    from jaxte.testing import compare

DiffBuildingBlock = diff_building_block
__version__ = "0.2.0"

# fmt: off
__all__ = [
    # the language
    "placeholder", "constant", "assume", "var", "compute", "recurrence", "reduce_axis", "axis", "indices", "einsum", "define", "Formulas", "loops", "sum", "max", "min", "prod", "any", "all", "argmax", "argmin",
    "mean", "variance", "std", "logsumexp", "norm", "softmax", "stack", "concatenate", "comm_reducer", "extern", "Tensor", "Placeholder", "Compute", "Extern", "Axis", "Expr", "ScalarLike",
    # scalar functions
    "const", "cast", "select", "where", "if_then_else", "choose", "clip", "relu6", "leaky_relu", "elu", "heaviside",
    "logical_and", "logical_or", "logical_not", "logical_xor", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "isnan", "isinf", "isfinite", "add", "subtract", "multiply", "divide",
    "true_divide", "floor_divide", "mod", "remainder", "power", "pow", "negative", "maximum", "minimum",
    "abs", "sign", "floor", "ceil", "trunc", "round", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_not", "invert", "left_shift", "right_shift", "exp", "exp2", "expm1", "log", "log2", "log10",
    "log1p", "logaddexp", "sqrt", "rsqrt", "cbrt", "square", "reciprocal", "hypot", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "sigmoid", "expit",
    "log_sigmoid", "softplus", "relu", "gelu", "silu",
    "swish", "real", "imag", "conj", "conjugate", "stop_gradient",
    # differentiation
    "differentiate", "gradient", "jacobian", "Jacobian", "diff_building_block", "DiffBuildingBlock",
    "DifferentiationResult", "jvp", "linearize", "Linearization", "transpose", "hvp", "hessian", "diagonal",
    "custom_gradient", "array_gradient", "straight_through", "scale_gradient", "reverse_gradient", "clip_gradient",
    "verify_override", "Verification", "region", "Region", "SparseJacobian", "draw",
    # integer sets
    "Domain", "DomainTransformation", "solve_linear_equations", "solve_linear_inequalities", "simplify_domain",
    # running
    "function", "evaluate", "interpret", "source", "explain", "cost", "Cost", "grad", "value_and_grad", "vjp", "adjoint", "everywhere",
    # printing
    "definitions", "formula", "latex", "html",
    # checking and operators
    "testing", "compare", "ops", "facts", "check_facts", "autotune", "load_tuning", "Tuning",
    # errors
    "JaxteError", "DefinitionError", "ShapeError", "ArgumentError", "TruthValueError", "RangeError", "IndexExpressionError",
    "DtypeError",
    "DifferentiationError", "FeedError", "LoweringError", "PerformanceWarning", "TooLargeError",
]
# fmt: on
__all__ += _special.__all__ + _composed.__all__

# What many programs never use is imported when it is first asked for: a quarter of the time that importing takes.
_LATER = {
    "ops": "jaxte.ops",
    "testing": "jaxte.testing",
    "compare": "jaxte.testing",
    "draw": "jaxte.draw",
    "stack": "jaxte.joining",
    "concatenate": "jaxte.joining",
    "autotune": "jaxte.bridge.tuning",
    "Tuning": "jaxte.bridge.tuning",
    "load_tuning": "jaxte.bridge.tuning_file",
    "grad": "jaxte.frontends.gradients",
    "value_and_grad": "jaxte.frontends.gradients",
    "Jacobian": "jaxte.frontends.jacobians",
    "diagonal": "jaxte.frontends.jacobians",
    "hessian": "jaxte.frontends.jacobians",
    "jacobian": "jaxte.frontends.jacobians",
    "adjoint": "jaxte.frontends.jaxpr.adjoint",
    "loops": "jaxte.frontends.loops.loops",
    "Formulas": "jaxte.frontends.text.define",
    "define": "jaxte.frontends.text.define",
    "einsum": "jaxte.frontends.text.einsum",
    "everywhere": "jaxte.frontends.transforms",
    "jvp": "jaxte.frontends.transforms",
    "linearize": "jaxte.frontends.transforms",
    "vjp": "jaxte.frontends.transforms",
}

# transformations that te has no version of
_OF_JAX = {
    "jit", "vmap", "pmap", "jacfwd", "jacrev", "checkpoint", "remat", "make_jaxpr", "eval_shape",
    "device_put",
}  # fmt: skip


def _elsewhere(name: str) -> str:
    """What is called ``name`` among the operators, in other libraries, or in JAX, whose transformations take the functions of jaxte."""
    if name.startswith("_"):
        return ""
    if name in PUBLIC:
        return f"te.{PUBLIC[name]}"
    if name in importlib.import_module("jaxte.ops").__all__:
        return f"te.ops.{name}"
    return f"jax.{name}" if name in _OF_JAX else ""


if not TYPE_CHECKING:  # to which every name that is not above is an error

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise no_attribute("jaxte", name, __all__, _elsewhere(name))
        module = importlib.import_module(_LATER[name])
        found = module if _LATER[name] == f"jaxte.{name}" else getattr(module, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """What an editor or a notebook completes: public names, not the modules that they come from."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
