"""The front matter of a query as a frozen, validated model.

The models are the single source of the published JSON Schema and of the docs' table of keys.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from stagecoach.assets.project.front_matter.base import Part
from stagecoach.assets.project.front_matter.checks import Check
from stagecoach.assets.project.front_matter.parameters import Parameters
from stagecoach.assets.project.front_matter.partitions import (
    Partitions,
    StaticPartitions,
)
from stagecoach.assets.project.front_matter.places import AT_KEY, Location, Places
from stagecoach.assets.project.front_matter.values import (
    ColumnName,
    ColumnNames,
    Cron,
    Duration,
    GroupName,
    Owners,
    PoolName,
    TableName,
    Tags,
    Text,
    TimeZone,
    refuse,
    refuse_all,
    scalar_text,
)
from stagecoach.assets.project.names import did_you_mean
from stagecoach.infra.formats import names
from stagecoach.infra.formats.publishing import OutputError, stored_columns
from stagecoach.infra.formats.registry import result_format
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.types import Field as ResultColumn

OutputMode = Literal["replace", "append", "replace_partition", "merge"]
_ANY_FORMAT = frozenset({"table", "mode", "audit"})
_MERGE_KEYS = frozenset({"key", "delete_column"})
StagesAs = Literal["assets", "ops"]


def _shorthand(key: str, kind: type, model: type[Part]) -> BeforeValidator:
    """A bare value stands for a mapping with one key."""

    def expand(value: Any) -> Any:
        return {key: value} if isinstance(value, kind) and not isinstance(value, bool) else value

    return BeforeValidator(expand, json_schema_input_type=kind | model)


def _output_format(value: str) -> str:
    if value not in names.MADE.names:
        fix = did_you_mean(value, names.MADE.names)
        known = ", ".join(names.MADE.names)
        raise refuse(f"'{value}' is not a format that results are published in ({known}){fix}")
    return value


def _catalog(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item if (text := scalar_text(item)) is None else text
            for key, item in value.items()
        }
    return value


OutputFormat = Annotated[
    str,
    AfterValidator(_output_format),
    Field(json_schema_extra=lambda schema: schema.update(enum=[*names.MADE.names])),
]
OutputCatalog = Annotated[
    Annotated[str, StringConstraints(min_length=1)] | dict[str, str],
    BeforeValidator(_catalog, json_schema_input_type=str | dict[str, str | int | float | bool]),
]


class Schedule(Part):
    """When the query runs."""

    cron: Cron
    """Minute, hour, day, month and weekday, or '@daily' and the like."""
    timezone: TimeZone = "UTC"
    """IANA name of the zone that the cron expression is in."""


class Output(Part):
    """The table that the query's result is published as."""

    format: OutputFormat | None = None
    """Format of the table; `published`, Parquet files in the storage, by default."""
    table: TableName | None = None
    """Its name; that of the query by default."""
    catalog: OutputCatalog | None = None
    """Where a catalog keeps the table: the name of a catalog, or its name and properties."""
    location: Annotated[str, StringConstraints(min_length=1)] | None = None
    """Where the table is: a folder or a URL."""
    mode: OutputMode | None = None
    """What a run does to the table; replace_partition where the query is partitioned, else
    replace."""
    key: ColumnNames | None = None
    """For merge: the columns by which rows of the table are replaced."""
    delete_column: ColumnName | None = None
    """For merge: a boolean column of the result; where it is true, the row of the table is deleted.
    The table does not have the column."""
    partition_by: tuple[ColumnName, ...] = ()
    """Columns of the result whose values tell files apart: folders, or partitions of the table."""
    keep_versions: Annotated[StrictInt, Field(ge=1, le=10_000)] = 5
    """How many versions of the table are kept."""
    audit: StrictBool | None = None
    """Whether the result becomes visible only after its blocking checks have passed; as the project
    says by default, which is true."""

    @property
    def format_name(self) -> str:
        """Name of the table's format; empty for the default."""
        return self.format or ""

    def stored_columns(self, columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
        """The columns of the table, given those of the result."""
        return stored_columns(columns, self.delete_column)

    def place(self, table: str, folder: str) -> dict[str, Any]:
        """Where the table is, as its format has it.

        Args:
            table: Its name.
            folder: The folder of the query's file; empty for none.

        Raises:
            OutputError: A key is missing or its value is not valid.
        """
        found = result_format(self.format_name)
        given = {
            key: value
            for key in found.output_keys
            if key in self.model_fields_set and (value := getattr(self, key)) is not None
        }
        return found.declare_output(table, given, folder)

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        has_parts = "." in (self.table or "")
        if (
            self.model_fields_set <= {"table", "mode", "audit"}
            and self.mode != "merge"
            and not has_parts
        ):
            return self  # of any format; none need be imported
        allowed = {"format", *_ANY_FORMAT, *result_format(self.format_name).output_keys}
        if result_format(self.format_name).takes_merges:
            allowed |= _MERGE_KEYS
        name = result_format(self.format_name).name
        refuse_all(
            ((key, AT_KEY), f"a table of the format '{name}' has no '{key}'; remove it")
            for key in sorted(self.model_fields_set - allowed)
        )
        if has_parts and not result_format(self.format_name).has_namespaces:
            message = f"a table of the format '{name}' has a name of one part, not '{self.table}'"
            refuse_all([(("table",), f"{message}; leave out the namespace")])
        try:
            self.place(self.table or "", "")
        except OutputError as error:
            refuse_all([((error.key,) if error.key in self.model_fields_set else (), str(error))])
        return self

    @model_validator(mode="after")
    def _check_merge(self) -> Self:
        if self.mode != "merge":
            refuse_all(
                ((key, AT_KEY), f"'{key}' belongs to mode merge; write 'mode: merge', or remove it")
                for key in sorted(self.model_fields_set & _MERGE_KEYS)
            )
            return self
        found = result_format(self.format_name)
        if not found.takes_merges:
            message = f"results are not merged into tables of the format '{found.name}'"
            refuse_all([(("mode",), f"{message}; write another mode")])
        if not self.key:
            message = "merge needs 'key', the columns by which rows are replaced"
            refuse_all([(("mode",), f"{message}; add them, such as key: [id]")])
        return self

    @model_validator(mode="after")
    def _check_folders(self) -> Self:
        seen: set[str] = set()
        for i, name in enumerate(self.partition_by):
            if name.lower() in seen:
                refuse_all([(("partition_by", i), f"column '{name}' is given twice; remove one")])
            seen.add(name.lower())
        return self


class Retries(Part):
    """How often a step that failed for no fault of its SQL is tried again."""

    max: Annotated[StrictInt, Field(ge=0, le=100)]
    """How often, after the first try."""
    delay_seconds: Annotated[StrictInt | StrictFloat, Field(ge=0)] = 1
    """Seconds before the first retry."""
    backoff: Literal["exponential", "linear", "none"] = "exponential"
    """How the delay grows."""


class Backfill(Part):
    """How many partitions one run of a backfill makes."""

    max_partitions_per_run: Annotated[StrictInt, Field(ge=1)] | None = None
    """The most; None for all of the range."""

    @property
    def is_single_run(self) -> bool:
        """Whether one run makes the whole range."""
        return self.max_partitions_per_run is None


class BackfillMapping(Part):
    """So many partitions a run."""

    max_partitions_per_run: Annotated[StrictInt, Field(ge=1)]
    """The most partitions that one run makes."""


BACKFILL_WORDS = {"single_run": None, "run_per_partition": 1}


def _backfill(value: Any) -> Any:
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        if value not in BACKFILL_WORDS:
            fix = did_you_mean(value, BACKFILL_WORDS)
            raise refuse(f"'{value}' is not a valid backfill policy{fix}")
        return {"max_partitions_per_run": BACKFILL_WORDS[value]}
    if not isinstance(value, dict) or value.get("max_partitions_per_run", 0) is None:
        raise refuse(
            f"backfill cannot be {value!r}; write single_run, run_per_partition or "
            "{max_partitions_per_run: 7}"
        )
    if not value:
        raise refuse("backfill is empty; write {max_partitions_per_run: 7}")
    return value


class FrontMatter(Part):
    """What the author of a query says about it, as YAML in the leading comment of its file."""

    description: Text = ""
    """What the query is for; Markdown, shown by Dagster."""
    owners: Owners = ()
    """`team:<name>` or e-mail addresses."""
    tags: Tags = Field(default_factory=dict)
    """Dagster tags of all assets of the query, a list of names or a mapping of names to values;
    --select tag:NAME finds them."""
    group: GroupName | None = None
    """Group of the assets in Dagster; the query's name by default."""
    schedule: Annotated[Schedule, _shorthand("cron", str, Schedule)] | None = None
    """When the query runs: {cron: …, timezone: …}, or the cron expression alone."""
    automation: Literal["on_upstream_change"] | None = None
    """Run whenever a table that the query reads has changed; not together with a schedule."""
    partitions: Partitions | None = None
    """Windows or keys that a run makes one of; the SQL uses :partition_start and :partition_end,
    or :partition_key."""
    backfill: (
        Annotated[
            Backfill,
            BeforeValidator(
                _backfill,
                json_schema_input_type=Literal["single_run", "run_per_partition"] | BackfillMapping,
            ),
        ]
        | None
    ) = None
    """Partitions that one run of a backfill makes; one each by default."""
    output: Output = Field(default_factory=Output)
    """The table that the result is published as."""
    checks: tuple[Check, ...] = ()
    """What must hold of the result."""
    retries: Annotated[Retries, _shorthand("max", int, Retries)] | None = None
    """How often a step is tried again after a fault of the infrastructure."""
    pool: PoolName | None = None
    """Dagster's concurrency pool of all steps of the query."""
    timeout: Duration | None = None
    """How long each stage of a run may take, such as '30m' or '1h 30m'; then it fails."""
    recover: StrictBool | None = None
    """Whether a lost output of a stage is computed again in the run that finds it lost."""
    stages: StagesAs | None = None
    """Whether Dagster shows stages as assets of their own or as ops of the query's asset; as the
    project says by default."""
    incremental: StrictBool | None = None
    """Whether a run computes only what is new since the last one; as `planner.incremental` by
    default."""
    parameters: Parameters = Field(default_factory=dict)
    """By name: a default, or {type: …, default: …}."""

    _places: Places = PrivateAttr(default_factory=Places)

    @property
    def places(self) -> Places:
        """Where its keys are in the file, for messages."""
        return self._places

    def located(self, places: Places) -> Self:
        """The same, which knows where its keys are in the file."""
        self._places = places
        return self

    @property
    def parameter_defaults(self) -> dict[str, str | None]:
        """Default text by name of the declared parameters; None where a value must be given."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    @property
    def parameter_types(self) -> dict[str, str]:
        """Spark type by name of all parameters: the declared ones and those of the partition."""
        declared = {name: parameter.type for name, parameter in self.parameters.items()}
        return {**declared, **(self.partitions.parameter_types if self.partitions else {})}

    @property
    def output_mode(self) -> OutputMode:
        """What a run does to the published table."""
        return self.output.mode or ("replace_partition" if self.partitions else "replace")

    @property
    def backfill_policy(self) -> Backfill:
        """How a backfill is cut into runs: the safe way, a run a partition, unless it is said."""
        return self.backfill or Backfill(max_partitions_per_run=1)

    @property
    def has_blocking_checks(self) -> bool:
        """Whether there is a check about rows that blocks."""
        return any(check.is_blocking and check.kind != "freshness" for check in self.checks)

    def is_audited(self, by_default: bool) -> bool:
        """Whether a result is published only after its blocking checks have passed.

        Args:
            by_default: Whether it is where the query does not say.
        """
        wanted = by_default if self.output.audit is None else self.output.audit
        return wanted and self.has_blocking_checks

    def planned_with(self, options: PlannerOptions) -> PlannerOptions:
        """Planner options of the query, given those of the project."""
        if self.incremental is None:
            return options
        return dataclasses.replace(options, incremental=self.incremental)

    def output_table(self, query: str) -> str:
        """Name of the published table of the query of that name."""
        return self.output.table or query

    @model_validator(mode="after")
    def _check_together(self, info: ValidationInfo) -> Self:
        context = info.context or {}
        broken: frozenset[str] = context.get("broken", frozenset())
        refuse_all(
            problem
            for keys, rule in _RULES
            if not broken.intersection(keys)
            for problem in rule(self)
        )
        return self


# ---------------------------------------------------------------- rules over several keys


def _one_trigger(front_matter: FrontMatter) -> Iterator[tuple[Location, str]]:
    if front_matter.automation and front_matter.schedule:
        yield ("automation",), "automation and schedule exclude each other; keep one of them"


def _backfill_fits(front_matter: FrontMatter) -> Iterator[tuple[Location, str]]:
    partitions, backfill = front_matter.partitions, front_matter.backfill
    if backfill is None:
        return
    if partitions is None:
        yield ("backfill",), "backfill needs partitions; add them, or remove it"
    elif backfill.max_partitions_per_run == 1:
        return
    elif isinstance(partitions, StaticPartitions):
        yield (
            ("backfill",),
            "a run of static partitions gets one :partition_key; write run_per_partition",
        )
    elif partitions.column is None:
        yield (
            ("backfill",),
            "a run of several partitions must tell their rows apart; name the column of the "
            "result that holds the window in partitions.column, or write run_per_partition",
        )


def _mode_fits(front_matter: FrontMatter) -> Iterator[tuple[Location, str]]:
    partitions, mode = front_matter.partitions, front_matter.output.mode
    if partitions is None:
        if mode == "replace_partition":
            yield (
                ("output", "mode"),
                "replace_partition needs partitions; add them, or write 'replace'",
            )
    elif mode == "replace":
        yield (
            ("output", "mode"),
            "with mode 'replace' each run would remove the partitions of all others; "
            "write 'replace_partition', 'append' or 'merge'",
        )
    elif mode not in ("append", "merge") and partitions.column is None:
        yield (
            ("partitions",),
            "partitions need 'column', the column of the result that holds the partition, so that "
            "a run can replace its rows; name it, or set output.mode to 'append'",
        )


def _names_differ(front_matter: FrontMatter) -> Iterator[tuple[Location, str]]:
    seen: set[str] = set()
    for i, check in enumerate(front_matter.checks):
        name = check.check_name
        if name.lower() in seen:
            yield (
                ("checks", i),
                f"another check is called '{name}', too; remove one, or give it another 'name'",
            )
        seen.add(name.lower())


_RULES: tuple[
    tuple[frozenset[str], Callable[[FrontMatter], Iterator[tuple[Location, str]]]], ...
] = (
    (frozenset({"automation", "schedule"}), _one_trigger),
    (frozenset({"backfill", "partitions"}), _backfill_fits),
    (frozenset({"output", "partitions"}), _mode_fits),
    (frozenset({"checks"}), _names_differ),
)

KNOWN_KEYS = tuple(FrontMatter.model_fields)
