"""The planner's options, each with its unit, its default and the meaning of 0."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from stagecoach.planner.engines.registry import AUTO, SPARK, engine_choices
from stagecoach.planner.errors import OptionError
from stagecoach.planner.option_values import (
    Limits,
    ValueRule,
    in_source,
    refusal,
    rules_of,
    there_are,
)

PlanPhase = OneOf["logical", "optimized", "physical", "stages"]

PREFIX = "planner."
"""Of the name of an option where settings of a run have names, too."""

_MAX_PARTITIONS = 65_535


@dataclass(frozen=True)
class PlannerOptions:
    """The knobs of the planner. Sizes are bytes.

    Args:
        num_partitions: Partitions of a shuffle; 0 chooses by the estimated bytes.
        partition_bytes: Estimated bytes of one shuffle partition when the number is chosen.
        broadcast_bytes: Largest estimated build side that is sent to every task; 0 broadcasts only
            what has no join key.
        inline_bytes: Largest stored bytes of a table that every task scans itself instead of
            reading a broadcast; 0 never does.
        single_task_bytes: A query over tables of fewer stored bytes is one stage on one task; 0
            never is.
        task_cores: Cores of one task that computes a part of a query by itself, instead of several
            stages; 1 always makes stages.
        max_lost_seconds: Longest estimated time of such a task, which is what a failure can lose;
            0 always makes stages.
        incremental: Whether stages over tables read groups of files, so that a run computes only
            the groups that are new since the last one. No task then computes several stages by
            itself, unless the query reads less than `single_task_bytes`.
        force_distribution: Plan as if all data were large: no inline scans, no single task.
        shuffle_ranges: Most byte ranges of a shuffle, which are its writing tasks times its
            partitions; one with more is made in two levels. 0 makes one level of every shuffle.
        key_list_bytes: Largest estimated list of keys as a runtime filter (and no larger than
            `broadcast_bytes`); beyond it the keys are put into a Bloom filter.
        bloom_bytes: Largest Bloom filter (and no larger than `broadcast_bytes`); 0 makes none.
        runtime_filters: Whether the keys of a join's smaller side may be listed by a stage of their
            own, or put into a Bloom filter, so that only rows of the larger side with a partner are
            shuffled.
        engine: `auto`: DuckDB where proven; `duckdb`: an unproven expression is an error; `spark`:
            every stage on Spark SQL.
        time_zone: Session time zone, an IANA name.
        exact_math: Whether functions that DuckDB computes only to 1e-12 of the value (`sin`, `cos`,
            `tan` and 1 over them: `csc`, `sec`, `cot`) run on Spark; false runs them on DuckDB.
        timeout_seconds: How long a query may be planned; one that takes longer is one Spark stage.
            0 lets planning take as long as it needs. Never part of a plan: see `texts`.
    """

    num_partitions: int = 0
    partition_bytes: int = 32 << 20
    broadcast_bytes: int = 64 << 20
    inline_bytes: int = 1 << 20
    single_task_bytes: int = 1 << 20
    task_cores: int = 2
    max_lost_seconds: int = 2
    incremental: bool = False
    key_list_bytes: int = 64 << 20
    bloom_bytes: int = 16 << 20
    force_distribution: bool = False
    shuffle_ranges: int = 4 << 20
    runtime_filters: bool = True
    engine: str = AUTO
    time_zone: str = "UTC"
    exact_math: bool = True
    timeout_seconds: int = 30

    def __post_init__(self) -> None:
        for name, rule in _rules().items():
            if not rule.fits(value := getattr(self, name)):
                raise OptionError(refusal(f"{PREFIX}{name}", value, rule.allowed))

    @property
    def may_fall_back(self) -> bool:
        """Whether Spark may run a stage, or the whole query, that the chosen engine must not."""
        return self.engine in (AUTO, SPARK)

    def updated(self, values: Mapping[str, object], source: str = "") -> PlannerOptions:
        """These options with some set, each to a value of the right type or its text.

        Args:
            values: By option name, without the `planner.` prefix.
            source: Where they come from, for messages.

        Raises:
            OptionError: For an unknown name or a value that does not fit.
        """
        rules = _rules()
        changes: dict[str, Any] = {}
        for name, value in values.items():
            if name not in rules:
                raise OptionError(
                    f"unknown option {PREFIX}{name}{in_source(source)}; {there_are(name, rules)}"
                )
            try:
                changes[name] = rules[name].read(value)
            except ValueError:
                text = refusal(f"{PREFIX}{name}", value, rules[name].allowed, source)
                raise OptionError(text) from None
        return dataclasses.replace(self, **changes)

    def texts(self) -> dict[str, str]:
        """The value of each option that plans depend on, by its name, as `updated` reads it.

        A plan that was finished in time is the same whatever time it was given.
        """
        names = (f.name for f in dataclasses.fields(self) if f.name != "timeout_seconds")
        values = {name: getattr(self, name) for name in names}
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in values.items()}


def _rules() -> Mapping[str, ValueRule]:
    return _rules_with(engine_choices())


@functools.cache
def _rules_with(engines: tuple[str, ...]) -> Mapping[str, ValueRule]:
    numbers = (f.name for f in dataclasses.fields(PlannerOptions) if type(f.default) is int)
    limits = dict.fromkeys(numbers, Limits())
    limits["partition_bytes"] = Limits(above=True)
    limits["task_cores"] = Limits(low=1)
    limits["num_partitions"] = Limits(high=_MAX_PARTITIONS)
    return rules_of(PlannerOptions, limits=limits, choices={"engine": engines})
