"""The log of a campaign, from which one that was stopped resumes: a line of JSON for each trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def logged_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log; a last line that was cut off is removed from the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    # `splitlines` would split at the other line separators of Unicode, too, which messages have.
    return [json.loads(line) for line in whole.split("\n")[:-1]]
