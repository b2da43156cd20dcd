"""``adjoint``: a JAX function whose derivative, under every transformation, is that of its raised parts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.calls.options import made_for
from jaxte.bridge.functions.evaluate import Explained
from jaxte.frontends.jaxpr.explain import RaisedReport, report
from jaxte.frontends.jaxpr.first_call import FIRST_CALL, measured_or_kept
from jaxte.frontends.jaxpr.kept_plans import Fingerprint, KeptPlans, fingerprint
from jaxte.frontends.jaxpr.plan.alike import Alike
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.plan.moving import Wanted, wanted_of
from jaxte.frontends.jaxpr.plan.plan import Planner
from jaxte.frontends.jaxpr.plan.regions import Choice
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lower.cost.platforms import platform_of

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# what JAX raises where a function asks for the value of an argument, which it may have without being traced
_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


@dataclass(frozen=True, eq=False)
class Traced:
    """A call as a jaxpr.

    Attributes:
        closed: the jaxpr.
        arrays: the arrays of the call, its arguments.
        rebuild: the result of the call from those of the jaxpr.
        rest: the other arguments as text, which rules of derivatives may depend on without being seen in the jaxpr.
    """

    closed: Any
    arrays: Sequence[Any]
    rebuild: Callable[[Sequence[Any]], Any]
    rest: str = ""


class Raised(Explained, Generic[P, R_co]):
    """A JAX function with raised derivatives; see :func:`adjoint`."""

    __name__: str

    def __init__(
        self,
        f: Callable[P, R_co],
        everything: bool = False,
        safe: bool = True,
        platform: str | None = None,
        first_call: bool = False,
        tuning_file: Any = None,
        save: int | None = None,
    ) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.f = f
        self.choice = Choice.EVERYTHING if everything else Choice.ESTIMATED
        self.safe = safe
        self.platform, self.save = platform, save
        self.first_call, self.tuning_file = first_call, tuning_file
        self._plans, self._tuned = KeptPlans(), KeptPlans()
        self._alike = Alike()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        leaves, _ = tree_flatten((args, kwargs))
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self.f(*args, **kwargs)
        try:
            traced = self.traced(args, kwargs)
        except _CONCRETE:
            return self.f(*args, **kwargs)
        plan = self.plan(traced, wanted_of(traced.arrays))
        if not plan.is_changed:
            return self.f(*args, **kwargs)
        result: R_co = traced.rebuild(evaluate(plan, traced.closed, traced.arrays))
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Raised[P, R_co]:
        """With a copy of what ``f`` holds; plans are shared, which are never changed."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__ | {"f": copy.deepcopy(self.f, memo)})
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Without plans, which hold code; they are made again."""
        return self.__dict__ | {"_plans": KeptPlans(), "_tuned": KeptPlans(), "_alike": Alike()}

    def __copy__(self) -> Raised[P, R_co]:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any], likely: bool = False) -> Traced:
        """The call as a jaxpr; arrays of NumPy are arguments where a derivative by them is ``likely``, else part of the function."""
        leaves, tree = tree_flatten((args, kwargs))
        if likely:
            leaves = [_if_likely(leaf) for leaf in leaves]
        places = [n for n, leaf in enumerate(leaves) if is_traced(leaf)]
        shape: list[Any] = []

        def flat(*arrays: Any) -> list[Any]:
            filled = list(leaves)
            for n, array in zip(places, arrays, strict=True):
                filled[n] = array
            own_args, own_kwargs = tree_unflatten(tree, filled)
            results, out = tree_flatten(_called(self.f, self.__name__, own_args, own_kwargs))
            own = [n for n, r in enumerate(results) if is_traced(r)]
            shape[:] = [out, own, [None if n in set(own) else r for n, r in enumerate(results)]]
            return [results[n] for n in own]

        arrays = [leaves[n] for n in places]
        with as_it_is():
            closed = jax.make_jaxpr(flat)(*arrays)
        out, own, rest = shape
        if has_tensor(rest):
            raise _builder(self.__name__, "it returns Tensors")

        def rebuild(results: Sequence[Any]) -> Any:
            filled = list(rest)
            for n, value in zip(own, results, strict=True):
                filled[n] = value
            return tree_unflatten(out, filled)

        still = [None if n in set(places) else leaf for n, leaf in enumerate(leaves)]
        return Traced(closed, arrays, rebuild, f"{tree} {still}")

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The modules of the regions that are raised for these arguments (arrays or ``jax.ShapeDtypeStruct``)."""
        found = self.plan(self.traced(args, kwargs, likely=True))
        if not found.regions:
            return f"# nothing of {self.__name__} is raised: te.explain says why\n"
        return "\n\n".join(region.code.graph.module.text for region in found.regions)

    def explain(self, *args: Any, **kwargs: Any) -> RaisedReport:
        """Which lines are raised for these arguments and why, and what stays as it is."""
        return report(self.__name__, self.plan(self.traced(args, kwargs, likely=True)))

    def tune(self, *args: Any, **kwargs: Any) -> None:
        """Measures which regions are raised for arguments of these shapes, in place of estimating; see :func:`adjoint`."""
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, (jax.core.Tracer, jax.ShapeDtypeStruct)):
                raise ArgumentError(
                    f"tune of {self.__name__} measures, which takes the arrays of a call; one of them is {described(leaf)}"
                )
        try:
            traced = self.traced(args, kwargs)
        except _CONCRETE:
            return  # it is called as it is
        self._measure(traced, fingerprint(traced.closed, traced.rest))

    def tune_once(self, *args: Any, **kwargs: Any) -> None:
        """Measures what is raised where ``tune="first call"`` asks for it, and arguments of these shapes were not measured before."""
        leaves = tree_leaves((args, kwargs))
        if not self.first_call or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return
        try:
            traced = self.traced(args, kwargs)
        except _CONCRETE:
            return
        own = fingerprint(traced.closed, traced.rest)
        if self._tuned.find(own) is None:
            self._measure(traced, own)

    def _measure(self, traced: Traced, own: Fingerprint) -> Plan:
        with made_for(self.platform):
            found = measured_or_kept(traced.closed, traced.arrays, own, self.safe, self.tuning_file)
        self._tuned.keep(own, found)
        return found

    def plan(self, traced: Traced, wanted: Wanted = None) -> Plan:
        """What runs in place of a call that is differentiated by the arrays in ``wanted``: as it was measured, else by estimate."""
        own = fingerprint(traced.closed, traced.rest)
        found = self._tuned.find(own)
        if found is None and self.first_call:
            found = self._measure(traced, own)
        found = found or self._plans.find(own, wanted)
        if found is None:
            with made_for(self.platform):
                planner = Planner(
                    self.choice, safe=self.safe, alike=self._alike, raising=self._like, save=self.save
                )
                found = planner.plan(traced.closed, wanted)
            self._plans.keep(own, found, wanted)
        return found

    def on(self, platform: str | None) -> Raised[P, R_co]:
        """The same function raised for a platform."""
        return self._with(platform, self.first_call, self.tuning_file)

    def tuned_at_first(self, file: Any = None) -> Raised[P, R_co]:
        """The same function, measured by itself when it is called first; with what ``file`` has, where it is given."""
        return self._with(self.platform, True, file)

    def saving(self, save: int | None) -> Raised[P, R_co]:
        """The same function with states of its loops in so many bytes."""
        return Raised(self.f, self.choice is Choice.EVERYTHING, self.safe, self.platform, save=save)

    def _with(self, platform: str | None, first_call: bool, file: Any) -> Raised[P, R_co]:
        everything = self.choice is Choice.EVERYTHING
        return Raised(self.f, everything, self.safe, platform, first_call, file, self.save)

    def _like(self, f: Callable[..., Any]) -> Raised[..., Any]:
        """Another function, raised as this one is."""
        return Raised(f, self.choice is Choice.EVERYTHING, self.safe, self.platform, save=self.save)

    def __repr__(self) -> str:
        return f"<te.adjoint {self.__name__}>"


