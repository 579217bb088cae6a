"""Places the boxes of a stage graph in a drawing.

Layers from top to bottom, each stage right above the first one that reads it; in a layer the order
with few crossings (median heuristic, Sugiyama et al., 1981). An edge over several layers passes
through points between the boxes.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 6
_Slot = tuple[int, int]  # a stage and -1, or the number of an edge and the layer that it crosses


@dataclass(frozen=True)
class Layout:
    """A drawing without a scale.

    Args:
        columns: How many boxes wide it is.
        layers: How many boxes high it is.
        places: Column (of the box's middle, may be a fraction) and layer of each stage.
        bends: For each edge the columns at which it crosses the layers in between.
    """

    columns: float
    layers: int
    places: Mapping[int, tuple[float, int]]
    bends: Mapping[tuple[int, int], tuple[tuple[float, int], ...]]


def layout(inputs: Mapping[int, Sequence[int]]) -> Layout:
    """Places of all stages.

    Args:
        inputs: The stages that each stage reads; the stages in topological order.
    """
    layer_of = _layers(inputs)
    edges = [(source, stage) for stage, sources in inputs.items() for source in sources]
    count = max(layer_of.values(), default=0) + 1
    rows: list[list[_Slot]] = [[] for _ in range(count)]
    for stage in _depth_first(inputs):
        rows[layer_of[stage]].append((stage, -1))
    above: dict[_Slot, list[_Slot]] = {}
    below: dict[_Slot, list[_Slot]] = {}
    chains: dict[tuple[int, int], list[_Slot]] = {}
    for number, (source, target) in enumerate(edges):
        between = range(layer_of[source] + 1, layer_of[target])
        chain: list[_Slot] = [(number, layer) for layer in between]
        for slot in chain:
            rows[slot[1]].append(slot)
        chains[source, target] = chain
        path: list[_Slot] = [(source, -1), *chain, (target, -1)]
        for upper, lower in itertools.pairwise(path):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    _order(rows, above, below)
    x = _columns(rows, above, below)
    left, right = min(x.values(), default=0.0), max(x.values(), default=0.0)
    return Layout(
        columns=right - left + 1,
        layers=count,
        places={stage: (x[stage, -1] - left, layer_of[stage]) for stage in inputs},
        bends={edge: tuple((x[s] - left, s[1]) for s in chain) for edge, chain in chains.items()},
    )


def _layers(inputs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The layer of each stage: the last stage lowest, the others right above their first reader."""
    below: dict[int, int] = {}
    for stage in reversed(list(inputs)):
        below.setdefault(stage, 0)
        for source in inputs[stage]:
            below[source] = max(below.get(source, 0), below[stage] + 1)
    deepest = max(below.values(), default=0)
    return {stage: deepest - steps for stage, steps in below.items()}


def _depth_first(inputs: Mapping[int, Sequence[int]]) -> list[int]:
    """The stages from the last one, inputs left to right: what the text of a plan shows."""
    order: dict[int, None] = {}
    stack = list(inputs)[-1:]
    while stack:
        stage = stack.pop()
        if stage not in order:
            order[stage] = None
            stack.extend(reversed(inputs[stage]))
    return [*order, *(stage for stage in inputs if stage not in order)]


def _order(
    rows: list[list[_Slot]],
    above: Mapping[_Slot, Sequence[_Slot]],
    below: Mapping[_Slot, Sequence[_Slot]],
) -> None:
    # The order of the plan's text has no crossing at all where no stage has two readers.
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        up = sweep % 2 == 0
        for row in reversed(rows) if up else rows:
            neighbours = below if up else above
            at = {slot: i for other in rows for i, slot in enumerate(other)}
            here = {slot: i for i, slot in enumerate(row)}
            row.sort(key=lambda s: _mean([at[n] for n in neighbours.get(s, ())], here[s]))
        if (count := _crossings(rows, below)) < fewest:
            best, fewest = [list(row) for row in rows], count
    rows[:] = best


def _crossings(rows: Sequence[Sequence[_Slot]], below: Mapping[_Slot, Sequence[_Slot]]) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    at = {slot: i for row in rows for i, slot in enumerate(row)}
    total = 0
    for row in rows:
        ends = [end for slot in row for end in sorted(at[t] for t in below.get(slot, ()))]
        total += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1 :])
    return total


def _columns(
    rows: Sequence[Sequence[_Slot]],
    above: Mapping[_Slot, Sequence[_Slot]],
    below: Mapping[_Slot, Sequence[_Slot]],
) -> dict[_Slot, float]:
    """Columns near those of the neighbours, at least one apart in each layer."""
    x = {slot: float(i) for row in rows for i, slot in enumerate(row)}
    for sweep in range(2 * _SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            neighbours = above if sweep % 2 else below
            wanted = [_mean([x[n] for n in neighbours.get(s, ())], x[s]) for s in row]
            for slot, place in zip(row, _apart(wanted, [_width(s) for s in row]), strict=True):
                x[slot] = place
    return x


def _width(slot: _Slot) -> float:
    return 1.0 if slot[1] == -1 else 0.35


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Places in the same order that do not overlap, as near to the wanted ones as one pass gets."""
    forward, backward = list(wanted), list(wanted)
    gaps = [(a + b) / 2 for a, b in itertools.pairwise(widths)]
    for i, gap in enumerate(gaps):
        forward[i + 1] = max(forward[i + 1], forward[i] + gap)
    for i in reversed(range(len(gaps))):
        backward[i] = min(backward[i], backward[i + 1] - gaps[i])
    # The mean of two orders that keep the gaps keeps them too.
    return [(a + b) / 2 for a, b in zip(forward, backward, strict=True)]


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
