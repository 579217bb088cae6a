"""How a query's result is partitioned: by time windows or by a list of keys.

The key `partitions` becomes `TimePartitions` or `StaticPartitions`, which know the names and types
of the parameters that a run binds to its window.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from stagecoach.assets.project.front_matter.base import Part
from stagecoach.assets.project.front_matter.places import Location
from stagecoach.assets.project.front_matter.values import (
    ColumnName,
    Moment,
    PartitionKey,
    TimeZone,
    refuse,
    refuse_all,
)
from stagecoach.assets.project.names import did_you_mean

PARTITION_START = "partition_start"
PARTITION_END = "partition_end"
PARTITION_KEY = "partition_key"
PARTITION_PARAMETERS = (PARTITION_START, PARTITION_END, PARTITION_KEY)
INTERVALS = ("hourly", "daily", "weekly", "monthly")

WindowType = Literal["date", "timestamp", "string"]


class TimePartitions(Part):
    """One partition for each hour, day, week or month."""

    by: Literal["hourly", "daily", "weekly", "monthly"]
    """How long a window is."""
    start: Moment
    """Where the first window begins: a date, for hours also a time. Weeks begin on its weekday."""
    end: Moment | None = None
    """Where the last window ends (exclusive); without it, windows go on with the clock."""
    timezone: TimeZone = "UTC"
    """IANA name of the zone in which windows begin."""
    column: ColumnName | None = None
    """Column of the result that tells the window of a row: a date or timestamp."""
    type: WindowType | None = None
    """Type of `:partition_start` and `:partition_end`; timestamp for hours, else date."""

    @property
    def window_type(self) -> WindowType:
        """Spark type of `:partition_start` and `:partition_end`."""
        return self.type or ("timestamp" if self.by == "hourly" else "date")

    @property
    def parameter_types(self) -> Mapping[str, str]:
        """Spark type by name of the parameters that a run binds."""
        window = self.window_type
        return {PARTITION_START: window, PARTITION_END: window, PARTITION_KEY: "string"}

    @model_validator(mode="after")
    def _check_windows(self) -> Self:
        refuse_all(self._window_problems())
        return self

    def _window_problems(self) -> Iterator[tuple[Location, str]]:
        for name, moment in (("start", self.start), ("end", self.end)):
            if moment is not None and (advice := _misfit(self.by, moment)):
                yield (
                    (name,),
                    f"{name} {_text(moment)} is not aligned to the {_WORDS[self.by]}; {advice}",
                )
        if self.end is not None and self.end <= self.start:
            yield (
                ("end",),
                f"end {_text(self.end)} must come after start {_text(self.start)}; "
                "write a later one, or leave it out",
            )
        elif self.end is not None and self.by == "weekly" and (self.end - self.start).days % 7:
            last = self.end - datetime.timedelta(days=(self.end - self.start).days % 7)
            yield (
                ("end",),
                f"end {_text(self.end)} is not a whole number of weeks after start; "
                f"write {_text(last + datetime.timedelta(days=7))}",
            )
        if self.by == "hourly" and self.type == "date":
            yield ("type",), "a date cannot tell hours apart; write 'timestamp'"


class StaticPartitions(Part):
    """One partition for each key of a list."""

    by: Literal["static"]
    """A fixed list of keys."""
    keys: Annotated[tuple[PartitionKey, ...], Field(min_length=1)]
    """The keys; a run gets one of them as `:partition_key`."""
    column: ColumnName | None = None
    """Column of the result that holds the key: a text."""
    type: Literal["string"] = "string"
    """Keys are texts."""

    @property
    def parameter_types(self) -> Mapping[str, str]:
        """Spark type by name of the parameters that a run binds."""
        return {PARTITION_KEY: "string"}

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        seen: set[str] = set()
        problems: list[tuple[Location, str]] = []
        for i, key in enumerate(self.keys):
            if key in seen:
                problems.append((("keys", i), f"partition key '{key}' is given twice; remove one"))
            seen.add(key)
        refuse_all(problems)
        return self


_WORDS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}


def _misfit(by: str, moment: datetime.datetime) -> str | None:
    """What to write instead where no window of that length can begin at the moment."""
    if by == "hourly":
        hour = moment.replace(minute=0, second=0, microsecond=0)
        return None if hour == moment else f"write {_text(hour)}"
    day = datetime.datetime.combine(moment.date(), datetime.time())
    if by == "monthly":
        day = day.replace(day=1)
    return None if day == moment else f"write {_text(day)}"


def _text(moment: datetime.datetime) -> str:
    midnight = moment.time() == datetime.time()
    return moment.date().isoformat() if midnight else moment.isoformat(" ")


def _check_by(value: Any) -> Any:
    """Refuse what is neither of the two, before their keys are looked at."""
    if isinstance(value, Part):
        return value
    example = "{by: daily, start: 2024-01-01}"
    if not isinstance(value, dict):
        raise refuse(f"partitions must be a mapping, not {value!r}; write {example}")
    known = (*INTERVALS, "static")
    by = value.get("by")
    if by is None:
        raise refuse(f"partitions need the key 'by'; write {example}")
    if by not in known:
        refuse_all([(("by",), f"'{by}' is not a valid interval{did_you_mean(str(by), known)}")])
    return value


def _tag(value: Any) -> str:
    by = value.get("by") if isinstance(value, dict) else getattr(value, "by", None)
    return "<static>" if by == "static" else "<time>"


Partitions = Annotated[
    Annotated[TimePartitions, Tag("<time>")] | Annotated[StaticPartitions, Tag("<static>")],
    Discriminator(_tag),
    BeforeValidator(_check_by),
]