def is_traced(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an array to be traced; all else is part of the function, as for ``jax.grad``."""
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)) and not jax.dtypes.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    )


def _if_likely(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f" else leaf


def _called(f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return f(*args, **kwargs)
    except DefinitionError as error:
        raise _builder(name, str(error)) from error


def _builder(name: str, error: str) -> ArgumentError:
    return ArgumentError(
        f"{name} is called with arrays, as every plain callable is here; a builder of Tensors is given to te.function first, as in "
        f"te.grad(te.function({name})). What went wrong with arrays: {error}"
    )


class Adjoint(Protocol):
    """What :func:`adjoint` with options alone returns."""

    def __call__(self, f: Callable[P, R], /) -> Raised[P, R]: ...


@overload
def adjoint(
    f: Callable[P, R],
    *,
    everything: bool = False,
    tune: tuple[Any, ...] | Literal["first call"] | None = None,
    tuning_file: Any = None,
    safe: bool = True,
    platform: str | None = None,
    save: int | None = None,
) -> Raised[P, R]: ...
@overload
def adjoint(
    f: None = None,
    *,
    everything: bool = False,
    tune: tuple[Any, ...] | Literal["first call"] | None = None,
    tuning_file: Any = None,
    safe: bool = True,
    platform: str | None = None,
    save: int | None = None,
) -> Adjoint: ...
def adjoint(
    f: Callable[..., Any] | None = None,
    *,
    everything: bool = False,
    tune: tuple[Any, ...] | Literal["first call"] | None = None,
    tuning_file: Any = None,
    safe: bool = True,
    platform: str | None = None,
    save: int | None = None,
) -> Any:
    """``f`` with raised derivatives: ``jax.grad`` of the result is the gradient that jaxte derives.

    Where nothing is to be gained, ``f`` itself is called.

    Args:
        f: any JAX function; used as a decorator too.
        everything: whether all that has a rule is raised, not only what gains by estimate.
        tune: the arguments of a call. Values and gradients of the whole function are then compiled and timed with regions taken
            and left, and calls with arguments of these shapes and dtypes run the fastest; others run as estimated.
            :meth:`Raised.tune` does so again, for other arguments. With ``"first call"`` this happens by itself at the first call with
            arguments of each shape: on the arrays of the call, or, within ``jax.jit``, on numbers between 0.5 and 1.5 (zeros for integers).
        tuning_file: of ``tune="first call"``: a path. What was measured is kept in it as JSON, beside what :func:`autotune` keeps, and
            taken from it by later processes on the same machine, which then measure nothing.
        safe: whether the branch of a ``jnp.where`` that is not taken contributes 0 to the gradient where its slope is infinite or NaN, for
            which ``jax.grad`` gives NaN; False for what ``jax.grad`` gives. Values are the same both ways.
        platform: "cpu", "gpu" or "tpu", for which raised parts are planned and written; by default planned for the platform that JAX runs
            on, and written for the one that JAX lowers for.
        save: how many bytes the states of each loop (``scan``, ``fori_loop``) may take until the backward pass has come to them: states before
            segments of steps are kept, and the steps of a segment are computed again. None for all that JAX keeps.

    Raises:
        ArgumentError: ``f`` is no function, ``tune`` no tuple of arguments that are there, ``save`` is no number of bytes, or both are given.
        LoweringError: the platform is unknown.

    Example:
        >>> @te.adjoint
        ... def heat(u):
        ...     return u + 0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u)
        >>> jax.grad(lambda u: jnp.sum(heat(u) ** 2))(jnp.ones(8))

        >>> te.explain(te.adjoint(heat, tune=(jnp.ones(8),)), jnp.ones(8)).measured
    """
    if f is None:
        return functools.partial(
            adjoint,
            everything=everything,
            tune=tune,
            tuning_file=tuning_file,
            safe=safe,
            platform=platform,
            save=save,
        )
    if not callable(f):
        raise ArgumentError(f"te.adjoint takes a JAX function, not {described(f)}")
    if tune is not None and not isinstance(tune, tuple) and tune != FIRST_CALL:
        raise ArgumentError(
            f'tune= takes the arguments of a call as a tuple, (x,) for one, or "{FIRST_CALL}", not {described(tune)}'
        )
    if tuning_file is not None and tune != FIRST_CALL:
        raise ArgumentError(
            f'tuning_file= is for tune="{FIRST_CALL}", which keeps in it what it measured; give that too'
        )
    if save is not None and (isinstance(save, bool) or not isinstance(save, int) or save < 1):
        raise ArgumentError(
            f"save= of te.adjoint takes a number of bytes for the states of each loop, as save=2**20, not {described(save)}"
        )
    if save is not None and tune is not None:
        raise ArgumentError(
            "te.adjoint measures what keeps all states of loops: give it either tune= or save="
        )
    if platform is not None:
        platform_of(platform)
    raised = f if isinstance(f, Raised) else Raised(f, everything, safe, save=save)
    raised = raised if save in (None, raised.save) else raised.saving(save)
    raised = raised if platform in (None, raised.platform) else raised.on(platform)
    if tune == FIRST_CALL:
        return raised.tuned_at_first(tuning_file)
    if tune is not None:
        raised.tune(*tune)
    return raised
