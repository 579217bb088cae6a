"""Types of single values in front matter, such as durations, cron texts and owners.

Each refuses with a message that names the value, what is wrong and what to write instead.
"""

import datetime
import re
import zoneinfo
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from stagecoach.assets.project.front_matter.places import AT_KEY, Location
from stagecoach.assets.project.names import closest, name_problem
from stagecoach.planner.option_values import is_region

REFUSED = "stagecoach"
CRON_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 31),
    ("month", 1, 12),
    ("weekday", 0, 7),
)
RESERVED_TAG_PREFIX = "dagster/"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = r"^\s*\d+\s*[smhdw](\s*\d+\s*[smhdw])*\s*$"
_MOMENT = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?$"
# As Dagster has them: `is_valid_email`, `VALID_GROUP_NAME_REGEX`, `VALID_POOL_NAME_REGEX_STR`,
# `VALID_TAG_KEY_REGEX`, `INVALID_PARTITION_SUBSTRINGS`.
_OWNER = re.compile(
    r"team:[A-Za-z0-9_\-]+|[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,7}", re.ASCII
)
_GROUP = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")
_TAG_KEY = re.compile(r"([A-Za-z0-9_.\-]{1,63}/)?[A-Za-z0-9_.\-]{1,63}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.\-]{0,63}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f]")


def refuse(message: str) -> PydanticCustomError:
    """The error of a value, with a message for its author."""
    return PydanticCustomError(REFUSED, "{message}", {"message": message})


def refuse_all(problems: Iterable[tuple[Location, str]]) -> None:
    """Raise one error for problems inside a value, each with its place there, if there are any."""
    found = list(problems)
    if found:
        message = "; ".join(text for _, text in found)
        raise PydanticCustomError(REFUSED, "{message}", {"message": message, "problems": found})


def scalar_text(value: Any) -> str | None:
    """A YAML scalar as SQL spells it: `true`, `1998-09-02`; None for what is not a scalar."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, str | int | float | datetime.date):
        return str(value)
    return None


def _strip(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _owner(owner: str) -> str:
    if not _OWNER.fullmatch(owner):
        fix = f"; did you mean 'team:{owner}'?" if _IDENTIFIER.fullmatch(owner) else ""
        raise refuse(f"owner '{owner}' must be 'team:<name>' or an e-mail address{fix}")
    return owner


def _tags(value: Any) -> Any:
    places: dict[str, Location] = {}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        # Names alone are tags without a value.
        places = {name: (position,) for position, name in enumerate(value)}
        value = dict.fromkeys(value, "")
    if not isinstance(value, dict):
        return value
    problems: list[tuple[Location, str]] = []
    tags: dict[str, str] = {}
    for key, item in value.items():
        text, place = scalar_text(item), places.get(key, (key, AT_KEY))
        if key.startswith(RESERVED_TAG_PREFIX):
            problems.append(
                (place, f"tag '{key}' is Dagster's own; leave out '{RESERVED_TAG_PREFIX}'")
            )
        elif text is None:
            problems.append(((key,), f"tag '{key}' must be a single value, not {item!r}"))
        elif not _TAG_KEY.fullmatch(key) or not _TAG_VALUE.fullmatch(text):
            shown = key if places else f"{key}: {text}"
            message = f"tag '{shown}' must be at most 63 letters, digits, '_', '-' and '.'"
            problems.append((place, f"{message} a side; use them only"))
        else:
            tags[key] = text
    refuse_all(problems)
    return tags


def _group(name: str) -> str:
    if not _GROUP.fullmatch(name):
        better = re.sub(r"[^A-Za-z0-9_/]+", "_", name).strip("/")
        raise refuse(
            f"group '{name}' must be letters, digits and '_', with '/' between groups; "
            f"write '{better}'"
        )
    return name


def _pool(name: str) -> str:
    if not name or re.search(r"\s", name):
        better = re.sub(r"\s+", "_", name) or "warehouse"
        raise refuse(f"pool '{name}' must be a name without spaces; write '{better}'")
    return name


def _table(name: str) -> str:
    for part in name.split("."):  # which formats have parts is told where the format is known
        if problem := name_problem(part):
            raise refuse(f"table {problem}")
    return name


def _identifier(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        better = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "my_check"
        raise refuse(
            f"name '{name}' must be letters, digits and '_', no digit first; write '{better}'"
        )
    return name


def _zone(name: str) -> str:
    if not is_region(name):
        near = closest(name, zoneinfo.available_timezones())
        fix = f"did you mean '{near}'?" if near else "use a name such as UTC or Europe/Berlin"
        raise refuse(f"'{name}' is not a valid time zone; {fix}")
    return name


def _duration(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refuse(f"'{value}' has no unit; write '{value}s', '{value}m' or '{value}h'")
    if not isinstance(value, str) or not re.match(_DURATION, value):
        raise refuse(
            f"{value!r} is not a valid duration; write numbers with s, m, h, d or w, "
            "such as '90s', '1h 30m'"
        )
    parts = re.findall(r"(\d+)\s*([smhdw])", value)
    try:
        total = sum((datetime.timedelta(**{_UNITS[u]: int(n)}) for n, u in parts), _NO_TIME)
    except OverflowError:
        total = datetime.timedelta.max
    if total > datetime.timedelta(days=3660):
        raise refuse(f"'{value}' is longer than ten years; write a shorter duration")
    if not total:
        raise refuse(f"'{value}' is too short; write at least '1s'")
    return total


_NO_TIME = datetime.timedelta()


def _cron(text: str) -> str:
    text = " ".join(text.split())
    problem = _cron_problem(text)
    if problem is None:
        import dagster as dg  # takes a second: few queries have a schedule

        try:
            # The check of Dagster itself, through its public class.
            dg.ScheduleDefinition(name="check", job_name="check", cron_schedule=text)
        except dg.DagsterInvalidDefinitionError:
            problem = "it has no next run"
    if problem is not None:
        raise refuse(f"'{text}' is not a valid cron expression: {problem}")
    return text


def _cron_problem(text: str) -> str | None:
    if text.startswith("@"):
        known = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
        return None if text in known else f"there are {', '.join(known)}"
    fields = text.split()
    if len(fields) != len(CRON_FIELDS):
        advice = "write minute, hour, day, month and weekday, such as '0 6 * * *' or '@daily'"
        if len(fields) == 6:
            advice = "seconds cannot be given; leave the field for them out"
        return f"it has {len(fields)} field{'' if len(fields) == 1 else 's'}, not 5; {advice}"
    for field, (name, low, high) in zip(fields, CRON_FIELDS, strict=True):
        # The number after `/` is a step, which may be anything.
        for number in re.findall(r"(?<![A-Za-z/#\d])\d+", field):
            if not low <= int(number) <= high:
                return f"{name} {number} is not within {low} and {high}"
    return None


def _moment(value: Any) -> Any:
    """A point in local time, without a zone; a date is its midnight."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise refuse(f"'{value}' is not a valid date or time; write it as 2024-01-31") from None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            raise refuse("a start or end names no zone: that is `timezone`; leave the zone out")
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    raise refuse(f"{value!r} is not a valid date or time; write it as 2024-01-31")


