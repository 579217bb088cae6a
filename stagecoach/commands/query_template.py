"""The text of a new query file.

It is valid as it stands, and shows all keys that front matter has.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stagecoach.planner.text.quoting import spark_name

if TYPE_CHECKING:
    from stagecoach.planner.catalog import TableInfo
    from stagecoach.planner.types import Field

Kind = Literal["none", "hourly", "daily", "weekly", "monthly", "static"]
KINDS: tuple[Kind, ...] = ("none", "hourly", "daily", "weekly", "monthly", "static")

_WINDOWS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}


@dataclass(frozen=True, kw_only=True)
class Template:
    """What a new query is.

    Args:
        name: Its name.
        kind: How it is partitioned.
        table: The table that it reads; None for a query without a table.
    """

    name: str
    kind: Kind = "none"
    table: TableInfo | None = None

    @property
    def text(self) -> str:
        """The file's text."""
        return "\n".join([*self._front_matter(), *self._sql(), ""])

    def _front_matter(self) -> list[str]:
        head = textwrap.dedent(f"""\
            ---
            description: What {self.name} is for, in a sentence or two
            # Whom to ask: teams and e-mail addresses.
            # owners: ["team:data", ada@example.com]
            # For searching in Dagster; the values are texts.
            # tags: {{domain: sales}}
            # The group in Dagster's graph; the query's name by default.
            # group: {self.name}
            # When it runs: minute hour day month weekday.
            # schedule: {{cron: "0 6 * * *", timezone: Europe/Berlin}}
            # Or: whenever a table that it reads has changed. Not together with a schedule.
            # automation: on_upstream_change""")
        tail = textwrap.dedent(f"""\
            # The table that the result becomes, for other queries and tools. mode: replace, append,
            # merge (with key: […]), or replace_partition, the default of a partitioned query.
            # output: {{table: {self.name}, partition_by: [{self._column}], keep_versions: 5}}
            # What must hold of the result; an error also stops what reads it.
            checks:
              - not_null: [{self._column}]
              # - row_count: {{min: 1}}
              # - unique: [{self._column}]
              #   severity: warn
              # - accepted_values: {{column: {self._column}, values: [{self._value}]}}
              # - freshness: {{within: 26h}}
              # - no_rows:
              #     name: dated
              #     sql: SELECT * FROM {self.name} WHERE {self._column} IS NULL
            # Faults of storage or machine are tried again; a mistake in the SQL is not.
            # retries: {{max: 3, delay_seconds: 10, backoff: exponential}}
            # Dagster's concurrency pool of all steps.
            # pool: warehouse
            # The longest that each stage of a run may take.
            # timeout: 1h 30m
            # Whether a run computes a lost or damaged output of a stage again, or fails.
            # recover: true
            # Whether a run computes only what is new since the last one.
            # incremental: true
            # How Dagster shows its stages: assets of their own, or ops of its one asset.
            # stages: ops
            # Values that a run can give: `:name` in the SQL.
            # parameters: {{since: 2024-01-01, price: {{type: "decimal(15,2)", default: 0.05}}}}
            ---""")
        lines = [*head.splitlines(), *self._partitions(), *tail.splitlines()]
        return [f"-- {line}".rstrip() for line in lines]

    def _partitions(self) -> list[str]:
        time_window = "# The SQL uses :partition_start and :partition_end (exclusive)."
        if self.kind == "none":
            return [
                f"# A partition per day, say. {time_window.removeprefix('# ')}",
                f"# partitions: {{by: daily, start: 2024-01-01, column: {self._column}}}",
                "# Partitions that one run of a backfill makes: single_run for all of them,",
                "# run_per_partition, or {max_partitions_per_run: 7}.",
                "# backfill: run_per_partition",
            ]
        if self.kind == "static":
            first = ["# One partition for each key. The SQL uses :partition_key.", "partitions:"]
            body = ["  by: static", "  keys: [north, south]"]
        else:
            first = [f"# One partition for each {_WINDOWS[self.kind]}. {time_window[2:]}"]
            body = [
                "partitions:",
                f"  by: {self.kind}",
                "  start: 2024-01-01",
                f"  # end: {'2025-01-06' if self.kind == 'weekly' else '2025-01-01'}",
                "  # timezone: Europe/Berlin",
            ]
        return [
            *first,
            *body,
            "  # The column of the result that holds the partition.",
            f"  column: {self._column}",
            "# Partitions that one run of a backfill makes: single_run for all of them, if the SQL",
            "# is right for several; run_per_partition; or {max_partitions_per_run: 7}.",
            "backfill: run_per_partition",
        ]

    def _sql(self) -> list[str]:
        if self.table is not None:
            return self._table_sql(self.table)
        if self.kind == "none":
            return ["SELECT", "  'hello' AS greeting"]
        parameter = ":partition_key" if self.kind == "static" else ":partition_start"
        return ["SELECT", f"  {parameter} AS {self._column},", "  42 AS answer"]

    def _table_sql(self, table: TableInfo) -> list[str]:
        names = [_quoted(field.name) for field in table.columns]
        lines = ["SELECT", *(f"  {name}," for name in names)]
        column = self._partition_field
        if self.kind != "none" and column is None:
            # No column fits: the partition is the only one, until the author has found another.
            value = ":partition_key" if self.kind == "static" else ":partition_start"
            lines.append(f"  {value} AS {self._column}")
        else:
            lines[-1] = lines[-1].removesuffix(",")
        lines.append(f"FROM {table.name}")
        if self.kind == "none" or column is None:
            return lines
        name = _quoted(column.name)
        if self.kind == "static":
            return [*lines, f"WHERE {name} = :partition_key"]
        return [*lines, f"WHERE {name} >= :partition_start", f"  AND {name} < :partition_end"]

    @property
    def _partition_field(self) -> Field | None:
        """The column of the table that can hold the partition, the first that fits."""
        kinds: Sequence[str] = ("date", "timestamp", "timestamp_ntz")
        if self.kind == "static":
            kinds = ("string",)
        elif self.kind == "hourly":
            kinds = ("timestamp",)
        columns = self.table.columns if self.table is not None else ()
        return next((field for field in columns if field.dtype.kind in kinds), None)

    @property
    def _column(self) -> str:
        """The column that front matter names."""
        if self.table is not None and self.kind == "none":
            return self.table.columns[0].name
        if field := self._partition_field:
            return field.name
        if self.kind == "none":
            return "greeting"
        return "region" if self.kind == "static" else _WINDOWS[self.kind]

    @property
    def _value(self) -> str:
        return "2024-01-01" if self.kind in _WINDOWS else "hello"


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name.isascii()
    return name if plain else spark_name(name)
