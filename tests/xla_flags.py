"""Flags of XLA for tests: its older emitters of loops on the CPU, which compile in less than half of the time, where the installed release has them.

Imported before jax, which reads its flags once. Releases from 0.11 on have the newer emitters alone: a process that is started with the flag
ends at once there, and a compilation that is given the option is refused.
"""

from importlib.metadata import version

HAS_OLDER_EMITTERS = version("jaxlib").startswith("0.10.")
OLDER_EMITTERS = "--xla_cpu_use_fusion_emitters=false" if HAS_OLDER_EMITTERS else ""
# XLA compiles each program in 32 parts, in threads: one part takes a tenth less of the processor, which several workers share.
QUICK_XLA = f"{OLDER_EMITTERS} --xla_cpu_parallel_codegen_split_count=1"
