"""What was chosen for a stage when it ran, as plain data for its manifest.

It lies in the manifest's metrics, so that whoever reuses the output can still tell how it was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.reading.format_input import FormatInput
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.worker.spec import InputSpec, ShuffleInput

MAX_TABLES = 20
"""Most scans that are told of one by one."""

MAX_DECISIONS = 20
"""Most decisions that are told of one by one."""


def input_choices(
    snapshot: Snapshot, leaves: Iterable[tuple[str, Sequence[InputSpec]]]
) -> dict[str, Any]:
    """What is read: stored bytes over all tasks, and of each table how much of how much.

    Args:
        snapshot: Files of the tables.
        leaves: For each leaf its table (empty for a shuffle) and what each task reads of it.
    """
    total = 0
    scans: list[dict[str, Any]] = []
    for table, parts in leaves:
        files: set[str] = set()
        rows = num_bytes = 0
        metrics: Counter[str] = Counter()
        for part in parts:
            if isinstance(part, ShuffleInput):
                total += part.num_bytes
                continue
            if isinstance(part, FormatInput):
                files |= {file.uri for file in part.file_rows}
                rows, num_bytes = rows + part.num_rows, num_bytes + part.num_bytes
                metrics.update(part.metrics)
                continue
            files |= {file.uri for file in part.files}
            rows += sum(file.read_rows for file in part.files)
            num_bytes += sum(file.read_bytes for file in part.files)
        total += num_bytes
        if table and len(scans) < MAX_TABLES:
            known = snapshot.table(table)
            scans.append(
                {
                    "table": known.table,
                    "files": len(files),
                    "of_files": sum(1 for file in known.files if file.num_rows),
                    "rows": rows,
                    "of_rows": known.num_rows,
                    "bytes": num_bytes,
                    **metrics,
                }
            )
    return {"bytes": total, "scans": scans}


def task_choices(settings: EngineSettings, slots: int) -> dict[str, int]:
    """What the number of tasks depends on, besides the input."""
    return {
        "slots": slots,
        "target_task_bytes": settings.target_task_bytes,
        "min_task_bytes": settings.min_task_bytes,
    }


def adaptive_choices(decisions: Sequence[Decision]) -> dict[str, Any]:
    """What was decided by the sizes of the inputs; nothing where nothing was.

    Of many decisions the last ones are counted by kind: `7 further decisions: 5 skew, 2 prune`.
    """
    told = [decision.to_dict() for decision in decisions[:MAX_DECISIONS]]
    if rest := Counter(decision.kind for decision in decisions[MAX_DECISIONS:]):
        counts = ", ".join(f"{count:,} {kind}" for kind, count in rest.items())
        plural = "" if rest.total() == 1 else "s"
        told.append(
            {"kind": "more", "text": f"{rest.total():,} further decision{plural}: {counts}"}
        )
    return {"adaptive": told} if told else {}
