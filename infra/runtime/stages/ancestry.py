"""From which commits upstream an output comes, and whether those of a stage's inputs agree.

A stage that is computed a second time may come out differently (ties under a LIMIT, the last digits
of a sum of doubles). Whoever reads it afterwards must not be joined with what was computed from its
first output. So each commit names, by fingerprint, the content of every stage upstream. What was
computed from other outputs than there are now is not used again, and a stage whose inputs disagree
about one of them does not run: the older of them is computed anew first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from stagecoach.infra.runtime.records.pointers import StagePointer, read_pointer
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.runtime.stages.todays_times import TODAY, earlier_day
from stagecoach.infra.shuffle.commit import mark_lost
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.storage import layout

log = logging.getLogger(__name__)


def merged_ancestry(inputs: Mapping[int, StagePointer]) -> dict[str, str]:
    """The contents that an output of these inputs comes from, by fingerprint; unknown ones not."""
    merged: dict[str, str] = {}
    for pointer in inputs.values():
        merged.update(earlier_day(pointer.ancestry, merged.get(TODAY, "")))
        if pointer.content:
            merged[pointer.fingerprint] = pointer.content
    return merged


def comes_from(manifest: Manifest, inputs: Mapping[int, StagePointer], day: str) -> bool:
    """Whether an output of a stage is of these inputs, as far as their contents are known.

    Args:
        manifest: The output.
        inputs: How the stages ended that it is to come from.
        day: The day on which it must have been made if it holds for one day only.
    """
    now = {**merged_ancestry(inputs), TODAY: day}
    return all(now.get(key, content) == content for key, content in manifest.ancestry.items())


def check_ancestry(run: Run, inputs: Mapping[int, StagePointer], *, thorough: bool = False) -> None:
    """Refuse inputs that come from different outputs of one stage.

    Args:
        run: The run.
        inputs: How the stages ended that are to be read.
        thorough: Whether to compare with what the run has pinned even where the inputs agree.

    Raises:
        ManifestError: Names an input that is out of date, which is marked as lost.
    """
    if not thorough and not _disagree(inputs):
        return
    numbers = {run.fingerprints[i]: i for i in run.fingerprints}
    for i, pointer in inputs.items():
        for fingerprint, content in pointer.ancestry.items():
            if (upstream := numbers.get(fingerprint)) is None:
                continue
            pinned = read_pointer(run.store, run.root_run_id, upstream)
            if pinned is None or not pinned.content or pinned.content == content:
                continue
            mark_lost(run.store, pointer.fingerprint, pointer.manifest_hash)
            raise ManifestError(
                run.stage_name(i),
                run.store.uri(layout.manifest(pointer.fingerprint)),
                f"it was computed from another output of {run.stage_name(upstream)} than the "
                "one that there is now",
            )


def _disagree(inputs: Mapping[int, StagePointer]) -> bool:
    seen: dict[str, str] = {}
    for pointer in inputs.values():
        for fingerprint, content in {
            **pointer.ancestry,
            pointer.fingerprint: pointer.content,
        }.items():
            if content and seen.setdefault(fingerprint, content) != content:
                return True
    return False
