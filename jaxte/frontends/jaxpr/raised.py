"""``Raised``: a JAX function whose derivative, under every transformation, is that of its raised parts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import jax
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.options import made_for
from jaxte.bridge.functions.evaluate import Explained
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import PickledByName, found_under
from jaxte.frontends.jaxpr.explain import RaisedReport, report
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.plan.moving import Wanted, wanted_of
from jaxte.frontends.jaxpr.plan.plan import Planner
from jaxte.frontends.jaxpr.plan.region_code import Alike
from jaxte.frontends.jaxpr.plan.regions import Choice
from jaxte.frontends.jaxpr.priced import cheaper
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.frontends.jaxpr.traced import Fingerprint, KeptPlans, Traced, call_as_jaxpr, fingerprint
from jaxte.frontends.jaxpr.tune import measured_or_kept
from jaxte.lang.budget import kept
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

# what JAX raises where a function asks for the value of an argument, which it may have without being traced
_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class Raised(PickledByName, Explained[RaisedReport], Generic[P, R_co]):
    """A JAX function with raised derivatives; see ``jaxte.adjoint``."""

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
        # what a jaxte function holds is its own
        updated = () if isinstance(f, Function) else functools.WRAPPER_UPDATES
        functools.update_wrapper(self, f, updated=updated)
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.f = f
        self.choice = Choice.EVERYTHING if everything else Choice.ESTIMATED
        self.safe = safe
        self.platform, self.save = platform, save
        self.first_call, self.tuning_file = first_call, tuning_file
        self._plans, self._tuned = KeptPlans(), KeptPlans()
        self._alike = Alike()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in tree_leaves((args, kwargs))):
            return self.f(*args, **kwargs)
        with kept():
            return self._differentiated(*args, **kwargs)

    def _differentiated(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """A call with arrays that JAX traces."""
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
        """Without plans, which hold code and are made again; where the name of ``f`` is that of its raised form, by that one."""
        found = found_under(getattr(self.f, "__module__", None), getattr(self.f, "__qualname__", ""))
        f = found if isinstance(found, Raised) and found.f is self.f else self.f
        own = {"f": f, "__wrapped__": f, "_plans": KeptPlans(), "_tuned": KeptPlans(), "_alike": Alike()}
        return self.__dict__ | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.f, Raised):
            self.f = self.__dict__["__wrapped__"] = self.f.f

    def __copy__(self) -> Raised[P, R_co]:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any], likely: bool = False) -> Traced:
        """The call as a jaxpr; arrays of NumPy are arguments where a derivative by them is ``likely``, else part of the function."""
        return call_as_jaxpr(self.f, self.__name__, args, kwargs, likely)

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
        """Measures which regions are raised for arguments of these shapes, in place of estimating; see ``jaxte.adjoint``."""
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
                planner = self._planner()
                found = planner.plan(traced.closed, wanted)
                if self.choice is Choice.ESTIMATED and self.save is None:
                    read = planner.read(traced.closed)
                    found = cheaper(traced.closed, read, wanted, found, planner.choosing)
            self._plans.keep(own, found, wanted)
        return found

    def _planner(self) -> Planner:
        return Planner(self.choice, safe=self.safe, alike=self._alike, raising=self._like, save=self.save)

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
