"""Groups of files: all rows once, and the same groups as before beside a file that is new."""

from __future__ import annotations

import random

import pytest

from stagecoach.infra.formats.units import ScanUnit
from stagecoach.infra.runtime.adaptive.groups import (
    MOST_GROUPS,
    USUAL_BYTES,
    group_bytes,
    group_units,
)

MB = 1 << 20


def file(name: str, *sizes: int) -> ScanUnit:
    """A file of row groups of so many bytes, ten rows each."""
    return ScanUnit(name, tuple((10, size) for size in sizes))


def files(rng: random.Random, count: int, most: int) -> list[ScanUnit]:
    return [file(f"f{rng.random():.17f}", rng.randint(1, most)) for _ in range(count)]


def rows(groups: list[tuple[ScanUnit, ...]]) -> list[tuple[str, int]]:
    """Each row of each file."""
    return sorted(
        (unit.uri, row)
        for group in groups
        for unit in group
        for row in range(unit.row_start, unit.row_end)
    )


@pytest.mark.parametrize("seed", range(20))
def test_another_file_changes_few_groups(seed: int) -> None:
    rng = random.Random(seed)
    before = files(rng, 300, 100)
    new = files(rng, 1, 100)
    size = 500
    old, now = (group_units(some, size) for some in (before, before + new))
    assert rows(now) == sorted((unit.uri, i) for unit in before + new for i in range(10))
    assert all(sum(unit.num_bytes for unit in group) <= 2 * size for group in now)
    # The group that has it, a second half where it cut one, and what a full group shifts.
    assert len(set(now) - set(old)) <= 4
    assert len(now) > 15


def test_the_order_of_a_listing_does_not_matter() -> None:
    rng = random.Random(1)
    some = files(rng, 50, 100)
    assert group_units(some, 300) == group_units(rng.sample(some, 50), 300)


def test_a_large_file_is_by_itself_in_groups_of_its_row_groups() -> None:
    large = file("b", 60, 60, 60, 60, 60)
    small = [file("a", 1), file("c", 1)]
    groups = group_units([*small, large], 100)
    assert [[(u.uri, u.row_start, u.row_end) for u in group] for group in groups] == [
        [("a", 0, 10)],
        [("b", 0, 20)],
        [("b", 20, 40)],
        [("b", 40, 50)],
        [("c", 0, 10)],
    ]
    assert groups[1:4] == group_units([large], 100)


def test_files_without_rows_are_in_no_group() -> None:
    empty = ScanUnit("e", ((0, 0),))
    assert group_units([empty], 10) == []
    assert group_units([empty, file("f", 5)], 10) == [(file("f", 5),)]


def test_the_size_of_groups_follows_that_of_the_table_in_steps() -> None:
    assert group_bytes(0, 0) == 1
    assert group_bytes(100 * MB, 4 * MB) == 4 * MB
    assert group_bytes(1000 * MB, 4 * MB) == group_bytes(900 * MB, 4 * MB) == 16 * MB
    assert group_bytes(100_000 * MB, 4 * MB) == USUAL_BYTES
    huge = 10_000_000 * MB
    assert group_bytes(huge, 4 * MB) > USUAL_BYTES
    assert huge / group_bytes(huge, 4 * MB) <= MOST_GROUPS
    assert group_bytes(100 * MB, 1024 * MB) == 1024 * MB
