"""`catalog.yaml` → the planner's catalog.

In: a YAML file that says where each table's Parquet files are:

    tables:
      lineitem:
        location: data/tpch/lineitem   # file, folder or glob; beside the YAML file, or s3://
                                       # a folder may hold partition folders such as day=2024-01-31
        format: parquet                # the default, and the only one
      metrics:
        kind: deduplicated             # chunks that are appended; see `infra.chunks.declaration`
        location: data/metrics         # a folder of its own
        primary_key: [device, time]

Out: a `FileCatalog`. Loading looks at the YAML only; a table's files are listed and their footers
read when the table is asked for.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from infra.catalog.files import FileEntry, canonical_location, list_files
from infra.catalog.footers import FileFooter
from infra.catalog.partitions import partition_fields
from infra.catalog.statistics import FooterCache, read_footers, table_info
from infra.chunks.declaration import DECLARATION_KEYS, KIND, Declaration, read_declaration
from infra.storage.object_store import StorageOptions
from infra.storage.stores import open_store
from infra.yaml_text import load_yaml
from planner.catalog import TableInfo
from planner.errors import CatalogError

# It imports numpy and more, which a catalog without such tables does without.
if TYPE_CHECKING:
    from infra.chunks.table import ChunkTable

FORMATS = ("parquet",)
KINDS = ("files", KIND)

_TABLE_KEYS = ("location", "kind", "format")
_CHUNK_TABLE_KEYS = ("location", "kind", *DECLARATION_KEYS)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """Where a table is.

    Attributes:
        name: Name as the catalog file spells it.
        location: Canonical location: an absolute path or an `s3://` URL; file, folder or glob.
        format: File format.
        declaration: Key and roles of columns of a deduplicated table; None for any other.
    """

    name: str
    location: str
    format: str = "parquet"
    declaration: Declaration | None = None


class FileCatalog:
    """The tables of a catalog file; implements `planner.catalog.Catalog`.

    Safe to use from several threads. What `table` returns stays the same until `refresh`, so one
    planning sees one state; `read` always looks at the files as they are.

    Args:
        tables: The tables, in the order of the file.
        origin: The catalog file, for messages.
        options: How to reach S3.
        cache: Footers that are known already.
    """

    def __init__(
        self,
        tables: Sequence[TableSource],
        *,
        origin: str,
        options: StorageOptions | None = None,
        cache: FooterCache | None = None,
    ) -> None:
        self._sources = {table.name.lower(): table for table in tables}
        self._origin = origin
        self._options = options
        self._cache = cache if cache is not None else FooterCache()
        self._tables: dict[str, TableInfo] = {}
        # What the planner has read of a version a run need not compute again.
        self._chunk_infos: dict[str, tuple[str, TableInfo]] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"FileCatalog({self._origin!r}, {len(self._sources)} tables)"

    def table(self, name: str) -> TableInfo | None:
        """Return the table of that name (case does not matter), or None.

        Raises:
            CatalogError: The table is known but its files cannot be used.
            StorageError: The storage refused.
        """
        key = name.lower()
        if key not in self._sources:
            return None
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self.read(name)[0]
            return self._tables[key]

    def table_names(self) -> Sequence[str]:
        """Return all names, in the order of the file."""
        return [source.name for source in self._sources.values()]

    def source(self, name: str) -> TableSource:
        """Return where the table is.

        Raises:
            CatalogError: There is no such table.
        """
        source = self._sources.get(name.lower())
        if source is None:
            names = self.table_names()
            raise CatalogError(
                f"catalog {self._origin}: table {name!r} not found"
                f"{_suggestion(name, names)} (available: {', '.join(names) or 'none'})"
            )
        return source

    def chunk_table(self, name: str) -> ChunkTable:
        """Return a deduplicated table, to be written or compacted.

        Raises:
            CatalogError: There is no such table, or it is none of that kind.
        """
        source = self.source(name)
        if source.declaration is None:
            raise CatalogError(
                f"table {source.name!r} is not deduplicated; declare it with 'kind: {KIND}' and a "
                f"'primary_key' in {self._origin}"
            )
        options = self._options or StorageOptions()
        if options.fsync == "commit":
            # What is appended cannot be computed again as a shuffle can.
            options = replace(options, fsync="all")
        from infra.chunks.table import ChunkTable

        store = open_store(source.location, options)
        return ChunkTable(source.name, store, source.declaration)

    def chunk_tables(self) -> list[ChunkTable]:
        """Return all deduplicated tables, in the order of the file."""
        names = (s.name for s in self._sources.values() if s.declaration is not None)
        return [self.chunk_table(name) for name in names]

    def read(self, name: str) -> tuple[TableInfo, tuple[FileFooter, ...]]:
        """Return the table and its files, sorted by URI, as they are now.

        A deduplicated table has no footers: its chunks are in the former.

        Raises:
            CatalogError: There is no such table, or its files cannot be used.
            StorageError: The storage refused.
        """
        source = self.source(name)
        if source.declaration is not None:
            return self._chunk_table_info(name), ()
        try:
            files = list_files(source.location, self._options)
            partitions = partition_fields(source.location, files)
            footers = read_footers(files, self._options, self._cache)
            return table_info(source.name, footers, partitions), footers
        except CatalogError as error:
            raise CatalogError(f"table {source.name!r}: {error}") from error

    def _chunk_table_info(self, name: str) -> TableInfo:
        """What the newest version of a deduplicated table tells."""
        from infra.chunks.view import chunk_table_info

        table = self.chunk_table(name)
        version = table.read()
        known = self._chunk_infos.get(name.lower())
        if known is not None and known[0] == version.token:
            return known[1]
        info = chunk_table_info(table.store, version)
        self._chunk_infos[name.lower()] = version.token, info
        return info

    def list_files(self, name: str) -> tuple[FileEntry, ...]:
        """Return the table's files as they are now, sorted by URI, without opening any.

        Of a deduplicated table one entry stands for all: it changes when rows are appended, and
        not when they are compacted.

        Raises:
            CatalogError: There is no such table, or no file of it.
            StorageError: The storage refused.
        """
        source = self.source(name)
        if source.declaration is not None:
            appended = self.chunk_table(name).read().next_sequence
            return (FileEntry(uri=source.location, num_bytes=0, version=f"{appended}"),)
        return list_files(source.location, self._options)

    def refresh(self) -> None:
        """Forget what was read of the tables' files."""
        with self._lock:
            self._tables.clear()


