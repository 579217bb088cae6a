"""Records of tables whose rows are not in the storage root."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.table_places import forget_place, place_key, read_place, write_place
from stagecoach.infra.storage.stores import open_store


def test_a_place_is_kept_until_it_is_forgotten(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert read_place(store, "lake", "a.b") is None
    for place in ({"location": "/x"}, {"location": "/y", "catalog": {"name": "ä"}}):
        write_place(store, "lake", "a.b", place)
        assert read_place(store, "lake", "a.b") == place
    assert store.folders("lake") == ["a.b"]
    forget_place(store, "lake", "a.b")
    assert read_place(store, "lake", "a.b") is None


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_place(store, "lake", "t", {"location": "/x"})
    key = place_key("lake", "t")
    store.write_bytes(key, store.read_bytes(key).replace(b"/x", b"/z"))
    with pytest.raises(StorageError, match=r"place\.json is damaged \(checksum mismatch\)"):
        read_place(store, "lake", "t")
    with pytest.raises(StorageError, match="cannot be part of a storage path"):
        read_place(store, "lake", "../t")
