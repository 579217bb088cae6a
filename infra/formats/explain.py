"""How the tables of a query would be read now, as text, where their formats have something to tell.

A plan does not depend on what is stored, so this is true for the moment only.
"""

from __future__ import annotations

from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import scan_request
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import StageGraph


def scans_text(graph: StageGraph, catalog: Catalog, *, details: bool = False) -> str:
    """Return what each scan reads; empty where no format has anything to tell.

    Args:
        graph: The query; its parameters have no values here, and rule out nothing.
        catalog: Knows the tables as they are now.
        details: Whether to show everything.

    Raises:
        CatalogError: A table is no longer what the plan was made for.
    """
    lines: list[str] = []
    for stage in graph.stages:
        for leaf in stage.leaves:
            info = catalog.table(leaf.table) if isinstance(leaf, ScanExec) else None
            if info is None or not isinstance(leaf, ScanExec):
                continue
            request = scan_request(stage.fragment, leaf, info.format, {}, graph.time_zone)
            text = table_format(info.format).explain_scan(request, info, details=details)
            if text:
                lines.append(f"stage {stage.stage_id} reads {text}")
    return "\n".join(lines)
