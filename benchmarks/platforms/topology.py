"""Compiling for a GPU or a TPU that is not there: XLA's own compilers for a described device.

tpu: pip install "jax[tpu]"; gpu: pip install "jax[cuda12]". Neither needs a device: PJRT takes a topology.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

H100 = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 } device_description_str: "NVIDIA H100 80GB HBM3" """

DEVICES = {"gpu": "one NVIDIA H100 SXM", "tpu": "one chip of TPU v5e", "cpu": "the processor at hand"}
_LOWERED_FOR = {"gpu": "cuda", "tpu": "tpu", "cpu": "cpu"}
# without a device, kernels cannot be tried out
_OPTIONS = {"gpu": {"xla_gpu_autotune_level": "0"}}


@functools.cache
def _sharding(platform: str) -> NamedSharding:
    """One device of the described topology.

    Raises:
        SystemExit: the plugin of the platform is not installed.
    """
    try:
        if platform == "tpu":
            found = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
        elif platform == "gpu":
            found = topologies.get_topology_desc(
                platform="cuda", topology_name="h100", target_config=H100, topology="1x1x1"
            ).devices
        else:
            found = jax.devices("cpu")
    except RuntimeError as error:
        raise SystemExit(
            f"nothing compiles for {platform} here: {error}; make platforms installs what does"
        ) from None
    return NamedSharding(Mesh(np.array(found[:1]), ("x",)), PartitionSpec())


def compiled(fn: Callable[..., Any], args: Sequence[Any], platform: str) -> Any:
    """``fn`` compiled for arguments like ``args`` (arrays or their structs) on a platform: "gpu", "tpu" or "cpu"."""
    where = _sharding(platform)
    shaped = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype, sharding=where), list(args))
    lowered = jax.jit(fn).trace(*shaped).lower(lowering_platforms=(_LOWERED_FOR[platform],))
    return lowered.compile(compiler_options=_OPTIONS.get(platform, {}))
