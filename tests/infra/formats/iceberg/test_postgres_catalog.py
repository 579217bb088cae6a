"""A lake whose SQL catalog is a PostgreSQL server, named by pyiceberg's own configuration."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.utils.config import Config

from stagecoach.infra.formats.iceberg.declaration import read_output
from stagecoach.infra.storage.stores import open_store
from tests.infra.formats.iceberg.answers import as_set, rows
from tests.infra.formats.iceberg.lake import Lake, stored_catalog
from tests.infra.formats.published.outputs import publish_rows
from tests.postgres_server import postgres_server

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with postgres_server() as server:
        uri = f"postgresql+psycopg2://dagster:{server.password}@127.0.0.1:{server.port}/dagster"
        properties = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/warehouse"}
        for name, value in properties.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # as a new process reads it
        yield Lake(tmp_path, open_store(str(tmp_path / "root")), properties)


def test_results_are_published_and_read(lake: Lake) -> None:
    place = read_output(lake.table, "lake", str(lake.folder))

    def publish(*keys: int, mode: str = "append") -> None:
        table = pa.table({"k": pa.array(keys, pa.int64()), "name": [f"row {k}" for k in keys]})
        target: dict[str, Any] = {"format": "iceberg", "place": place, "mode": mode}
        publish_rows(lake.store, table, lake.table, **target)

    publish(1, 2, mode="replace")
    with ThreadPoolExecutor(4) as pool:  # a commit that comes second is repeated
        list(pool.map(publish, range(10, 14)))
    found = rows(stored_catalog(lake), f"SELECT k FROM {lake.table}", lake.folder)
    assert as_set(found) == as_set([{"k": k} for k in (1, 2, 10, 11, 12, 13)])
    assert sorted(row["k"] for row in lake.rows()) == [1, 2, 10, 11, 12, 13]
    stored = "".join(str(lake.store.read_bytes(key)) for key in lake.store.list("iceberg"))
    assert "postgresql" not in stored
