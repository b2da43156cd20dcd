"""Exported programs by the clock on the device that JAX sees: those of a function in turn, with the kernels that each is made of.

    python benchmarks/platforms/on_device.py FOLDER --json clock.json --limit 240

It needs JAX and NumPy alone (``exported.py`` writes the folder elsewhere). All programs are compiled side by side by several processes, which share
JAX's cache of compiled programs, then measured one function after the other: A B C A B C ..., each turn several calls that are queued and waited for together, medians of the turns. Last, the profiler says how long
the device was busy in a call, and with which kernels. The file grows as it goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

PROCESSES, THREADS = 5, 4
TURN, ROUNDS, SHARE = (
    0.002,
    9,
    0.62,
)  # seconds of a turn, how many there are, and the part of the limit in which is compiled
PROFILED, TOGETHER, SLOWEST = (
    3,
    40,
    0.5,
)  # calls of a program for the profiler, functions of one session, seconds of a call that is not repeated
COMPARED = 1 << 20  # elements of a result
Call = Callable[[], Any]


@dataclass
class Case:
    """The programs of a pass: their names by variant, and what their arguments look like."""

    key: str
    texts: dict[str, str]
    leaves: list[dict[str, Any]]
    samples: list[np.ndarray]
    programs: dict[str, bytes]
    drawn: list[jax.Array] | None = None

    def arguments(self) -> list[jax.Array]:
        if self.drawn is None:
            rng = np.random.default_rng(1)
            self.drawn = [
                jax.device_put(_drawn(leaf, own, rng))
                for leaf, own in zip(self.leaves, self.samples, strict=True)
            ]
        return self.drawn


def _drawn(leaf: dict[str, Any], sample: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shape = tuple(leaf["shape"])
    size = int(np.prod(shape))
    return (sample if size == sample.size else sample[rng.integers(0, len(sample), size)]).reshape(shape)


def cases(folder: Path) -> list[Case]:
    """Those of all files, in the order of ``order.txt`` where there is one."""
    order = folder / "order.txt"
    files = (
        [folder / name for name in order.read_text().split("\n") if name]
        if order.exists()
        else sorted(folder.glob("*.zip"))
    )
    found = []
    for path in files:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                if not name.endswith(".json"):
                    continue
                own, which = json.loads(file.read(name)), name.removesuffix(".json")
                samples = []
                for n in range(len(own["leaves"])):
                    with file.open(f"{which}.{n}.npy") as data:
                        samples.append(np.lib.format.read_array(data, allow_pickle=False))
                programs = {text: file.read(f"{text}.bin") for text in own["texts"].values()}
                found.append(
                    Case(
                        f"{path.name.removesuffix('.zip')}|{which}",
                        own["texts"],
                        own["leaves"],
                        samples,
                        programs,
                    )
                )
    return found


def compiled(name: str, data: bytes) -> tuple[Any, float]:
    """The program, whose module has its name, and the seconds that this took."""
    start = time.perf_counter()
    exported = jax.export.deserialize(bytearray(data))

    def call(*args: Any) -> Any:
        return exported.call(*args)

    call.__name__ = f"p{name}"
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in exported.in_avals]
    return jax.jit(call).lower(*specs).compile(), time.perf_counter() - start


def _side_by_side(folder: Path, cache: Path, until: float) -> None:
    """Compiles all programs into ``cache``, in processes of which none begins another program after ``until``."""
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [
        sys.executable,
        __file__,
        str(folder),
        "--cache",
        str(cache),
        "--limit",
        str(until - time.perf_counter()),
    ]
    running = [
        subprocess.Popen([*command, "--share", f"{n}/{PROCESSES}"], env=environment) for n in range(PROCESSES)
    ]
    for process in running:
        try:
            process.wait(max(1.0, until + 8 - time.perf_counter()))
        except subprocess.TimeoutExpired:
            process.kill()


def compile_share(folder: Path, cache: Path, share: str, limit: float) -> None:
    """Compiles every so many-th program; a file for each says how long that took, or why it failed."""
    begun = time.perf_counter()
    _cache_in(cache)
    n, of = map(int, share.split("/"))
    programs = {name: program for case in cases(folder) for name, program in case.programs.items()}

    def one(name: str) -> None:
        if time.perf_counter() - begun > limit:
            return
        try:
            (cache / f"{name}.done").write_text(str(compiled(name, programs[name])[1]))
        except Exception as error:  # what cannot be compiled is told, and the rest is measured
            (cache / f"{name}.failed").write_text(f"{type(error).__name__}: {error}")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, list(programs)[n::of]))
    print(f"share {share}: {time.perf_counter() - begun:.0f}s, {os.times()}", flush=True)


def load(programs: dict[str, bytes], cache: Path) -> dict[str, tuple[Any, float]]:
    """What the other processes compiled."""
    _cache_in(cache)
    done = {path.stem: float(path.read_text()) for path in cache.glob("*.done")}
    with ThreadPoolExecutor(THREADS) as pool:
        loaded = pool.map(lambda name: compiled(name, programs[name])[0], done)
    return {name: (own, done[name]) for name, own in zip(done, loaded, strict=True)}


def _cache_in(folder: Path) -> None:
    jax.config.update("jax_compilation_cache_dir", str(folder / "cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def seconds(call: Call, number: int) -> float:
    """Of one of ``number`` calls, which are queued and waited for together."""
    start = time.perf_counter()
    results = [call() for _ in range(number)]
    jax.block_until_ready(results)
    return (time.perf_counter() - start) / number


def interleaved(calls: dict[str, Call]) -> dict[str, float]:
    """The median seconds of a call of each."""
    once = {name: min(seconds(call, 1) for _ in range(2)) for name, call in calls.items()}
    number = {name: min(max(1, int(TURN / s)), 64) for name, s in once.items()}
    rounds = ROUNDS if sum(once.values()) < SLOWEST else 3
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(seconds(call, number[name]))
    return {name: median(times) for name, times in taken.items()}


def difference(ours: Any, plain: Any) -> float:
    """The largest difference of the results beside the largest element of each."""
    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        x, y = (np.asarray(array).reshape(-1) for array in (a, b))
        x, y = (array[:: 1 + array.size // COMPARED].astype("float64") for array in (x, y))
        if y.size:
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            worst = max(
                worst,
                float(
                    np.max(np.where(same, 0, np.abs(x - y)))
                    / max(float(np.max(np.abs(np.where(np.isfinite(y), y, 0)))), 1e-20)
                ),
            )
    return worst


def measure(case: Case, data: dict[str, Any], done: dict[str, Any]) -> None:
    found: dict[str, Any] = {"texts": case.texts, "programs": {}}
    args = case.arguments()
    calls: dict[str, Call] = {}
    for name, (run, took) in done.items():
        calls[name] = lambda run=run: run(*args)
        found["programs"][name] = {"compile_s": round(took, 2)}
    plain = case.texts.get("plain", "")
    for name in list(calls):
        try:
            result = jax.block_until_ready(calls[name]())
            if plain in calls and name != plain:
                found["programs"][name]["difference"] = difference(result, calls[plain]())
            memory = done[name][0].memory_analysis()
            found["programs"][name]["temporaries"] = memory.temp_size_in_bytes
        except Exception as error:  # more memory than there is
            found["programs"][name]["failed"] = f"{type(error).__name__}: {error}"[:200]
            del calls[name]
    for name, s in interleaved(calls).items() if calls else ():
        found["programs"][name]["seconds"] = s
    data["cases"][case.key] = found


# --- kernels


def profiled(batch: Sequence[tuple[Case, dict[str, Any]]], data: dict[str, Any]) -> None:
    """Adds how long the device is busy in a call of each program, and its kernels by name."""
    from jax._src.lib import _profiler

    options = _profiler.ProfileOptions()
    options.host_tracer_level, options.python_tracer_level = 0, 0
    session = _profiler.ProfilerSession(options)
    for case, done in batch:
        args = case.arguments()
        for name, (run, _) in done.items():
            own = data["cases"][case.key]["programs"][name]
            if "seconds" in own and own["seconds"] < SLOWEST:
                jax.block_until_ready([run(*args) for _ in range(PROFILED)])
        del args
    space = jax.profiler.ProfileData.from_serialized_xspace(session.stop())
    kernels: dict[str, dict[str, list[float]]] = {}
    for plane in space.planes:
        if "GPU" not in plane.name:
            continue
        for line in plane.lines:
            if not line.name.startswith("Stream"):
                continue
            for event in line.events:
                module = next((str(v) for k, v in event.stats if k == "hlo_module"), "")
                program = re.sub(r"^jit_p|[^0-9a-f].*$", "", module)
                kernels.setdefault(program, {}).setdefault(event.name, []).append(event.duration_ns)
    if not kernels:
        print([(plane.name, [line.name for line in plane.lines][:5]) for plane in space.planes], flush=True)
    for case, done in batch:
        for name in done:
            if name in kernels:
                own = kernels[name]
                found = data["cases"][case.key]["programs"][name]
                found["busy"] = sum(map(sum, own.values())) / PROFILED * 1e-9
                found["kernels"] = sum(map(len, own.values())) / PROFILED
                rows = sorted(own.items(), key=lambda i: -sum(i[1]))[:8]
                found["longest"] = {
                    k[:60]: [len(v) / PROFILED, round(sum(v) / PROFILED / 1e3, 2)] for k, v in rows
                }


def save(path: Path, data: dict[str, Any]) -> None:
    path.with_suffix(".part").write_text(json.dumps(data))
    path.with_suffix(".part").replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--limit", type=float, default=240, help="seconds in all")
    parser.add_argument("--cache", type=Path, help="compile only, into this folder")
    parser.add_argument("--share", default="0/1", help="which of how many shares is compiled")
    options = parser.parse_args()
    if options.cache:
        compile_share(options.folder, options.cache, options.share, options.limit)
        os._exit(0)
    begun = time.perf_counter()
    device = jax.devices()[0]
    data: dict[str, Any] = {"device": device.device_kind, "jax": jax.__version__, "cases": {}}
    one = jax.numpy.zeros(())
    nothing = jax.jit(lambda x: x + 1).lower(one).compile()
    data["call_s"] = min(seconds(lambda: nothing(one), 64) for _ in range(9))
    print(data, f"{time.perf_counter() - begun:.1f}s", flush=True)
    own = cases(options.folder)
    programs = {name: program for case in own for name, program in case.programs.items()}
    cache = Path(tempfile.mkdtemp())
    _side_by_side(options.folder, cache, begun + SHARE * options.limit)
    made = load(programs, cache)
    print(
        f"{len(made)} of {len(programs)} programs at {time.perf_counter() - begun:.0f}s, {os.times()}",
        flush=True,
    )
    for failed in cache.glob("*.failed"):
        data.setdefault("failed", {})[failed.stem] = failed.read_text()[:500]
    ready = []
    for case in own:
        done = {name: made[name] for name in case.programs if name in made}
        if len(done) > 1:
            ready.append((case, done))
    until = begun + 0.86 * options.limit
    measured = 0
    for case, done in ready:
        if time.perf_counter() > until:
            break
        try:
            measure(case, data, done)
        except Exception as error:
            data["cases"][case.key] = {
                "failed": f"{type(error).__name__}: {error}"[:300],
                "programs": {},
                "texts": case.texts,
            }
        measured += 1
        if measured % 25 == 0:
            save(options.json, data)
    save(options.json, data)
    print(f"{measured} of {len(own)} measured at {time.perf_counter() - begun:.0f}s", flush=True)
    for n in range(0, measured, TOGETHER):
        if time.perf_counter() > begun + options.limit - 3:
            break
        try:
            profiled(
                [r for r in ready[:measured][n : n + TOGETHER] if data["cases"][r[0].key]["programs"]], data
            )
        except Exception as error:
            print("profiler:", repr(error)[:300], flush=True)
            break
    save(options.json, data)
    print(f"profiled at {time.perf_counter() - begun:.0f}s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
