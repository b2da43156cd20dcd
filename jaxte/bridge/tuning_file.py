"""What was measured, in a file that can be checked in."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax

from jaxte.bridge.calls.options import remember
from jaxte.lang.errors import LoweringError

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


FORMAT = 1  # of the file, and of the signatures in it


@dataclass(frozen=True)
class Machine:
    """Where times were measured; they hold nowhere else."""

    platform: str
    device: str
    jax: str
    format: int = FORMAT


def this_machine() -> Machine:
    device = jax.devices()[0]
    return Machine(device.platform, device.device_kind, jax.__version__)


@dataclass(frozen=True)
class Tuned:
    """The forms of one reduction and their seconds.

    Attributes:
        tensor: name of the tensor that it was measured in.
        definition: what it computes, for people who read the file.
        seconds: of each form.
    """

    tensor: str
    definition: str
    seconds: Mapping[str, float]

    @property
    def winner(self) -> str:
        return min(self.seconds, key=lambda form: self.seconds[form])


@dataclass(frozen=True)
class Choices:
    """What was measured of a whole JAX function that is raised.

    Attributes:
        choice: what is raised of it: "nothing", "estimated", "gaining" or "everything".
        left: equations of it that stay, each by the number of its jaxpr and its number in it.
        original: seconds of the value and the gradient as the function stands.
        raised: the same of what was chosen.
        programs: how many were compiled.
    """

    choice: str
    left: tuple[tuple[int, int], ...]
    original: float
    raised: float
    programs: int


def save_tuning(path: Any, found: Mapping[str, Tuned]) -> None:
    """Adds ``found`` to the file at ``path``; what was measured on another machine is replaced.

    The new file takes the place of the old one at once, so that who reads it meanwhile finds one of them in whole. Of
    processes that add to it at the same time each finds what the others have written.
    """
    _add(path, found, {})


def save_choices(path: Any, found: Mapping[str, Choices]) -> None:
    """Adds what was measured of whole functions to the file at ``path``, as :func:`save_tuning` does of reductions."""
    _add(path, {}, found)


def _add(path: Any, reductions: Mapping[str, Tuned], functions: Mapping[str, Choices]) -> None:
    file = _file(path)
    try:
        with only_writer(file):
            tables: dict[str, Mapping[str, Any]] = {
                "reductions": {**kept_here(path), **reductions},
                "functions": {**kept_choices(path), **functions},
            }
            _replace(file, tables)
    except OSError as error:
        raise LoweringError(
            f"the tuning file {file} cannot be written ({error}); give another path"
        ) from error


def _replace(file: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    machine = asdict(this_machine())
    written = {name: {key: asdict(own) for key, own in table.items()} for name, table in tables.items()}
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=file.parent, prefix=file.name, suffix=".new", delete=False
    ) as new:
        new.write(json.dumps({**machine, **written}, indent=1) + "\n")
    os.chmod(new.name, file.stat().st_mode if file.exists() else 0o644)
    os.replace(new.name, file)


def kept_here(path: Any) -> dict[str, Tuned]:
    """What the file at ``path`` has for this machine; nothing where there is no file yet.

    Raises:
        LoweringError: no file can be at ``path``, or the one that is there is no tuning file.
    """
    file, content = _here(path)
    return _entries(file, content) if content else {}


def kept_choices(path: Any) -> dict[str, Choices]:
    """What the file at ``path`` has of whole functions, as :func:`kept_here` of reductions."""
    file, content = _here(path)
    return _choices(file, content) if content else {}


def _here(path: Any) -> tuple[Path, dict[str, Any]]:
    """The file at ``path``, and what it holds if it was measured on this machine."""
    file = _file(path)
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        why = "cannot be written to" if file.parent.is_dir() else "does not exist"
        raise LoweringError(f"the tuning file {file} is in the folder {file.parent}, which {why}")
    if not file.exists():
        return file, {}
    content = _content(file)
    return file, content if _is_from_here(content) else {}


def _file(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise LoweringError(f"the tuning file is {path!r}; give a path")
    file = Path(path)
    if file.is_dir():
        raise LoweringError(f"{file} is a folder; give the path of a tuning file in it")
    return file


def load_tuning(path: str | os.PathLike[str]) -> bool:
    """Uses the times in a file that :func:`autotune` wrote, for every function that is compiled from now on.

    A file that was measured on another device or with another version of JAX or jaxte is left alone with a warning, and forms
    are chosen by estimates, as without it.

    Args:
        path: of the file.

    Returns:
        Whether the file was used.

    Raises:
        LoweringError: there is no such file, or it is no tuning file.

    Example:
        >>> te.load_tuning("tuning.json")
        True
    """
    file = _file(path)
    if not file.exists():
        raise LoweringError(
            f"there is no tuning file {file}; te.autotune(fn, *args, file={str(file)!r}) writes one"
        )
    content = _content(file)
    if not _is_from_here(content):
        warnings.warn(
            f"{file} was measured with {_described(content)}, this is {_described(asdict(this_machine()))}; "
            "forms are chosen by estimates, run te.autotune again to measure them here",
            stacklevel=2,
        )
        return False
    remember({key: tuned.seconds for key, tuned in _entries(file, content).items()})
    return True


def _content(file: Path) -> dict[str, Any]:
    """What the file holds; of another format only that it has one, since its entries may look otherwise."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _corrupted(file, str(error)) from error
    if not isinstance(content, dict):
        raise _corrupted(file, "it has no table of reductions")
    if content.get("format", FORMAT) == FORMAT:
        _entries(file, content)
    return content


def _corrupted(file: Path, why: str) -> LoweringError:
    return LoweringError(f"{file} is no tuning file ({why}); delete it and run te.autotune again")


def _is_from_here(content: Mapping[str, Any]) -> bool:
    return all(content.get(name) == value for name, value in asdict(this_machine()).items())


def _entries(file: Path, content: Mapping[str, Any]) -> dict[str, Tuned]:
    entries = content.get("reductions")
    if not isinstance(entries, dict):
        raise _corrupted(file, "it has no table of reductions")
    found = {}
    for key, entry in entries.items():
        try:
            seconds = {str(form): float(value) for form, value in entry["seconds"].items()}
            found[key] = Tuned(str(entry["tensor"]), str(entry["definition"]), seconds)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _corrupted(file, f"the entry {key} is not one of a reduction") from error
        if not seconds or not all(0 < value < float("inf") for value in seconds.values()):
            raise _corrupted(file, f"the entry {key} has no positive seconds")
    return found


def _choices(file: Path, content: Mapping[str, Any]) -> dict[str, Choices]:
    entries = content.get("functions", {})
    try:
        return {
            key: Choices(
                str(own["choice"]),
                tuple((int(jaxpr), int(index)) for jaxpr, index in own["left"]),
                float(own["original"]),
                float(own["raised"]),
                int(own["programs"]),
            )
            for key, own in entries.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _corrupted(file, "an entry is not one of a function") from error


def _described(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {machine.get(name)}" for name in asdict(this_machine()))
