"""Adds entries to a catalog file, whose comments and layout stay as they are."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stagecoach.assets.project.names import name_problem
from stagecoach.planner.errors import CatalogError

Entry = Mapping[str, Any]

_FORMATS = {
    ".parquet": None,
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".txt": "text",
}
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"}
_TOP_LEVEL = re.compile(r"[^\s#-]")


def table_name(location: str) -> str:
    """The name of a table at a location: that of the folder, or of the file without its endings.

    Raises:
        CatalogError: It cannot be the name of a table.
    """
    last = location.rpartition("://")[2].rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9_]+", "_", last.partition(".")[0]).strip("_").lower()
    if not name or name[0].isdigit() or name_problem(name):
        raise CatalogError(
            f"'{location}' gives no name to a table; name it with `--name`, for one location"
        )
    return name


def new_entry(location: str, catalog: Path) -> Entry:
    """The entry of a table whose format its files' names tell; its columns are not declared.

    Args:
        location: A file, a folder or a URL; a relative one starts from here.
        catalog: The catalog file, from whose folder the entry's location starts.

    Raises:
        CatalogError: There is nothing, or files of several formats or of none that is known.
    """
    if "://" in location:
        names = [location.rpartition("/")[2]] if "." in location.rpartition("/")[2] else []
        shown = location
    else:
        path = Path(location)
        if not path.exists():
            raise CatalogError(f"there is no file or folder '{location}'")
        files = [path] if path.is_file() else [p for p in path.rglob("*") if _is_data(p)]
        if not files:
            raise CatalogError(f"the folder '{location}' has no files, so its format is not known")
        names = [file.name for file in files]
        shown = Path(os.path.relpath(path.resolve(), catalog.resolve().parent)).as_posix()
    found = {_ending(name) for name in names} or {".parquet"}
    kinds = {_FORMATS[ending] for ending in found}
    if len(kinds) > 1 or (".tsv" in found and len(found) > 1):
        known = ", ".join(sorted(ending[1:] for ending in found))
        raise CatalogError(f"'{location}' has files of several formats ({known})")
    (kind,) = kinds
    if kind is None:
        return {"location": shown}
    return {"location": shown, "format": kind, **_options(kind, found)}


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(("_", "."))


def _ending(name: str) -> str:
    endings = [e.lower() for e in Path(name).suffixes if e.lower() not in _COMPRESSED]
    ending = endings[-1] if endings else ""
    if ending not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise CatalogError(
            f"the name '{name}' does not tell its format (known: {known}); write the entry into "
            "the catalog file by hand"
        )
    return ending


def _options(kind: str, endings: Collection[str]) -> Entry:
    if kind != "csv":
        return {}
    tabs = {"sep": "\t"} if ".tsv" in endings else {}
    return {"options": {"header": True, **tabs}}


def doubtful_columns(entry: Entry) -> str | None:
    """What a person should look at in the columns that Spark has found, or None."""
    columns = entry.get("columns")
    if not isinstance(columns, dict):
        return None
    if "_corrupt_record" in columns:
        return (
            "Spark could not read some of the records (column _corrupt_record); JSON needs one "
            "object on each line, or the option multiLine: true"
        )
    only = next(iter(columns)) if len(columns) == 1 else ""
    found = next((mark for mark in ";\t|" if mark in only), None)
    if found is None:
        return None
    return f"it has one column, {only!r}; is its separator {found!r}? Say so with the option sep"


def has_entry(text: str, name: str, entry: Entry) -> bool:
    """Whether the text of a catalog file has a table of that name at the location of the entry."""
    for known, body in _tables(text).items():
        location = body.get("location") if isinstance(body, dict) else body
        if str(known).lower() == name.lower() and location == entry["location"]:
            return True
    return False


def with_entries(text: str, entries: Mapping[str, Entry], *, file: str) -> str:
    """The text of a catalog file with more tables.

    Args:
        text: The file's text; empty for a file that is not there.
        entries: The entries to add, by name of the table.
        file: Its name, for messages.

    Raises:
        CatalogError: A table of that name is there, or the text is none that can be added to.
    """
    before = yaml.safe_load(text) if text.strip() else None
    tables = _tables(text)
    taken = {str(name).lower() for name in tables}
    for name in entries:
        if name.lower() in taken:
            raise CatalogError(f"{file} has a table '{name}' already; give another `--name`")
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"tables\s*:", line)), None)
    if start is None:
        lines, at, indent = [*lines, "tables:"], len(lines) + 1, "  "
    else:
        if not tables:
            lines[start] = "tables:"
        end = next(
            (i for i in range(start + 1, len(lines)) if _TOP_LEVEL.match(lines[i])), len(lines)
        )
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        inner = (line for line in lines[start + 1 : end] if line.strip()[:1] not in ("", "#"))
        first = next(inner, "  x")
        at, indent = end, first[: len(first) - len(first.lstrip())]
    added = [line for name, entry in entries.items() for line in _lines(name, entry, indent)]
    made = "\n".join([*lines[:at], *added, *lines[at:], ""])
    wanted = {**(before or {}), "tables": {**tables, **entries}}
    try:
        is_right = yaml.safe_load(made) == wanted
    except yaml.YAMLError:
        is_right = False
    if not is_right:
        shown = "\n".join(added)
        raise CatalogError(
            f"{file} is not written as a block of tables, so nothing was changed; add by hand:\n"
            f"{shown}"
        )
    return made


def _tables(text: str) -> Mapping[Any, Any]:
    """The tables of a catalog file; none where it is not as it should be."""
    body = yaml.safe_load(text) if text.strip() else None
    tables = body.get("tables") if isinstance(body, dict) else None
    return tables if isinstance(tables, dict) else {}


def _lines(name: str, entry: Entry, indent: str) -> Sequence[str]:
    body = {name: dict(entry)}
    text = yaml.safe_dump(
        body,
        sort_keys=False,
        # Letters as they are; control characters, some of which end a line, stay escaped.
        allow_unicode=json.dumps(body, ensure_ascii=False).isprintable(),
        default_flow_style=False,
        width=100,
    )
    return [f"{indent}{line}" for line in text.splitlines()]