def load_catalog(
    path: str | Path,
    options: StorageOptions | None = None,
    *,
    cache_path: str | Path | None = None,
) -> FileCatalog:
    """Return the catalog that a YAML file describes; no table file is touched.

    Args:
        path: The YAML file.
        options: How to reach S3.
        cache_path: Where to keep footers between processes; None keeps them in memory only.

    Raises:
        CatalogError: The file is missing, is not YAML or does not say what a table needs.
    """
    path = Path(path)
    body = _read_yaml(path)
    if not isinstance(body, dict):
        raise CatalogError(f"catalog {path}: expected a mapping with the key 'tables'")
    _check_keys(f"catalog {path}", body, ("tables",))
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
    cache = FooterCache(Path(cache_path) if cache_path is not None else None)
    return FileCatalog(sources, origin=str(path), options=options, cache=cache)


def _read_yaml(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CatalogError(f"catalog {path} does not exist; create it or name another") from None
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
    kind = body.get("kind", KINDS[0])
    if kind not in KINDS:
        raise CatalogError(
            f"{place}: kind {kind!r} is not known{_suggestion(str(kind), KINDS)} "
            f"(known: {', '.join(KINDS)})"
        )
    _check_keys(place, body, _CHUNK_TABLE_KEYS if kind == KIND else _TABLE_KEYS)
    location = body.get("location")
    if not isinstance(location, str) or not location.strip():
        raise CatalogError(
            f"{place}: 'location' is missing or empty; "
            "give a file, a folder, a glob or an s3:// URL"
        )
    file_format = body.get("format", FORMATS[0])
    if file_format not in FORMATS:
        raise CatalogError(
            f"{place}: format {file_format!r} is not supported"
            f"{_suggestion(str(file_format), FORMATS)} (supported: {', '.join(FORMATS)})"
        )
    try:
        location = canonical_location(location.strip(), path.absolute().parent)
    except CatalogError as error:
        raise CatalogError(f"{place}: {error}") from error
    if kind != KIND:
        return TableSource(name=name, location=location, format=file_format)
    if any(sign in location for sign in "*?["):
        raise CatalogError(f"{place}: 'location' must be one folder of its own, not a pattern")
    declaration = read_declaration(place, body)
    return TableSource(name=name, location=location, format="chunks", declaration=declaration)


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
