"""How a scan of a deduplicated table would be read now, as text.

The plan of a query does not depend on chunks, so this is true for the moment only: a run looks at
the chunks of its own snapshot by the same rules.
"""

from __future__ import annotations

from stagecoach.infra.formats.deduplicated.scan import plan_chunk_scan
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.formats.deduplicated.chunk import DedupState
from stagecoach.planner.formats.deduplicated.explain import reading_text
from stagecoach.planner.formats.deduplicated.yaml_text import plan_to_yaml


def scan_text(request: ScanRequest, info: TableInfo, *, details: bool = False) -> str:
    """Return what a scan reads and compares.

    Args:
        request: The scan; its parameters have no values here, and rule out no chunk.
        info: The table now.
        details: Whether the plan of the scan follows, as YAML.

    Raises:
        CatalogError: The table is no longer what the plan was made for.
    """
    if not isinstance(info.detail, DedupState):
        return ""
    table = TableSnapshot(
        table=info.name, columns=info.columns, files=(), format=info.format, detail=info.detail
    )
    scan = plan_chunk_scan(request, table)
    text = reading_text(scan.reading, scan.context, len(info.detail.chunks))
    if not details:
        return text
    plan = plan_to_yaml(scan.plan, scan.context)
    return "\n".join([text, *(f"    {line}" for line in plan.splitlines() if line)])
