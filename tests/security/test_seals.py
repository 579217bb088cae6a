"""Small stored texts: whatever happens to their bytes is noticed, or changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.stored_faults.warehouse import Warehouse, build_warehouse
from stagecoach.assets.plans.files import parse_plan
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.published.version import TableVersion, TableVersionError
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.formats.version_json import UnknownFormatError, seal
from stagecoach.infra.runtime.records.parameters import parse_clock, run_clock
from stagecoach.infra.runtime.records.pointers import parse_pointer
from stagecoach.infra.runtime.stages.schema_check import parse_analysis
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError, ManifestVersionError
from stagecoach.infra.storage import checked_json
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.errors import CatalogError, GraphFormatError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    found = build_warehouse(tmp_path_factory.mktemp("warehouse"))
    run_clock(found.store, found.last_run)
    return found


NOTICED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    TableVersionError,
    ManifestError,
    CatalogError,
    GraphFormatError,
)

PARSERS: dict[str, Callable[[bytes], Any]] = {
    "snapshot": Snapshot.from_json,
    "pointer": parse_pointer,
    "analysis": parse_analysis,
    "published version": lambda text: TableVersion.from_json(text, uri="v"),
    "chunk version": lambda text: ChunkTableVersion.from_json(text, uri="v"),
    "manifest": lambda text: Manifest.from_json(text, stage="s", uri="m"),
    "plan": lambda text: parse_plan(text.decode()).graph,
    "clock": parse_clock,
}


def text_of(whole: Warehouse, kind: str) -> bytes:
    if kind == "clock":
        return whole.store.read_bytes(f"runs/{whole.last_run}/clock.txt")
    store, key = whole.victims(kind)[0]
    return store.read_bytes(key)


def damaged(text: bytes, seed: int) -> Iterator[bytes]:
    """Texts with a bit flipped, a hole, or their end cut off."""
    numbers = Random(seed)
    for _ in range(150):
        made = bytearray(text)
        made[numbers.randrange(len(text))] ^= 1 << numbers.randrange(8)
        yield bytes(made)
    for _ in range(30):
        start = numbers.randrange(len(text))
        end = min(start + numbers.choice((1, 8, 512)), len(text))
        yield text[:start] + bytes(end - start) + text[end:]
    for cut in {
        0,
        1,
        len(text) // 2,
        len(text) - 1,
        *(numbers.randrange(len(text)) for _ in range(30)),
    }:
        yield text[:cut]


@pytest.mark.parametrize("kind", PARSERS)
def test_damage_is_noticed_or_changes_nothing(whole: Warehouse, kind: str) -> None:
    text, parse = text_of(whole, kind), PARSERS[kind]
    good = parse(text)
    noticed = 0
    for number, bad in enumerate(damaged(text, seed=7)):
        try:
            assert parse(bad) == good, number
        except NOTICED:
            noticed += 1
    assert noticed > 140


@pytest.mark.parametrize("kind", ["published version", "chunk version", "manifest"])
def test_a_damaged_format_version_is_damage(whole: Warehouse, kind: str) -> None:
    """It is not taken for that of a newer Stagecoach, which nobody could do anything about."""
    text = text_of(whole, kind)
    changed = text.replace(b'"format_version": 2', b'"format_version": 3')
    changed = changed.replace(b'"format_version":2', b'"format_version":3')
    assert changed != text
    with pytest.raises((TableVersionError, ManifestError), match="checksum") as raised:
        PARSERS[kind](changed)
    assert not isinstance(raised.value, UnknownFormatError)


def test_a_newer_format_is_told_from_damage(whole: Warehouse) -> None:
    values = json.loads(text_of(whole, "published version"))
    del values["checksum"]
    with pytest.raises(UnknownFormatError, match="use a newer Stagecoach"):
        TableVersion.from_json(seal({**values, "format_version": 99}), uri="v")
    with pytest.raises(ManifestVersionError, match="use a newer Stagecoach"):
        Manifest.from_json(b'{"format_version": 9}', stage="s", uri="m")


def test_what_older_versions_wrote_without_a_checksum_is_read(whole: Warehouse) -> None:
    for kind in ("snapshot", "pointer", "analysis"):
        text = text_of(whole, kind)
        values = json.loads(text)
        del values["checksum"]
        older = json.dumps(values).encode()
        assert checked_json.is_sealed(text)
        assert not checked_json.is_sealed(older)
        assert PARSERS[kind](older) == PARSERS[kind](text)
    moment = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
    assert parse_clock(b"2026-01-02 03:04:05.600000") == moment
    with pytest.raises(ValueError, match="cut short"):
        parse_clock(b"2026-01-02 03:04:05.6")


@pytest.mark.parametrize("log", ["published", "chunks"])
def test_a_damaged_hint_is_only_slower(whole: Warehouse, log: str) -> None:
    versions: Any = (
        whole.published_log() if log == "published" else whole.chunk_table("arrow_chunks").log
    )
    store: LocalStore = versions.store
    path = Path(store.uri(f"{versions.folder}/current.json".lstrip("/")))
    good = path.read_bytes()
    newest = versions.current().number
    try:
        for bad in damaged(good, seed=8):
            path.write_bytes(bad)
            assert versions.current().number == newest
    finally:
        path.write_bytes(good)
