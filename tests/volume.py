"""Random programs by the thousand, each checked as in :mod:`tests.agreement`: ``python -m tests.volume 20000``.

The seed of a program says all of it. Each is one line of the file of results, so that a run goes on where it was stopped;
a process that dies takes one program with it, which is said too. ``--replay 123`` shows one and raises what it raises.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
from tqdm import tqdm

from jaxte.lower.cost.policy import Policy
from jaxte.planning.asked import planned_with
from tests.agreement import Pullback, at_random, check, check_nodes
from tests.choices import Seeded
from tests.frontends.random_choices import RandomChoices, check_choices
from tests.frontends.random_functions import RandomFunction, check_forward, check_raised, without_elements
from tests.frontends.random_rules import RandomRules, check_rules
from tests.frontends.random_sparse import check_sparse
from tests.loops import random_eliminations, random_meanings, random_names, random_sweeps
from tests.loops.agreement import assert_agrees, assert_agrees_or_refused, assert_nodes_agree
from tests.loops.random_programs import arguments as loop_arguments
from tests.loops.random_programs import random_program
from tests.points import excess
from tests.random_definitions import AtZeros, Definition, definition
from tests.random_exclusions import RandomExclusions, check_exclusions, check_moved
from tests.random_hessians import check_hessian
from tests.random_integers import reading_at_integers
from tests.random_masks import RandomMasks
from tests.random_options import check_budgets, check_checkpoints
from tests.random_recurrences import RandomRecurrences, check_recurrences
from tests.random_repeated import Repeating
from tests.random_symbols import RandomSymbols, check_symbols
from tests.random_uses import (
    RandomPattern,
    RandomStep,
    check_kept,
    check_overridden,
    check_pattern,
    check_scan,
    check_short,
)
from tests.test_random_forms import check_forms
from tests.xla_flags import QUICK_XLA

SECONDS = 90  # of the processor's time: more is a defect too
BATCH = 250  # programs of one process, which never gives back what XLA compiled
COUNTED = 4000  # of those that are not compiled
STAGES: tuple[dict[str, Any], ...] = (
    {"stages": (1, 1), "kinds": "bodies"},
    {"stages": (1, 2)},
    {"stages": (2, 3)},
)
NOTES = {
    "vjp": "beside jax.vjp, too",
    "kink": "have no second derivative by differences, whose steps disagree",
    "apart": "agree operation by operation only, not as one program: equal elements of an extremum",
    "infinite": "have an infinity for a NaN or the other way, where a factor has left a sum",
    "cancelled": "lose to rounding what a unit in the last place of their inputs changes as much",
    "optimized": "are right in programs that XLA optimizes alone",
    "excluded": "have 0 for a NaN of the value in an adjoint, at elements whose terms a condition leaves out",
    "refused": "ask for fewer bytes than one of their tensors takes",
    "spoiled": "have a NaN of the value in an adjoint at elements that a condition leaves out",
}
Details = dict[str, Any]


def checked(p: Pullback | None, seed: int, tolerance: float = 1e-9) -> Details:
    """Half of the programs through ``te.function`` and its residuals, half as text; jax.vjp for a quarter, and points of adjoints counted."""
    if p is None:
        return {"empty": True}
    by_jax = seed // (2 * len(STAGES)) % 4 == 0
    residuals, closed = seed // len(STAGES) % 2 == 0, seed % 2 == 0
    notes = check(p, residuals, False, tolerance, by_jax, closed) | ({"vjp"} if by_jax else set())
    growth = excess(p.output, p.adjoints) if seed % 4 == 1 else 0
    return {"notes": sorted(notes)} | ({"growth": round(growth, 2)} if growth > 1 else {})


def first(definition: Definition, seed: int) -> Details:
    return checked(at_random(definition), seed)


def second(definition: Definition, seed: int) -> Details:
    return checked(at_random(definition, order=2), seed, 1e-8)


def single(definition: Definition, seed: int) -> Details:
    return checked(at_random(definition), seed, 1e-4)


def nodes(definition: Definition, seed: int, order: int = 1, platform: str = "cpu") -> Details:
    """What is emitted by its nodes, without XLA: ten times as many in the time of ``first``."""
    policy = Policy(platform)
    with planned_with(policy.facts.intermediates, policy.without, policy.debug):
        p = at_random(definition, order)
    if p is None:
        return {"empty": True}
    at_ties = isinstance(definition, AtZeros)
    return {"notes": sorted(check_nodes(p, 1e-9 if order == 1 else 1e-8, at_ties, platform))}


def on_chips(definition: Definition, seed: int) -> Details:
    """What is emitted for a GPU, or for a TPU, by its nodes."""
    return nodes(definition, seed, platform=("gpu", "tpu")[seed % 2])


def forms(definition: Definition, seed: int) -> Details:
    check_forms(definition)
    return {}


def law(definition: Definition, seed: int = 0, order: int = 1) -> Details:
    """Derived and counted, not run: at most five times the points of the definition."""
    p = at_random(definition, order)
    if p is None:
        return {"empty": True}
    growth = excess(p.output, p.adjoints, [definition.output])
    assert growth <= 1, f"{growth:.2f} times the bound of five times the points"
    return {"largest": round(growth, 3)}


def raised(f: RandomFunction, seed: int, order: int = 1, everything: bool = True) -> Details:
    return check_raised(f, order, everything)


def raised_forward(f: RandomFunction, seed: int) -> Details:
    return check_forward(f, everything=seed % 2 == 0)


def rules(f: RandomRules, seed: int) -> Details:
    return {"raised": check_rules(f, everything=seed % 2 == 0)}


def choices(f: RandomChoices, seed: int) -> Details:
    return check_choices(f)


def loops(seed: int, _: int) -> Details:
    assert_agrees(random_program(seed), loop_arguments(seed))
    return {}


def loops_by_nodes(seed: int, _: int) -> Details:
    assert_nodes_agree(random_program(seed), loop_arguments(seed))
    return {}


def sweeps_by_nodes(seed: int, _: int) -> Details:
    assert_nodes_agree(random_sweeps.random_sweeps(seed), random_sweeps.arguments(seed))
    return {}


def eliminations_by_nodes(seed: int, _: int) -> Details:
    """A random elimination, as :func:`sweeps_by_nodes`."""
    assert_nodes_agree(random_eliminations.random_eliminations(seed), random_eliminations.arguments(seed))
    return {}


def names_by_nodes(seed: int, _: int) -> Details:
    """A random program about names, as :func:`sweeps_by_nodes`; what te.loops refuses is told."""
    refused = assert_agrees_or_refused(random_names.random_names(seed), random_names.arguments(seed))
    return {} if refused is None else {"refused": refused}


def meanings_by_nodes(seed: int, _: int) -> Details:
    """A random program about what NumPy means, likewise; where NumPy raises an error, te.loops has to refuse it."""
    refused = assert_agrees_or_refused(random_meanings.random_meanings(seed), random_meanings.arguments(seed))
    return {} if refused is None else {"refused": refused}


def exclusions(f: RandomExclusions, seed: int) -> Details:
    """Second derivatives of one half."""
    return check_exclusions(f, order=1 + seed % 2)


def moved(f: RandomExclusions, _: int) -> Details:
    return check_moved(f)


def symbols(f: RandomSymbols | RandomRecurrences, _: int) -> Details:
    return check_symbols(f)


def short(seed: int, _: int) -> Details:
    return check_short(seed)


def kept(seed: int, _: int) -> Details:
    return check_kept(seed)


def checkpoints(seed: int, _: int) -> Details:
    return check_checkpoints(seed)


def budgets(seed: int, _: int) -> Details:
    return check_budgets(seed)


def sparse(seed: int, _: int) -> Details:
    return check_sparse(seed)


def overridden(seed: int, _: int) -> Details:
    return check_overridden(seed)


def patterns(f: RandomPattern, _: int) -> Details:
    return check_pattern(f)


def scans(f: RandomStep, _: int) -> Details:
    return check_scan(f)


def recurrences(f: RandomRecurrences, _: int) -> Details:
    return check_recurrences(f)


def mixed(f: RandomRecurrences, seed: int) -> Details:
    """What is emitted for a CPU, a GPU or a TPU, by its nodes."""
    return nodes(f.definition(), seed, platform=("cpu", "gpu", "tpu")[seed % 3])


def at_integers(definition: Definition, seed: int) -> Details:
    """First derivatives of two thirds, second ones of the others."""
    return check_hessian(definition, seed) if seed % 3 == 2 else first(definition, seed)


KINDS: dict[str, tuple[Callable[[Any, int], Details], Callable[[int], Any] | dict[str, Any]]] = {
    "first": (first, {}),
    "second": (second, {"stages": (1, 1)}),
    "single": (single, {"stages": (1, 2), "dtype": "float32"}),
    "nodes": (nodes, {}),
    "chips": (on_chips, lambda seed: drawn(("nodes", "zeros", "repeated", "bits")[seed // 2 % 4], seed)),
    "repeated": (nodes, {"kinds": "bodies", "writes": Repeating}),
    "repeated-twice": (partial(nodes, order=2), {"kinds": "bodies", "writes": Repeating, "stages": (1, 1)}),
    "nodes-twice": (partial(nodes, order=2), {"stages": (1, 1)}),
    "zeros": (nodes, lambda seed: at_zeros(drawn("first", seed))),
    "zeros-twice": (partial(nodes, order=2), lambda seed: at_zeros(drawn("second", seed))),
    "forms": (forms, {"stages": (1, 2)}),
    "law": (law, lambda seed: drawn("first", seed)),
    "law-twice": (partial(law, order=2), lambda seed: drawn("second", seed)),
    "raised": (raised, RandomFunction),
    "raised-twice": (partial(raised, order=2), partial(RandomFunction, steps=4)),
    "raised-default": (partial(raised, everything=False), RandomFunction),
    "raised-forward": (raised_forward, partial(RandomFunction, steps=4)),
    "empty": (raised, without_elements),
    "rules": (rules, RandomRules),
    "choices": (choices, RandomChoices),
    "loops": (loops, int),
    "loops-nodes": (loops_by_nodes, int),
    "loops-sweeps": (sweeps_by_nodes, int),
    "loops-eliminations": (eliminations_by_nodes, int),
    "loops-names": (names_by_nodes, int),
    "loops-meanings": (meanings_by_nodes, int),
    "hessian": (check_hessian, {"stages": (1, 2)}),
    "bits": (at_integers, lambda seed: reading_at_integers(Seeded(f"bits {seed}"))),
    "nested": (at_integers, lambda seed: reading_at_integers(Seeded(f"nested {seed}"), bits=False)),
    "bits-nodes": (nodes, lambda seed: drawn("bits", seed)),
    "symbols": (symbols, RandomSymbols),
    "complex": (nodes, {"stages": (1, 2), "dtype": "complex128"}),
    "short": (short, int),
    "kept": (kept, int),
    "checkpoints": (checkpoints, int),
    "budgets": (budgets, int),
    "sparse": (sparse, int),
    "overridden": (overridden, int),
    "patterns": (patterns, RandomPattern),
    "scans": (scans, RandomStep),
    "recurrences": (recurrences, RandomRecurrences),
    "mixed": (mixed, partial(RandomRecurrences, mixed=True)),
    "mixed-whole": (recurrences, partial(RandomRecurrences, mixed=True)),
    "mixed-symbols": (symbols, partial(RandomRecurrences, mixed=True, symbolic=True)),
    "exclusions": (exclusions, RandomExclusions),
    "excluded-tensors": (exclusions, partial(RandomExclusions, outside=True)),
    "masks": (exclusions, RandomMasks),
    "moved": (moved, lambda seed: RandomExclusions(seed, outside=seed % 2 == 0)),
    "nested-nodes": (nodes, lambda seed: drawn("nested", seed)),
}
"""What is done with a definition or a JAX function, and how it is drawn; the laws are about the programs of ``first`` and ``second``."""


def drawn(kind: str, seed: int) -> Any:
    options = KINDS[kind][1]
    if callable(options):
        return options(seed)
    return definition(Seeded(f"{kind} {seed}"), **{**STAGES[seed % len(STAGES)], **options})


def at_zeros(own: Definition) -> AtZeros:
    return AtZeros(own.output, own.seed)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@dataclass(frozen=True)
class Run:
    """The programs of one kind, with the file that their results go to."""

    kind: str
    path: Path
    commit: str
    number: int

    def lines(self) -> list[Details]:
        """The last result of each seed."""
        known = self.path.read_text().splitlines() if self.path.exists() else []
        own = [line for line in map(json.loads, known) if line["kind"] == self.kind]
        return list({line["seed"]: line for line in own}.values())

    def write(self, seed: int, **details: Any) -> None:
        with self.path.open("a") as out:
            own = {"kind": self.kind, "seed": seed, "commit": self.commit, "run": self.number}
            out.write(json.dumps(own | details) + "\n")

    def batch(self, seeds: Sequence[int]) -> None:
        """Checks ``seeds``, one after the other, in this process."""
        with jax.enable_x64(True):
            for seed in seeds:
                begun = time.process_time()
                try:
                    with limited(SECONDS):
                        found = KINDS[self.kind][0](drawn(self.kind, seed), seed)
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                    found = {"error": text[:2000], "at": traceback.format_exc()[-1500:]}
                self.write(seed, seconds=round(time.process_time() - begun, 3), **found)

    def own_process(self, seeds: Sequence[int]) -> int:
        """:meth:`batch` in a process of its own; where that dies, the first seed without a result is to blame."""
        process = get_context("spawn").Process(target=self.batch, args=(seeds,))
        process.start()
        process.join()
        done = {line["seed"] for line in self.lines() if line["run"] == self.number}
        left = [seed for seed in seeds if seed not in done]
        if left:
            self.write(left[0], error=f"the process ended with code {process.exitcode}")
            self.own_process(left[1:])
        return len(seeds)

    def all(self, seeds: Sequence[int], workers: int, again: bool) -> None:
        """Those of ``seeds`` that have no result; with ``again``, those that failed, too."""
        done = {line["seed"] for line in self.lines() if not (again and "error" in line)}
        left = [seed for seed in seeds if seed not in done]
        size = COUNTED if self.kind.startswith("law") else BATCH
        batches = [left[n : n + size] for n in range(0, len(left), size)]
        with (
            tqdm(total=len(seeds), initial=len(seeds) - len(left), unit="program") as bar,
            ThreadPoolExecutor(workers) as pool,
        ):
            for task in as_completed([pool.submit(self.own_process, batch) for batch in batches]):
                bar.update(task.result())
                bar.set_postfix(errors=sum("error" in line for line in self.lines()))


def summary(lines: Sequence[Details]) -> str:
    commits = Counter(line["commit"] for line in lines if not line.get("empty"))
    texts = [f"{count} programs at {commit}" for commit, count in commits.items()]
    texts.append(f"{sum('empty' in line for line in lines)} had nothing to differentiate")
    notes = Counter(note for line in lines for note in line.get("notes", []))
    texts += [f"{notes[note]} {what}" for note, what in NOTES.items()]
    grown = sorted((line["growth"], line["seed"]) for line in lines if "growth" in line)
    texts.append(f"{len(grown)} with adjoints of more than five times the points: {grown[::-1][:20]}")
    largest = sorted((line["largest"], line["seed"]) for line in lines if "largest" in line)[::-1][:5]
    texts += [f"largest adjoints, of the bound: {largest}"] if largest else []
    slow = sorted((line.get("seconds", 0), line["seed"]) for line in lines)[::-1][:10]
    texts.append(f"{sum(line.get('seconds', 0) for line in lines):.0f} s, the longest {slow}")
    failed = [line for line in lines if "error" in line]
    texts.append(f"{len(failed)} failed")
    return "\n".join(texts + [f"  {x['seed']}: {' '.join(x['error'].split())[:160]}" for x in failed])


def commit() -> str:
    """The commit of the working tree; ``+`` for changes that it does not have."""
    described = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(described, capture_output=True, text=True).stdout.strip() or "unknown"


def _compile_quickly() -> None:
    """For the processes of batches: what XLA makes of a program of a few hundred elements is not the question, and was most of the time."""
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault("XLA_FLAGS", QUICK_XLA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=KINDS, default="first")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--file", type=Path, default=Path("build/volume.jsonl"))
    parser.add_argument("--again", action="store_true", help="those that failed, too")
    parser.add_argument("--replay", type=int, help="one seed, here, with its exception")
    options = parser.parse_args()
    if options.replay is not None:
        with jax.enable_x64(True):
            again = drawn(options.kind, options.replay)
            print(again, flush=True)
            print(KINDS[options.kind][0](again, options.replay))
        return
    _compile_quickly()
    options.file.parent.mkdir(parents=True, exist_ok=True)
    run = Run(options.kind, options.file, commit(), int(time.time()))
    run.all(range(options.start, options.start + options.count), options.workers, options.again)
    print(summary(run.lines()))
    sys.exit(any("error" in line for line in run.lines()))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
