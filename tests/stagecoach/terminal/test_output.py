"""How rows are printed and written."""

from __future__ import annotations

import datetime
import json
import os
import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.planner.errors import OptionError
from stagecoach.planner.types import STRING, Field
from stagecoach.terminal.output import Format, html_rows, render_rows, shown_rows, take_rows
from stagecoach.terminal.result_files import format_of, write_result
from stagecoach.terminal.text_tables import display_width
from stagecoach.terminal.value_texts import to_text


def make_batch(columns: list[tuple[str, pa.DataType, list[object]]]) -> pa.RecordBatch:
    schema = pa.schema([pa.field(name, dtype) for name, dtype, _ in columns])
    arrays = [pa.array(values, dtype) for _, dtype, values in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


BATCH = make_batch(
    [
        ("name", pa.string(), ["a,b", "", None]),
        ("count(1)", pa.int64(), [1, 20, None]),
        ("name", pa.decimal128(15, 2), [Decimal("1.50"), None, Decimal("-3.00")]),
    ]
)


def test_table_aligns_numbers_right_and_keeps_duplicate_names() -> None:
    lines = list(render_rows(BATCH.schema, [BATCH], "table", num_rows=3))
    assert lines == [
        "name │ count(1) │ name",
        "─────┼──────────┼──────",
        "a,b  │        1 │  1.50",
        "     │       20 │  NULL",
        "NULL │     NULL │ -3.00",
        "(3 rows)",
    ]


def test_table_says_how_many_rows_are_not_shown() -> None:
    lines = list(render_rows(BATCH.schema, [BATCH], "table", limit=1, num_rows=3))
    assert lines[-1] == "(3 rows, the first 1 shown; --limit N shows more)"
    assert len(lines) == 4


def test_empty_table_shows_its_columns() -> None:
    lines = list(render_rows(BATCH.schema, [], "table", num_rows=0))
    assert lines[0].startswith("name │ count(1)")
    assert lines[-1] == "(0 rows)"


def test_terminal_controls_in_data_are_escaped() -> None:
    batch = make_batch([("x", pa.string(), ["\x1b[31mred\n"])])
    assert "\\x1b[31mred\\n" in list(render_rows(batch.schema, [batch], "table"))[2]


def test_wide_characters_keep_the_columns_in_line() -> None:
    batch = make_batch([("x", pa.string(), ["日本", "ab"]), ("y", pa.int32(), [1, 2])])
    lines = list(render_rows(batch.schema, [batch], "table"))
    assert lines[2:4] == ["日本 │ 1", "ab   │ 2"]


WIDE = make_batch(
    [
        ("id", pa.int64(), [1, 123456789012]),
        ("comment", pa.string(), ["x" * 40, "short"]),
        ("note", pa.string(), ["日本" * 12, None]),
        ("total", pa.float64(), [1.5, 2.25]),
    ]
)


def test_a_wide_table_fits_the_terminal() -> None:
    lines = list(render_rows(WIDE.schema, [WIDE], "table", width=60))
    assert max(display_width(line) for line in lines) == 60
    assert "123456789012" in lines[3]  # numbers are whole
    assert "xxx…" in lines[2]
    assert "本…" in lines[2]
    assert lines[2].endswith("1.5")
    assert lines[-1] == "(2 rows)"


def test_columns_that_do_not_fit_are_left_out() -> None:
    lines = list(render_rows(WIDE.schema, [WIDE], "table", width=30))
    assert max(display_width(line) for line in lines[:-1]) <= 30
    assert lines[0].split() == ["id", "│", "comment"]
    assert lines[-1] == "(2 rows, 2 of 4 columns fit; --format vertical shows all)"
    assert len(list(render_rows(WIDE.schema, [WIDE], "table", width=3))) == 5


def test_blocks_show_all_of_each_row() -> None:
    lines = list(render_rows(WIDE.schema, [WIDE], "vertical", limit=1, num_rows=2))
    assert lines == [
        "── row 1 ───────────────",
        "id      │ 1",
        f"comment │ {'x' * 40}",
        f"note    │ {'日本' * 12}",
        "total   │ 1.5",
        "(2 rows, the first 1 shown; --limit N shows more)",
    ]


def test_markdown_escapes_what_would_end_a_cell() -> None:
    batch = make_batch([("a|b", pa.string(), ["x|y\nz", None]), ("n", pa.int32(), [1, 2])])
    lines = list(render_rows(batch.schema, [batch], "markdown"))
    assert lines == [
        "| a\\|b | n |",
        "| --- | ---: |",
        "| x\\|y\\\\nz | 1 |",
        "| NULL | 2 |",
    ]


def test_csv_tells_null_from_empty() -> None:
    lines = list(render_rows(BATCH.schema, [BATCH], "csv"))
    assert lines == ["name,count(1),name", '"a,b",1,1.50', '"",20,', ",,-3.00"]


def test_json_keeps_duplicate_names_and_all_digits() -> None:
    batch = make_batch(
        [
            ("a", pa.decimal128(38, 18), [Decimal("12345678901234567890.123456789012345678")]),
            ("a", pa.float64(), [float("nan")]),
            ("d", pa.date32(), [datetime.date(2024, 1, 31)]),
            ("l", pa.list_(pa.int32()), [[1, None]]),
        ]
    )
    (line,) = render_rows(batch.schema, [batch], "json")
    assert line.startswith('{"a": 12345678901234567890.123456789012345678, "a": "NaN"')
    assert json.loads(line)["l"] == [1, None]
    assert json.loads(line)["d"] == "2024-01-31"


def test_timestamps_are_shown_in_the_zone_of_the_session() -> None:
    moment = datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)
    batch = make_batch(
        [("t", pa.timestamp("us", tz="UTC"), [moment]), ("n", pa.timestamp("us"), [moment])]
    )
    zone = "Europe/Berlin"
    (_, line) = render_rows(batch.schema, [batch], "csv", time_zone=zone)
    assert line == "2024-07-01 12:00:00,2024-07-01 10:00:00"
    (line,) = render_rows(batch.schema, [batch], "json", time_zone=zone)
    assert json.loads(line)["t"] == "2024-07-01T12:00:00+02:00"


