"""Every line of the page of differences names a test that proves it.

A line is an item that begins with a title in bold. Some tests are here, others where such things
are tested anyway.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from stagecoach.planner.errors import SqlError, UnknownColumnError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import SALES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "user-guide" / "differences.md"
HERE = "tests/test_differences.py"
PROOFS = {
    "Order without ORDER BY.": f"{HERE}::test_rows_have_an_order_only_with_order_by",
    "First and last.": "tests/differential/test_differences.py::test_first_and_last_are_some_row_of_their_group",
    "Signs of zero.": "tests/differential/test_differences.py::test_the_smallest_of_both_zeros_is_one_of_them",
    "Sums of floats.": "tests/differential/test_differences.py::test_sums_of_floats_differ_in_their_last_digits_only",
    "Sums that overflow on the way.": "tests/differential/test_differences.py::test_a_sum_may_overflow_on_the_way",
    "Random values.": f"{HERE}::test_what_differs_in_each_run_is_sparks",
    "The error, if there are several.": "tests/differential/test_differences.py::test_one_of_several_errors_is_reported",
    "Errors that no row of the result needs.": "tests/differential/test_differences.py::test_an_error_that_no_row_needs_is_not_raised",
    "The current time.": f"{HERE}::test_the_time_is_a_parameter_of_the_run",
    "The session.": "tests/differential/test_differences.py::test_functions_of_the_session_are_those_of_the_runs_spark",
    "ANSI mode.": f"{HERE}::test_no_query_changes_or_reads_settings",
    "Anything but a SELECT.": f"{HERE}::test_only_a_select_is_planned",
    "Functions that reach outside.": f"{HERE}::test_functions_that_reach_outside_are_refused",
    "Files and programs.": f"{HERE}::test_files_and_programs_are_refused",
    "Time travel to a computed moment.": "tests/differential/test_differences.py::test_time_travel_to_a_computed_moment_is_refused",
    "Texts too deep to check.": "tests/planner/analysis/test_error_places.py::test_an_error_is_placed_at_what_is_wrong",
    "Correlated subqueries.": "tests/differential/test_subqueries.py::test_what_spark_refuses_is_what_duckdb_says",
    "Shifts behind arrays.": "tests/differential/test_differences.py::test_a_shift_may_follow_an_array",
    "Aliases in generators.": "tests/differential/test_differences.py::test_an_alias_in_a_generator_is_read",
    "Outer joins on functions of your own.": "tests/differential/test_project_functions.py::test_duckdb_joins_outer_rows_by_a_function_of_both_sides",
    "Files with different columns.": "tests/differential/test_widening.py::test_files_are_merged_as_by_spark",
    "Decimals as whole numbers.": "tests/infra/formats/test_declared_columns.py::test_a_decimal_is_not_read_as_its_digits",
    "Negative zeros in Parquet files.": "tests/differential/test_differences.py::test_spark_leaves_out_negative_zeros_of_a_parquet_dictionary",
    "Guarded calls.": "tests/differential/test_project_functions.py::test_duckdb_guards_a_call_by_case_where_spark_calls_it_for_all_rows",
    "Arguments.": "tests/differential/test_project_functions.py::test_arguments_are_cast_where_plain_spark_passes_what_there_is",
    "Wall clocks.": "tests/differential/test_project_functions.py::test_a_scalar_function_sees_the_clock_of_the_session_not_of_the_machine",
    "Join hints.": f"{HERE}::test_join_hints_change_no_plan",
    "Range hints.": f"{HERE}::test_a_range_hint_divides_by_hash",
    "SORT BY, DISTRIBUTE BY, CLUSTER BY.": f"{HERE}::test_orders_within_tasks_are_ignored",
    "A hint that Spark cannot run.": f"{HERE}::test_a_wrong_hint_has_a_place",
    "Intervals of months.": "tests/stagecoach/api/test_texts_of_spark.py::test_an_interval_of_months_is_returned_as_text",
    "Names before a run.": "tests/differential/test_result_names.py::test_names_are_sparks",
    "Sines.": "tests/differential/test_differences.py::test_sines_run_on_spark_unless_they_need_not_be_exact",
    "Messages.": f"{HERE}::test_what_is_known_without_spark_has_our_words_and_sparks_condition",
}


def titles() -> list[str]:
    return re.findall(r"^- \*\*(.+?)\*\*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_line_has_a_test() -> None:
    assert titles() == list(PROOFS), "add a test of the new line to PROOFS"


@pytest.mark.parametrize("proof", PROOFS.values(), ids=list(PROOFS))
def test_the_test_is_there(proof: str) -> None:
    path, name = proof.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def planned(sql: str, **options: object) -> StageGraph:
    return plan_query(sql, SALES, PlannerOptions(**options))  # type: ignore[arg-type]


def refused(sql: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        planned(sql)
    return caught.value


def test_rows_have_an_order_only_with_order_by() -> None:
    assert not planned("SELECT id FROM orders").ordered
    assert planned("SELECT id FROM orders ORDER BY id").ordered


@pytest.mark.parametrize(
    "call",
    [
        "rand()",
        "randn()",
        "uuid()",
        "monotonically_increasing_id()",
        "spark_partition_id()",
        "shuffle(array(id))",
    ],
)
def test_what_differs_in_each_run_is_sparks(call: str) -> None:
    graph = planned(f"SELECT {call} FROM orders")
    assert graph.head.engine == "spark"
    assert graph.fallback_reason
    assert not graph.head.deterministic


def test_the_time_is_a_parameter_of_the_run() -> None:
    sql = "SELECT current_timestamp(), current_date(), now(), localtimestamp() FROM orders"
    assert {p.name for p in planned(sql).parameters} == {"@now", "@date", "@local"}


def test_no_query_changes_or_reads_settings() -> None:
    assert "SET" in refused("SET spark.sql.ansi.enabled = false").message
    assert planned("SELECT ID FROM Orders").result[0].name == "ID"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO orders SELECT * FROM orders",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE orders",
        "SET x = 1",
        "SHOW TABLES",
        "DESCRIBE orders",
        "USE other",
        "CACHE TABLE orders",
        "BEGIN SELECT 1; END",
        "SELECT 1; SELECT 2",
    ],
)
def test_only_a_select_is_planned(sql: str) -> None:
    assert refused(sql).line is not None


@pytest.mark.parametrize(
    "call",
    [
        "reflect('java.lang.System', 'exit', 1)",
        "java_method('a', 'b')",
        "try_reflect('a', 'b')",
        "from_avro(id, '{}')",
        "from_protobuf(id, 'a')",
        "to_protobuf(id, 'a')",
        "my_function(id)",
    ],
)
def test_functions_that_reach_outside_are_refused(call: str) -> None:
    refused(f"SELECT {call} FROM orders")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM parquet.`/data`",
        "SELECT TRANSFORM(id) USING 'cat' FROM orders",
        "SELECT * FROM read_files('/data')",
    ],
)
def test_files_and_programs_are_refused(sql: str) -> None:
    refused(sql)


@pytest.mark.parametrize("hint", ["BROADCAST(c)", "MERGE(c)", "SHUFFLE_HASH(c)", "SHUFFLE_REPLICATE_NL(c)"])  # fmt: skip
def test_join_hints_change_no_plan(hint: str) -> None:
    def stages(text: str) -> list[object]:
        sql = f"SELECT {text} o.id FROM orders o JOIN orders c ON o.id = c.id"
        return [stage.fragment for stage in planned(sql, force_distribution=True).stages]

    assert stages(f"/*+ {hint} */") == stages("")


def test_a_range_hint_divides_by_hash() -> None:
    sql = "SELECT /*+ {} */ id FROM orders"
    ranged, hashed = (
        planned(sql.format(hint)).stages
        for hint in ("REPARTITION_BY_RANGE(3, id)", "REPARTITION(3, id)")
    )
    assert [s.output for s in ranged] == [s.output for s in hashed]


@pytest.mark.parametrize("clause", ["SORT BY id", "DISTRIBUTE BY id", "CLUSTER BY id"])
def test_orders_within_tasks_are_ignored(clause: str) -> None:
    fragments = [planned(f"SELECT id FROM orders {c}").head.fragment for c in (clause, "")]
    assert fragments[0] == fragments[1]
    assert isinstance(refused(f"SELECT id FROM orders {clause.replace('id', 'nope')}"), UnknownColumnError)  # fmt: skip


@pytest.mark.parametrize("hint", ["REPARTITION(0)", "COALESCE"])
def test_a_wrong_hint_has_a_place(hint: str) -> None:
    assert refused(f"SELECT /*+ {hint} */ id FROM orders").line == 1


@pytest.mark.parametrize(
    ("sql", "start"),
    [
        ("SELECT nope FROM orders", "[UNRESOLVED_COLUMN.WITH_SUGGESTION] column 'nope' not found"),
        ("SELECT id FROM nope", "[TABLE_OR_VIEW_NOT_FOUND] table 'nope' is not in the catalog"),
        ("SELECT nope(id) FROM orders", "[UNRESOLVED_ROUTINE] function 'nope' does not exist"),
        ("SELECT id FROM orders GROUP id", "[PARSE_SYNTAX_ERROR] syntax error near"),
    ],
)
def test_what_is_known_without_spark_has_our_words_and_sparks_condition(
    sql: str, start: str
) -> None:
    error = refused(sql)
    assert error.message.startswith(start)
    assert start.startswith(f"[{error.condition}]")
