"""The files of a new component, which `stagecoach init` and `dg scaffold defs` write.

dg scaffold defs stagecoach.StagecoachProject shop
─▶ defs/shop/defs.yaml, catalog.yaml, queries/hello_stagecoach.sql
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import dagster as dg

_DEFS = """\
# A component of Dagster: every query in queries/ over the tables of catalog.yaml.
type: stagecoach.StagecoachProject

attributes:
  queries: queries
  catalog: catalog.yaml
  # Shuffles, results and published tables; a folder or a URL such as s3://bucket/stagecoach.
  storage: {storage}
  # ops: the catalog shows tables alone; assets: every stage is an asset with a history.
  stages: ops
"""
_CATALOG = """\
# The tables that queries read. `stagecoach tables add PATH --catalog THIS_FILE` adds one.
# A location is a file, a folder or a glob; relative ones start from this file's folder.
tables: {}
"""
_QUERY = """\
-- description: A first query; replace it by one that reads a table of catalog.yaml
-- checks:
--   - row_count: {min: 1}
SELECT 'hello' AS greeting
"""
_STORAGE = ".stagecoach/storage"


def component_files(up: str) -> Iterator[tuple[PurePosixPath, str]]:
    """The files of a component, by their places in its folder.

    Args:
        up: The way from this folder to the project's, such as `../..`.
    """
    yield PurePosixPath("defs.yaml"), _DEFS.format(storage=f"{up}/{_STORAGE}")
    yield PurePosixPath("catalog.yaml"), _CATALOG
    yield PurePosixPath("queries/hello_stagecoach.sql"), _QUERY


class ComponentScaffolder(dg.Scaffolder[Any]):
    """What `dg scaffold defs` writes."""

    def scaffold(self, request: "dg.ScaffoldRequest[Any]") -> None:
        """Write a component with a catalog and a first query; what is there stays."""
        folder = request.target_path
        root = request.project_root or Path.cwd()
        up = Path(os.path.relpath(root, folder)).as_posix()
        for place, text in component_files(up):
            file = folder / place
            if place.name == "defs.yaml" and request.scaffold_format != "yaml":
                dg.scaffold_component(request)
            elif not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