def nested(dtype: pa.DataType, value: object) -> pa.RecordBatch:
    """A value by itself and as a member of an array, a struct and a map."""
    return make_batch(
        [
            ("v", dtype, [value]),
            ("a", pa.list_(pa.field("element", dtype)), [[value, None]]),
            ("s", pa.struct([("x", pa.list_(dtype))]), [{"x": [value]}]),
            ("m", pa.map_(dtype, dtype), [[(value, value)]]),
        ]
    )


def shown_everywhere(batch: pa.RecordBatch, time_zone: str = "UTC") -> str:
    """What CSV shows of one row, which is what the other ways show, too."""
    (row,) = take_rows([batch], time_zone=time_zone, shown=True)
    texts = [to_text(value) for value in row]
    assert [to_text(v) for v in shown_rows(pa.table(batch), time_zone)[0]] == texts
    drawn = html_rows(
        batch.schema,
        [batch],
        columns=[Field(name, STRING) for name in batch.schema.names],
        limit=1,
        num_rows=1,
        time_zone=time_zone,
    )
    for output_format in ("table", "vertical", "markdown"):
        drawn += "".join(render_rows(batch.schema, [batch], output_format, time_zone=time_zone))
    assert drawn.count(texts[0]) >= 4
    (_, line) = render_rows(batch.schema, [batch], "csv", time_zone=time_zone)
    return line.replace('"', "")


