"""Sequences cut into ranges of about equal weight."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def cut_evenly(weights: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Cut a sequence into at most `count` contiguous ranges of about equal weight.

    Returns:
        `(low, high)` ranges that cover all positions; none is empty unless `weights` is.
    """
    total = sum(weights)
    if count <= 1 or len(weights) <= 1:
        return [(0, len(weights))]
    if not total:
        return cut_evenly([1] * len(weights), count)
    bounds = [0]
    before = 0
    for position, weight in enumerate(weights):
        # A unit belongs where its middle lies; whole numbers keep this exact.
        share = min((2 * before + weight) * count // (2 * total), count - 1)
        if position and share >= len(bounds):
            bounds.extend([position] * (share - len(bounds) + 1))
        before += weight
    ends = sorted({*bounds, len(weights)})
    return list(itertools.pairwise(ends))
