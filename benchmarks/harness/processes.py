"""Fresh processes: a crash, a hang or a lack of memory costs one row of the table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "worker.py"


def run(what: str, name: str, size: str, limit: float, rounds: int = 0) -> dict[str, Any]:
    """What a worker finds within ``limit`` seconds; what it found until then otherwise, with an ``error``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        log = Path(folder) / "log"
        command = [sys.executable, str(WORKER), what, name, size, str(out), str(rounds)]
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
    stage = found.pop("stage", None)
    if ending:
        found["error"] = ending + (f", at {stage}" if stage else "")
    return found


def _ending(status: int, log: Path) -> str:
    """Empty for a worker that came to its end."""
    if status == 0:
        return ""
    if status == -signal.SIGKILL:
        return "killed, most likely for want of memory"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"ended with status {status}: {lines[-1][:200] if lines else 'no message'}"
