"""All kinds of faults, and those that can happen on this machine."""

from __future__ import annotations

from benchmarks.cluster_faults.machine_faults import (
    CLOCK_KINDS,
    DISK_KINDS,
    NETWORK_KINDS,
    can_mount,
    clock_library,
)
from benchmarks.cluster_faults.process_faults import PROCESS_KINDS
from benchmarks.cluster_faults.scene import Kind


def kinds_here(parts: tuple[str, ...] = ()) -> tuple[list[Kind], list[str]]:
    """Kinds of faults, and why others are left out.

    Args:
        parts: Only kinds whose names contain one of these; all if there is none.
    """
    kinds, left_out = [*PROCESS_KINDS, *NETWORK_KINDS], []
    if can_mount():
        kinds += DISK_KINDS
    else:
        left_out.append("disk full: no device can be mounted here (it needs root)")
    if clock_library() is not None:
        kinds += CLOCK_KINDS
    else:
        left_out.append("clock wrong: libfaketime is not installed (apt install libfaketime)")
    chosen = [kind for kind in kinds if not parts or any(part in kind.name for part in parts)]
    return chosen, left_out
