"""Which commits upstream an output comes from: in, the inputs of a stage; out, whether they agree.

A stage that is computed a second time may come out differently (ties under a LIMIT, the last digits
of a sum of doubles). Whoever reads it afterwards must not be joined with what was computed from its
first output. So each commit names, by fingerprint, the content of every stage upstream. What was
computed from other outputs than there are now is not used again, and a stage whose inputs disagree
about one of them does not run: the older of them is computed anew first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from infra.runtime.context import StageContext
from infra.runtime.pointers import StagePointer, read_pointer
from infra.shuffle.commit import mark_lost
from infra.shuffle.manifest import Manifest, ManifestError
from infra.storage import layout

log = logging.getLogger(__name__)


def merged_lineage(inputs: Mapping[int, StagePointer]) -> dict[str, str]:
    """The contents that an output of these inputs comes from, by fingerprint; unknown ones not."""
    merged: dict[str, str] = {}
    for pointer in inputs.values():
        merged.update(pointer.lineage)
        if pointer.content:
            merged[pointer.fingerprint] = pointer.content
    return merged


def comes_from(manifest: Manifest, inputs: Mapping[int, StagePointer]) -> bool:
    """Whether an output of a stage is of these inputs, as far as their contents are known."""
    now = merged_lineage(inputs)
    return all(now.get(key, content) == content for key, content in manifest.lineage.items())


def check_lineage(
    context: StageContext, inputs: Mapping[int, StagePointer], *, thorough: bool = False
) -> None:
    """Refuse inputs that come from different outputs of one stage.

    Args:
        context: The run.
        inputs: How the stages ended that are to be read.
        thorough: Whether to compare with what the run has pinned even where the inputs agree.

    Raises:
        ManifestError: Names an input that is out of date, which is marked as lost.
    """
    if not thorough and not _disagree(inputs):
        return
    numbers = {context.fingerprints[i]: i for i in context.fingerprints}
    for i, pointer in inputs.items():
        for fingerprint, content in pointer.lineage.items():
            if (upstream := numbers.get(fingerprint)) is None:
                continue
            pinned = read_pointer(context.store, context.root_run_id, upstream)
            if pinned is None or not pinned.content or pinned.content == content:
                continue
            mark_lost(context.store, pointer.fingerprint, pointer.manifest_hash)
            raise ManifestError(
                context.stage_name(i),
                context.store.uri(layout.manifest(pointer.fingerprint)),
                f"it was computed from another output of {context.stage_name(upstream)} than the "
                "one that there is now",
            )


def _disagree(inputs: Mapping[int, StagePointer]) -> bool:
    seen: dict[str, str] = {}
    for pointer in inputs.values():
        for fingerprint, content in {
            **pointer.lineage,
            pointer.fingerprint: pointer.content,
        }.items():
            if content and seen.setdefault(fingerprint, content) != content:
                return True
    return False
