"""Short shares of the campaigns of `benchmarks.flight`: abuse, and a soak with kills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.flight.abuse import Target, abuse
from benchmarks.flight.soak import Plan, soak
from stagecoach.flight.limits import Limits
from stagecoach.flight.serving import Serving
from tests.stagecoach.flight.conftest import KEY, MakeServing
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

LIMITS = Limits(streams=200, endpoint_bytes=64 << 10, batch_bytes=64 << 10)


def test_abuse_leaves_nothing_behind(make_serving: MakeServing, spark: SparkSession) -> None:
    with make_serving(limits=LIMITS) as serving:
        target = Target(
            uri=serving.uri,
            key=KEY,
            memory=lambda: 0,
            sql="SELECT id, repeat(text, 40) AS text FROM numbers",
            other="SELECT id FROM numbers WHERE id < 100",
        )
        counts = abuse(target, streams=150, tickets=200, connections=60, seed=7)
        assert counts["streams abandoned"] + counts["streams refused"] == 150
        assert counts["streams abandoned"] > 50
        assert sum(n for what, n in counts.items() if what.startswith("tickets")) > 190
        wait_for(lambda: serving.streams.num_open == 0)


class Restarted:
    """A server that ends, and starts again at its address, with what is in storage."""

    def __init__(self, make: MakeServing) -> None:
        self._make = make
        self.serving: Serving = make(limits=LIMITS)
        self.uri = self.serving.uri

    def kill(self) -> None:
        self.serving.close()

    def start(self) -> None:
        self.serving = self._make(limits=LIMITS, port=self.serving.server.port)

    def memory(self) -> tuple[int, int]:
        return 0, 0


def test_nothing_is_lost_when_clients_and_the_server_end(
    make_serving: MakeServing, spark: SparkSession, tmp_path: Path
) -> None:
    server = Restarted(make_serving)
    statements = [f"SELECT * FROM numbers WHERE id % {n} = 0" for n in (2, 3)]
    plan = Plan(
        statements=[*statements, "SELECT count(*) AS n FROM numbers"],
        seconds=8.0,
        clients=3,
        rate=0,
        kill_client_seconds=3.0,
        kill_server_seconds=5.0,
        look_seconds=1.0,
        seed=3,
    )
    log = tmp_path / "soak.jsonl"
    try:
        found = soak(tmp_path, server, plan, log)
    finally:
        server.kill()
    assert found["counts"]["right"] > 0
    assert found["counts"]["killed clients"] == 2
    assert found["counts"]["killed servers"] == 1
    events = [json.loads(line)["what"] for line in log.read_text().splitlines()]
    assert (events[0], events[-1]) == ("begin", "end")
    assert "problem" not in events
