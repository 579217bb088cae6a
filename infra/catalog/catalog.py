"""The catalog file, `catalog.yaml`, as the planner's catalog.

The file names each table, where it is and in which format:

    tables:
      lineitem:
        location: data/tpch/lineitem   # file, folder or glob; beside the YAML file, or s3://
                                       # a folder may hold partition folders such as day=2024-01-31
        format: parquet                # the default
        columns:                       # may be declared, so that queries are planned without data
          l_orderkey: BIGINT NOT NULL
          l_comment: {type: STRING, comment: free text}
      metrics:
        kind: deduplicated             # a format that manages its own files
        location: data/metrics         # a folder of its own
        primary_key: [device, time]

      …
    functions:                         # of the project; see `stagecoach.infra.catalog.functions`
    macros: macros                     # folders of SQL; see `stagecoach.infra.catalog.macros`

Loading looks at the YAML only; a table is opened, and read, when it is asked for. What a table's
format makes of it is behind `stagecoach.infra.formats.protocol`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stagecoach.infra.catalog.each_once import EachOnce
from stagecoach.infra.catalog.functions import ProjectFunctions, read_functions
from stagecoach.infra.catalog.macros import read_macros
from stagecoach.infra.config.yaml_text import load_yaml
from stagecoach.infra.formats import names
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.registry import metadata_state, table_format
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry, canonical_location
from stagecoach.planner.catalog import ColumnNotes, TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.versioned_names import split_name, versioned_name

_TABLE_KEYS = ("location", "kind")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


class FileCatalog:
    """The tables of a catalog file; implements `stagecoach.planner.catalog.Catalog`.

    Safe to use from several threads. What `table` returns stays the same until `refresh`, so one
    planning sees one state; `state` always looks at the files as they are.

    Args:
        tables: The tables, in the order of the file.
        origin: The catalog file, for messages.
        options: How to reach storage.
        functions: The functions of the project.
        macros: The macros of the project.

    Attributes:
        macros: The macros of the project, as they were when the catalog was loaded.
    """

    def __init__(
        self,
        tables: Sequence[TableSource],
        *,
        origin: str,
        options: StorageOptions | None = None,
        functions: ProjectFunctions | None = None,
        macros: Macros | None = None,
    ) -> None:
        self._sources = {table.name.lower(): table for table in tables}
        self._origin = origin
        self._access = Access(options or StorageOptions())
        self._functions = functions or ProjectFunctions((), origin, "")
        self.macros = macros or Macros()
        self._tables: EachOnce[TableInfo] = EachOnce()

    def __repr__(self) -> str:
        return f"FileCatalog({self._origin!r}, {len(self._sources)} tables)"

    def table(self, name: str) -> TableInfo | None:
        """Return the table of that name (case does not matter), or None.

        Raises:
            CatalogError: The table is known but its files cannot be used.
            StorageError: The storage refused.
        """
        key = name.lower()
        if split_name(key)[0] not in self._sources and self._about(name) is None:
            return None

        def read() -> TableInfo:
            return self.open(name).planned() if key in self._sources else self._at(name).info

        return self._tables.get(key, read)

    @property
    def origin(self) -> str:
        """The catalog file, for messages."""
        return self._origin

    def table_names(self) -> Sequence[str]:
        """Return all names, in the order of the file."""
        return [source.name for source in self._sources.values()]

    def function(self, name: str) -> ProjectFunction | None:
        """Return the project's function of that name (case does not matter), or None.

        Raises:
            CatalogError: Its source cannot be found.
        """
        return self._functions.get(name)

    def function_names(self) -> Sequence[str]:
        """Return the names of all functions, in the order of the file."""
        return self._functions.names

    @property
    def code_path(self) -> tuple[str, ...]:
        """Folders in which workers look for the functions before Python's own path."""
        return self._functions.path()

    def source(self, name: str) -> TableSource:
        """Return where the table is.

        Raises:
            CatalogError: There is no such table.
        """
        source = self._sources.get(split_name(name)[0].lower())
        if source is None:
            names = self.table_names()
            raise CatalogError(
                f"catalog {self._origin}: table {name!r} not found"
                f"{_suggestion(name, names)} (available: {', '.join(names) or 'none'})"
            )
        return source

    def open(self, name: str) -> Table:
        """Return the table, to be read, written or looked after.

        Raises:
            CatalogError: There is no such table.
        """
        source = self.source(name)
        return table_format(source.format).open(source, self._access)

    def open_all(self) -> list[Table]:
        """Return all tables, in the order of the file."""
        return [self.open(source.name) for source in self._sources.values()]

    def notes(self, name: str) -> Mapping[str, ColumnNotes]:
        """Return what the catalog file declares of columns besides their types, by name.

        Raises:
            CatalogError: There is no such table.
        """
        return self.open(name).notes()

    def state(self, name: str, version: int | None = None) -> TableState:
        """Return the table and its files as they are now, or as they were.

        Args:
            name: Name of the table.
            version: An older version, where the table's format keeps versions.

        Raises:
            CatalogError: There is no such table or version, or its files cannot be used.
            StorageError: The storage refused.
        """
        if version is None and name.lower() not in self._sources:
            return self._at(name)
        return self.open(name).state(version)

    def _about(self, name: str) -> tuple[TableSource, str] | None:
        """The table that a metadata table such as `orders.files` is about, and what it tells."""
        own, dot, part = name.rpartition(".")
        source = self._sources.get(own.lower()) if dot else None
        return None if source is None else (source, part.lower())

    def _at(self, name: str) -> TableState:
        """A metadata table, or a table at the version that is in its name."""
        own, version = split_name(name)
        about = self._about(name)
        if about is not None and own.lower() not in self._sources:
            source, part = about
            known = self.open(source.name).metadata()
            if part not in known:
                raise CatalogError(
                    f"table '{source.name}' has no metadata table '{part}' (it has: "
                    f"{', '.join(f'{source.name}.{other}' for other in sorted(known))})"
                )
            return metadata_state(f"{source.name}.{part}", known[part]())
        if version is None:
            return self.open(own).state()
        found = self.source(own).name
        try:
            return self.open(own).at(version).named(versioned_name(found, version))
        except CatalogError as error:
            message = str(error)
            if f"'{found}'" not in message:
                message = f"table '{found}': {message}"
            raise CatalogError(message) from error

    def list_files(self, name: str) -> tuple[FileEntry, ...]:
        """Return what changes when the table's rows change, without opening any file.

        Raises:
            CatalogError: There is no such table, or no file of it.
            StorageError: The storage refused.
        """
        return self.open(name).entries()

    def refresh(self) -> None:
        """Forget what was read of the tables' files."""
        self._tables.clear()


