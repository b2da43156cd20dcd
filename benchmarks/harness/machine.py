"""Where and when the figures were taken."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

import jaxte

PACKAGES = ("jax", "jaxlib", "numpy", "torch")


def machine() -> dict[str, object]:
    """Processor, device, versions and date."""
    device = jax.devices()[0]
    found = {"jaxte": jaxte.__version__} | {name: _version(name) for name in PACKAGES}
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "platform": device.platform,
        "device": device.device_kind,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: v for name, v in found.items() if v},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
