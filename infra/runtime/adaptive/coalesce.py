"""Joins neighbouring partitions into ranges of about equal weight, one for each task.

Of 1,024 partitions of a few kB there are as many tasks as their bytes are worth, down to one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stagecoach.infra.runtime.adaptive.decision import Decision


def cut_evenly(weights: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Cut a sequence into at most `count` contiguous ranges of about equal weight.

    Returns:
        `(low, high)` ranges that cover all positions, at least one; none is empty unless
        `weights` is.
    """
    total = sum(weights)
    if count <= 1 or total == 0:
        return [(0, len(weights))]
    cuts = [0]
    before = 0
    for position, weight in enumerate(weights):
        # A unit belongs where its middle lies; comparing integers keeps this exact.
        share = min((2 * before + weight) * count // (2 * total), count - 1)
        if position and share >= len(cuts):
            cuts.extend([position] * (share - len(cuts) + 1))
        before += weight
    bounds = sorted({*cuts, len(weights)})
    return list(itertools.pairwise(bounds))


def coalesce_decision(partitions: int, tasks: int, num_bytes: int) -> Decision | None:
    """What to say of partitions that fewer tasks read; None where each has a task of its own."""
    if tasks >= partitions:
        return None
    return Decision(
        "coalesce",
        f"{partitions:,} partitions, {num_bytes:,} bytes, in {tasks:,} "
        f"task{'' if tasks == 1 else 's'}",
    )
