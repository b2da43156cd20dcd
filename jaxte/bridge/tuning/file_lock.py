"""One process at a time writes into a file that others write into as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def only_writer(file: Path) -> Iterator[None]:
    """Holds a lock beside ``file``; who asks for it meanwhile waits.

    The lock is on a file of its own, since ``file`` is replaced by what is written, and ends with the process that holds it. There
    are no such locks on Windows, where two processes have to be started one after the other.
    """
    if sys.platform == "win32":
        yield
        return
    path = file.with_name(f".{file.name}.lock")
    descriptor = _locked(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(path: Path) -> int:
    """An open and locked file at ``path``."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # its holder has removed it while this process waited
