"""A server over two small tables, whose statements run on the tests' Spark."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.api.session import Session
from stagecoach.flight.limits import Limits
from stagecoach.flight.metrics import ServeMetrics
from stagecoach.flight.serving import ServeOptions, Serving
from stagecoach.flight.tokens import TokenFile, add_token
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.planner.options import PlannerOptions

KEY = b"k" * 32
ROWS = 20_000

MakeServing = Callable[..., Serving]


@pytest.fixture(scope="session")
def flight_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalog: `pets` has a column of each type, `numbers` has many rows."""
    root = tmp_path_factory.mktemp("flight")
    (root / "pets").mkdir()
    (root / "numbers").mkdir()
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    pets = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "name": pa.array(["Ada", None, "Ñu"]),
            "weight": pa.array([1.5, None, -0.0], pa.float64()),
            "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
            "born": pa.array([datetime.date(2024, 1, 2), None, datetime.date(1970, 1, 1)]),
            "seen": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
            "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
        }
    )
    pq.write_table(pets, root / "pets" / "0.parquet")
    for part in range(4):
        first = part * ROWS // 4
        ids = pa.array(range(first, first + ROWS // 4), pa.int64())
        texts = pa.array([f"{i:08}" * 8 for i in range(first, first + ROWS // 4)])
        pq.write_table(pa.table({"id": ids, "text": texts}), root / "numbers" / f"{part}.parquet")
    (root / "catalog.yaml").write_text(
        "tables:\n"
        "  pets: {location: pets}\n"
        "  numbers:\n    location: numbers\n"
        "    columns: {id: {type: bigint, comment: From 0 on.}, text: string}\n"
    )
    return root


@pytest.fixture(scope="session")
def open_session(flight_tables: Path, spark_settings: EngineSettings) -> Callable[[], Session]:
    """Opens a session over these tables; several tasks write the results of `numbers`."""
    root = str(flight_tables / "storage")
    settings = replace(spark_settings, storage_root=root, min_task_bytes=32 << 10)
    options = PlannerOptions(num_partitions=4, force_distribution=True)

    def make() -> Session:
        catalog = load_catalog(flight_tables / "catalog.yaml")
        return Session(catalog=catalog, settings=settings, options=options)

    return make


@pytest.fixture(scope="session")
def make_serving(open_session: Callable[[], Session]) -> MakeServing:
    """Starts a server; limits and options by name."""

    def make(*, limits: Limits | None = None, **options: object) -> Serving:
        chosen = limits or Limits(endpoint_bytes=64 << 10, batch_bytes=64 << 10)
        return Serving(
            open_session,
            ServeOptions(**{"ticket_key": KEY, "limits": chosen, **options}),  # type: ignore[arg-type]
            ServeMetrics(wanted=True),
        )

    return make


@pytest.fixture(scope="module")
def serving(make_serving: MakeServing) -> Iterator[Serving]:
    """A server that everybody may ask."""
    with make_serving() as found:
        yield found


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokens of alice and bob, and the path of their file as `file`."""
    file = tmp_path_factory.mktemp("tokens") / "tokens.txt"
    tokens = {name: add_token(file, name) for name in ("alice", "bob")}
    return {**tokens, "file": str(file)}


@pytest.fixture(scope="module")
def guarded(make_serving: MakeServing, users: dict[str, str]) -> Iterator[Serving]:
    """A server for alice and bob."""
    with make_serving(tokens=TokenFile(Path(users["file"]))) as found:
        yield found
