"""Parts of the server by themselves: the queue, ranges of files, batches, patterns, parameters."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stagecoach
from stagecoach.api.session import Session
from stagecoach.flight.errors import BusyError, NotFoundError
from stagecoach.flight.gate import Gate
from stagecoach.flight.limits import Limits
from stagecoach.flight.metadata import like
from stagecoach.flight.metrics import ServeMetrics
from stagecoach.flight.parameters import bound_values, parameter_schema
from stagecoach.flight.prepared import PreparedStatement, PreparedStatements
from stagecoach.flight.results import file_ranges
from stagecoach.flight.sessions import Sessions
from stagecoach.flight.sql_info import info_table
from stagecoach.flight.streams import Streams
from stagecoach.flight.type_info import type_table
from stagecoach.planner.errors import ParameterError
from stagecoach.planner.plan.stages import StageGraph
from tests.waiting import wait_for


def test_the_gate_lets_in_who_came_first() -> None:
    gate, order, threads = Gate(1, 3), [], []
    gate.enter(lambda: None)

    def come(number: int) -> None:
        gate.enter(lambda: None)
        order.append(number)
        gate.leave()

    for number in range(3):
        threads.append(threading.Thread(target=come, args=(number,)))
        threads[-1].start()
        wait_for(lambda count=number: gate.num_waiting == count + 1)
    with pytest.raises(BusyError, match="1 statements run and 3 wait"):
        gate.enter(lambda: None)
    gate.leave()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2]
    assert (gate.num_running, gate.num_waiting) == (0, 0)


def test_who_gives_up_leaves_the_gate_as_it_was() -> None:
    gate = Gate(1, 3)
    gate.enter(lambda: None)

    def give_up() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        gate.enter(give_up, seconds=0.01)
    assert gate.num_waiting == 0
    gate.leave()
    gate.enter(lambda: None)
    assert gate.num_running == 1


@pytest.mark.parametrize(
    ("sizes", "part", "most", "expected"),
    [
        ([], 10, 4, [(0, 0)]),
        ([5], 10, 4, [(0, 1)]),
        ([0, 0, 0], 10, 4, [(0, 3)]),
        ([10, 10, 10, 10], 10, 4, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ([10, 10, 10, 10], 10, 2, [(0, 2), (2, 4)]),
        ([10, 10, 10, 10], 40, 9, [(0, 4)]),
        ([100, 1, 1, 1], 10, 3, [(0, 1), (1, 2), (2, 4)]),
        ([1, 1, 1, 100], 10, 3, [(0, 2), (2, 3), (3, 4)]),
    ],
)
def test_file_ranges(
    sizes: list[int], part: int, most: int, expected: list[tuple[int, int]]
) -> None:
    assert [(r.start, r.stop) for r in file_ranges(sizes, part, most)] == expected


def test_file_ranges_cover_all_files_once() -> None:
    for number in range(1, 40):
        sizes = [(i * 37 + number * 11) % 50 for i in range(number)]
        for most in (1, 3, 16):
            found = file_ranges(sizes, 20, most)
            assert [i for r in found for i in r] == list(range(number))
            assert len(found) <= most
            assert all(len(r) for r in found)


def test_a_session_is_made_anew_when_it_is_old(tmp_path: Path) -> None:
    made: list[Session] = []
    folder = tmp_path / "t"
    folder.mkdir()
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text("tables: {t: {location: t}}", encoding="utf-8")

    def make() -> Session:
        made.append(stagecoach.connect(catalog, tmp_path / "storage", offline=True))
        return made[-1]

    def planned(rows: int) -> StageGraph:
        pq.write_table(pa.table({"a": range(rows)}), folder / "0.parquet")
        return sessions.current(0.0).plan("SELECT sum(a) AS s FROM t").graph

    sessions = Sessions(make, seconds=60.0)
    assert sessions.current() is sessions.current() is made[0]
    assert sessions.current(0.0) is made[1] is sessions.current()
    first = planned(3)
    assert planned(3) is first, "a plan over the same state is taken again"
    assert planned(4) is not first


def _streams(**limits: int) -> Streams:
    return Streams(Limits(**limits), ServeMetrics())


@dataclass
class Client:
    """A client with one connection."""

    name: str = "a"
    is_cancelled: bool = False

    def peer(self) -> str:
        return self.name

    def cancel(self) -> None:
        self.is_cancelled = True


def test_streams_are_bounded_and_close_however_they_end() -> None:
    streams, closed = _streams(streams=3, streams_per_connection=2), []
    batch = pa.record_batch({"a": [1]})

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch

    def broken() -> Iterator[pa.RecordBatch]:
        yield batch
        raise NotFoundError("gone")

    first = streams.open(Client("a"), rows, lambda: closed.append("read"))
    second = streams.open(Client("a"), broken, lambda: closed.append("broken"))
    with pytest.raises(BusyError, match="this connection has 2 open streams"):
        streams.open(Client("a"), rows, lambda: closed.append("refused"))
    third = streams.open(Client("b"), rows, lambda: closed.append("dropped"))
    with pytest.raises(BusyError, match="the server sends 3 streams already"):
        streams.open(Client("c"), rows, lambda: closed.append("refused"))
    assert list(first) == [batch]
    assert next(second) == batch
    with pytest.raises(Exception, match="gone"):
        next(second)
    del third
    gc.collect()
    assert streams.num_open == 0
    assert closed == ["refused", "refused", "read", "broken", "dropped"]


def test_a_stream_whose_rows_cannot_be_found_is_closed() -> None:
    streams, closed = _streams(), []

    def fail() -> Iterator[pa.RecordBatch]:
        raise NotFoundError("gone")

    with pytest.raises(NotFoundError):
        streams.open(Client("a"), fail, lambda: closed.append(1))
    assert (streams.num_open, closed) == (0, [1])


def test_a_stalled_stream_is_ended() -> None:
    streams, closed = _streams(stall_seconds=0), []
    client, batch = Client(), pa.record_batch({"a": [1]})
    stream = streams.open(client, lambda: iter([batch, batch]), lambda: closed.append(1))
    assert streams.end_stalled() == 0
    next(stream)
    time.sleep(0.01)
    assert streams.end_stalled() == 1
    assert (client.is_cancelled, streams.num_open) == (True, 0)
    wait_for(lambda: closed == [1])


def test_no_more_batches_come_from_a_server_that_ends() -> None:
    streams = _streams()
    batch = pa.record_batch({"a": [1]})
    stream = streams.open(Client(), lambda: iter([batch, batch]))
    next(stream)
    streams.close()
    with pytest.raises(Exception, match="shutting down"):
        next(stream)
    with pytest.raises(BusyError, match="shutting down"):
        streams.open(Client(), lambda: iter([]))
    assert streams.num_open == 0


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        (None, ["", "a"], []),
        ("", [""], ["a"]),
        ("a%", ["a", "AB", "a\nb"], ["ba"]),
        ("a_c", ["abc", "a.c"], ["ac"]),
        (r"a\_c", ["a_c"], ["abc"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_patterns(pattern: str | None, fits: list[str], fits_not: list[str]) -> None:
    test = like(pattern)
    assert [name for name in fits + fits_not if test(name)] == fits


def test_prepared_statements_are_bounded_and_their_users() -> None:
    statements = PreparedStatements(2)
    handles = [statements.add(PreparedStatement(user="alice", sql=f"SELECT {i}")) for i in range(2)]
    statements.get(handles[0], "alice")
    third = statements.add(PreparedStatement(user="bob", sql="SELECT 2"))
    assert statements.get(handles[0], "alice").sql == "SELECT 0"
    with pytest.raises(NotFoundError, match="prepare it again"):
        statements.get(handles[1], "alice")
    with pytest.raises(NotFoundError):
        statements.get(third, "alice")
    statements.close(third, "alice")
    assert len(statements) == 2
    statements.close(third, "bob")
    assert len(statements) == 1


def test_properties_and_types() -> None:
    assert info_table([0, 3, 9999]).to_pylist() == [
        {"info_name": 0, "value": "Stagecoach"},
        {"info_name": 3, "value": True},
    ]
    assert info_table([9999]).num_rows == 0
    whole = info_table()
    whole.validate(full=True)
    assert whole.num_rows > 30
    assert type_table(93)["type_name"].to_pylist() == ["timestamp", "timestamp_ntz"]
    types = type_table()
    types.validate(full=True)
    assert types["data_type"].to_pylist() == sorted(types["data_type"].to_pylist())


def test_parameters_by_name_and_by_place() -> None:
    schema = parameter_schema(["day", "n"], {"day": "date"})
    assert schema == pa.schema([("day", pa.date32()), ("n", pa.null())])
    row = pa.record_batch({"n": pa.array([1], pa.int8()), "day": ["2024-01-02"]})
    by_name = bound_values(["day", "n"], row)
    assert (by_name["n"].text, str(by_name["n"].dtype)) == ("1", "tinyint")
    by_place = bound_values(["1", "2"], row)
    assert (by_place["1"].text, by_place["2"].text) == ("1", "2024-01-02")


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (pa.record_batch({"0": [1, 2]}), "2 rows of parameters"),
        (pa.record_batch({"0": [1], "1": [2]}), "2 parameters were bound; the query has 1"),
        (pa.record_batch({"0": pa.array([[1]])}), "cannot be bound; write them in the SQL"),
        (pa.record_batch({"0": pa.array([1], pa.time32("s"))}), "the Arrow type time32"),
    ],
)
def test_values_that_cannot_be_bound(row: pa.RecordBatch, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        bound_values(["1"], row)
