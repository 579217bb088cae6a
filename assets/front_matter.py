"""Front matter of a query file: what its author says about it, as YAML in the leading comment.

In: the text of a `.sql` file. Out: a `FrontMatter`.

    /*                                                 -- description: Pricing summary
    description: Pricing summary                       -- owners: ["team:finance"]
    owners: ["team:finance", ada@example.com]          SELECT …
    tags: {domain: tpch}
    parameters:
      ship_date: 1998-09-02        # a default, whose type is the parameter's
      price: {type: "decimal(15,2)", default: 0.05}
      region: {type: string}       # no default: must be given
    */
    SELECT …

A line `---` may open and close it; then the comment must be front matter. Without it, a comment
none of whose keys is known is an ordinary comment.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml

from planner.errors import StagecoachError, UnsupportedSqlError
from planner.types import parse_type

RESERVED_TAG_PREFIX = "dagster/"
_FENCE = "---"
_BLOCK = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)
_LINES = re.compile(r"\s*((?:--[^\n]*(?:\n[ \t]*|$))+)")
_OWNER = re.compile(r"team:[A-Za-z0-9_\-]+|[^@\s]+@[^@\s]+\.[^@\s]+")
_TAG_KEY = re.compile(r"([A-Za-z0-9_.\-]{1,63}/)?[A-Za-z0-9_.\-]{1,63}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.\-]{0,63}")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class FrontMatterError(StagecoachError):
    """The leading comment of a query file is front matter, but not one that can be used."""


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """What the author of a query says about it.

    Args:
        description: For people; Markdown.
        owners: `team:<name>` or e-mail addresses.
        tags: Dagster tags of all assets of the query.
        parameters: Default value by parameter name, as text; None where a value must be given.
        parameter_types: Spark type by parameter name: as declared, else that of the default.
    """

    description: str = ""
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parameters: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    parameter_types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


KNOWN_KEYS = ("description", "owners", "tags", "parameters")


def parse_front_matter(sql: str) -> FrontMatter:
    """The front matter of the file's text; an empty one where it has none.

    Raises:
        FrontMatterError: For YAML that does not parse, an unknown key or a value that does not fit.
    """
    comment = _leading_comment(sql)
    text, fenced = _without_fence(comment)
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        if not fenced and not re.search(rf"^({'|'.join(KNOWN_KEYS)}):", text, re.MULTILINE):
            return FrontMatter()
        problem = " ".join(str(error).split())
        raise FrontMatterError(f"front matter is not YAML: {problem}") from error
    if not isinstance(content, dict):
        if fenced and content is not None:
            raise FrontMatterError("front matter must be a mapping of keys to values")
        return FrontMatter()
    if not fenced and not set(KNOWN_KEYS) & set(content):
        return FrontMatter()
    if unknown := [str(key) for key in content if key not in KNOWN_KEYS]:
        raise FrontMatterError(
            f"front matter has the unknown key '{unknown[0]}'; there are {', '.join(KNOWN_KEYS)}"
        )
    parameters = _parameters(content.get("parameters"))
    return FrontMatter(
        description=_text("description", content.get("description")),
        owners=_owners(content.get("owners")),
        tags=MappingProxyType(_tags(content.get("tags"))),
        parameters=MappingProxyType({name: text for name, (text, _) in parameters.items()}),
        parameter_types=MappingProxyType({name: dtype for name, (_, dtype) in parameters.items()}),
    )


def _leading_comment(sql: str) -> str:
    if block := _BLOCK.match(sql):
        return block[1]
    if lines := _LINES.match(sql):
        return re.sub(r"^[ \t]*-- ?", "", lines[1], flags=re.MULTILINE)
    return ""


def _without_fence(comment: str) -> tuple[str, bool]:
    lines = comment.strip("\n").split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    if not lines or lines[0].strip() != _FENCE:
        return comment, False
    rest = [line.rstrip() for line in lines[1:]]
    end = rest.index(_FENCE) if _FENCE in rest else len(rest)
    return "\n".join(rest[:end]), True


def _text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FrontMatterError(f"{key} must be a text, not {value!r}")
    return value.strip()


def _owners(value: Any) -> tuple[str, ...]:
    owners = [value] if isinstance(value, str) else value or []
    for owner in owners if isinstance(owners, list) else [owners]:
        if not isinstance(owner, str) or not _OWNER.fullmatch(owner):
            raise FrontMatterError(f"owner {owner!r} must be 'team:<name>' or an e-mail address")
    return tuple(owners)


def _tags(value: Any) -> dict[str, str]:
    if not isinstance(value or {}, dict):
        raise FrontMatterError(f"tags must be a mapping of names to texts, not {value!r}")
    tags = {str(key): _scalar(f"tag '{key}'", item) for key, item in (value or {}).items()}
    for key, item in tags.items():
        if key.startswith(RESERVED_TAG_PREFIX):
            raise FrontMatterError(
                f"tag '{key}' is Dagster's own; tags must not begin with '{RESERVED_TAG_PREFIX}'"
            )
        if not _TAG_KEY.fullmatch(key) or not _TAG_VALUE.fullmatch(item):
            raise FrontMatterError(
                f"tag '{key}: {item}' must be at most 63 letters, digits, '_', '-' and '.' a side"
            )
    return tags


def _parameters(value: Any) -> dict[str, tuple[str | None, str]]:
    """Default text and type by name."""
    if not isinstance(value or {}, dict):
        raise FrontMatterError(f"parameters must be a mapping of names to defaults, not {value!r}")
    return {str(name): _parameter(str(name), item) for name, item in (value or {}).items()}


def _parameter(name: str, item: Any) -> tuple[str | None, str]:
    if not _PARAMETER.fullmatch(name):
        raise FrontMatterError(f"parameter '{name}' must be letters, digits and '_'")
    body = item if isinstance(item, dict) else {"default": item}
    if unknown := sorted(set(body) - {"default", "type"}):
        raise FrontMatterError(
            f"parameter '{name}' has the unknown key '{unknown[0]}'; there are default, type"
        )
    default = body.get("default")
    text = None if default is None else _scalar(f"parameter '{name}'", default)
    declared = body.get("type")
    if declared is None:
        return text, _implied_type(default)
    try:
        return text, str(parse_type(str(declared)))
    except UnsupportedSqlError as error:
        raise FrontMatterError(f"parameter '{name}': {error}") from error


def _implied_type(default: Any) -> str:
    match default:
        case bool():
            return "boolean"
        case int():
            return "int" if abs(default) < 1 << 31 else "bigint"
        case float():
            return "double"
        case datetime.datetime():
            return "timestamp"
        case datetime.date():
            return "date"
    return "string"


def _scalar(what: str, value: Any) -> str:
    """The text of a YAML scalar, as SQL spells it: `true`, `1998-09-02`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, str | int | float):
        return str(value)
    raise FrontMatterError(f"{what} must be a single value, not {value!r}")