def test_members_are_in_the_zone_of_the_session() -> None:
    zone = "Asia/Tokyo"
    batch = nested(pa.timestamp("us", tz="UTC"), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
    text = "2024-01-01 09:00:00"
    assert (
        shown_everywhere(batch, zone) == f"{text},[{text}, NULL],{{[{text}]}},{{{text} -> {text}}}"
    )
    (line,) = render_rows(batch.schema, [batch], "json", time_zone=zone)
    assert line.count("2024-01-01T09:00:00+09:00") == 4
    (row,) = take_rows([batch], time_zone=zone)
    assert row[1][0].hour == row[2]["x"][0].hour == row[3][0][0].hour == 9


DAY = 86_400_000_000
FIRST, LAST = -719_162, 2_932_896  # days that Python can hold


@pytest.mark.parametrize(
    ("dtype", "number", "zone", "text"),
    [
        (pa.date32(), FIRST - 1, "UTC", "0000-12-31"),
        (pa.date32(), LAST + 1, "UTC", "+10000-01-01"),
        (pa.date32(), -721_354, "UTC", "-0005-01-01"),
        (pa.date32(), 3_663_441, "UTC", "+12000-02-29"),
        (pa.date32(), 2**31 - 1, "UTC", "+5881580-07-11"),
        (pa.date32(), -(2**31), "UTC", "-5877641-06-23"),
        (pa.timestamp("us"), 2**63 - 1, "UTC", "+294247-01-10 04:00:54.775807"),
        (pa.timestamp("us", tz="UTC"), -(2**63), "UTC", "-290308-12-21 19:59:05.224192"),
        (pa.timestamp("us"), (LAST + 1) * DAY + 1_500_000, "UTC", "+10000-01-01 00:00:01.5"),
        (pa.timestamp("us", tz="UTC"), FIRST * DAY, "America/New_York", "0000-12-31 19:03:58"),
        (
            pa.timestamp("us", tz="UTC"),
            (LAST + 1) * DAY - 3_600_000_000,
            "Asia/Tokyo",
            "+10000-01-01 08:00:00",
        ),
    ],
)
def test_years_that_python_cannot_hold(
    dtype: pa.DataType, number: int, zone: str, text: str
) -> None:
    is_date = pa.types.is_date32(dtype)
    stored = pa.int32() if is_date else pa.int64()
    plain = nested(stored, number)
    types = [pa.list_(pa.field("element", dtype)), pa.struct([("x", pa.list_(dtype))])]
    columns = [
        column.cast(to)
        for column, to in zip(plain.columns, [dtype, *types, pa.map_(dtype, dtype)], strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=plain.schema.names)
    assert (
        shown_everywhere(batch, zone) == f"{text},[{text}, NULL],{{[{text}]}},{{{text} -> {text}}}"
    )
    (line,) = render_rows(batch.schema, [batch], "json", time_zone=zone)
    assert json.loads(line) == {"v": text, "a": [text, None], "s": {"x": [text]}, "m": {text: text}}
    (row,) = take_rows([batch], time_zone=zone)
    assert row == (text, [text, None], {"x": [text]}, [(text, text)])


def test_a_date_beside_one_that_python_cannot_hold_stays_a_date() -> None:
    column = pa.array([0, LAST, None, LAST + 1], pa.int32()).cast(pa.date32())
    found = [value for (value,) in take_rows([pa.record_batch({"d": column})])]
    last = datetime.date(9999, 12, 31)
    assert found == [datetime.date(1970, 1, 1), last, None, "+10000-01-01"]


def test_floats_have_the_digits_of_floats() -> None:
    text = "1.1"
    batch = nested(pa.float32(), 1.1)
    assert shown_everywhere(batch) == f"{text},[{text}, NULL],{{[{text}]}},{{{text} -> {text}}}"
    (line,) = render_rows(batch.schema, [batch], "json")
    assert json.loads(line) == {"v": 1.1, "a": [1.1, None], "s": {"x": [1.1]}, "m": {"1.1": 1.1}}
    numbers = [16777216.0, 3.4028235e38, -0.0, float("nan"), float("-inf")]
    column = pa.array(numbers, pa.float32())
    (_, *lines) = render_rows(
        pa.schema([("f", pa.float32())]), [pa.record_batch({"f": column})], "csv"
    )
    assert lines == ["1.6777216E7", "3.4028235E38", "-0.0", "NaN", "-Infinity"]


def test_an_empty_map_is_no_empty_array() -> None:
    of_maps = pa.map_(pa.string(), pa.int32())
    batch = make_batch(
        [
            ("m", of_maps, [[], [("k", 1)], None]),
            ("a", pa.list_(of_maps), [[[]], [], [None]]),
            ("s", pa.struct([("m", of_maps)]), [{"m": []}, {"m": None}, None]),
        ]
    )
    (_, *lines) = render_rows(batch.schema, [batch], "csv")
    assert lines == ["{},[{}],{{}}", "{k -> 1},[],{NULL}", ",[NULL],"]
    (first, second, third) = render_rows(batch.schema, [batch], "json")
    assert first == '{"m": {}, "a": [{}], "s": {"m": {}}}'
    assert second == '{"m": {"k": 1}, "a": [], "s": {"m": null}}'
    assert third == '{"m": null, "a": [null], "s": null}'
    assert to_text(shown_rows(pa.table(batch), "UTC")[0][1]) == "[{}]"


def test_bytes_that_differ_look_different() -> None:
    batch = nested(pa.binary(), b"\xffa")
    assert shown_everywhere(batch) == "FF61,[FF61, NULL],{[FF61]},{FF61 -> FF61}"
    (line,) = render_rows(batch.schema, [batch], "json")
    assert json.loads(line)["v"] == "/2E="


@pytest.mark.parametrize("output_format", ["csv", "json"])
def test_limit_of_streams(output_format: Format) -> None:
    lines = list(render_rows(BATCH.schema, [BATCH, BATCH], output_format, limit=4))
    assert len(lines) == 4 + (output_format == "csv")


def test_limit_stops_reading() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise AssertionError("read too far")

    assert len(list(take_rows(batches(), 3))) == 3
    assert list(take_rows(batches(), 0)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e7, "1.0E7"),
        (1234567.0, "1234567.0"),
        (1.5e-5, "1.5E-5"),
        (0.001, "0.001"),
        (-0.0, "-0.0"),
        (float("inf"), "Infinity"),
        (123456789.125, "1.23456789125E8"),
        (datetime.datetime(2024, 1, 1, 10, 0, 0, 500000), "2024-01-01 10:00:00.5"),
        (True, "true"),
        ({"a": 1, "b": None}, "{1, NULL}"),
    ],
)
def test_text_is_sparks(value: object, text: str) -> None:
    assert to_text(value) == text


