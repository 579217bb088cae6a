"""A version of a published table as the planner and runs see it."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.infra.formats.parquet_footers import FooterCache, read_footers, table_info
from stagecoach.infra.formats.parquet_scan import footers_snapshot
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.integrity.adoption import warn_without_checksums
from stagecoach.infra.reading.footers import FileFooter
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry, canonical_uri
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError

FORMAT_NAME = "published"


def version_state(
    store: ObjectStore, version: TableVersion, name: str, cache: FooterCache
) -> TableState:
    """Return what a version tells.

    Args:
        store: The storage root.
        version: The version.
        name: Name of the table.
        cache: Footers that are known already.

    Raises:
        CatalogError: A file is not the one that the version names, or cannot be used.
    """
    footers = _footers(store, version, cache)
    partitions = version.columns[len(version.columns) - len(version.partition_by) :]
    info = replace(
        table_info(name, footers, partitions),
        format=FORMAT_NAME,
        notes={name: ColumnNotes(text) for name, text in version.comments},
    )
    return TableState(info, footers_snapshot(info, footers, version.number))


def version_entries(store: ObjectStore, version: TableVersion) -> tuple[FileEntry, ...]:
    """Return the files of a version."""
    # Published files are never written twice, so their name is identity enough: a copy of the
    # storage root, with other times, is as good.
    return tuple(
        FileEntry(
            uri=canonical_uri(store, key),
            num_bytes=file.num_bytes,
            version="",
            folders=file.folders,
        )
        for file, key in zip(version.files, version.file_keys(), strict=True)
    )


def _footers(
    store: ObjectStore, version: TableVersion, cache: FooterCache
) -> tuple[FileFooter, ...]:
    prefix = canonical_uri(store, paths.table_prefix(version.table))
    warn_without_checksums(version.table, prefix, (file.checksums for file in version.files))
    options = StorageOptions.of(store)
    footers = read_footers(version_entries(store, version), options, cache, immutable=True)
    found: list[FileFooter] = []
    for file, footer in zip(version.files, footers, strict=True):
        if footer.checksum != file.footer_checksum:
            raise CatalogError(
                f"table '{version.table}': {footer.entry.uri} is not the file that version "
                f"{version.number} names; restore it, or publish the table again"
            )
        found.append(replace(footer, column_checksums=file.checksums))
    return tuple(sorted(found, key=lambda footer: footer.entry.uri))
