"""What every test shares: JAX on the CPU, hypothesis profiles, 64-bit mode, random numbers."""

import gc
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.xla_flags import QUICK_XLA

# Before jax is imported, and in the environment so that child processes inherit it.
# JAX_PLATFORMS=cuda runs the same tests on a GPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Every array program that a test makes is verified.
os.environ.setdefault("JAXTE_VERIFY", "1")
# Most of the time of a run goes to XLA. The text that jaxte emits is the same in each run, and so are the programs: what has not changed
# is read from this folder, by JAX's own keys. `make clean` empties it.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# XLA's older emitters of loops compile in less than half of the time of those that go through MLIR, and fuse the same operations. A child
# process or a user who sets flags of XLA has them as they are.
os.environ.setdefault("XLA_FLAGS", QUICK_XLA)
# JAX writes the lines of Python that led to an operation beside each one, which is a twentieth of a test's time and which no test reads.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from tests import numpy_programs
from tests.one_context import share_contexts
from tests.single_operations import run_by_xla, run_in_numpy
from tests.tiers import first_tier, recorded

share_contexts()
compiled: list[float] = []
"""Seconds of XLA for each program that it was given in this run, also where it was read from the folder."""
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: (
        compiled.append(seconds) if event == "/jax/core/compile/backend_compile_duration" else None
    )
)

# Programs, their texts and JAX's caches are many objects that live for the whole run: looking through them again and again was a twelfth of it.
gc.set_threshold(500_000, 20, 50)

# Compiling takes long and varies, so no deadlines. "quick" draws the same examples in every run: `make test`
# fails for a change of the code, never by luck. New examples are the work of "full". Both show a failure as it
# was drawn: to shrink a definition compiles it hundreds of times.
settings.register_profile(
    "quick",
    max_examples=50,
    deadline=None,
    derandomize=True,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "full",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("JAXTE_HYPOTHESIS", "quick"))
IS_QUICK = settings.default.max_examples < 1000
if IS_QUICK:
    run_in_numpy()
    # Hypothesis tries numbers that stand in the code, too, for which it reads all of it: 3 s a worker, and other examples after each change.
    providers.is_local_module_file = lambda path: False
# LLVM with little optimisation takes a third of the time; buffers, fusions and the text of programs are XLA's and are the same with and without.
jax.config.update("jax_disable_most_optimizations", IS_QUICK)
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", str(int(IS_QUICK)))  # of child processes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make test` runs; see tests/tiers.py."""
    chosen = first_tier([item.nodeid for item in items], recorded())
    for item in items:
        if item.nodeid in chosen and item.get_closest_marker("slow") is None:
            item.add_marker("tier1")


def pytest_collection_finish() -> None:
    """What was imported lives until the end: no collection looks through it."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What a test found out about programs is kept if it passes."""
    if report.failed or report.when == "teardown":
        numpy_programs.add_to_record(report.passed)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What lives until the end is left out of the collections by which pytest looks for exceptions that nothing caught: five, of all objects."""
    gc.freeze()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = list(compiled)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    compiled.extend(getattr(node, "workeroutput", {}).get("compiled", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A whole run that compiles more than the one that was recorded wants `make record`."""
    terminalreporter.write_line(f"XLA compiled {len(compiled):,} programs in {sum(compiled):.0f} s")


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit JAX within one test. Under `@given`, ask for it with `@pytest.mark.usefixtures("x64")`."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def programs_by_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the last digits of what stands under ``jax.jit``: NumPy runs none of it."""
    monkeypatch.setattr(numpy_programs, "calls_of", lambda program: 0)
    monkeypatch.delenv("JAXTE_VALUES", raising=False)


@pytest.fixture(scope="module")
def optimised() -> Iterator[None]:
    """XLA and LLVM as users have them, for modules that look at the last digits."""
    jax.config.update("jax_disable_most_optimizations", False)
    with run_by_xla():
        yield
    jax.config.update("jax_disable_most_optimizations", IS_QUICK)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers, other ones in each test. JAXTE_SEED=n draws others; a failure shows the seed.

    Not under `@given`, where the state would run on from example to example: draw a seed there.
    """
    run = int(os.environ.get("JAXTE_SEED", "0"))
    # crc32, since hash() differs between processes
    seed = zlib.crc32(f"{run}:{request.node.nodeid}".encode())
    request.node.add_report_section("setup", "rng", f"JAXTE_SEED={run}: np.random.default_rng({seed})")
    return np.random.default_rng(seed)