def load_catalog(path: str | Path, options: StorageOptions | None = None) -> FileCatalog:
    """Return the catalog that a YAML file describes; no table file is touched.

    Args:
        path: The YAML file.
        options: How to reach storage.

    Raises:
        CatalogError: The file is missing, is not YAML or does not say what a table needs.
    """
    path = Path(path)
    body = _read_yaml(path)
    if not isinstance(body, dict):
        raise CatalogError(f"catalog {path}: expected a mapping with the key 'tables'")
    _check_keys(f"catalog {path}", body, ("tables", "functions", "macros"))
    tables = body.get("tables")
    if tables is None and "tables" not in body:
        raise CatalogError(f"catalog {path}: the key 'tables' is missing")
    if not isinstance(tables, dict | None):
        raise CatalogError(f"catalog {path}: 'tables' must map names to tables, not {tables!r}")
    sources = [_table_source(path, name, table) for name, table in (tables or {}).items()]
    seen: dict[str, str] = {}
    for source in sources:
        other = seen.setdefault(source.name.lower(), source.name)
        if other != source.name:
            raise CatalogError(
                f"catalog {path}: tables {other!r} and {source.name!r} have the same name "
                "(case does not matter); rename one"
            )
    folder = str(path.absolute().parent)
    functions = read_functions(str(path), folder, body.get("functions"), _check_keys)
    macros = read_macros(path, body.get("macros"), list(seen.values()), functions.declared)
    return FileCatalog(
        sources, origin=str(path), options=options, functions=functions, macros=macros
    )


def _read_yaml(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CatalogError(
            f"catalog {path} does not exist; `stagecoach init` starts a project here, --catalog "
            "names another file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"catalog {path} cannot be read: {error}") from error
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise CatalogError(f"catalog {path} is not YAML: {problem}") from error


def _table_source(path: Path, name: object, body: object) -> TableSource:
    if not isinstance(name, str):
        raise CatalogError(
            f"catalog {path}: table name {name!r} is not text; put it in quotes or rename it"
        )
    place = f"catalog {path}, table {name!r}"
    if not _NAME.fullmatch(name):
        raise CatalogError(
            f"{place}: not a name; use letters, digits and _, parts separated by dots, "
            "no part starting with a digit"
        )
    if not isinstance(body, dict):
        raise CatalogError(f"{place}: expected a mapping with the key 'location', not {body!r}")
    kinds = (names.FILES, *names.BY_KIND.names)
    kind = body.get("kind", names.FILES)
    if kind not in kinds:
        raise CatalogError(
            f"{place}: kind {kind!r} is not known{_suggestion(str(kind), kinds)} "
            f"(known: {', '.join(kinds)})"
        )
    format_name, format_keys = _format(place, body) if kind == names.FILES else (kind, ())
    found = table_format(format_name)
    _check_keys(place, body, (*_TABLE_KEYS, *format_keys, *found.keys))
    declaration = found.declare(place, body)
    located = found.located(declaration)
    if located:
        folder = str(path.absolute().parent)
        return TableSource(
            name=name, location=located, format=format_name, declaration=declaration, folder=folder
        )
    location = body.get("location")
    if not isinstance(location, str) or not location.strip():
        raise CatalogError(
            f"{place}: 'location' is missing or empty; "
            "give a file, a folder, a glob or an s3:// URL"
        )
    try:
        location = canonical_location(location.strip(), path.absolute().parent)
    except CatalogError as error:
        raise CatalogError(f"{place}: {error}") from error
    if found.needs_folder and any(sign in location for sign in "*?["):
        raise CatalogError(f"{place}: 'location' must be one folder of its own, not a pattern")
    return TableSource(name=name, location=location, format=format_name, declaration=declaration)


def _format(place: str, body: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]]:
    """The format of a table of files, and the key that names it."""
    formats = names.BY_FORMAT.names
    found = body.get("format", formats[0])
    if found not in formats:
        raise CatalogError(
            f"{place}: format {found!r} is not supported{_suggestion(str(found), formats)} "
            f"(supported: {', '.join(formats)})"
        )
    return found, ("format",)


def _check_keys(place: str, body: Mapping[Any, Any], known: Sequence[str]) -> None:
    for key in body:
        if key not in known:
            raise CatalogError(
                f"{place}: unknown key {key!r}{_suggestion(str(key), known)} "
                f"(known keys: {', '.join(known)})"
            )


def _suggestion(word: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""
