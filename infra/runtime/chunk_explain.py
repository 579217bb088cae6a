"""How the deduplicated tables of a query would be read now: in, a graph and a catalog; out, text.

The plan of a query does not depend on chunks, so this is true for the moment only: a run looks at
the chunks of its own snapshot by the same rules.
"""

from __future__ import annotations

from infra.catalog.snapshot import TableSnapshot
from infra.runtime.chunk_scans import plan_chunk_scan
from planner.catalog import Catalog
from planner.chunks.explain import reading_text
from planner.chunks.yaml_text import plan_to_yaml
from planner.physical import DedupScanExec
from planner.stages import StageGraph


def chunk_scans_text(graph: StageGraph, catalog: Catalog, *, details: bool = False) -> str:
    """What each scan of a deduplicated table reads and compares; empty where there is none.

    Args:
        graph: The query; its parameters have no values here, and rule out no chunk.
        catalog: Knows the chunks as they are now.
        details: Whether the plan of each scan follows, as YAML.

    Raises:
        CatalogError: A table is no longer what the plan was made for.
    """
    lines: list[str] = []
    for stage in graph.stages:
        for leaf in stage.leaves:
            info = catalog.table(leaf.table) if isinstance(leaf, DedupScanExec) else None
            if info is None or not isinstance(leaf, DedupScanExec):
                continue
            table = TableSnapshot(
                table=info.name,
                columns=info.columns,
                files=(),
                dedup=info.dedup,
                chunks=info.chunks,
            )
            scan = plan_chunk_scan(stage.fragment, leaf, table, {}, graph.time_zone)
            text = reading_text(scan.reading, scan.context, len(info.chunks))
            lines.append(f"stage {stage.stage_id} reads {text}")
            if details:
                plan = plan_to_yaml(scan.plan, scan.context)
                lines += [f"    {line}" for line in plan.splitlines() if line]
    return "\n".join(lines)
