"""A decision in words, for logs, manifests and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from stagecoach.infra.config.settings import AdaptiveKind

DecisionKind = AdaptiveKind | OneOf["bloom", "incremental"]


@dataclass(frozen=True)
class Decision:
    """Something that was decided when a stage started.

    Args:
        kind: Which decision; for most, `EngineSettings.decides` says whether it may be made.
        text: What was chosen and from which numbers, in one line.
    """

    kind: DecisionKind
    text: str

    def to_dict(self) -> Mapping[str, Any]:
        """Plain data for the manifest's metrics."""
        return {"kind": self.kind, "text": self.text}
