"""Programs compiled in a process of their own, which is ended when one takes too long: compilers write some programs out without end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from platforms.functions import Pair, pairs
from platforms.kernels import figures
from platforms.topology import compiled

_SIDES = ("jaxte", "plain")
Key = tuple[str, str]


class Compilations:
    """One process after the other, each of which compiles what it is asked for until it is ended.

    Args:
        limit: seconds that a program may take.
        texts: where the compiled texts are kept; None for nowhere.
    """

    def __init__(self, limit: float, texts: Path | None = None) -> None:
        self._limit = limit
        self._texts = texts
        self._process: Any = None
        self._pipe: Any = None

    def of(self, group: str, name: str, platform: str, size: str) -> dict[str, dict[str, Any]]:
        """The figures of both sides by pass; of a program that was not compiled the reason."""
        found: dict[str, dict[str, Any]] = {}
        left_out: list[Key] = []
        while True:
            self._ask((group, name, platform, size, left_out))
            at = None
            while (said := self._said()) is not None and said[0] != "done":
                what, *rest = said
                if what == "begins":
                    at = tuple(rest)
                else:
                    (which, side), figure = rest
                    found.setdefault(which, {})[side] = figure
                    left_out.append((which, side))
            if said is not None:
                return found
            self.close()
            if at is None:
                return found | {
                    "all": {side: {"error": "the functions were not made in time"} for side in _SIDES}
                }
            which, side = at
            found.setdefault(which, {})[side] = {"error": f"not compiled in {self._limit:.0f} s"}
            left_out.append((which, side))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _ask(self, what: Any) -> None:
        if self._process is None:
            spawned = multiprocessing.get_context("spawn")
            self._pipe, other = spawned.Pipe()
            self._process = spawned.Process(target=_work, args=(other, self._texts), daemon=True)
            self._process.start()
            other.close()
        self._pipe.send(what)

    def _said(self) -> Any:
        """What comes next; None where nothing did, in time or ever."""
        try:
            return self._pipe.recv() if self._pipe.poll(self._limit) else None
        except EOFError:
            return None


def _work(pipe: Any, texts: Path | None) -> None:
    while True:
        *what, left_out = pipe.recv()
        for pair, side in _sides(what, set(left_out)):
            pipe.send(("begins", pair.which, side))
            pipe.send(("figures", (pair.which, side), measured(pair, side, what[2], texts)))
        pipe.send(("done",))
        jax.clear_caches()


def _sides(what: Any, left_out: set[Key]) -> Iterator[tuple[Pair, str]]:
    for pair in pairs(*what):
        for side in _SIDES:
            if (pair.which, side) not in left_out:
                yield pair, side


def measured(pair: Pair, side: str, platform: str, texts: Path | None = None) -> dict[str, Any]:
    """The figures of a program, or what kept it from being compiled."""
    fn = pair.ours if side == "jaxte" else pair.plain
    try:
        program = compiled(fn, pair.args, platform)
    except jax.errors.JaxRuntimeError as error:  # what the compiler refuses stands in the table
        return {"error": str(error).splitlines()[0][:200]}
    if texts is not None:
        texts.mkdir(parents=True, exist_ok=True)
        which = "both" if "backward" in pair.which else "forward"
        (texts / f"{platform}-{pair.name}-{which}-{side}.txt").write_text(program.as_text())
    return figures(program, platform)