def test_parquet_keeps_names_types_and_rows(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int32()),
            pa.field("a", pa.timestamp("us", tz="UTC")),
            pa.field("sum((x * 2))", pa.decimal128(38, 6)),
            pa.field("", pa.date32()),
        ]
    )
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    arrays = [
        pa.array([1], pa.int32()),
        pa.array([moment], schema.field(1).type),
        pa.array([Decimal("1.5")], schema.field(2).type),
        pa.array([None], pa.date32()),
    ]
    path = tmp_path / "deep" / "q.parquet"
    rows = write_result(path, schema, [pa.RecordBatch.from_arrays(arrays, schema=schema)])
    file = pq.ParquetFile(path)
    assert rows == 1
    assert file.schema_arrow.equals(schema)
    assert file.read().num_rows == 1
    assert [p.name for p in path.parent.iterdir()] == ["q.parquet"]


def test_empty_parquet_has_its_columns(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int32())])
    write_result(tmp_path / "q.parquet", schema, [])
    assert pq.ParquetFile(tmp_path / "q.parquet").schema_arrow.equals(schema)


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    schema = pa.schema([pa.field("a", pa.int32())])
    write_result(path, schema, [])
    before = path.read_bytes()

    def broken() -> Iterator[pa.RecordBatch]:
        raise RuntimeError("lost")
        yield

    with pytest.raises(RuntimeError, match="lost"):
        write_result(path, schema, broken())
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*q.parquet"):
        write_result(tmp_path / "file" / "q.parquet", pa.schema([]), [])


def test_other_formats_by_the_name_of_the_file(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(5, 2))])
    rows = pa.table({"a": [1, None], "s": ['x"\n', ""], "d": [Decimal("1.50"), None]}, schema)
    written = {}
    for name in ("o.csv", "o.json", "o.NDJSON", "o.arrow", "o.parquet", "o"):
        assert write_result(tmp_path / name, schema, rows.to_batches()) == 2
        written[name] = (tmp_path / name).read_bytes()
    assert written["o.csv"] == b'a,s,d\n1,"x""\n",1.50\n,"",\n'
    lines = b'{"a": 1, "s": "x\\"\\n", "d": 1.50}\n{"a": null, "s": "", "d": null}\n'
    assert written["o.json"] == written["o.NDJSON"] == lines
    assert pa.ipc.open_file(written["o.arrow"]).read_all().equals(rows)
    assert pq.read_table(tmp_path / "o").equals(rows)
    assert written["o"] == written["o.parquet"]
    assert write_result(tmp_path / "p.csv", schema, [], file_format="arrow") == 0
    assert pa.ipc.open_file((tmp_path / "p.csv").read_bytes()).read_all().schema == schema
    assert format_of(Path("a.b/c")) == "parquet"


@pytest.mark.parametrize("name", ["o.csv.gz", "o.txt", "o.parquet2"])
def test_a_name_that_stands_for_no_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match=r"is not a known file ending; use one of .parq"):
        write_result(tmp_path / name, BATCH.schema, [BATCH])
    assert list(tmp_path.iterdir()) == []
    assert write_result(tmp_path / name, BATCH.schema, [BATCH], file_format="csv") == 3


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.touch()
    path.chmod(0o640)
    write_result(path, BATCH.schema, [BATCH])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_leads_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "o.csv", tmp_path / "real" / "rows"
    for text in (None, "old"):
        if text is None:
            link.symlink_to(target)
        else:
            target.write_text(text)
        write_result(link, BATCH.schema, [BATCH])
        assert link.is_symlink()
        assert target.read_text().startswith("name,count(1)")
        assert [p.name for p in target.parent.iterdir()] == ["rows"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    os.mkfifo(path)
    with pytest.raises(StorageError, match=r"cannot write .*o.csv: it is not a regular file"):
        write_result(path, BATCH.schema, [BATCH])
    assert path.is_fifo()


def test_a_text_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        write_result(tmp_path / "o.csv", pa.schema([("a", pa.int64())]), broken())
    assert list(tmp_path.iterdir()) == []
