"""Knobs of the planner, each with its unit, its default and what 0 means.

In: `name=value` pairs from the command line or a project. Out: frozen `PlannerOptions`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from planner.errors import OptionError

PlanPhase = OneOf["logical", "optimized", "physical", "stages"]
_NOT_NEGATIVE = (
    "num_partitions",
    "broadcast_bytes",
    "inline_bytes",
    "single_task_bytes",
    "key_list_bytes",
    "bloom_bytes",
)

EngineChoice = OneOf["auto", "duckdb", "spark"]


@dataclass(frozen=True)
class PlannerOptions:
    """What may be set with `--set planner.<name>=<value>`.

    Args:
        num_partitions: Partitions of a shuffle; 0 chooses by the estimated bytes.
        partition_bytes: Estimated bytes of one shuffle partition when the number is chosen.
        broadcast_bytes: Largest estimated build side that is sent to every task; 0 broadcasts only
            what has no join key.
        inline_bytes: Largest stored bytes of a table that every task scans itself instead of
            reading a broadcast; 0 never does.
        single_task_bytes: A query over tables of fewer stored bytes is one stage on one task; 0
            never is.
        force_distribution: Plan as if all data were large: no inline scans, no single task.
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
    """

    num_partitions: int = 0
    partition_bytes: int = 32 << 20
    broadcast_bytes: int = 64 << 20
    inline_bytes: int = 1 << 20
    single_task_bytes: int = 1 << 20
    key_list_bytes: int = 64 << 20
    bloom_bytes: int = 16 << 20
    force_distribution: bool = False
    runtime_filters: bool = True
    engine: EngineChoice = "auto"
    time_zone: str = "UTC"
    exact_math: bool = True

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise OptionError(f"planner.{name} must not be negative")
        if self.partition_bytes <= 0:
            raise OptionError("planner.partition_bytes must be positive")
        if self.num_partitions > 65_535:
            raise OptionError("planner.num_partitions must not exceed 65535")
        if self.engine not in ("auto", "duckdb", "spark"):
            raise OptionError(f"planner.engine is '{self.engine}'; use auto, duckdb or spark")

    def updated(self, settings: Mapping[str, str]) -> PlannerOptions:
        """These options with some set from text.

        Args:
            settings: Values by option name, without the `planner.` prefix.

        Raises:
            OptionError: For an unknown name or a value that does not fit.
        """
        known = {f.name: f for f in dataclasses.fields(self)}
        changes: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in known:
                raise OptionError(f"unknown option planner.{name}; there are {', '.join(known)}")
            changes[name] = _parse(name, text, getattr(self, name))
        return dataclasses.replace(self, **changes)

    def texts(self) -> dict[str, str]:
        """The value of each option by its name, as `updated` reads it."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in values.items()}


def _parse(name: str, text: str, current: object) -> object:
    if isinstance(current, bool):
        if text.lower() not in ("true", "false"):
            raise OptionError(f"planner.{name} must be true or false, not '{text}'")
        return text.lower() == "true"
    if isinstance(current, int):
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"planner.{name} must be a whole number, not '{text}'") from None
    return text
