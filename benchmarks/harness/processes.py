"""Fresh processes: a crash, a hang or a lack of memory costs the cell of the side that was at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.passes import side_of

WORKER = Path(__file__).parent / "worker.py"


def run_case(name: str, size: str, limit: float, rounds: int = 0) -> dict[str, Any]:
    """The figures of a case, with an ``error`` where they are not all.

    A side that ends its worker has the reason instead of its figures, and another worker measures the other sides; ``limit``
    is that of one worker, and all of them have twice as long.
    """
    lost: dict[str, dict[str, str]] = {}
    end = time.monotonic() + 2 * limit
    while True:
        found = run("case", name, size, min(limit, end - time.monotonic()), rounds, lost)
        stage = found.pop("stage", "")
        at = side_of(stage)
        if at is None or time.monotonic() >= end:
            if stage:
                found["error"] += f", at {stage}"
            return found
        which, side = at
        lost.setdefault(which, {})[side] = found["error"]


def run(
    what: str,
    name: str,
    size: str,
    limit: float,
    rounds: int = 0,
    lost: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """What a worker finds within ``limit`` seconds; otherwise what it found until then, with an ``error`` and its last ``stage``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        log = Path(folder) / "log"
        command = [
            sys.executable,
            str(WORKER),
            what,
            name,
            size,
            str(out),
            str(rounds),
            json.dumps(lost or {}),
        ]
        with log.open("w") as stderr:
            # a session of its own, so that a kill reaches whatever the worker has started
            worker = subprocess.Popen(command, stderr=stderr, stdout=stderr, start_new_session=True)
            try:
                status = worker.wait(limit)
                ending = _ending(status, log)
            except subprocess.TimeoutExpired:
                ending = f"not done within {limit:.0f} s"
            finally:
                if worker.poll() is None:
                    os.killpg(worker.pid, signal.SIGKILL)
                    worker.wait()
        found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    return found | {"error": ending} if ending else found


def _ending(status: int, log: Path) -> str:
    """Empty for a worker that came to its end."""
    if status == 0:
        return ""
    if status == -signal.SIGKILL:
        return "killed, most likely for want of memory"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"ended with status {status}: {lines[-1][:200] if lines else 'no message'}"