def _partition_key(value: Any) -> Any:
    if not isinstance(value, str):
        text = scalar_text(value)
        if text is None:
            raise refuse(f"a partition key must be a text, not {value!r}")
        raise refuse(
            f"YAML reads the partition key as {_kind(value)} {text}; put what you wrote in quotes"
        )
    if not value or _CONTROL.search(value) or "..." in value:
        raise refuse(
            f"partition key {value!r} must be a text without '...' and control characters; "
            "choose another key"
        )
    return value


def _kind(value: object) -> str:
    match value:
        case bool():
            return "the boolean"
        case int() | float():
            return "the number"
    return "the date"


Text = Annotated[str, BeforeValidator(_strip)]
Owner = Annotated[str, AfterValidator(_owner)]
Owners = Annotated[
    tuple[Owner, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=str | tuple[str, ...]),
]
Tags = Annotated[
    dict[str, str],
    BeforeValidator(
        _tags,
        json_schema_input_type=tuple[str, ...] | dict[str, str | int | float | bool],
    ),
]
GroupName = Annotated[
    str, AfterValidator(_group), Field(json_schema_extra={"pattern": f"^{_GROUP.pattern}$"})
]
PoolName = Annotated[str, AfterValidator(_pool), Field(json_schema_extra={"pattern": r"^\S+$"})]
TableName = Annotated[str, AfterValidator(_table)]
Identifier = Annotated[
    str,
    AfterValidator(_identifier),
    Field(json_schema_extra={"pattern": f"^{_IDENTIFIER.pattern}$"}),
]
ColumnName = Annotated[str, StringConstraints(min_length=1)]
ColumnNames = Annotated[
    tuple[ColumnName, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_many, json_schema_input_type=str | tuple[str, ...]),
]
TimeZone = Annotated[str, AfterValidator(_zone)]
Cron = Annotated[str, AfterValidator(_cron)]
Duration = Annotated[
    datetime.timedelta,
    BeforeValidator(_duration, json_schema_input_type=Annotated[str, Field(pattern=_DURATION)]),
]
Moment = Annotated[
    datetime.datetime,
    BeforeValidator(_moment, json_schema_input_type=Annotated[str, Field(pattern=_MOMENT)]),
]
PartitionKey = Annotated[str, BeforeValidator(_partition_key, json_schema_input_type=str)]
Scalar = str | bool | int | float | datetime.datetime | datetime.date
