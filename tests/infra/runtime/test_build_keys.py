"""Looking at some keys first tells of every range what looking at all of them tells."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.pruning.key_sets import KeySet
from stagecoach.infra.runtime.planning import build_keys
from stagecoach.infra.runtime.planning.build_keys import BuildKeys
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from tests.stage_outputs import commit_files, write_map_file

FINGERPRINT = "5c" * 32
SCHEMA = pa.schema([("c0", pa.int64())])
PARTITIONED = OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=3)


def build_side(store: ObjectStore, files: list[list[int | None]]) -> Manifest:
    written = [
        write_map_file(
            store,
            FINGERPRINT,
            [pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)],
            SCHEMA,
            PARTITIONED,
            task=number,
        )
        for number, values in enumerate(files)
    ]
    return commit_files(store, FINGERPRINT, written, SCHEMA, PARTITIONED)


keys = st.one_of(st.none(), st.integers(-20, 20))


@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(st.lists(keys, max_size=8), min_size=1, max_size=3),
    ranges=st.lists(
        st.tuples(st.integers(-25, 25), st.integers(0, 10), st.sampled_from([None, 0, 2])),
        max_size=5,
    ),
    sample_rows=st.sampled_from([1, 2, 5, 100]),
    null_safe=st.booleans(),
)
def test_some_keys_first_is_as_all_keys(
    files: list[list[int | None]],
    ranges: list[tuple[int, int, int | None]],
    sample_rows: int,
    null_safe: bool,
) -> None:
    everything = pa.chunked_array([pa.array(values, pa.int64()) for values in files])
    expected = KeySet.of(everything, "whole", null_safe=null_safe)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_keys, "SAMPLE_ROWS", sample_rows)
        store = open_store(folder)
        found = BuildKeys(store, build_side(store, files), "c0", "whole", null_safe)
        for low, width, nulls in ranges:
            bounds = (nulls, low, low + width)
            assert found.may_meet(bounds, 2) == expected.may_meet(bounds, 2)


def test_keys_are_sorted_only_when_a_range_meets_none_of_the_sample(tmp_path: Path) -> None:
    rows = build_keys.SAMPLE_ROWS
    store = open_store(str(tmp_path))
    found = BuildKeys(store, two_files(store, rows), "c0", "whole", null_safe=False)
    assert found.may_meet((0, rows // 2, rows), 10)  # the first file has no such key
    assert not found.were_sorted
    assert not found.may_meet((0, -10, -1), 10)
    assert found.were_sorted
    assert len(found.keys.values) == 2 * rows


def test_keys_are_read_only_when_a_range_meets_none_of_the_first(tmp_path: Path) -> None:
    rows = build_keys.SAMPLE_ROWS
    store = open_store(str(tmp_path))
    manifest = two_files(store, rows)
    store.delete([manifest.file_key(manifest.files[1])])
    found = BuildKeys(store, manifest, "c0", "whole", null_safe=False)
    assert found.may_meet((0, 0, 2 * rows), 10)
    with pytest.raises(ShuffleReadError):
        found.may_meet((0, 0, rows // 2), 10)


def two_files(store: ObjectStore, rows: int) -> Manifest:
    """The first one has the greater keys."""
    return build_side(store, [list(range(rows, 2 * rows)), list(range(rows))])
